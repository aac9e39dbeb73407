//! Policies on the nodes of a path: what they allow arrives, what they forbid does not,
//! the kernel has the rules that the record counts, and nothing of them is left.
//!
//! The programs that show rules are the independent eye.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use plumbline_experiment::{
    Enforcer, Family, Placement, Policies, PolicyDirection, PolicyPeers, PolicyPosition, Selected,
    ServicePosition, ServiceProxy,
};
use plumbline_harness::Path;
use plumbline_lab::{Dressing, Place, StandingNetwork};
use plumbline_testkit as testkit;
use serde_json::Value;

use crate::dressing::{EBPF, PROGRAMS, asks, dress, has_cilium, hooks, printed, standing_beside};
use crate::services::dressed;

/// Those that give pods programs, and write no rules.
const BY_EBPF: [Enforcer; 2] = [Enforcer::CalicoEbpf, Enforcer::Cilium];

fn standing(network: &str, placement: Placement, family: Family) -> StandingNetwork {
    standing_beside(network, placement, family, 0)
}

/// Lays policies on a path; whether that could be. All that is by eBPF is skipped as one.
fn guard(test: &str, standing: &mut StandingNetwork, policies: Policies) -> bool {
    let (test, lacks) = match BY_EBPF.contains(&policies.enforcer) {
        true => ("policies by ebpf", EBPF),
        false => (test, PROGRAMS),
    };
    let dressing = Dressing {
        policies,
        ..Dressing::default()
    };
    dress(test, standing, dressing, lacks)
}

