//! The order of devices on the usual paths.

use crate::{Addressing, Hop, Pod, Topology, UPLINK};
use plumbline_experiment::Placement;

/// What packets cross between a pod and its node's uplink.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// First part of the name of a pod's device on the node, where it has one.
    pub(super) port: Option<&'static str>,
    /// The bridge, which carries itself only what it routes.
    pub(super) bridge: Option<&'static str>,
    /// The pair of devices that leads what goes to other nodes away from the
    /// bridge: its port, and the other end.
    pub(super) pair: Option<(&'static str, &'static str)>,
    /// The device that encapsulates.
    pub(super) tunnel: Option<&'static str>,
    /// The same where each remote node has one of its own: its name, by the
    /// number of that node.
    pub(super) tunnel_to: Option<TunnelName>,
}

/// Names the tunnel to the node of this number.
pub(super) type TunnelName = fn(Addressing, u8) -> String;

/// The name of a pod's device on the node.
pub(super) fn port_name(prefix: &str, pod: &Pod) -> String {
    format!("{prefix}{}", pod.number)
}

impl Shape {
    /// The devices of a pod alone.
    pub(super) const POD: Self = Self {
        port: None,
        bridge: None,
        pair: None,
        tunnel: None,
        tunnel_to: None,
    };

    /// With a device that encapsulates.
    pub(super) const fn tunnel(mut self, device: &'static str) -> Self {
        self.tunnel = Some(device);
        self
    }

    /// With one for each remote node.
    pub(super) const fn tunnel_to(mut self, name: TunnelName) -> Self {
        self.tunnel_to = Some(name);
        self
    }

    /// The devices from the first pod to the second.
    pub(super) fn hops(self, topology: &Topology) -> Vec<Hop> {
        let (client, server) = (&topology.pods[0], &topology.pods[1]);
        let (from, to) = (topology.home(client), topology.home(server));
        let port = |pod| self.port.map(|prefix| port_name(prefix, pod));

        let mut hops = vec![Hop::sends(&client.place, UPLINK)];
        hops.extend(port(client).map(|name| Hop::receives(from, &name)));
        if topology.placement == Placement::CrossNode {
            hops.extend(self.bridge.map(|name| Hop::receives(from, name)));
            let tunnel = |remote| {
                let own = self.tunnel_to.map(|name| name(topology.addressing, remote));
                own.or(self.tunnel.map(Into::into))
            };
            let there = tunnel(topology.home_number(server));
            let back = tunnel(topology.home_number(client));
            hops.extend(self.pair.map(|(port, _)| Hop::sends(from, port)));
            hops.extend(self.pair.map(|(_, end)| Hop::receives(from, end)));
            hops.extend(there.map(|name| Hop::sends(from, &name)));
            hops.extend(between_nodes(topology));
            hops.extend(back.map(|name| Hop::receives(to, &name)));
            hops.extend(self.pair.map(|(_, end)| Hop::sends(to, end)));
            hops.extend(self.pair.map(|(port, _)| Hop::receives(to, port)));
            hops.extend(self.bridge.map(|name| Hop::sends(to, name)));
        }
        hops.extend(port(server).map(|name| Hop::sends(to, &name)));
        hops.push(Hop::receives(&server.place, UPLINK));
        hops
    }
}

/// The devices from the uplink of the first node to that of the second.
pub(super) fn between_nodes(topology: &Topology) -> Vec<Hop> {
    let (first, second) = (&topology.nodes[0], &topology.nodes[1]);
    let mut hops = vec![Hop::sends(first, UPLINK)];
    if let Some(router) = &topology.router {
        hops.push(Hop::receives(router, &first.name));
        hops.push(Hop::sends(router, &second.name));
    }
    hops.push(Hop::receives(second, UPLINK));
    hops
}
