//! `macvlan`: each pod has a device of its own on top of the node's uplink, in
//! bridge mode, and all pods share one Ethernet segment, as the CNI plugin
//! `macvlan` makes it (containernetworking/plugins@019727a,
//! `plugins/main/macvlan/macvlan.go`: mode `bridge` by default, the uplink's MTU
//! unless configured otherwise; its announcement by `arp_notify` is not modelled).
//! Packets do not pass the node's IP stack.

use plumbline_sys::netlink::LinkSpec;

use super::shape::Shape;
use super::{About, Builtin};
use crate::need::{Need, PROBE, VETH};
use crate::{Hop, Journal, LabError, Topology};

/// Macvlan devices.
pub(super) static MACVLAN: Need = Need::module("CONFIG_MACVLAN", "macvlan", |bench| {
    bench.device(LinkSpec::macvlan(PROBE, bench.parent))
});

pub(super) static NETWORK: Builtin = About {
    name: "macvlan",
    summary: "a macvlan device per pod on the node's uplink, one Ethernet segment",
    needs: &[&VETH, &MACVLAN],
    ..About::PLAIN
}
.attached_by(attach)
.joined_by(|topology, pod, journal| topology.place_on_uplink(pod, journal, LinkSpec::macvlan));

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    for pod in &topology.pods {
        topology.place_on_uplink(pod, journal, LinkSpec::macvlan)?;
    }
    Ok(Shape::POD.hops(topology))
}
