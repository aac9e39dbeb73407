//! `vxlan`: a bridge on each node and a VXLAN device between nodes, as
//! Flannel's `vxlan` backend (flannel-io/flannel@bd2e72e, `pkg/backend/vxlan`:
//! VNI 1, the kernel's default port 8472, no learning, a permanent neighbour
//! and forwarding entry and an on-link route per remote subnet, the subnet's
//! first address on the device). The MTU is the underlay's less what the
//! headers take; for IPv6 that is 70 bytes, not the 50 of that commit.

use super::bridge;
use super::shape::Shape;
use super::tunnel::{Tunnel, inner_mtu};
use super::{About, Network};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::probe::Need;
use crate::topology::{Topology, Underlay};

pub(super) struct Vxlan;

static ABOUT: About = About {
    name: "vxlan",
    aliases: &["flannel", "flannel-vxlan"],
    summary: "a bridge on each node, VXLAN between nodes",
    needs: &[Need::Veth, Need::Bridge, Need::Vxlan],
    underlay: Underlay::Wire,
    pods: true,
};

const DEVICE: &str = "flannel.1";

impl Network for Vxlan {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        let tunnel = Tunnel {
            device: DEVICE,
            vni: 1,
            port: 8472,
            block: |addressing, number| (addressing.subnet(number), addressing.subnet_prefix()),
        };
        tunnel.attach(topology, journal)?;
        bridge::attach(topology, journal, inner_mtu(topology))?;
        let shape = Shape {
            tunnel: Some(DEVICE),
            ..bridge::SHAPE
        };
        Ok(shape.hops(topology))
    }
}
