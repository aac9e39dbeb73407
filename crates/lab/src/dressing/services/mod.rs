//! Services on the nodes of a path: the rules that a proxy writes for them. All endpoints
//! of all services are the one receiver, so that nothing but rules differs.

mod kube_iptables;
mod kube_nftables;
mod ruleset;
mod service_set;

use std::io;
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use plumbline_experiment::{ServiceProxy, Services};
use plumbline_sys::netlink::RouteSpec;

use super::dressed::{BarePath, Dressed};
use super::listener::listen;
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;
use crate::topology::UPLINK;
use service_set::ServiceSet;

/// Longest wait for a first connection to a service.
const CONNECTED: Duration = Duration::from_secs(2);
/// Seconds for which a node remembers a connection that has ended. With the kernel's 120
/// the table of connections would be full of those.
const REMEMBERED: &str = "1";

/// Writes the rules on every node, and sees that a connection to a service arrives.
pub(super) fn put_on(
    services: Services,
    path: BarePath<'_>,
    journal: &mut Journal,
) -> Result<Dressed, LabError> {
    let topology = path.topology;
    let set = ServiceSet::new(services, topology.addressing, path.receiver);
    let ruleset = match services.proxy {
        ServiceProxy::IptablesLegacy => kube_iptables::legacy(&set),
        ServiceProxy::IptablesNft => kube_iptables::over_nftables(&set),
        ServiceProxy::Nftables => kube_nftables::ruleset(&set),
    };
    let nodes: Vec<Arc<Place>> = topology.nodes.clone();
    let ((remover, removal), undressed) = (ruleset.removal, nodes.clone());
    // Before the first text, because one of several may fail.
    journal.undo_by(move || {
        let removed = remover.write_on(&undressed, &[removal]);
        removed.err().into_iter().collect()
    });
    ruleset.writer.write_on(&nodes, &ruleset.texts)?;
    for node in &nodes {
        let key = "net/netfilter/nf_conntrack_tcp_timeout_time_wait".to_owned();
        journal.sysctls(node, &[(key, REMEMBERED.to_owned())])?;
        if topology.pods.is_empty() {
            route_out(node, set.range(), journal)?;
        }
    }
    arrives(path, &set)?.map_err(|error| LabError::Unsupported {
        what: format!("a service of {}", services.proxy.as_str()),
        needs: format!(
            "a network whose packets meet the rules of their nodes both ways; here a connection \
             to a service did not arrive: {error}"
        ),
    })?;
    Ok(Dressed {
        front: set.asked(),
        port: set.receiver().port(),
        rules: nodes.into_iter().map(|it| (it, ruleset.count)).collect(),
        enforcement: None,
    })
}

/// A route that lets a program of the node send to a service; its packets leave by the one
/// of the endpoint. Real nodes have a default route.
fn route_out(
    node: &Arc<Place>,
    (range, prefix): (IpAddr, u8),
    journal: &mut Journal,
) -> Result<(), LabError> {
    let uplink = node.index(UPLINK)?;
    journal.add(node, RouteSpec::to(range, prefix).dev(uplink))
}

/// Connects to a service from where the sender is going to.
fn arrives(path: BarePath<'_>, set: &ServiceSet) -> Result<io::Result<()>, LabError> {
    let (listens, asks) = (set.receiver(), set.service(set.last()));
    let listener = listen(path.server, listens);
    let client = &path.client.namespace;
    let connected = client.run(|| TcpStream::connect_timeout(&asks, CONNECTED))?;
    Ok(listener.and(connected).map(drop))
}
