//! The link between nodes: its rate, its distance, its MTU, on real packets.

use std::time::{Duration, Instant};

use plumbline_experiment::{Family, Link, Placement};
use plumbline_lab::{Catalogue, LabError, Launcher, PathSpec, StandingNetwork};
use plumbline_testkit as testkit;

use crate::packets;

/// The network over the link; `None`, counted as a skip, where the kernel
/// cannot give a link what is asked for.
fn over(test: &str, network: &str, placement: Placement, link: Link) -> Option<StandingNetwork> {
    let spec = PathSpec {
        network: network.into(),
        placement,
        family: Family::V4,
        mtu: link.mtu,
    };
    let probe = Catalogue::default();
    let validated = spec.validate(&probe).expect("supported");
    match validated.over(link, &probe) {
        Ok(validated) => {
            let launcher = Launcher::new("unused".into(), Vec::new());
            Some(validated.build(&launcher).expect("built"))
        }
        Err(error @ LabError::Unsupported { .. }) => {
            testkit::skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn disciplines(standing: &StandingNetwork) -> Vec<String> {
    let devices = standing.devices().expect("devices");
    devices.into_iter().map(|device| device.qdisc).collect()
}

fn bulk_takes(standing: &StandingNetwork) -> (u64, Duration) {
    let (client, server) = (packets::client(standing), packets::server(standing));
    let start = Instant::now();
    (packets::tcp_bulk(&client, &server), start.elapsed())
}

/// A link of 100 Mbit/s carries no more than that, and both ends show it.
#[test]
fn a_rate_limits_what_a_link_carries() {
    const BITS: u64 = 100_000_000;
    let test = "a rate limits what a link carries";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let link = Link {
        rate_bits: Some(BITS),
        ..Link::default()
    };
    for network in ["host", "vxlan"] {
        let Some(standing) = over(test, network, Placement::CrossNode, link) else {
            return;
        };
        let limited = disciplines(&standing);
        let limited = limited
            .iter()
            .filter(|it| it.starts_with("tbf (100 Mbit/s"));
        assert_eq!(limited.count(), 2, "{:?}", disciplines(&standing));
        let (bytes, time) = bulk_takes(&standing);
        let least = bytes as f64 * 8.0 / BITS as f64;
        assert!(time.as_secs_f64() > 0.98 * least, "{time:?} of {least} s");
    }
}

#[test]
fn what_stays_on_a_node_does_not_meet_the_link() {
    let test = "what stays on a node does not meet the link";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let link = Link {
        rate_bits: Some(1_000_000),
        ..Link::default()
    };
    let Some(standing) = over(test, "host-gw", Placement::SameNode, link) else {
        return;
    };
    let limits = |it: &String| it.starts_with("tbf");
    assert!(!disciplines(&standing).iter().any(limits));
    let before = standing.counters().expect("counters");
    let (client, server) = (packets::client(&standing), packets::server(&standing));
    let bytes = packets::tcp_bulk(&client, &server);
    let after = standing.counters().expect("counters");
    for (late, early) in after.devices.iter().zip(&before.devices) {
        let moved = late.since(early);
        assert!(moved.rx_bytes.max(moved.tx_bytes) >= bytes, "{moved:?}");
    }
}

/// Packets arrive no sooner than the distance says, each way, also where the
/// link has a rate too.
#[test]
fn a_distance_delays_each_way() {
    let test = "a distance delays each way";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    for rate_bits in [None, Some(1_000_000_000)] {
        let link = Link {
            delay_ns: 20_000_000,
            rate_bits,
            ..Link::default()
        };
        let Some(standing) = over(test, "host-gw", Placement::CrossNode, link) else {
            return;
        };
        let (client, server) = (packets::client(&standing), packets::server(&standing));
        // Neighbours find each other.
        packets::udp_exchanges(&client, &server, 1);
        let start = Instant::now();
        packets::udp_exchanges(&client, &server, 5);
        let each = start.elapsed() / 5;
        assert!(each >= Duration::from_millis(40), "{each:?}");
    }
}

/// Of 400 datagrams over a link that loses half of them about half arrive: the
/// bounds are seven standard deviations away.
#[test]
fn a_loss_loses_its_share() {
    let test = "a loss loses its share";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let link = Link {
        loss: 0.5,
        ..Link::default()
    };
    let Some(standing) = over(test, "host", Placement::CrossNode, link) else {
        return;
    };
    let (client, server) = (packets::client(&standing), packets::server(&standing));
    let arrived = packets::datagrams_that_arrive(&client, &server, 400);
    assert!((130..=270).contains(&arrived), "{arrived} of 400");
}

/// Every kind of path has what encapsulation leaves of 9000 bytes.
#[test]
fn jumbo_frames_pass_whole() {
    if !testkit::in_private_namespaces("jumbo frames pass whole") {
        return;
    }
    let link = Link {
        mtu: 9000,
        ..Link::default()
    };
    for (network, left) in [("host", 9000), ("routed", 9000), ("vxlan", 8950)] {
        let standing = over("jumbo", network, Placement::CrossNode, link).expect("an MTU alone");
        assert_eq!(standing.path_mtu().expect("devices"), left, "{network}");
        let (client, server) = (packets::client(&standing), packets::server(&standing));
        packets::largest_datagram(&client, &server, left);
        packets::largest_datagram(&server, &client, left);
    }
}
