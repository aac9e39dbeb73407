//! Every network, placement and family, on real packets.
//!
//! `ip` is the independent eye: what our netlink code made is read back by a
//! program that shares nothing with it.

use plumbline_experiment::{Family, Placement};
use plumbline_harness::{Least, Path};
use plumbline_lab::{Catalogue, LabError, Launcher, PathSpec, StandingNetwork, catalogue};
use plumbline_sys::sysctl;
use plumbline_testkit as testkit;

use crate::{eye, made, packets, wire};

const MTU: u32 = 1500;
/// Exchanges in each direction: far above what namespaces send on their own.
const EXCHANGES: u32 = 200;

fn conform(network: &str, placement: Placement, family: Family) {
    let test = format!("{network} {placement:?} {family:?}");
    hold(&test, network, placement, family);
}

/// Holds a network to what every network has to do.
pub(crate) fn hold(test: &str, network: &str, placement: Placement, family: Family) {
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let spec = PathSpec {
        network: network.into(),
        placement,
        family,
        mtu: MTU,
    };
    let validated = match spec.validate(&Catalogue::default()) {
        Ok(validated) => validated,
        Err(error @ LabError::Unsupported { .. }) => {
            return testkit::skip(test, &error.to_string());
        }
        // Nothing is missing here: the real system has no such path.
        Err(error @ LabError::Family { .. }) => {
            let families = catalogue::find(network).expect("known").about().families;
            return assert!(!families.contains(&family), "{error}");
        }
        Err(error) => panic!("{error}"),
    };
    let topology = validated.topology().expect("topology");
    let before = eye::state(&topology);
    let launcher = Launcher::new("unused".into(), Vec::new());
    let mut standing =
        StandingNetwork::attach(validated.network, topology, &launcher).expect("attached");

    reaches_both_ways(&standing);
    largest_packet_is_the_mtu(&standing);
    devices_prove_the_path(&standing);
    wire::shows_the_encapsulation(&standing);
    made::as_the_system_makes_it(&standing);

    let errors = standing.take_down();
    assert!(errors.is_empty(), "{errors:?}");
    let after = eye::state(standing.topology());
    match (before, after) {
        (Some(before), Some(after)) => eye::assert_same(&before, &after),
        _ => testkit::skip(
            &format!("{test}, state before and after"),
            "`ip` is not installed",
        ),
    }
}

fn reaches_both_ways(standing: &StandingNetwork) {
    let (client, server) = (packets::client(standing), packets::server(standing));
    packets::tcp_exchange(&client, &server);
    packets::tcp_exchange(&server, &client);
    packets::udp_exchanges(&client, &server, 3);
    packets::udp_exchanges(&server, &client, 3);
}

/// N-4: a packet of exactly the MTU passes whole, both ways, and one byte more
/// is refused where it starts, or on the way with an error that says the length.
fn largest_packet_is_the_mtu(standing: &StandingNetwork) {
    let before = standing.counters().expect("counters");
    let (client, server) = (packets::client(standing), packets::server(standing));
    let devices = standing.devices().expect("devices");
    let own = devices.first().expect("a device").mtu;
    let own = own.min(eye::route_mtu(standing));
    let path = standing.path_mtu().expect("devices");
    if own <= path {
        packets::largest_datagram(&client, &server, own);
        packets::largest_datagram(&server, &client, own);
    } else {
        packets::largest_datagram_on_path(&client, &server, path);
        packets::largest_datagram_on_path(&server, &client, path);
    }
    let after = standing.counters().expect("counters");
    for (before, after) in before.protocols.iter().zip(&after.protocols) {
        assert_eq!(
            before.ip_fragments, after.ip_fragments,
            "fragments in {}",
            after.namespace
        );
    }
}

/// the devices of the path carried the packets, both ways; bulk TCP too,
/// where the kernel merges segments.
fn devices_prove_the_path(standing: &StandingNetwork) {
    let (client, server) = (packets::client(standing), packets::server(standing));
    let before = standing.counters().expect("counters");
    packets::udp_exchanges(&client, &server, EXCHANGES);
    let after = standing.counters().expect("counters");
    assert_eq!(
        standing.check_path(&before, &after, Least::both_ways(u64::from(EXCHANGES))),
        None
    );
    for (before, after) in before.devices.iter().zip(&after.devices) {
        let sent = after.tx_packets - before.tx_packets;
        let received = after.rx_packets - before.rx_packets;
        assert!(sent >= u64::from(EXCHANGES), "{after:?} sent {sent}");
        assert!(
            received >= u64::from(EXCHANGES),
            "{after:?} received {received}"
        );
    }

    let bytes = packets::tcp_bulk(&client, &server);
    let bulk = standing.counters().expect("counters");
    let least = Least::one_way(bytes / u64::from(u16::MAX));
    assert_eq!(standing.check_path(&after, &bulk, least), None);
}

/// The same lab on a machine that hands bridged packets to netfilter. A kernel
/// without the sysctl has no netfilter to hand them to.
#[test]
fn bridges_do_without_netfilter() {
    if !testkit::in_private_namespaces("bridges do without netfilter") {
        return;
    }
    let spec = PathSpec {
        network: "host-gw".into(),
        placement: Placement::CrossNode,
        family: Family::V4,
        mtu: MTU,
    };
    let validated = spec.validate(&Catalogue::default()).expect("supported");
    let topology = validated.topology().expect("topology");
    for node in &topology.nodes {
        for table in ["arptables", "iptables", "ip6tables"] {
            let key = format!("net/bridge/bridge-nf-call-{table}");
            match sysctl::get(&node.namespace, &key) {
                Ok(value) => assert_eq!(value, "0", "{key} in {}", node.name),
                Err(error) => assert!(error.is_missing(), "{error}"),
            }
        }
    }
}

macro_rules! networks {
    ($($module:ident: $name:literal,)*) => {
        $(mod $module {
            use super::*;

            #[test]
            fn cross_node_v4() {
                conform($name, Placement::CrossNode, Family::V4);
            }

            #[test]
            fn cross_node_v6() {
                conform($name, Placement::CrossNode, Family::V6);
            }

            #[test]
            fn same_node_v4() {
                conform($name, Placement::SameNode, Family::V4);
            }

            #[test]
            fn same_node_v6() {
                conform($name, Placement::SameNode, Family::V6);
            }
        })*

        #[test]
        fn every_network_is_tested() {
            let tested = [$($name),*];
            assert_eq!(catalogue::names().collect::<Vec<_>>(), tested);
        }
    };
}

networks! {
    host: "host",
    routed: "routed",
    romana: "romana",
    host_gw: "host-gw",
    kube_router: "kube-router",
    aws_vpc: "aws-vpc",
    aws_cni: "aws-cni",
    macvlan: "macvlan",
    ipvlan_l2: "ipvlan-l2",
    ipvlan_l3: "ipvlan-l3",
    ipvlan_l3s: "ipvlan-l3s",
    vxlan: "vxlan",
    flannel_udp: "flannel-udp",
    weave_fastdp: "weave-fastdp",
    weave_sleeve: "weave-sleeve",
    calico_vxlan: "calico-vxlan",
    cilium: "cilium",
    cilium_vxlan: "cilium-vxlan",
    cilium_geneve: "cilium-geneve",
    kopeio_vxlan: "kopeio-vxlan",
    geneve: "geneve",
    ipip: "ipip",
    calico_ipip: "calico-ipip",
    kube_router_ipip: "kube-router-ipip",
    gre: "gre",
    kopeio_gre: "kopeio-gre",
    kopeio_ipsec: "kopeio-ipsec",
    wireguard: "wireguard",
}