/// Rules and chains on a node, as the programs that show them say.
fn shown(place: &Place, family: Family) -> (usize, usize) {
    let count = |text: &str, of: &dyn Fn(&str) -> bool| text.lines().filter(|it| of(it)).count();
    let six = if family == Family::V6 { "6" } else { "" };
    let save = format!("/usr/sbin/ip{six}tables-legacy-save");
    let legacy = printed(place, &[&save, "-t", "filter"]);
    let listed = printed(place, &["/usr/sbin/nft", "-j", "list", "ruleset"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let all = listed["nftables"].as_array().expect("a list");
    let rules = all.iter().filter(|it| it.get("rule").is_some());
    let is_own = |line: &str| line.starts_with(':') && line.contains(" - [");
    // As those that `iptables` has in any case.
    let is_usual = |chain: &Value| chain["table"] == "filter" && chain.get("hook").is_some();
    let chains = all.iter().filter_map(|it| it.get("chain"));
    (
        count(&legacy, &|line| line.starts_with("-A ")) + rules.count(),
        count(&legacy, &is_own) + chains.filter(|it| !is_usual(it)).count(),
    )
}

/// Sets of `ipset` on a node.
fn sets(place: &Place) -> usize {
    let listed = printed(place, &["/usr/sbin/ipset", "list", "-n"]);
    listed.lines().count()
}

/// Every enforcer on a path, undone.
fn act(test: &str, network: &str, placement: Placement, change: fn(&mut Policies)) {
    if !testkit::in_private_namespaces(test) {
        return;
    }
    for enforcer in Enforcer::ALL.iter().copied() {
        let mut policies = Policies {
            count: 20,
            enforcer,
            ..Policies::default()
        };
        change(&mut policies);
        let is_romana = matches!(enforcer, Enforcer::Romana | Enforcer::Romana1);
        if is_romana && policies.direction != PolicyDirection::Ingress {
            // Refused, as a test of the texts shows.
            continue;
        }
        let neighbours = usize::from(policies.selects == Selected::Others);
        let mut standing = standing_beside(network, placement, Family::V4, neighbours);
        assert_eq!(standing.check_policies().unwrap(), None);
        if !guard(test, &mut standing, policies) {
            continue;
        }
        assert_eq!(standing.check_policies().unwrap(), None, "{policies:?}");
        for _ in 0..3 {
            asks(&standing);
        }
        let is_by_ebpf = BY_EBPF.contains(&enforcer);
        let pods = &standing.topology().pods;
        let pods: Vec<_> = pods.iter().map(|pod| pod.place.clone()).collect();
        for pod in &pods {
            let programs = if is_by_ebpf { (1, 2) } else { (0, 0) };
            assert_eq!(hooks(pod), programs, "{policies:?} {}", pod.name);
        }
        let node = standing.topology().nodes[1].clone();
        let client_node = standing.topology().nodes[0].clone();
        let counters = standing.snapshot().expect("counted");
        for (place, number) in [(&client_node, "node1"), (&node, "node2")] {
            let said = counters.rules.iter().find(|it| it.namespace == number);
            let said = said.filter(|_| !is_by_ebpf);
            let said = said.map_or((0, 0), |it| (it.rules as usize, it.chains as usize));
            assert_eq!(shown(place, Family::V4), said, "{policies:?} {number}");
        }
        let left = standing.take_down();
        assert!(left.is_empty(), "{left:?}");
        for place in [&node, &client_node] {
            assert_eq!(shown(place, Family::V4), (0, 0), "{policies:?}");
            assert_eq!(sets(place), 0, "{policies:?}");
        }
        for pod in &pods {
            assert_eq!(hooks(pod), (0, 0), "{policies:?} {}", pod.name);
        }
    }
}

#[test]
fn policies_act_on_what_comes_from_another_node() {
    act(
        "policies_act_on_what_comes_from_another_node",
        "host-gw",
        Placement::CrossNode,
        |_| {},
    );
}

#[test]
fn policies_act_between_pods_of_one_node() {
    act(
        "policies_act_between_pods_of_one_node",
        "routed",
        Placement::SameNode,
        |it| it.position = PolicyPosition::First,
    );
}

#[test]
fn policies_act_on_what_is_sent() {
    act(
        "policies_act_on_what_is_sent",
        "vxlan",
        Placement::CrossNode,
        |it| {
            it.direction = PolicyDirection::Both;
            it.members = 3;
        },
    );
}

#[test]
fn policies_act_on_another_pod_and_leave_ours_alone() {
    act(
        "policies_act_on_another_pod_and_leave_ours_alone",
        "routed",
        Placement::CrossNode,
        |it| it.selects = Selected::Others,
    );
}

#[test]
fn policies_act_on_ipv6() {
    const TEST: &str = "policies_act_on_ipv6";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    for enforcer in [
        Enforcer::Nft,
        Enforcer::Iptables,
        Enforcer::KubeRouter,
        Enforcer::CalicoIptables,
        Enforcer::CalicoIptablesNft,
        Enforcer::CalicoNftables,
        Enforcer::CalicoEbpf,
        Enforcer::Cilium,
    ] {
        let mut standing = standing("host-gw", Placement::CrossNode, Family::V6);
        let policies = Policies {
            count: 5,
            enforcer,
            ..Policies::default()
        };
        if !guard(TEST, &mut standing, policies) {
            continue;
        }
        assert_eq!(standing.check_policies().unwrap(), None, "{policies:?}");
        asks(&standing);
    }
}

/// Rules that somebody takes away are missed.
#[test]
fn rules_that_are_gone_are_found_out() {
    const TEST: &str = "rules_that_are_gone_are_found_out";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    let mut standing = standing("host-gw", Placement::CrossNode, Family::V4);
    let policies = Policies {
        count: 3,
        enforcer: Enforcer::Nft,
        ..Policies::default()
    };
    if !guard(TEST, &mut standing, policies) {
        return;
    }
    let node = standing.topology().nodes[1].clone();
    let insert = |verdict| {
        let rule = [
            "insert",
            "rule",
            "ip",
            "plumbline-policies",
            "forward",
            verdict,
        ];
        printed(&node, &[&["/usr/sbin/nft"], &rule[..]].concat());
        standing.check_policies().unwrap().expect("found out")
    };
    let wrong = insert("accept");
    assert!(wrong.contains("forbid got through"), "{wrong}");
    let wrong = insert("drop");
    assert!(wrong.contains("allow did not get through"), "{wrong}");
}

/// Programs that somebody takes away are missed, and what they counted is what they hold.
#[test]
fn programs_that_are_gone_are_found_out() {
    const TEST: &str = "programs_that_are_gone_are_found_out";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    for (enforcer, counts) in [
        // A rule and a member for each.
        (Enforcer::CalicoEbpf, [(0, 0), (20, 20)]),
        // The identities of all, and an entry for each way that nothing restricts.
        (Enforcer::Cilium, [(0, 20 + 2), (0, 20 + 20 + 1)]),
    ] {
        let mut standing = standing("host-gw", Placement::CrossNode, Family::V4);
        let policies = Policies {
            count: 20,
            enforcer,
            ..Policies::default()
        };
        if !guard(TEST, &mut standing, policies) {
            return;
        }
        let rules = standing.counters().expect("counted").rules;
        let counted: Vec<_> = rules.iter().map(|it| (it.rules, it.elements)).collect();
        assert_eq!(counted, counts, "{enforcer:?}");
        let delete = ["/sbin/tc", "qdisc", "del", "dev", "eth0", "clsact"];
        printed(standing.server_place(), &delete);
        let wrong = standing.check_policies().unwrap().expect("found out");
        assert!(wrong.contains("forbid got through"), "{wrong}");
    }
}

/// Where packets go past the nodes' netfilter, the pods' own programs see them.
#[test]
fn cilium_acts_on_its_own_network() {
    const TEST: &str = "policies by ebpf over cilium";
    if !testkit::in_private_namespaces(TEST) || !has_cilium(TEST) {
        return;
    }
    for (placement, direction) in [
        (Placement::CrossNode, PolicyDirection::Ingress),
        (Placement::CrossNode, PolicyDirection::Egress),
        (Placement::SameNode, PolicyDirection::Both),
    ] {
        let mut standing = standing("cilium", placement, Family::V4);
        // Those of its own system.
        let policies = Policies {
            count: 100,
            direction,
            ..Policies::default()
        };
        assert!(guard(TEST, &mut standing, policies));
        assert_eq!(standing.check_policies().unwrap(), None, "{direction:?}");
        asks(&standing);
        assert_eq!(hooks(standing.server_place()), (1, 2), "{direction:?}");
    }
}

/// Packets that go past the rules of their nodes meet programs all the same.
#[test]
fn programs_act_where_rules_do_not() {
    const TEST: &str = "programs_act_where_rules_do_not";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    for (network, placement) in [
        ("macvlan", Placement::CrossNode),
        ("host-gw", Placement::SameNode),
    ] {
        for enforcer in BY_EBPF {
            let mut standing = standing(network, placement, Family::V4);
            let policies = Policies {
                count: 5,
                direction: PolicyDirection::Both,
                enforcer,
                ..Policies::default()
            };
            if !guard(TEST, &mut standing, policies) {
                return;
            }
            assert_eq!(
                standing.check_policies().unwrap(),
                None,
                "{network} {policies:?}"
            );
            asks(&standing);
        }
    }
}

/// More than an ordinary user writes in one transaction of nft, or the kernel takes as one
/// program.
#[test]
fn a_thousand_policies_of_calico_act() {
    act(
        "a_thousand_policies_of_calico_act",
        "routed",
        Placement::CrossNode,
        |it| {
            it.count = match it.enforcer {
                Enforcer::CalicoIptables
                | Enforcer::CalicoIptablesNft
                | Enforcer::CalicoNftables => 1_000,
                Enforcer::CalicoEbpf => 2_500,
                _ => it.count,
            };
        },
    );
}

/// Of Calico's program as many parts as call each other, and of Cilium's map as many entries as
/// it holds: the last is the one that allows.
#[test]
fn as_many_addresses_as_programs_and_maps_hold_act() {
    const TEST: &str = "as_many_addresses_as_programs_and_maps_hold_act";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    for (enforcer, count, members) in [
        (Enforcer::CalicoEbpf, 8_000, 4),
        (Enforcer::Cilium, 5_461, 3),
    ] {
        let mut standing = standing("routed", Placement::CrossNode, Family::V4);
        let policies = Policies {
            count,
            members,
            peers: PolicyPeers::Addresses,
            enforcer,
            ..Policies::default()
        };
        if !guard(TEST, &mut standing, policies) {
            return;
        }
        asks(&standing);
        let rules = standing.counters().expect("counted").rules;
        let entries = match enforcer {
            Enforcer::Cilium => rules[1].elements,
            _ => rules[1].rules,
        };
        assert!(entries >= u64::from(count * members), "{rules:?}");
        assert!(standing.take_down().is_empty());
    }
}

/// A device that two pods share does not say which of them a packet is for.
#[test]
fn calico_is_refused_where_pods_share_a_device() {
    const TEST: &str = "calico_is_refused_where_pods_share_a_device";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    let mut standing = standing_beside("host-gw", Placement::CrossNode, Family::V4, 1);
    let policies = Policies {
        count: 3,
        selects: Selected::Others,
        enforcer: Enforcer::CalicoIptables,
        ..Policies::default()
    };
    let dressing = Dressing {
        policies,
        ..Dressing::default()
    };
    let error = standing.dress(dressing).expect_err("refused").to_string();
    assert!(error.contains("two share one"), "{error}");
}

#[test]
fn a_network_that_goes_past_the_rules_is_refused() {
    const TEST: &str = "a_network_that_goes_past_the_rules_is_refused";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    let policies = Policies {
        count: 3,
        enforcer: Enforcer::Nft,
        ..Policies::default()
    };
    for (network, reason) in [("host", "with pods"), ("macvlan", "forward packets")] {
        let mut standing = standing(network, Placement::CrossNode, Family::V4);
        let dressing = Dressing {
            policies,
            ..Dressing::default()
        };
        let error = standing.dress(dressing).expect_err("refused").to_string();
        if error.contains("install") {
            testkit::skip(TEST, &error);
            return;
        }
        assert!(error.contains(reason), "{network}: {error}");
    }
}

/// Translated packets meet the policies: a service of the port that they forbid is not
/// reached, at either end's node.
#[test]
fn policies_act_behind_services() {
    const TEST: &str = "policies_act_behind_services";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    for (proxy, enforcer) in [
        (ServiceProxy::IptablesLegacy, Enforcer::Iptables),
        (ServiceProxy::IptablesLegacy, Enforcer::KubeRouter),
        (ServiceProxy::Nftables, Enforcer::Nft),
    ] {
        for (count, direction) in [
            (0, PolicyDirection::Ingress),
            (5, PolicyDirection::Ingress),
            (5, PolicyDirection::Egress),
        ] {
            let mut standing = standing("routed", Placement::CrossNode, Family::V4);
            let policies = Policies {
                count,
                direction,
                enforcer,
                ..Policies::default()
            };
            let dressing = Dressing {
                policies,
                ..dressed(proxy, 5, 1, ServicePosition::Last)
            };
            if !dress(TEST, &mut standing, dressing, PROGRAMS) {
                return;
            }
            asks(&standing);
            let reached = reaches_another_service(&standing);
            assert_eq!(reached, count == 0, "{proxy:?} {policies:?}");
            assert_eq!(standing.check_policies().unwrap(), None, "{policies:?}");
            let left = standing.take_down();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

/// Adds a service of another port of the receiver, which listens there; whether the sender
/// reaches it.
fn reaches_another_service(standing: &StandingNetwork) -> bool {
    let server = Path::server(standing);
    let (address, mut ports) = (server.address(), server.port() + 1..=u16::MAX);
    // The very next one may be in use.
    let listen = || ports.find_map(|port| TcpListener::bind((address, port)).ok());
    let listener = standing.server_place().namespace.run(listen);
    let listener = listener.expect("entered").expect("a port is free");
    let listens = listener.local_addr().expect("it listens");
    let rules = format!(
        "add table ip another\n\
         add chain ip another services {{ type nat hook prerouting priority dstnat - 1 ; }}\n\
         add rule ip another services ip daddr 10.96.255.1 tcp dport 80 dnat to {listens}\n"
    );
    let node = &standing.topology().nodes[0];
    printed(node, &["/usr/sbin/nft", &rules]);
    let connect = || {
        let service = SocketAddr::from(([10, 96, 255, 1], 80));
        TcpStream::connect_timeout(&service, Duration::from_millis(500))
    };
    let connected = standing.client_place().namespace.run(connect);
    connected.expect("entered").is_ok()
}
