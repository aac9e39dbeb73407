//! Services carried on by a program on each node.

use super::*;

fn hold(network: &str, family: Family) {
    let test = format!("services on {network} by userspace, {family:?}");
    let (placement, proxy) = (Placement::CrossNode, ServiceProxy::Userspace);
    holds(&test, network, placement, family, proxy);
}

#[test]
fn a_bridge() {
    hold("host-gw", Family::V4);
}

#[test]
fn a_bridge_v6() {
    hold("host-gw", Family::V6);
}

#[test]
fn a_tunnel() {
    hold("vxlan", Family::V4);
}

#[test]
fn nodes_alone() {
    hold("host", Family::V4);
}

/// A standing path whose last service is asked, unless a program is missing.
fn asked(test: &str) -> Option<StandingNetwork> {
    let mut standing = standing("host-gw", Placement::CrossNode, Family::V4);
    let wanted = dressed(ServiceProxy::Userspace, 20, 3, ServicePosition::Last);
    dress(test, &mut standing, wanted, PROGRAMS).then_some(standing)
}

#[test]
fn what_the_program_takes_is_the_network_s() {
    let test = "what the program in user space takes is the network's";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let Some(standing) = asked(test) else { return };
    let taken = || {
        let cpu = standing.counters().expect("counters").forwarders;
        let cpu = cpu.expect("processes of the network");
        cpu.user_ns + cpu.system_ns
    };
    let before = taken();
    // The kernel may count in ticks.
    let began = Instant::now();
    while taken() == before {
        assert!(began.elapsed() < LIMIT, "nothing was taken");
        asks(&standing);
    }
}

/// There is nothing to redirect to on a device without an address.
#[test]
fn a_node_without_addresses_for_its_pods_is_refused() {
    let test = "services in user space on plain routes are refused";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let mut standing = standing("routed", Placement::CrossNode, Family::V4);
    let wanted = dressed(ServiceProxy::Userspace, 3, 1, ServicePosition::None);
    let error = standing.dress(wanted).expect_err("refused").to_string();
    if error.contains("install") {
        return testkit::skip(test, &error);
    }
    assert!(error.contains("did not arrive"), "{error}");
}
