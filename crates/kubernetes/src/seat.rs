//! Where the endpoints of a path sit: in which pods, on which node.

use std::borrow::Cow;

use plumbline_experiment::{Family, Neighbours, Placement, Treatment, Tuning};
use plumbline_harness::TargetError;

use crate::own;
use crate::route::ClusterRoute;

/// What distinguishes one path from another, nodes aside. Between two nodes each has
/// pods of its own: what their devices and protocols count is of that path alone, also
/// while several take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PathKey {
    pub(crate) route: ClusterRoute,
    pub(crate) placement: Placement,
    pub(crate) family: Family,
    /// What its receiver computes before each answer, nanoseconds.
    pub(crate) planted_ns: u64,
    /// What its pods set for themselves.
    pub(crate) own: Tuning,
    /// Which copy of the path it is, from 1: an A/A experiment has several.
    pub(crate) copy: u32,
    /// Whether it is that of neighbours, for all paths that are alike but for this.
    pub(crate) is_beside: bool,
}

impl PathKey {
    /// The path of a treatment.
    ///
    /// # Errors
    ///
    /// A treatment of another target.
    pub(crate) fn of(treatment: &Treatment) -> Result<Self, TargetError> {
        let scene = &treatment.scene;
        Ok(Self {
            route: ClusterRoute::of(scene)?,
            placement: scene.placement,
            family: scene.family,
            planted_ns: scene.planted_ns,
            own: own::own(scene),
            copy: treatment.copy,
            is_beside: false,
        })
    }

    /// The path of its neighbours: as its own, or on the sender's node for those that share
    /// nothing but that with it. Those that send nothing work on the receiver's.
    pub(crate) fn beside(self, neighbours: Neighbours) -> Self {
        let placement = match neighbours.send() && !neighbours.share_link() {
            true => Placement::SameNode,
            false => self.placement,
        };
        Self {
            placement,
            planted_ns: 0,
            own: Tuning::NONE,
            copy: 1,
            is_beside: true,
            ..self
        }
    }

    /// Its name in records, which copies share, and paths in which something is planted.
    pub(crate) fn name(self) -> String {
        let mut name = self.route.name().into_owned();
        if self.placement == Placement::SameNode {
            name += " same-node";
        }
        if self.family == Family::V6 {
            name += " v6";
        }
        name
    }

    /// The end of its pods' names.
    fn word(self) -> String {
        let mut word = self.name().replace([' ', ':'], "-");
        if self.planted_ns > 0 {
            word += &format!("-{}ns", self.planted_ns);
        }
        word += &own::word(&self.own);
        if self.copy > 1 {
            word += &format!("-copy-{}", self.copy);
        }
        if self.is_beside {
            word += "-beside";
        }
        word
    }

    /// Where the nodes are looked at that its packets cross, the sender's first.
    pub(crate) fn tracers(self) -> Vec<Seat> {
        let far = (self.placement == Placement::CrossNode).then_some(true);
        let seat = |is_far| Seat::Tracer { is_far };
        [false].into_iter().chain(far).map(seat).collect()
    }

    /// Where its sender sits, and its receiver or the first of several.
    pub(crate) fn seats(self) -> (Seat, Seat) {
        let [client, server] = self.route.in_nodes();
        let client = if client {
            Seat::HostClient
        } else {
            Seat::Client(self)
        };
        let server = match (server, self.placement) {
            (true, Placement::CrossNode) => Seat::HostServer,
            (true, Placement::SameNode) => Seat::HostClient,
            (false, _) => Seat::Server { of: self, index: 1 },
        };
        (client, server)
    }

