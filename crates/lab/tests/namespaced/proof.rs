//! The proof that packets took the path of a network, against planted
//! violations.

use std::time::Duration;

use plumbline_experiment::{Family, Placement};
use plumbline_harness::{Least, Path};
use plumbline_lab::{Catalogue, Launcher, PathSpec, Place, StandingNetwork};
use plumbline_sys::netlink::{LinkSpec, RouteSpec};
use plumbline_testkit as testkit;

use crate::packets;

const EXCHANGES: u32 = 300;

fn vxlan() -> StandingNetwork {
    let spec = PathSpec {
        network: "flannel".into(),
        placement: Placement::CrossNode,
        family: Family::V4,
        mtu: 1500,
    };
    let launcher = Launcher::new("unused".into(), Vec::new());
    let validated = spec
        .validate(&Catalogue::default())
        .expect("vxlan is supported");
    validated.build(&launcher).expect("vxlan stands")
}

fn exchange(standing: &StandingNetwork) {
    let (client, server) = (packets::client(standing), packets::server(standing));
    packets::udp_exchanges(&client, &server, EXCHANGES);
}

/// Sends what `from` has for `to` over a device of its own, as a wrong route or
/// an accelerated path would.
fn bypass(from: &Place, to: std::net::IpAddr, device: &str) {
    let netlink = from.netlink();
    let index = netlink.link(device).expect("the device").index;
    netlink.set_link_up(index, true).expect("up");
    netlink
        .add(&RouteSpec::to(to, 32).dev(index))
        .expect("route");
}

/// A second wire between the pods, next to the network.
fn second_wire(standing: &StandingNetwork) {
    let (client, server) = (standing.client_place(), standing.server_place());
    let peer = LinkSpec::peer("second").inside(&server.namespace);
    let wire = LinkSpec::veth("second", peer).up();
    client.netlink().add_link(wire).expect("wire");
}

#[test]
fn a_path_around_the_network_is_caught() {
    if !testkit::in_private_namespaces("a path around the network is caught") {
        return;
    }
    let standing = vxlan();
    second_wire(&standing);
    let (client, server) = (
        Path::client(&standing).address(),
        Path::server(&standing).address(),
    );
    bypass(standing.client_place(), server, "second");
    bypass(standing.server_place(), client, "second");

    let before = standing.snapshot().expect("snapshot");
    exchange(&standing);
    let after = standing.snapshot().expect("snapshot");
    let wrong = standing
        .check_path(&before, &after, Least::one_way(u64::from(EXCHANGES)))
        .expect("caught");
    assert!(wrong.contains("`eth0` in pod1 carried"), "{wrong}");
    assert!(wrong.contains("to the server"), "{wrong}");
}

#[test]
fn a_way_back_around_the_network_is_caught() {
    if !testkit::in_private_namespaces("a way back around the network is caught") {
        return;
    }
    let standing = vxlan();
    // From the server's node straight to the client's pod: only the last
    // device of the way back is the network's.
    let node = &standing.topology().nodes[1];
    let client = Path::client(&standing).address();
    let home = &standing.topology().nodes[0];
    let peer = LinkSpec::peer("second").inside(&home.namespace);
    node.netlink()
        .add_link(LinkSpec::veth("second", peer).up())
        .expect("wire");
    let far = home.netlink().link("second").expect("the device");
    home.netlink().set_link_up(far.index, true).expect("up");
    let near = node.netlink().link("second").expect("the device").index;
    let past = RouteSpec::to(client, 32).dev(near);
    node.netlink().add(&past).expect("route");
    // Nothing answers for the pod on that wire, so the entry is set by hand.
    let mac = far.mac.expect("an Ethernet device");
    let entry = plumbline_sys::netlink::NeighbourSpec::permanent(near, client, mac);
    node.netlink().add(&entry).expect("neighbour");

    let before = standing.snapshot().expect("snapshot");
    exchange(&standing);
    let after = standing.snapshot().expect("snapshot");
    let wrong = standing
        .check_path(&before, &after, Least::one_way(u64::from(EXCHANGES)))
        .expect("caught");
    assert!(wrong.contains("back to the client"), "{wrong}");
}

#[test]
fn silence_is_not_taken_for_traffic() {
    if !testkit::in_private_namespaces("silence is not taken for traffic") {
        return;
    }
    let standing = vxlan();
    exchange(&standing);
    let before = standing.snapshot().expect("snapshot");
    std::thread::sleep(Duration::from_millis(300));
    let after = standing.snapshot().expect("snapshot");
    assert!(
        standing
            .check_path(&before, &after, Least::one_way(20))
            .is_some()
    );
    // What the namespaces send on their own is next to nothing.
    for (before, after) in before.devices.iter().zip(&after.devices) {
        assert!(
            after.tx_packets - before.tx_packets < 10,
            "{before:?} {after:?}"
        );
    }
}
