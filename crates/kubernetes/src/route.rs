//! The ways that a packet can take from one endpoint to the other in a
//! cluster: the levels of the factor `network` there.

use std::borrow::Cow;

use plumbline_experiment::Placement;

/// From where to where, and through what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Route {
    /// Between the nodes' own networks: the baseline.
    Host,
    /// From pod to pod.
    Pod,
    /// From a pod to the virtual address of a service with pods behind it.
    ClusterIp {
        /// How many, at most [`MOST_BACKENDS`].
        backends: u8,
    },
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
    Route::ClusterIp { backends: 1 },
    Route::NodePort,
    Route::HostPod,
    Route::PodHost,
];

/// Most pods behind a service: all are on one node, and each has a process.
pub const MOST_BACKENDS: u8 = 16;

impl Route {
    /// As written in experiments.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Host => "host",
            Self::Pod => "pod",
            Self::ClusterIp { backends: 1 } => "cluster-ip",
            Self::ClusterIp { backends } => return format!("cluster-ip:{backends}").into(),
            Self::NodePort => "node-port",
            Self::HostPod => "host-pod",
            Self::PodHost => "pod-host",
        })
    }

    /// Reads a name; `None` when there is no such route.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(backends) = name.strip_prefix("cluster-ip:") {
            let backends = backends.parse().ok()?;
            return (1..=MOST_BACKENDS)
                .contains(&backends)
                .then_some(Self::ClusterIp { backends });
        }
        ROUTES.into_iter().find(|route| route.name() == name)
    }

    /// Whether an endpoint is in a node's own network, which needs a namespace
    /// that allows it.
    pub fn needs_host_network(self) -> bool {
        matches!(self, Self::Host | Self::HostPod | Self::PodHost)
    }

    /// The service port in front of the server, if any.
    pub(crate) fn is_service(self) -> bool {
        matches!(self, Self::ClusterIp { .. } | Self::NodePort)
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
            (Self::ClusterIp { backends: of @ 2.. }, _) => Seat::Behind {
                of,
                index: 1,
                far: placement == Placement::CrossNode,
            },
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
    /// One of several behind a service.
    Behind {
        /// How many they are.
        of: u8,
        /// Which one, from 1.
        index: u8,
        /// On the second node, or beside the client.
        far: bool,
    },
}

impl Seat {
    /// Name of the pod.
    pub(crate) fn name(self) -> Cow<'static, str> {
        match self {
            Self::Behind { index, .. } => format!("{}-{index}", self.group()).into(),
            other => other.group(),
        }
    }

    /// Name of the service before it, and of the label by which that finds it.
    pub(crate) fn group(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Neighbour => "neighbour",
            Self::HostClient => "host-client",
            Self::HostServer => "host-server",
            Self::Behind { of, far, .. } => {
                let base = if far { Self::Server } else { Self::Neighbour };
                return format!("{}-of-{of}", base.group()).into();
            }
        })
    }

    /// It, and those that are behind the same service.
    pub(crate) fn together(self) -> Vec<Self> {
        match self {
            Self::Behind { of, far, .. } => (1..=of)
                .map(|index| Self::Behind { of, index, far })
                .collect(),
            alone => vec![alone],
        }
    }

    /// Whether it is in a node's own network.
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::HostClient | Self::HostServer)
    }

    /// Whether it is on the second node.
    pub(crate) fn is_far(self) -> bool {
        matches!(
            self,
            Self::Server | Self::HostServer | Self::Behind { far: true, .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for route in ROUTES {
            assert_eq!(Route::parse(&route.name()), Some(route));
        }
        let several = Route::ClusterIp { backends: 4 };
        assert_eq!(several.name(), "cluster-ip:4");
        assert_eq!(Route::parse("cluster-ip:4"), Some(several));
        assert_eq!(Route::parse("cluster-ip:1"), Route::parse("cluster-ip"));
        for none in ["vxlan", "cluster-ip:0", "cluster-ip:17", "cluster-ip:x"] {
            assert_eq!(Route::parse(none), None);
        }
    }

    #[test]
    fn several_pods_stand_behind_one_service() {
        let (_, first) = Route::ClusterIp { backends: 3 }.seats(Placement::CrossNode);
        let all = first.together();
        let names: Vec<_> = all.iter().map(|seat| seat.name()).collect();
        assert_eq!(names, ["server-of-3-1", "server-of-3-2", "server-of-3-3"]);
        assert!(
            all.iter()
                .all(|seat| seat.group() == "server-of-3" && seat.is_far())
        );
        let (_, near) = Route::ClusterIp { backends: 3 }.seats(Placement::SameNode);
        assert_eq!(near.name(), "neighbour-of-3-1");
        assert_eq!(Seat::Server.together(), [Seat::Server]);
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
