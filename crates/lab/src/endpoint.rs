//! Where agents of a path are started.

use std::net::IpAddr;
use std::sync::Arc;

use plumbline_experiment::Placement;
use plumbline_harness::{AgentLink, Site, TargetError};

use crate::agent::Launcher;
use crate::place::Place;
use crate::topology::Topology;

/// An end of a path, or a place between both, where agents can be started.
pub(crate) struct Endpoint {
    pub(crate) place: Arc<Place>,
    pub(crate) address: IpAddr,
    /// Where a receiver has to listen; 0 for any port.
    pub(crate) port: u16,
    pub(crate) launcher: Launcher,
}

impl Site for Endpoint {
    fn name(&self) -> &str {
        &self.place.name
    }

    fn address(&self) -> IpAddr {
        self.address
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn start_agent(&self) -> Result<AgentLink, TargetError> {
        self.launcher.start(&self.place)
    }
}

/// The client and the server: the pods, or the nodes where there are none.
pub(crate) fn endpoints(topology: &Topology, launcher: &Launcher) -> (Endpoint, Endpoint) {
    let endpoint = |place: &Arc<Place>, address| Endpoint {
        place: Arc::clone(place),
        address,
        port: 0,
        launcher: launcher.clone(),
    };
    if let [client, server, ..] = &topology.pods[..] {
        return (
            endpoint(&client.place, client.reached_by()),
            endpoint(&server.place, server.reached_by()),
        );
    }
    let far = match topology.placement {
        Placement::CrossNode => 1,
        Placement::SameNode => 0,
    };
    let on = |node: usize| {
        let address = topology.addressing.node(node as u8 + 1);
        endpoint(&topology.nodes[node], address)
    };
    (on(0), on(far))
}
