//! `macvlan`: each pod has a device of its own on top of the node's uplink, in
//! bridge mode, and all pods share one Ethernet segment, as the CNI plugin
//! `macvlan` makes it (containernetworking/plugins@019727a,
//! `plugins/main/macvlan/macvlan.go`: mode `bridge` by default, the uplink's MTU
//! unless told otherwise; its announcement by `arp_notify` is not modelled).
//! Packets do not pass the node's IP stack.

use plumbline_experiment::Family;
use plumbline_sys::netlink::LinkSpec;

use super::shape::Shape;
use super::{About, Network, WireFormat};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::need::{Need, ScratchNamespace, VETH};
use crate::topology::{Topology, Underlay};

pub(super) struct Macvlan;

/// Macvlan devices.
pub(super) static MACVLAN: Need = Need::module("CONFIG_MACVLAN", "macvlan", |bench| {
    bench.device(LinkSpec::macvlan(ScratchNamespace::NAME, bench.parent))
});

static ABOUT: About = About {
    name: "macvlan",
    aliases: &[],
    summary: "a macvlan device per pod on the node's uplink, one Ethernet segment",
    needs: &[&VETH, &MACVLAN],
    underlay: Underlay::Wire,
    wire: WireFormat::Plain,
    families: Family::BOTH,
    pods: true,
};

impl Network for Macvlan {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        for pod in &topology.pods {
            topology.place_on_uplink(pod, journal, LinkSpec::macvlan)?;
        }
        Ok(Shape::default().hops(topology))
    }
}
