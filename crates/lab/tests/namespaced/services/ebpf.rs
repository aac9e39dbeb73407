//! Services translated by eBPF, at tc and at the socket. `tc` is the independent eye.

use super::*;

fn hold(network: &str, placement: Placement, family: Family) {
    let test = "services by ebpf at tc";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    for position in ServicePosition::ALL.iter().copied() {
        let wanted = dressed(ServiceProxy::Ebpf, 120, 2, position);
        let mut standing = standing(network, placement, family);
        if !dress(test, &mut standing, wanted, EBPF) {
            return;
        }
        for _ in 0..4 {
            asks(&standing);
        }
        let rules = standing.counters().expect("counters").rules;
        let counts: Vec<_> = rules
            .iter()
            .map(|it| (it.rules, it.chains, it.elements))
            .collect();
        // An entry for each service, endpoint and frontend, and the one backend.
        let elements = 120 * 3 + 120 + 1;
        assert_eq!(counts, [(0, 0, elements); 2]);
        let nodes = standing.topology().nodes.clone();
        let pods = match placement {
            Placement::CrossNode => [1, 1],
            Placement::SameNode => [2, 0],
        };
        for (node, pods) in nodes.iter().zip(pods) {
            assert_eq!(hooks(node), (pods, 2 * pods), "{}", node.name);
        }
        assert!(standing.take_down().is_empty());
        for node in &nodes {
            assert_eq!(hooks(node), (0, 0), "{} is clean", node.name);
        }
    }
}

#[test]
fn a_bridge() {
    hold("host-gw", Placement::CrossNode, Family::V4);
}

#[test]
fn a_bridge_v6() {
    hold("host-gw", Placement::CrossNode, Family::V6);
}

#[test]
fn a_bridge_on_one_node() {
    hold("host-gw", Placement::SameNode, Family::V4);
}

#[test]
fn plain_routes() {
    hold("routed", Placement::CrossNode, Family::V4);
}

/// Packets that the programs have changed have checksums that the receiver accepts also
/// where no device computes them.
#[test]
fn a_tunnel() {
    hold("vxlan", Placement::CrossNode, Family::V4);
}

#[test]
fn programs_in_the_way_are_refused() {
    let test = "services by ebpf where programs are in the way";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let wanted = dressed(ServiceProxy::Ebpf, 3, 1, ServicePosition::Last);
    for (network, says) in [("macvlan", "veth"), ("host", "with pods")] {
        let mut standing = standing(network, Placement::CrossNode, Family::V4);
        let error = standing.dress(wanted).expect_err("refused").to_string();
        if error.contains("CAP_BPF") {
            return testkit::skip(test, &error);
        }
        assert!(error.contains(says), "{error}");
    }
}

/// A program still sees the service that it asked, and nobody else's sockets are changed.
fn hold_at_the_socket(network: &str, family: Family) {
    let test = "services by ebpf at the socket";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let wanted = dressed(ServiceProxy::EbpfSocket, 120, 2, ServicePosition::Last);
    let mut standing = standing(network, Placement::CrossNode, family);
    if !dress(test, &mut standing, wanted, EBPF) {
        return;
    }
    for _ in 0..4 {
        asks(&standing);
    }
    let rules = standing.counters().expect("counters").rules;
    let [only] = &rules[..] else {
        panic!("the sender's node has them: {rules:?}");
    };
    assert_eq!((only.rules, only.chains, only.elements), (0, 0, 361));
    let listener = receiver(&standing);
    let front = standing.front(listener.local_addr().expect("bound"));
    let ask = |place: &Place| {
        let connect = || TcpStream::connect_timeout(&front, Duration::from_millis(300));
        place.namespace.run(connect).expect("entered")
    };
    let stream = ask(standing.client_place()).expect("connected");
    assert_eq!(stream.peer_addr().expect("connected"), front);
    let (accepted, _) = listener.accept().expect("accepted");
    assert_eq!(
        accepted.peer_addr().expect("from"),
        stream.local_addr().expect("at")
    );
    ask(standing.server_place()).expect_err("another namespace has no services");
    assert!(standing.take_down().is_empty());
}

#[test]
fn at_the_socket() {
    hold_at_the_socket("vxlan", Family::V4);
}

#[test]
fn at_the_socket_v6() {
    hold_at_the_socket("routed", Family::V6);
}

#[test]
fn at_the_socket_of_nodes_alone() {
    hold_at_the_socket("host", Family::V4);
}

#[test]
fn at_the_socket_where_cilium_is() {
    let test = "services by ebpf at the socket over cilium";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    if !has_cilium(test) {
        return;
    }
    hold_at_the_socket("cilium", Family::V4);
    let mut standing = standing("cilium", Placement::CrossNode, Family::V4);
    let wanted = dressed(ServiceProxy::Ebpf, 3, 1, ServicePosition::Last);
    let error = standing.dress(wanted).expect_err("refused").to_string();
    assert!(error.contains("programs of its own"), "{error}");
}
