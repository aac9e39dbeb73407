//! A VXLAN device on each node, with everything that it would have to learn
//! set by hand: for each remote node a route through its tunnel endpoint, the
//! endpoint's hardware address, and the node that it is behind.

use std::net::Ipv4Addr;

use plumbline_experiment::Family;
use plumbline_sys::netlink::{LinkSpec, Mac, NeighbourSpec, RouteSpec, VxlanProperties};

use crate::need::{Need, PROBE};
use crate::{Addressing, Journal, LabError, Topology, UPLINK};

/// VXLAN devices.
pub(super) static VXLAN: Need = Need::module("CONFIG_VXLAN", "vxlan", |bench| {
    let vxlan = VxlanProperties {
        vni: 1,
        port: 8472,
        local: Ipv4Addr::LOCALHOST.into(),
        underlay: bench.parent,
    };
    bench.device(LinkSpec::vxlan(PROBE, vxlan))
});

/// The first port that a device sends from whose number of ports was chosen: the first
/// ephemeral one (RFC 7348, section 5).
const FIRST_SOURCE_PORT: u16 = 49_152;

/// What distinguishes one system's tunnel from another's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tunnel {
    /// Device name.
    pub(super) device: &'static str,
    /// VXLAN network identifier.
    pub(super) vni: u32,
    /// UDP port.
    pub(super) port: u16,
    /// The route to a remote node's pods.
    pub(super) block: fn(&Topology, u8) -> RouteSpec,
    /// Its MTU in bytes.
    pub(super) mtu: u32,
    /// The hardware address of a node's device.
    pub(super) mac: fn(Addressing, u8) -> Mac,
    /// Whether the device is bound to the uplink.
    pub(super) bound: bool,
}

/// What is left of the underlay's MTU, in bytes: Ethernet (14), VXLAN (8), UDP
/// (8) and the outer IP header (20 or 40) come off.
pub(super) fn inner_mtu(topology: &Topology) -> u32 {
    let outer = match topology.addressing.family() {
        Family::V4 => 50,
        Family::V6 => 70,
    };
    topology.mtu - outer
}

impl Tunnel {
    /// Makes the devices, and makes each known to all others.
    pub(super) fn attach(self, topology: &Topology, journal: &mut Journal) -> Result<(), LabError> {
        let addressing = topology.addressing;
        let mut endpoints = Vec::new();
        for (number, node) in topology.numbered() {
            let vxlan = VxlanProperties {
                vni: self.vni,
                port: self.port,
                local: addressing.node(number),
                underlay: if self.bound { node.index(UPLINK)? } else { 0 },
            };
            let mut link = LinkSpec::vxlan(self.device, vxlan)
                .mtu(self.mtu)
                .mac((self.mac)(addressing, number))
                .up();
            if let Some(on) = topology.tuning.vxlan_checksum {
                link = link.udp_checksum(on);
            }
            if let Some(count) = topology.tuning.vxlan_source_ports {
                // At most a quarter of all ports.
                let last = FIRST_SOURCE_PORT.saturating_add(count as u16);
                link = link.source_ports(FIRST_SOURCE_PORT, last);
            }
            let device = journal.link(node, self.device, link)?;
            let own = addressing.subnet(number);
            journal.address(node, device, own, addressing.host_prefix())?;
            endpoints.push((number, node, device));
        }
        for (own, node, device) in endpoints {
            for remote in topology.remotes(own) {
                let endpoint = addressing.subnet(remote);
                let mac = (self.mac)(addressing, remote);
                journal.add(node, NeighbourSpec::permanent(device, endpoint, mac))?;
                let behind = addressing.node(remote);
                journal.add(node, NeighbourSpec::forward(device, mac, behind))?;
                let route = (self.block)(topology, remote).via(endpoint);
                journal.add(node, route.dev(device).onlink())?;
            }
        }
        Ok(())
    }
}

/// A locally administered address for each node's tunnel endpoint. The real
/// systems draw one at random and publish it; here all nodes know it anyway.
pub(super) fn endpoint_mac(_: Addressing, number: u8) -> Mac {
    [0x02, 0x50, 0x4c, 0x42, 0x00, number]
}