    /// The same where there are many nodes, the sender on the first of two.
    pub(crate) fn members(self, numbers: [u16; 2]) -> (Seat, Seat) {
        let [client, server] = self.route.in_nodes();
        let member = |in_node: bool, number| {
            if in_node {
                Seat::HostMember(number)
            } else {
                Seat::Member(number)
            }
        };
        (member(client, numbers[0]), member(server, numbers[1]))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Seat {
    /// The sender of one path, on the first node.
    Client(PathKey),
    /// A receiver of one path, on the second node or beside the client.
    Server {
        of: PathKey,
        /// Which of those behind one service, from 1.
        index: u8,
    },
    /// In the network of the first node, for all paths that end there.
    HostClient,
    /// In the network of the second node.
    HostServer,
    /// In the network of the first node, or of the second, with the right to load programs into
    /// its kernel.
    Tracer {
        /// Whether it is the second node's.
        is_far: bool,
    },
    /// Beside the receivers, with a network of its own: no path leads to it.
    Beside,
    /// On one of many nodes, to send or to receive.
    Member(u16),
    /// In the network of one of many nodes.
    HostMember(u16),
    /// On one of the nodes, by its place among them, with the right to set what is the node's.
    Tuner(u16),
}

impl Seat {
    /// Its name where its path is known.
    pub(crate) fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Client(_) => "client",
            Self::Server { of, index } => match of.route.backends() {
                1 => self.side(),
                backends => return format!("{}-of-{backends}-{index}", self.side()).into(),
            },
            Self::HostClient => "host-client",
            Self::HostServer => "host-server",
            Self::Tracer { is_far: false } => "client-tracer",
            Self::Tracer { is_far: true } => "server-tracer",
            Self::Beside => "beside",
            Self::Member(number) => return format!("member-{}", number + 1).into(),
            Self::HostMember(number) => return format!("host-member-{}", number + 1).into(),
            Self::Tuner(number) => return format!("tuner-{}", number + 1).into(),
        })
    }

    fn side(self) -> &'static str {
        if self.is_far() { "server" } else { "neighbour" }
    }

    /// Name of the service before it, and of the label by which that finds it.
    pub(crate) fn group(self) -> String {
        match self {
            Self::Client(of) => format!("client-{}", of.word()),
            Self::Server { of, .. } => format!("{}-{}", self.side(), of.word()),
            shared => shared.name().into_owned(),
        }
    }

    /// Name of its pod, of which the run has no other.
    pub(crate) fn pod(self) -> String {
        match self {
            Self::Server { of, index } if of.route.backends() > 1 => {
                format!("{}-{index}", self.group())
            }
            _ => self.group(),
        }
    }

    /// It, and those that are behind the same service.
    pub(crate) fn together(self) -> Vec<Self> {
        match self {
            Self::Server { of, .. } => (1..=of.route.backends())
                .map(|index| Self::Server { of, index })
                .collect(),
            alone => vec![alone],
        }
    }

    pub(crate) fn is_host(self) -> bool {
        matches!(
            self,
            Self::HostClient
                | Self::HostServer
                | Self::HostMember(_)
                | Self::Tracer { .. }
                | Self::Tuner(_)
        )
    }

    /// What it sets for itself.
    pub(crate) fn own(self) -> Tuning {
        match self {
            Self::Client(key) | Self::Server { of: key, .. } => key.own,
            _ => Tuning::NONE,
        }
    }

    /// Whether programs may be loaded from it into the kernel.
    pub(crate) fn traces(self) -> bool {
        matches!(self, Self::Tracer { .. })
    }

    /// Whether its node is tuned from it.
    pub(crate) fn tunes(self) -> bool {
        matches!(self, Self::Tuner(_))
    }

    /// Whether it receives in a network of its own, where a policy can select it.
    pub(crate) fn is_guarded(self) -> bool {
        matches!(self, Self::Server { .. } | Self::Member(_))
    }

    /// Whether all packets of its devices are of one path.
    pub(crate) fn is_private(self) -> bool {
        matches!(self, Self::Client(_) | Self::Server { .. })
    }

    /// Whether it is on another node than the pod that sends to it.
    pub(crate) fn is_far(self) -> bool {
        match self {
            Self::Server { of, .. } => of.placement == Placement::CrossNode,
            Self::Tracer { is_far } => is_far,
            Self::Tuner(number) => number > 0,
            seat => !matches!(seat, Self::Client(_) | Self::HostClient),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use plumbline_experiment::{NeighbourKind, SharedPart};

    use super::*;
    use crate::route::ROUTES;

    /// The path between pods of two nodes by IPv4.
    pub(crate) const POD: PathKey = PathKey {
        route: ClusterRoute::Pod,
        placement: Placement::CrossNode,
        family: Family::V4,
        planted_ns: 0,
        own: Tuning::NONE,
        copy: 1,
        is_beside: false,
    };

    fn through(route: ClusterRoute, placement: Placement) -> PathKey {
        PathKey {
            route,
            placement,
            ..POD
        }
    }

    #[test]
    fn several_pods_stand_behind_one_service() {
        let three = ClusterRoute::ClusterIp { backends: 3 };
        let (_, first) = through(three, Placement::CrossNode).seats();
        let all = first.together();
        let pods: Vec<_> = all.iter().map(|seat| seat.pod()).collect();
        let service = "server-cluster-ip-3";
        assert_eq!(pods, [1, 2, 3].map(|index| format!("{service}-{index}")));
        assert!(
            all.iter()
                .all(|seat| seat.group() == service && seat.is_far())
        );
        assert_eq!(all[2].name(), "server-of-3-3");
        let (_, near) = through(three, Placement::SameNode).seats();
        assert_eq!(near.name(), "neighbour-of-3-1");
        assert_eq!(Seat::HostServer.together(), [Seat::HostServer]);
    }

    #[test]
    fn the_server_is_on_the_other_node_unless_the_same_is_asked_for() {
        for route in ROUTES {
            let (client, server) = through(route, Placement::CrossNode).seats();
            assert!(!client.is_far() && server.is_far(), "{route:?}");
            let (client, server) = through(route, Placement::SameNode).seats();
            assert!(!client.is_far() && !server.is_far(), "{route:?}");
            let host = client.is_host() || server.is_host();
            assert_eq!(host, route.needs_host_network(), "{route:?}");
        }
    }

    #[test]
    fn neighbours_that_share_only_a_node_are_on_the_senders() {
        let key = through(ClusterRoute::Pod, Placement::CrossNode);
        let placed = |kind, share| {
            let neighbours = Neighbours {
                kind,
                share,
                ..Neighbours::default()
            };
            key.beside(neighbours).placement
        };
        let (bulk, cpu) = (NeighbourKind::Bulk, NeighbourKind::Cpu);
        assert_eq!(placed(bulk, SharedPart::Link), Placement::CrossNode);
        assert_eq!(placed(bulk, SharedPart::Node), Placement::SameNode);
        assert_eq!(placed(cpu, SharedPart::Node), Placement::CrossNode);
    }

    #[test]
    fn pods_are_of_one_path_and_only_the_nodes_own_networks_are_shared() {
        let mut names = BTreeSet::new();
        let mut private = 0;
        for route in ROUTES {
            for placement in [Placement::CrossNode, Placement::SameNode] {
                for family in [Family::V4, Family::V6] {
                    for (planted_ns, copy) in [(0, 1), (0, 2), (2000, 1)] {
                        let key = PathKey {
                            route,
                            placement,
                            family,
                            planted_ns,
                            own: Tuning::NONE,
                            copy,
                            is_beside: false,
                        };
                        let mut seats = <[Seat; 2]>::from(key.seats()).to_vec();
                        // One pair beside all of them.
                        if (planted_ns, copy) == (0, 1) {
                            seats.extend(<[Seat; 2]>::from(
                                key.beside(Neighbours::default()).seats(),
                            ));
                        }
                        let own = seats.into_iter().filter(|seat| !seat.is_host());
                        for seat in own {
                            assert!(seat.is_private());
                            private += 1;
                            names.insert(seat.pod());
                        }
                    }
                }
            }
        }
        assert_eq!(names.len(), private, "{names:?}");
        assert!(names.contains("client-pod"), "{names:?}");
        assert!(names.contains("neighbour-cluster-ip-same-node-v6-copy-2"));
        assert!(names.contains("server-pod-beside"), "{names:?}");
        assert!(names.iter().all(|name| name.len() < 52), "{names:?}");
        assert!(!Seat::HostClient.is_private() && !Seat::Member(0).is_private());
    }
}
