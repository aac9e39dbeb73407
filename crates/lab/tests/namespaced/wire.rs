//! A packet capture at both nodes' uplinks, of what they send: what a network
//! says that the wire carries is what it carries. What they receive is no
//! measure: macvlan shows packets between pods of one node to its uplink's taps,
//! and IPsec those that it has decrypted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use plumbline_experiment::Placement;
use plumbline_harness::Path;
use plumbline_lab::network::WireFormat;
use plumbline_lab::{Hop, Place, StandingNetwork, UPLINK};
use plumbline_sys::capture::Capture;

use crate::packets;

/// Few enough for the capture's buffer, many enough to stand out.
const EXCHANGES: u32 = 20;
/// What else may cross a tunnel meanwhile: neighbours that are asked whether they
/// are still there.
const HOUSEKEEPING: usize = 4;
const ETHERNET_BYTES: usize = 14;

/// The outer IP header of a frame.
#[derive(Debug)]
struct Packet {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    /// Destination port of UDP.
    port: Option<u16>,
}

/// Exchanges between the endpoints appear on the wire as the network says, and
/// not at all when they are on one node.
pub(crate) fn shows_the_encapsulation(standing: &StandingNetwork) {
    shows(standing, standing.about().wire);
}

/// Exchanges between the endpoints appear on the wire like this.
pub(crate) fn shows(standing: &StandingNetwork, wire: WireFormat) {
    let captures = uplinks(standing);
    let (client, server) = (packets::client(standing), packets::server(standing));
    packets::udp_exchanges(&client, &server, EXCHANGES);
    let captured: Vec<Packet> = captures.iter().flat_map(sent).collect();
    for capture in &captures {
        assert_eq!(capture.missed().expect("counted"), 0, "the buffer held all");
    }

    let topology = standing.topology();
    let endpoints = [
        Path::client(standing).address(),
        Path::server(standing).address(),
    ];
    let nodes = [1, 2].map(|number| topology.addressing.node(number));
    let between = |pair: [IpAddr; 2]| {
        let count = |from, to| {
            let goes = |it: &&Packet| it.source == from && it.destination == to;
            captured
                .iter()
                .filter(goes)
                .filter(|it| is(wire, it, standing))
                .count()
        };
        (count(pair[0], pair[1]), count(pair[1], pair[0]))
    };
    let expected = match topology.placement {
        Placement::CrossNode => EXCHANGES as usize..=EXCHANGES as usize + HOUSEKEEPING,
        // What nodes tell each other about themselves goes through a tunnel all the same.
        Placement::SameNode if wire != WireFormat::Plain => 0..=HOUSEKEEPING,
        Placement::SameNode => 0..=0,
    };
    let shown = match wire {
        WireFormat::Plain => between(endpoints),
        _ => between(nodes),
    };
    assert!(
        expected.contains(&shown.0) && expected.contains(&shown.1),
        "{wire:?} {shown:?} times, not {expected:?} times each, in {captured:#?}"
    );
    let leaks = |it: &&Packet| endpoints.contains(&it.source) && wire != WireFormat::Plain;
    let leaked: Vec<_> = captured.iter().filter(leaks).collect();
    assert!(leaked.is_empty(), "without encapsulation: {leaked:#?}");
}

/// Captures at the devices by which the path leaves each node; at its uplink
/// where the path ends on the first node.
fn uplinks(standing: &StandingNetwork) -> [Capture; 2] {
    let nodes = &standing.topology().nodes;
    let on = |node: &Arc<Place>| {
        let node = Arc::clone(node);
        move |hop: &&Hop| Arc::ptr_eq(&hop.place, &node)
    };
    let (leaves, enters) = match standing.topology().placement {
        Placement::CrossNode => (
            standing.hops().iter().rfind(on(&nodes[0])),
            standing.hops().iter().find(on(&nodes[1])),
        ),
        Placement::SameNode => (None, None),
    };
    [(&nodes[0], leaves), (&nodes[1], enters)].map(|(node, hop)| {
        let index = node.index(hop.map_or(UPLINK, |hop| &hop.device));
        let index = index.expect("the uplink");
        let opened = node.namespace.run(|| Capture::open(index));
        opened.expect("entered").expect("opened")
    })
}

/// Whether a packet is of the kind that the network puts on the wire; for
/// plain ones, whether it is one of the exchanges.
fn is(wire: WireFormat, packet: &Packet, standing: &StandingNetwork) -> bool {
    let family = standing.topology().addressing.family();
    let protocol = wire.protocol(family).unwrap_or(17);
    let port = match wire {
        WireFormat::Udp { port } => packet.port == Some(port),
        _ => true,
    };
    packet.protocol == protocol && port
}

fn sent(capture: &Capture) -> Vec<Packet> {
    let mut buffer = vec![0; 2048];
    let mut packets = Vec::new();
    while let Some(frame) = capture.take(&mut buffer).expect("captured") {
        packets.extend(read(frame.bytes).filter(|_| frame.sent));
    }
    packets
}

/// The outer IP header; `None` for other frames, such as those of ARP.
fn read(frame: &[u8]) -> Option<Packet> {
    let packet = frame.get(ETHERNET_BYTES..)?;
    let (source, destination, protocol, header) = match packet.first()? >> 4 {
        4 if frame[12..14] == [0x08, 0x00] => {
            let address = |at: usize| -> Option<IpAddr> {
                let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
                Some(Ipv4Addr::from(bytes).into())
            };
            let header = usize::from(packet[0] & 0xf) * 4;
            (address(12)?, address(16)?, *packet.get(9)?, header)
        }
        6 if frame[12..14] == [0x86, 0xdd] => {
            let address = |at: usize| -> Option<IpAddr> {
                let bytes: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
                Some(Ipv6Addr::from(bytes).into())
            };
            (address(8)?, address(24)?, *packet.get(6)?, 40)
        }
        _ => return None,
    };
    let port = || {
        let bytes = packet.get(header + 2..header + 4)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    Some(Packet {
        source,
        destination,
        protocol,
        port: (protocol == 17).then(port).flatten(),
    })
}
