//! The ways that a packet can take from one endpoint to the other in a
//! cluster: the levels of the factor `network` there.

use plumbline_experiment::Placement;

/// From where to where, and through what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Route {
    /// Between the nodes' own networks: the baseline.
    Host,
    /// From pod to pod.
    Pod,
    /// From a pod to the virtual address of a service with a pod behind it.
    ClusterIp,
    /// From a pod to a port of the server's node that leads to a service.
    NodePort,
    /// From a node to a pod.
    HostPod,
    /// From a pod to a node.
    PodHost,
}

/// All of them, the baseline first.
pub const ROUTES: [Route; 6] = [
    Route::Host,
    Route::Pod,
    Route::ClusterIp,
    Route::NodePort,
    Route::HostPod,
    Route::PodHost,
];

impl Route {
    /// As written in experiments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Pod => "pod",
            Self::ClusterIp => "cluster-ip",
            Self::NodePort => "node-port",
            Self::HostPod => "host-pod",
            Self::PodHost => "pod-host",
        }
    }

    /// Reads a name; `None` when there is no such route.
    pub fn parse(name: &str) -> Option<Self> {
        ROUTES.into_iter().find(|route| route.name() == name)
    }

    /// Whether an endpoint is in a node's own network, which needs a namespace
    /// that allows it.
    pub fn needs_host_network(self) -> bool {
        matches!(self, Self::Host | Self::HostPod | Self::PodHost)
    }

    /// The service port in front of the server, if any.
    pub(crate) fn is_service(self) -> bool {
        matches!(self, Self::ClusterIp | Self::NodePort)
    }

    /// Where client and server sit.
    pub(crate) fn seats(self, placement: Placement) -> (Seat, Seat) {
        let client = match self {
            Self::Host | Self::HostPod => Seat::HostClient,
            _ => Seat::Client,
        };
        let server = match (self, placement) {
            (Self::Host | Self::PodHost, Placement::CrossNode) => Seat::HostServer,
            (Self::Host | Self::PodHost, Placement::SameNode) => Seat::HostClient,
            (_, Placement::CrossNode) => Seat::Server,
            (_, Placement::SameNode) => Seat::Neighbour,
        };
        (client, server)
    }
}

/// A pod of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Seat {
    /// On the first node.
    Client,
    /// On the second node.
    Server,
    /// On the first node, beside the client.
    Neighbour,
    /// In the network of the first node.
    HostClient,
    /// In the network of the second node.
    HostServer,
}

impl Seat {
    /// Name of the pod.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Neighbour => "neighbour",
            Self::HostClient => "host-client",
            Self::HostServer => "host-server",
        }
    }

    /// Whether it is in a node's own network.
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::HostClient | Self::HostServer)
    }

    /// Whether it is on the second node.
    pub(crate) fn is_far(self) -> bool {
        matches!(self, Self::Server | Self::HostServer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for route in ROUTES {
            assert_eq!(Route::parse(route.name()), Some(route));
        }
        assert_eq!(Route::parse("vxlan"), None);
    }

    #[test]
    fn the_server_is_on_the_other_node_unless_the_same_is_asked_for() {
        for route in ROUTES {
            let (client, server) = route.seats(Placement::CrossNode);
            assert!(!client.is_far() && server.is_far(), "{route:?}");
            let (client, server) = route.seats(Placement::SameNode);
            assert!(!client.is_far() && !server.is_far(), "{route:?}");
            let host = client.is_host() || server.is_host();
            assert_eq!(host, route.needs_host_network(), "{route:?}");
        }
    }
}
