//! A bridge on each node with the pods as its ports, as the CNI plugin `bridge`
//! makes it (containernetworking/plugins@00406f9,
//! `plugins/main/bridge/bridge.go`): the subnet's first address on the bridge,
//! one MTU on bridge and pods, no promiscuous mode, no VLANs. Flannel asks for
//! it with `isGateway` and the backend's MTU (flannel-io/cni-plugin@6f13a99,
//! `flannel_linux.go`), its manifest with `isDefaultGateway` and `hairpinMode`
//! (flannel-io/flannel@d01746e, `Documentation/kube-flannel.yml`, v0.13.0-rc2).
//! Not modelled: hairpin, which touches no packet between two pods; a second
//! route of the pod, to all pods by the same gateway; masquerading and the port
//! map, which are netfilter rules.

use plumbline_sys::netlink::{LinkSpec, RouteSpec};

use crate::need::{Need, PROBE};
use crate::network::shape::{Shape, port_name};
use crate::{Journal, LabError, Topology, UPLINK};

/// Bridges.
pub(super) static DRIVER: Need = Need::module("CONFIG_BRIDGE", "bridge", |bench| {
    bench.device(LinkSpec::bridge(PROBE))
});

/// What the plugin, and so Flannel, calls the bridge.
pub(super) const CNI0: &str = "cni0";
const PORT: &str = "veth";

/// Makes the bridges, of this name, and joins the pods to them; `mtu` in bytes. Gives
/// the devices of a pod.
pub(super) fn attach(
    bridge: &'static str,
    topology: &Topology,
    journal: &mut Journal,
    mtu: u32,
) -> Result<Shape, LabError> {
    let addressing = topology.addressing;
    let prefix = addressing.subnet_prefix();
    let mut bridges = Vec::new();
    for (number, node) in topology.numbered() {
        let device = journal.link(node, bridge, LinkSpec::bridge(bridge).mtu(mtu).up())?;
        journal.address(node, device, addressing.gateway(number), prefix)?;
        bridges.push(device);
    }
    for pod in &topology.pods {
        let node = topology.home(pod);
        let name = port_name(PORT, pod);
        let port = pod.port(&name, mtu).master(bridges[pod.node]);
        journal.link(node, &name, port)?;
        let device = pod.place.bring_up(UPLINK)?;
        journal.address(&pod.place, device, pod.address, prefix)?;
        let gateway = addressing.gateway(topology.home_number(pod));
        journal.add(&pod.place, RouteSpec::default_via(gateway).dev(device))?;
    }
    Ok(Shape {
        port: Some(PORT),
        bridge: Some(bridge),
        ..Shape::POD
    })
}
