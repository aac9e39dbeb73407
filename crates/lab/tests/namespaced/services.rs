//! Services on the nodes of a path: a connection to one of them arrives at the receiver,
//! the kernel has the rules that the record counts, and nothing of them is left.
//!
//! The programs that show rules are the independent eye.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use plumbline_experiment::{Family, Placement, ServicePosition, ServiceProxy, Services};
use plumbline_harness::Path;
use plumbline_lab::{Catalogue, Dressing, LabError, Launcher, PathSpec, Place, StandingNetwork};
use plumbline_testkit as testkit;

const LIMIT: Duration = Duration::from_secs(5);

fn standing(network: &str, placement: Placement, family: Family) -> StandingNetwork {
    let spec = PathSpec {
        network: network.into(),
        placement,
        family,
        mtu: 1500,
    };
    let validated = spec.validate(&Catalogue::default()).expect("supported");
    let launcher = Launcher::new("unused".into(), Vec::new());
    validated.build(&launcher).expect("stands")
}

fn dressed(proxy: ServiceProxy, count: u32, endpoints: u32, position: ServicePosition) -> Dressing {
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

/// Dresses a path; whether it could be. Without its program that is a skip.
fn dress(test: &str, standing: &mut StandingNetwork, dressing: Dressing) -> bool {
    match standing.dress(dressing) {
        Ok(()) => true,
        Err(error @ LabError::Unsupported { .. }) if error.to_string().contains("install") => {
            testkit::skip(test, &error.to_string());
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// Asks as an agent would: the receiver listens where the path wants it, the sender sends
/// to what stands before it. Gives the address that the receiver was asked from.
fn asks(standing: &StandingNetwork) {
    let server = Path::server(standing);
    let listens = (server.address(), server.port());
    let place = standing.server_place();
    // A process that another test has just forked holds the last one until it starts.
    let deadline = Instant::now() + LIMIT;
    let listener = loop {
        let bound = place.namespace.run(|| TcpListener::bind(listens));
        match bound.expect("entered") {
            Ok(listener) => break listener,
            Err(error) if Instant::now() > deadline => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let front = standing.front(listener.local_addr().expect("bound"));
    let client = &standing.client_place().namespace;
    let stream = client.run(|| TcpStream::connect_timeout(&front, LIMIT));
    let mut stream = stream.expect("entered").expect("connected");
    stream.set_read_timeout(Some(LIMIT)).expect("set");
    let (mut accepted, _) = listener.accept().expect("accepted");
    stream.write_all(b"question").expect("sent");
    let mut text = [0; 8];
    accepted.read_exact(&mut text).expect("received");
    accepted.write_all(b"an answer").expect("answered");
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!((&text, &answer), (b"question", b"an answer"));
}

/// What a program prints inside.
fn printed(place: &Place, command: &[&str]) -> String {
    let run = || Command::new(command[0]).args(&command[1..]).output();
    let output = place.namespace.run(run).expect("entered").expect("started");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
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
        ServiceProxy::IptablesLegacy => "legacy",
        ServiceProxy::IptablesNft => "nft",
        ServiceProxy::Nftables => {
            let listed = printed(place, &["/usr/sbin/nft", "-j", "list", "ruleset"]);
            let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
            let all = listed["nftables"].as_array().expect("a list");
            let of = |kind: &str| all.iter().filter(|it| it.get(kind).is_some()).count() as u64;
            return (of("rule"), of("chain"));
        }
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
        if !dress(test, &mut standing, dressed(proxy, 120, 2, position)) {
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

/// What an ordinary user writes in many transactions is taken away in one.
#[test]
fn thousands_of_services_go_again() {
    let test = "thousands of services go again";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    for proxy in [ServiceProxy::IptablesLegacy, ServiceProxy::IptablesNft] {
        let mut standing = standing("host-gw", Placement::CrossNode, Family::V4);
        if !dress(
            test,
            &mut standing,
            dressed(proxy, 5_000, 1, ServicePosition::Last),
        ) {
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
