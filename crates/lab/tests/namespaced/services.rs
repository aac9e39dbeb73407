//! Services on the nodes of a path: a connection to one of them arrives at the receiver,
//! the kernel has the rules that the record counts, and nothing of them is left.
//!
//! The programs that show rules are the independent eye.

mod ebpf;
mod ipvs;
mod userspace;

use std::net::TcpStream;
use std::time::{Duration, Instant};

use plumbline_experiment::{Family, Placement, ServicePosition, ServiceProxy, Services};
use plumbline_harness::Path;
use plumbline_lab::{Dressing, LabError, Place, StandingNetwork};
use plumbline_testkit as testkit;

use crate::dressing::{
    EBPF, LIMIT, PROGRAMS, asks, dress, has_cilium, hooks, printed, receiver, standing,
};

pub(crate) fn dressed(
    proxy: ServiceProxy,
    count: u32,
    endpoints: u32,
    position: ServicePosition,
) -> Dressing {
    Dressing {
        services: Services {
            count,
            endpoints,
            proxy,
            position,
        },
        ..Dressing::default()
    }
}

/// Rules and chains that the system's program shows on a node.
fn shown(place: &Place, proxy: ServiceProxy, family: Family) -> (u64, u64) {
    let six = if family == Family::V6 { "6" } else { "" };
    let count = |text: &str, start: &str| {
        let lines = text
            .lines()
            .filter(|line| line.trim_start().starts_with(start));
        lines.count() as u64
    };
    let variant = match proxy {
        ServiceProxy::Own
        | ServiceProxy::IptablesLegacy
        | ServiceProxy::Ipvs
        | ServiceProxy::Userspace => "legacy",

        ServiceProxy::IptablesNft => "nft",
        ServiceProxy::Nftables => {
            let listed = printed(place, &["/usr/sbin/nft", "-j", "list", "ruleset"]);
            let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
            let all = listed["nftables"].as_array().expect("a list");
            let of = |kind: &str| all.iter().filter(|it| it.get(kind).is_some()).count() as u64;
            return (of("rule"), of("chain"));
        }
        ServiceProxy::Ebpf | ServiceProxy::EbpfSocket => return (0, 0),
    };
    let save = format!("/usr/sbin/ip{six}tables-{variant}-save");
    let text = printed(place, &[&save]);
    (count(&text, "-A "), count(&text, ":KUBE-"))
}

fn holds(test: &str, network: &str, placement: Placement, family: Family, proxy: ServiceProxy) {
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let mut counted = None;
    for position in ServicePosition::ALL.iter().copied() {
        let mut standing = standing(network, placement, family);
        let front = standing.front(([192, 0, 2, 1], 9).into());
        assert_eq!(front, ([192, 0, 2, 1], 9).into(), "a bare path has none");
        let wanted = dressed(proxy, 120, 2, position);
        if !dress(test, &mut standing, wanted, PROGRAMS) {
            return;
        }
        for _ in 0..4 {
            asks(&standing);
        }
        let rules = standing.counters().expect("counters").rules;
        let [first, second] = &rules[..] else {
            panic!("both nodes have rules: {rules:?}");
        };
        assert_eq!((first.rules, first.chains), (second.rules, second.chains));
        assert!(first.connections >= 1, "it tracks: {first:?}");
        assert!(first.connections_max > first.connections, "{first:?}");
        assert_eq!(first.connections_dropped, 0);
        let nodes = standing.topology().nodes.clone();
        for node in &nodes {
            let seen = shown(node, proxy, family);
            assert_eq!(seen, (first.rules, first.chains), "{}", node.name);
        }
        assert_eq!(*counted.get_or_insert(first.rules), first.rules);
        let errors = standing.take_down();
        assert!(errors.is_empty(), "{errors:?}");
        for node in &nodes {
            assert_eq!(shown(node, proxy, family), (0, 0), "{} is clean", node.name);
        }
    }
}

macro_rules! paths {
    ($($name:ident: $network:literal $placement:ident $family:ident,)*) => {
        $(mod $name {
            use super::*;

            fn hold(proxy: ServiceProxy) {
                let name = proxy.as_str();
                let test = concat!("services on ", stringify!($name));
                let (placement, family) = (Placement::$placement, Family::$family);
                holds(&format!("{test} by {name}"), $network, placement, family, proxy);
            }

            #[test]
            fn iptables_legacy() {
                hold(ServiceProxy::IptablesLegacy);
            }

            #[test]
            fn iptables_nft() {
                hold(ServiceProxy::IptablesNft);
            }

            #[test]
            fn nftables() {
                hold(ServiceProxy::Nftables);
            }
        })*
    };
}

