//! The ways that a packet can take from one endpoint to the other in a
//! cluster: the levels of the factor `network` there.

use std::borrow::Cow;

use plumbline_experiment::{Placement, Scene};
use plumbline_harness::TargetError;
use plumbline_record::Warning;

/// From where to where, and through what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ClusterRoute {
    /// Between the nodes' own networks: the baseline.
    Host,
    Pod,
    /// From a pod to the virtual address of a service with pods behind it.
    ClusterIp {
        /// How many, at most [`MOST_BACKENDS`].
        backends: u8,
    },
    /// From a pod to a port of the server's node that leads to a service.
    NodePort,
    HostPod,
    PodHost,
}

/// All of them, the baseline first.
pub(crate) const ROUTES: [ClusterRoute; 6] = [
    ClusterRoute::Host,
    ClusterRoute::Pod,
    ClusterRoute::ClusterIp { backends: 1 },
    ClusterRoute::NodePort,
    ClusterRoute::HostPod,
    ClusterRoute::PodHost,
];

/// Most pods behind a service: all are on one node, and each has a process.
pub(crate) const MOST_BACKENDS: u8 = 16;

impl ClusterRoute {
    /// As written in experiments.
    pub(crate) fn name(self) -> Cow<'static, str> {
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

    /// Reads a word of an experiment; `None` when there is no such route.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word.strip_prefix("cluster-ip:") {
            Some(backends) => Self::new("cluster-ip", backends.parse().ok()?),
            None => Self::new(word, 1),
        }
    }

    /// The route that was asked for by name, where pods may be in the nodes' networks or
    /// not.
    ///
    /// # Errors
    ///
    /// A sentence, where there is no such route or it is not available.
    pub(crate) fn named(word: &str, host_network: bool) -> Result<Self, String> {
        let Some(route) = Self::parse(word) else {
            let names: Vec<_> = ROUTES.iter().map(|route| route.name()).collect();
            return Err(format!(
                "`{word}` is no path of a cluster; there are {}, `cluster-ip:N` with N pods behind \
                 it, 2 to {MOST_BACKENDS}, and `all`",
                names.join(", ")
            ));
        };
        if route.needs_host_network() && !host_network {
            return Err(format!("`{word}` needs {NEEDS_HOST_NETWORK}"));
        }
        Ok(route)
    }

    /// The route that a scene takes.
    ///
    /// # Errors
    ///
    /// A scene of another target.
    pub(crate) fn of(scene: &Scene) -> Result<Self, TargetError> {
        Self::new(&scene.path, scene.backends).ok_or_else(|| TargetError::Unsupported {
            what: format!("the network `{}`", scene.name()),
            needs: "the lab: in a cluster, networks are `host`, `pod`, `cluster-ip` …".to_owned(),
        })
    }

    fn new(path: &str, backends: u32) -> Option<Self> {
        match (path, u8::try_from(backends).ok()?) {
            ("cluster-ip", backends @ 1..=MOST_BACKENDS) => Some(Self::ClusterIp { backends }),
            (path, 1) => ROUTES.into_iter().find(|route| route.name() == path),
            _ => None,
        }
    }

    /// A scene that takes this route through a cluster.
    pub(crate) fn through(self, cluster: &str) -> Scene {
        let (path, backends) = match self {
            Self::ClusterIp { backends } => ("cluster-ip".into(), backends),
            route => (route.name(), 1),
        };
        Scene {
            backends: backends.into(),
            ..Scene::of(cluster).by(path)
        }
    }

    /// Whether an endpoint is in a node's own network, which needs a namespace
    /// that allows it.
    pub(crate) fn needs_host_network(self) -> bool {
        matches!(self, Self::Host | Self::HostPod | Self::PodHost)
    }

    /// The service port in front of the server, if any.
    pub(crate) fn is_service(self) -> bool {
        matches!(self, Self::ClusterIp { .. } | Self::NodePort)
    }

    /// Where they sit where there are many nodes, the sender on the first of two.
    pub(crate) fn members(self, [client, server]: [u16; 2]) -> (Seat, Seat) {
        let (at_client, at_server) = self.seats(Placement::CrossNode);
        let member = |seat: Seat, number| {
            if seat.is_host() {
                Seat::HostMember(number)
            } else {
                Seat::Member(number)
            }
        };
        (member(at_client, client), member(at_server, server))
    }

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

/// What a path that ends in a node's own network needs.
pub(crate) const NEEDS_HOST_NETWORK: &str = "--allow-host-network: pods in the nodes' own networks, in a namespace with the privileged profile";

/// The routes that are available, and what the others need.
pub(crate) fn available(host_network: bool) -> (Vec<ClusterRoute>, Vec<Warning>) {
    let (here, missing): (Vec<ClusterRoute>, Vec<ClusterRoute>) = ROUTES
        .into_iter()
        .partition(|route| host_network || !route.needs_host_network());
    let missing = missing.into_iter().map(|route| Warning::Unsupported {
        network: route.name().into_owned(),
        needs: NEEDS_HOST_NETWORK.to_owned(),
    });
    (here, missing.collect())
}

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
    /// On one of many nodes, to send or to receive.
    Member(u16),
    /// In the network of one of many nodes.
    HostMember(u16),
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
            Self::Member(number) => return format!("member-{}", number + 1).into(),
            Self::HostMember(number) => return format!("host-member-{}", number + 1).into(),
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

    pub(crate) fn is_host(self) -> bool {
        matches!(
            self,
            Self::HostClient | Self::HostServer | Self::HostMember(_)
        )
    }

    /// Whether it is on another node than the pod that sends to it.
    pub(crate) fn is_far(self) -> bool {
        !matches!(
            self,
            Self::Client | Self::Neighbour | Self::HostClient | Self::Behind { far: false, .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for route in ROUTES {
            assert_eq!(ClusterRoute::parse(&route.name()), Some(route));
        }
        let several = ClusterRoute::ClusterIp { backends: 4 };
        assert_eq!(several.name(), "cluster-ip:4");
        assert_eq!(ClusterRoute::parse("cluster-ip:4"), Some(several));
        assert_eq!(
            ClusterRoute::parse("cluster-ip:1"),
            ClusterRoute::parse("cluster-ip")
        );
        for none in ["vxlan", "cluster-ip:0", "cluster-ip:17", "cluster-ip:x"] {
            assert_eq!(ClusterRoute::parse(none), None);
        }
    }

    #[test]
    fn several_pods_stand_behind_one_service() {
        let (_, first) = ClusterRoute::ClusterIp { backends: 3 }.seats(Placement::CrossNode);
        let all = first.together();
        let names: Vec<_> = all.iter().map(|seat| seat.name()).collect();
        assert_eq!(names, ["server-of-3-1", "server-of-3-2", "server-of-3-3"]);
        assert!(
            all.iter()
                .all(|seat| seat.group() == "server-of-3" && seat.is_far())
        );
        let (_, near) = ClusterRoute::ClusterIp { backends: 3 }.seats(Placement::SameNode);
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
