//! `calico-vxlan`: pods are attached as Calico does it (see
//! [`calico`](super::calico)), with VXLAN between nodes (projectcalico/calico@006d24a,
//! `felix/dataplane/linux/vxlan_mgr.go` and `felix/vxlanfdb`: VNI 4096, port
//! 4789, no learning, and for each remote node a permanent neighbour and
//! forwarding entry and an on-link route to its block through its tunnel
//! address, the first of the block).

use super::shape::Shape;
use super::tunnel::{Tunnel, inner_mtu};
use super::{About, Network, calico};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::probe::Need;
use crate::topology::{Topology, Underlay};

pub(super) struct CalicoVxlan;

static ABOUT: About = About {
    name: "calico-vxlan",
    aliases: &[],
    summary: "a veth and a host route per pod, VXLAN between nodes, no bridge",
    needs: &[Need::Veth, Need::Vxlan],
    underlay: Underlay::Wire,
    pods: true,
};

const DEVICE: &str = "vxlan.calico";

impl Network for CalicoVxlan {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        let tunnel = Tunnel {
            device: DEVICE,
            vni: 4096,
            port: 4789,
            block: calico::block,
        };
        tunnel.attach(topology, journal)?;
        for node in &topology.nodes {
            calico::default_route(topology, node, journal)?;
        }
        calico::attach(topology, journal, inner_mtu(topology))?;
        let shape = Shape {
            tunnel: Some(DEVICE),
            ..calico::SHAPE
        };
        Ok(shape.hops(topology))
    }
}
