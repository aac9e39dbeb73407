//! Policies on the nodes of a path: what they allow arrives, what they forbid does not,
//! the kernel has the rules that the record counts, and nothing of them is left.
//!
//! The programs that show rules are the independent eye.

use std::process::Command;

use plumbline_experiment::{
    Enforcer, Family, Placement, Policies, PolicyDirection, PolicyPosition, Selected,
};
use plumbline_harness::Path as _;
use plumbline_lab::{Catalogue, Dressing, LabError, Launcher, PathSpec, Place, StandingNetwork};
use plumbline_testkit as testkit;

fn standing(network: &str, placement: Placement, family: Family, pods: usize) -> StandingNetwork {
    let spec = PathSpec {
        network: network.into(),
        placement,
        family,
        mtu: 1500,
    };
    let validated = spec.validate(&Catalogue::default()).expect("supported");
    let launcher = Launcher::new("unused".into(), Vec::new());
    validated.beside(pods).build(&launcher).expect("stands")
}

/// Lays policies on a path; whether that could be. Without a program it is a skip.
fn guard(test: &str, standing: &mut StandingNetwork, policies: Policies) -> bool {
    let dressing = Dressing {
        policies,
        ..Dressing::default()
    };
    match standing.dress(dressing) {
        Ok(()) => true,
        Err(error @ LabError::Unsupported { .. }) if error.to_string().contains("install") => {
            testkit::skip(test, &error.to_string());
            false
        }
        Err(error) => panic!("{policies:?}: {error}"),
    }
}

/// What a program prints inside.
fn printed(place: &Place, command: &[&str]) -> String {
    let run = || Command::new(command[0]).args(&command[1..]).output();
    let output = place.namespace.run(run).expect("entered").expect("started");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Rules and chains on a node, as the programs that show them say.
fn shown(place: &Place, family: Family) -> (usize, usize) {
    let count = |text: &str, of: &dyn Fn(&str) -> bool| text.lines().filter(|it| of(it)).count();
    let six = if family == Family::V6 { "6" } else { "" };
    let save = format!("/usr/sbin/ip{six}tables-legacy-save");
    let legacy = printed(place, &[&save, "-t", "filter"]);
    let listed = printed(place, &["/usr/sbin/nft", "-j", "list", "ruleset"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let all = listed["nftables"].as_array().expect("a list");
    let of = |kind: &str| all.iter().filter(|it| it.get(kind).is_some()).count();
    let is_own = |line: &str| line.starts_with(':') && line.contains(" - [");
    (
        count(&legacy, &|line| line.starts_with("-A ")) + of("rule"),
        count(&legacy, &is_own) + of("chain"),
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
        let mut standing = standing(network, placement, Family::V4, neighbours);
        assert_eq!(standing.check_policies(), None);
        if !guard(test, &mut standing, policies) {
            return;
        }
        assert_eq!(standing.check_policies(), None, "{policies:?}");
        let node = standing.topology().nodes[1].clone();
        let client_node = standing.topology().nodes[0].clone();
        let counters = standing.snapshot().expect("counted");
        for (place, number) in [(&client_node, "node1"), (&node, "node2")] {
            let said = counters.rules.iter().find(|it| it.namespace == number);
            let said = said.map_or((0, 0), |it| (it.rules as usize, it.chains as usize));
            assert_eq!(shown(place, Family::V4), said, "{policies:?} {number}");
        }
        let left = standing.take_down();
        assert!(left.is_empty(), "{left:?}");
        for place in [&node, &client_node] {
            assert_eq!(shown(place, Family::V4), (0, 0), "{policies:?}");
            assert_eq!(sets(place), 0, "{policies:?}");
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
    for enforcer in [Enforcer::Nft, Enforcer::Iptables, Enforcer::KubeRouter] {
        let mut standing = standing("host-gw", Placement::CrossNode, Family::V6, 0);
        let policies = Policies {
            count: 5,
            enforcer,
            ..Policies::default()
        };
        if !guard(TEST, &mut standing, policies) {
            return;
        }
        assert_eq!(standing.check_policies(), None, "{policies:?}");
    }
}

/// Rules that somebody takes away are missed.
#[test]
fn rules_that_are_gone_are_found_out() {
    const TEST: &str = "rules_that_are_gone_are_found_out";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    let mut standing = standing("host-gw", Placement::CrossNode, Family::V4, 0);
    let policies = Policies {
        count: 3,
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
        standing.check_policies().expect("found out")
    };
    let wrong = insert("accept");
    assert!(wrong.contains("forbid got through"), "{wrong}");
    let wrong = insert("drop");
    assert!(wrong.contains("allow did not get through"), "{wrong}");
}

#[test]
fn a_network_that_goes_past_the_rules_is_refused() {
    const TEST: &str = "a_network_that_goes_past_the_rules_is_refused";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    let policies = Policies {
        count: 3,
        ..Policies::default()
    };
    for (network, reason) in [("host", "with pods"), ("macvlan", "forward packets")] {
        let mut standing = standing(network, Placement::CrossNode, Family::V4, 0);
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
