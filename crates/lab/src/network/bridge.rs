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

use plumbline_sys::netlink::{LinkSpec, Mac, RouteSpec};

use crate::need::{Need, PROBE};
use crate::network::shape::{Shape, port_name};
use crate::{Journal, LabError, Pod, Topology, UPLINK};

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
    for (number, node) in topology.numbered() {
        let link = LinkSpec::bridge(bridge).mac(mac(number)).mtu(mtu).up();
        let device = journal.link(node, bridge, link)?;
        journal.address(node, device, addressing.gateway(number), prefix)?;
    }
    for pod in &topology.pods {
        join(bridge, topology, pod, journal, mtu)?;
    }
    Ok(Shape {
        port: Some(PORT),
        bridge: Some(bridge),
        ..Shape::POD
    })
}

/// The hardware address of a node's bridge. The plugin sets that to what it is: a bridge
/// without one of its own takes the lowest of its ports', and whoever has resolved the gateway
/// loses it when pods come and go.
fn mac(number: u8) -> Mac {
    [0x02, 0x50, 0x4c, 0x42, 0x62, number]
}

/// Joins a pod to Flannel's bridge, where what joins the nodes takes `OVERHEAD` bytes of each
/// packet.
pub(super) fn join_cni0<const OVERHEAD: u32>(
    topology: &Topology,
    pod: &Pod,
    journal: &mut Journal,
) -> Result<(), LabError> {
    join(CNI0, topology, pod, journal, topology.mtu - OVERHEAD)
}

/// Joins a pod to the bridge of its node.
pub(super) fn join(
    bridge: &str,
    topology: &Topology,
    pod: &Pod,
    journal: &mut Journal,
    mtu: u32,
) -> Result<(), LabError> {
    let addressing = topology.addressing;
    let node = topology.home(pod);
    let name = port_name(PORT, pod);
    let port = pod.port(&name, mtu).master(node.index(bridge)?);
    journal.link(node, &name, port)?;
    let device = pod.place.bring_up(UPLINK)?;
    journal.done("device");
    journal.address(&pod.place, device, pod.address, addressing.subnet_prefix())?;
    journal.done("address");
    let gateway = addressing.gateway(topology.home_number(pod));
    journal.add(&pod.place, RouteSpec::default_via(gateway).dev(device))?;
    journal.done("route");
    Ok(())
}
