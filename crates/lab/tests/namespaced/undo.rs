//! What fails half way is undone, and what is refused changes nothing.

use plumbline_experiment::{Enforcer, Family, Placement};
use plumbline_lab::network::{About, Network};
use plumbline_lab::{
    Catalogue, Hop, Journal, LabError, Launcher, PathSpec, StandingNetwork, Topology, UPLINK,
    catalogue, network,
};
use plumbline_sys::netlink::{LinkSpec, NeighbourSpec, RouteSpec};
use plumbline_testkit as testkit;

use crate::eye;

fn spec(network: &str) -> PathSpec {
    PathSpec {
        network: network.into(),
        placement: Placement::CrossNode,
        family: Family::V4,
        mtu: 1500,
    }
}

/// Every kind of step, and then one that the kernel refuses.
fn half_way(topology: &Topology, journal: &mut Journal) -> LabError {
    let node = &topology.nodes[0];
    let addressing = topology.addressing;
    let bridge = journal
        .link(node, "br", LinkSpec::bridge("br").up())
        .expect("link");
    journal
        .address(node, bridge, addressing.gateway(1), 24)
        .expect("address");
    let uplink = node.index(UPLINK).expect("uplink");
    let route = RouteSpec::to(addressing.subnet(2), 24).via(addressing.node(2));
    journal.add(node, route.dev(uplink)).expect("route");
    let neighbour = NeighbourSpec::permanent(uplink, addressing.node(9), [2, 0, 0, 0, 0, 9]);
    journal.add(node, neighbour).expect("neighbour");
    journal
        .add(node, route.dev(uplink))
        .expect_err("the same route again")
}

#[test]
fn a_failure_half_way_undoes_everything() {
    if !testkit::in_private_namespaces("a failure half way undoes everything") {
        return;
    }
    let topology = spec("host-gw")
        .validate(&Catalogue::default())
        .and_then(|validated| validated.topology())
        .expect("topology");
    let Some(before) = eye::state(&topology) else {
        return testkit::skip(
            "a failure half way undoes everything",
            "`ip` is not installed",
        );
    };
    let mut journal = Journal::default();
    let error = half_way(&topology, &mut journal).to_string();
    assert!(
        error.contains("node1") && error.contains("already exists"),
        "{error}"
    );
    let between = eye::state(&topology).expect("installed");
    assert_ne!(before, between, "the steps before the failure took effect");
    // As when a network returns the error: the journal is dropped.
    drop(journal);
    eye::assert_same(&before, &eye::state(&topology).expect("installed"));
}

#[test]
fn errors_on_the_way_down_are_collected() {
    if !testkit::in_private_namespaces("errors on the way down are collected") {
        return;
    }
    let validated = spec("vxlan")
        .validate(&Catalogue::default())
        .expect("supported");
    let launcher = Launcher::new("unused".into(), Vec::new());
    let mut standing = validated.build(&launcher).expect("stands");
    // Somebody deletes a device from outside, and all that hangs on it.
    let node = standing.topology().nodes[0].clone();
    node.netlink().delete_link("flannel.1").expect("deleted");
    let errors = standing.take_down();
    assert!(errors.len() >= 2, "{errors:?}");
    assert!(
        errors
            .iter()
            .all(|error| error.to_string().contains("node1")),
        "{errors:?}"
    );
    let left = node.netlink().links().expect("links");
    let names: Vec<_> = left.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["lo", UPLINK], "the rest was undone all the same");
    assert!(
        standing.take_down().is_empty(),
        "a second time does nothing"
    );
}

/// Fails after its first device.
struct Broken;

static BROKEN: About = About {
    name: "broken",
    aliases: &[],
    summary: "fails half way",
    needs: &[],
    underlay: plumbline_lab::Underlay::Wire,
    wire: network::WireFormat::Plain,
    families: Family::BOTH,
    pods: true,
    enforcer: Enforcer::Nft,
};

impl Network for Broken {
    fn about(&self) -> &About {
        &BROKEN
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        Err(half_way(topology, journal))
    }
}

#[test]
fn a_network_that_fails_gives_its_error() {
    if !testkit::in_private_namespaces("a network that fails gives its error") {
        return;
    }
    let validated = spec("host-gw")
        .validate(&Catalogue::default())
        .expect("supported");
    let topology = validated.topology().expect("topology");
    let launcher = Launcher::new("unused".into(), Vec::new());
    let error = StandingNetwork::attach(&Broken, topology, &launcher)
        .err()
        .expect("fails");
    assert!(error.to_string().contains("cannot add route"), "{error}");
}

#[test]
fn bad_wishes_are_refused_with_the_remedy() {
    if !testkit::in_private_namespaces("bad wishes are refused with the remedy") {
        return;
    }
    let probe = Catalogue::default();
    let refusal = |spec: &PathSpec| spec.validate(&probe).err().expect("refused").to_string();
    let unknown = refusal(&spec("vxlann"));
    assert!(
        unknown.contains("`vxlann`") && unknown.contains("calico-vxlan"),
        "{unknown}"
    );
    let mtu = refusal(&PathSpec {
        mtu: 100,
        ..spec("vxlan")
    });
    assert!(mtu.contains("100") && mtu.contains("676 to 65535"), "{mtu}");
}

#[test]
fn the_list_tells_what_is_missing() {
    if !testkit::in_private_namespaces("the list tells what is missing") {
        return;
    }
    let listings = plumbline_lab::list().expect("listed");
    assert_eq!(listings.len(), catalogue::ALL.len());
    let host = &listings[0];
    assert_eq!((host.about.name, host.available()), ("host", true));
    for listing in &listings {
        let builds = spec(listing.about.name).validate(&Catalogue::default());
        assert_eq!(builds.is_ok(), listing.available(), "{listing:?}");
    }
}
