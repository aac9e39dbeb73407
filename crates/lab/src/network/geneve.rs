//! `geneve`: a bridge on each node and Geneve between nodes, as a reference for
//! the plain encapsulation (RFC 8926; torvalds/linux@254a142,
//! `drivers/net/geneve.c`), arranged as `vxlan` is: VNI 1, the standard port
//! 6081, no options, UDP checksums as the kernel has them by default, permanent
//! neighbours and on-link routes. A device of this driver has one remote end, so
//! a node has one for each other node. The MTU is the underlay's less 50 bytes,
//! or 70 for IPv6: the headers are as long as those of VXLAN.

use plumbline_sys::netlink::{CollectMetadata, LinkSpec, NeighbourSpec};

use super::shape::TunnelName;
use super::tunnel::{endpoint_mac, inner_mtu};
use super::{About, Builtin, WireFormat, bridge};
use crate::need::{Need, PROBE, VETH};
use crate::{Hop, Journal, LabError, Topology};

/// Geneve devices.
pub(super) static GENEVE: Need = Need::module("CONFIG_GENEVE", "geneve", |bench| {
    let geneve = CollectMetadata::Geneve;
    bench.device(LinkSpec::collect_metadata(PROBE, geneve, PORT))
});

pub(super) static NETWORK: Builtin = About {
    name: "geneve",
    summary: "a bridge on each node, Geneve between nodes",
    needs: &[&VETH, &bridge::DRIVER, &GENEVE],
    wire: WireFormat::Udp { port: PORT },
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(|topology, pod, journal| {
    bridge::join(bridge::CNI0, topology, pod, journal, inner_mtu(topology))
});

const NAME: TunnelName = |_, remote| format!("geneve.{remote}");
const VNI: u32 = 1;
const PORT: u16 = 6081;

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let addressing = topology.addressing;
    let mtu = inner_mtu(topology);
    for (own, node) in topology.numbered() {
        for remote in topology.remotes(own) {
            let name = NAME(addressing, remote);
            let link = LinkSpec::geneve(&name, VNI, PORT, addressing.node(remote))
                .mtu(mtu)
                .mac(endpoint_mac(addressing, own))
                .up();
            let device = journal.link(node, &name, link)?;
            let address = addressing.subnet(own);
            journal.address(node, device, address, addressing.host_prefix())?;
            let endpoint = addressing.subnet(remote);
            let mac = endpoint_mac(addressing, remote);
            journal.add(node, NeighbourSpec::permanent(device, endpoint, mac))?;
            let pods = topology.pods_of(remote);
            journal.add(node, pods.via(endpoint).dev(device).onlink())?;
        }
    }
    let shape = bridge::attach(bridge::CNI0, topology, journal, mtu)?;
    Ok(shape.tunnel_to(NAME).hops(topology))
}
