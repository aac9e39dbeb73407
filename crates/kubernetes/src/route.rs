//! The ways that a packet can take from one endpoint to the other in a
//! cluster: the levels of the factor `network` there.

use std::borrow::Cow;

use plumbline_experiment::Scene;
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
        let path = match self {
            Self::ClusterIp { .. } => "cluster-ip".into(),
            route => route.name(),
        };
        Scene {
            backends: self.backends().into(),
            ..Scene::of(cluster).by(path)
        }
    }

    /// Whether an endpoint is in a node's own network, which needs a namespace
    /// that allows it.
    pub(crate) fn needs_host_network(self) -> bool {
        self.in_nodes().contains(&true)
    }

    /// Whether client and server are in the nodes' own networks.
    pub(crate) fn in_nodes(self) -> [bool; 2] {
        [
            matches!(self, Self::Host | Self::HostPod),
            matches!(self, Self::Host | Self::PodHost),
        ]
    }

    /// Pods that share what is sent to the receiver's address.
    pub(crate) fn backends(self) -> u8 {
        match self {
            Self::ClusterIp { backends } => backends,
            _ => 1,
        }
    }

    /// Whether packets may come to a pod from an address of the sender's node: a node's
    /// port is outside of the pods' network, to which some networks masquerade.
    pub(crate) fn comes_from_node(self) -> bool {
        matches!(self, Self::HostPod | Self::NodePort)
    }

    /// The service port in front of the server, if any.
    pub(crate) fn is_service(self) -> bool {
        matches!(self, Self::ClusterIp { .. } | Self::NodePort)
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
}