paths! {
    a_bridge: "host-gw" CrossNode V4,
    a_bridge_v6: "host-gw" CrossNode V6,
    plain_routes: "routed" CrossNode V4,
    plain_routes_on_one_node: "routed" SameNode V4,
    a_tunnel: "vxlan" CrossNode V4,
    nodes_alone: "host" CrossNode V4,
}

/// What is written by netlink is what `nft` makes of the same text, expression by
/// expression.
#[test]
fn nft_would_write_the_same_rules() {
    const NFT: &str = "/usr/sbin/nft";
    let test = "nft would write the same rules";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let shown = |place: &Place| printed(place, &[NFT, "-s", "list", "ruleset"]);
    let expressions = |place: &Place| {
        let text = printed(place, &[NFT, "--debug=netlink", "list", "ruleset"]);
        let lines = text.lines().map(str::trim);
        let mut lines: Vec<String> = lines.map(without_handles).collect();
        // A table of hashes has no order.
        lines.sort();
        lines
    };
    for family in [Family::V4, Family::V6] {
        for endpoints in [1, 3] {
            let mut standing = standing("host-gw", Placement::CrossNode, family);
            let wanted = dressed(ServiceProxy::Nftables, 2, endpoints, ServicePosition::Last);
            if !dress(test, &mut standing, wanted, PROGRAMS) {
                return;
            }
            let [node, other] = &standing.topology().nodes[..] else {
                panic!("two nodes");
            };
            let written = (shown(node), expressions(node));
            let choice = format!("numgen random mod {endpoints} vmap {{ 0 : goto endpoint-");
            assert_eq!(written.0.matches(&choice).count(), 2, "{}", written.0);
            let file = std::env::temp_dir().join(format!("rules-{}", std::process::id()));
            std::fs::write(&file, &written.0).expect("written");
            printed(other, &[NFT, "flush", "ruleset"]);
            printed(other, &[NFT, "-f", &file.to_string_lossy()]);
            std::fs::remove_file(&file).expect("removed");
            assert_eq!((shown(other), expressions(other)), written);
            asks(&standing);
        }
    }
}

/// A line without what the kernel numbers as it likes.
fn without_handles(line: &str) -> String {
    let is_head = ["ip kube-proxy ", "ip6 kube-proxy "].map(|head| line.starts_with(head));
    let is_handle = |c: char| c.is_ascii_digit() || c == ' ';
    let line = match is_head.contains(&true) {
        true => line.trim_end_matches(is_handle),
        false => line,
    };
    line.to_owned()
}

/// What an ordinary user writes in many transactions is taken away in one.
#[test]
fn thousands_of_services_go_again() {
    let test = "thousands of services go again";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    for proxy in [
        ServiceProxy::IptablesLegacy,
        ServiceProxy::IptablesNft,
        ServiceProxy::Nftables,
    ] {
        let mut standing = standing("host-gw", Placement::CrossNode, Family::V4);
        let wanted = dressed(proxy, 5_000, 1, ServicePosition::Last);
        if !dress(test, &mut standing, wanted, PROGRAMS) {
            return;
        }
        asks(&standing);
        let nodes = standing.topology().nodes.clone();
        let errors = standing.take_down();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(shown(&nodes[0], proxy, Family::V4), (0, 0));
    }
}

#[test]
fn a_network_past_the_rules_is_refused_with_the_reason() {
    let test = "a network past the rules is refused";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let mut standing = standing("macvlan", Placement::CrossNode, Family::V4);
    let wanted = dressed(ServiceProxy::Nftables, 3, 1, ServicePosition::None);
    let error = standing.dress(wanted).expect_err("refused");
    assert!(matches!(error, LabError::Unsupported { .. }), "{error}");
    let error = error.to_string();
    if error.contains("install") {
        return testkit::skip(test, &error);
    }
    assert!(error.contains("did not arrive"), "{error}");
    let nodes = standing.topology().nodes.clone();
    assert!(standing.take_down().is_empty());
    for node in &nodes {
        assert_eq!(shown(node, ServiceProxy::Nftables, Family::V4), (0, 0));
    }
}
