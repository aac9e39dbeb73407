//! `weave-sleeve`: Weave's bridge, and a program that captures frames from it
//! and carries them to other nodes by UDP, as Weave does where it has no fast
//! datapath (weaveworks/weave@039750a, `net/bridge.go`: an MTU of 65535 on the
//! bridge and its veths, the far end `vethwe-pcap`, no checksums left to the
//! bridge; a later `net/veth.go`, whose commit is not known: nor to a pod's device,
//! which then is not left to cut packets either; @006262e, `router/sleeve.go`: the program;
//! port 6783).
//!
//! So a pod sends packets of up to 64 KiB, and learns from an ICMP error of the
//! program how long one may be that must not be fragmented: the underlay's MTU
//! less 62. The program is two processes per node, one for each direction. What
//! is left out of the real one is listed in [`router`] and `docs/networks.md`.

mod format;
mod message;
mod router;
mod too_long;

use std::net::SocketAddrV4;
use std::sync::Arc;

use plumbline_experiment::Enforcer;
use plumbline_sys::ethtool::Offload;
use plumbline_sys::tap::Tap;

use self::format::{OVERHEAD, Peer};
use self::router::Sleeve;
use super::{About, Builtin, WireFormat, bridge, weave};
use crate::need::{Need, VETH};
use crate::{Hop, Journal, LabError, Place, Topology, UPLINK};

/// Sockets that take frames from a device, by memory that the kernel shares.
static CAPTURE: Need = Need::module("CONFIG_PACKET", "af_packet", |bench| {
    bench.open(|| Tap::open(bench.parent).map(drop))
});

pub(super) static NETWORK: Builtin = About {
    name: "weave-sleeve",
    summary: "a bridge on each node, a program that carries its frames by UDP between nodes",
    needs: &[&VETH, &bridge::DRIVER, &CAPTURE],
    wire: WireFormat::Udp { port: PORT },
    families: weave::FAMILIES,
    enforcer: Enforcer::WeaveNpc,
    ..About::PLAIN
}
.attached_by(attach)
.with_path_mtu(|topology| topology.mtu.saturating_sub(OVERHEAD));

const PORT: u16 = 6783;
const BRIDGE: &str = "weave";
/// The far end of the pair, where frames are captured.
const CAPTURED: &str = "vethwe-pcap";
const MTU: u32 = 65_535;

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    weave::attach(topology, journal, MTU, CAPTURED)?;
    for node in &topology.nodes {
        checksum_in_software(node, BRIDGE)?;
    }
    for pod in &topology.pods {
        checksum_in_software(&pod.place, UPLINK)?;
    }
    for (own, node) in topology.numbered() {
        for remote in topology.remotes(own) {
            join(topology, own, remote, node, journal)?;
        }
    }
    Ok(weave::shape(CAPTURED).hops(topology))
}

/// Starts a node's program.
fn join(
    topology: &Topology,
    own: u8,
    remote: u8,
    node: &Arc<Place>,
    journal: &mut Journal,
) -> Result<(), LabError> {
    let captured = node.index(CAPTURED)?;
    let (own, remote) = (peer(topology, own), peer(topology, remote));
    let opened = node.namespace.run(|| Sleeve::open(captured, own, remote))?;
    let sleeve = opened.map_err(LabError::Forwarder)?;
    let started = sleeve.start(topology.mtu);
    for forwarder in started.map_err(LabError::Forwarder)? {
        journal.forwarder(forwarder);
    }
    Ok(())
}

/// An offload could not be switched off.
#[derive(Debug, thiserror::Error)]
#[error(
    "in {place}: cannot switch off the checksums of `{device}`: {source}; the driver may not allow it"
)]
struct OffloadError {
    place: String,
    device: &'static str,
    source: std::io::Error,
}

fn checksum_in_software(place: &Place, device: &'static str) -> Result<(), LabError> {
    let done = place
        .namespace
        .run(|| Offload::TxChecksum.switch(device, false))?;
    done.map_err(|source| {
        LabError::network(OffloadError {
            place: place.name.clone(),
            device,
            source,
        })
    })
}

fn peer(topology: &Topology, number: u8) -> Peer {
    Peer {
        name: weave::name(number),
        address: SocketAddrV4::new(topology.addressing.node_v4(number), PORT),
    }
}
