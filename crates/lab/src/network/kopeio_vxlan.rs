//! `kopeio-vxlan`: Kopeio's default, its provider `vxlan` (kopeio/networking;
//! @133dbaf, `pkg/routing/vxlan2/vxlan2routing.go`; @1539276,
//! `cmd/networking-agent/options.go` and `pkg/cni/simpleconfigwriter.go`): VNI 1,
//! port 4789, a device `vxlan1` that is bound to no interface and learns nothing,
//! the subnet's first address and a hardware address made of it, permanent
//! neighbour and forwarding entries, on-link routes. Its MTU is the underlay's
//! less 100 bytes, while pods, attached by the CNI plugin `bridge`, keep the
//! full MTU: larger packets are answered by ICMP, and senders learn the path's.
//! IPv4 only. Not modelled: masquerading.

use plumbline_experiment::Family;
use plumbline_sys::netlink::Mac;

use super::tunnel::Tunnel;
use super::{About, Builtin, WireFormat, bridge, tunnel};
use crate::need::VETH;
use crate::{Addressing, Hop, Journal, LabError, Topology};

pub(super) static NETWORK: Builtin = About {
    name: "kopeio-vxlan",
    aliases: &["kopeio"],
    summary: "a bridge on each node, VXLAN between nodes, full MTU in the pods",
    needs: &[&VETH, &bridge::DRIVER, &tunnel::VXLAN],
    wire: WireFormat::Udp { port: PORT },
    families: &[Family::V4],
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(|topology, pod, journal| bridge::join(BRIDGE, topology, pod, journal, topology.mtu));

/// The bridge of all of Kopeio's providers.
pub(super) const BRIDGE: &str = "kopeio";
const DEVICE: &str = "vxlan1";
const PORT: u16 = 4789;
const OVERHEAD_BYTES: u32 = 100;

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    let tunnel = Tunnel {
        device: DEVICE,
        vni: 1,
        port: PORT,
        block: Topology::pods_of,
        mtu: topology.mtu - OVERHEAD_BYTES,
        mac: endpoint_mac,
        bound: false,
    };
    tunnel.attach(topology, journal)?;
    let shape = bridge::attach(BRIDGE, topology, journal, topology.mtu)?;
    Ok(shape.tunnel(DEVICE).hops(topology))
}

/// 00:53 and the subnet's first address.
fn endpoint_mac(addressing: Addressing, number: u8) -> Mac {
    let [a, b, c, d] = addressing.subnet_v4(number).octets();
    [0x00, 0x53, a, b, c, d]
}
