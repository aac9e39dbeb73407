//! Services on the nodes of a path: what a proxy does for them, mostly by rules. All
//! endpoints of all services are the one receiver, so that nothing but the proxy differs.

mod ebpf;
mod ipvs;
mod kube_iptables;
mod kube_nftables;
mod ruleset;
mod service_set;
mod userspace;

use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use plumbline_experiment::{ServiceProxy, Services};
use plumbline_sys::netlink::RouteSpec;

use super::dressed::{BarePath, Dressed};
use super::listener::listen;
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;
use crate::topology::UPLINK;
pub(super) use ebpf::tc::TC_PROGRAMS;
use ruleset::Ruleset;
use service_set::ServiceSet;

/// Longest wait for a first connection to a service.
const CONNECTED: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);
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
    let nodes = &topology.nodes;
    let on_each = |count| vec![count; nodes.len()];
    let mut write = |rules: Ruleset| rules.write_on(nodes, journal).map(on_each);
    // What stands on each node, from the first on, which is the sender's.
    let counts = match services.proxy {
        ServiceProxy::Own | ServiceProxy::IptablesLegacy => write(kube_iptables::legacy(&set)),
        ServiceProxy::IptablesNft => write(kube_iptables::over_nftables(&set)),
        ServiceProxy::Nftables => write(kube_nftables::ruleset(&set)),
        ServiceProxy::Ipvs => ipvs::put_on(&set, topology, journal),
        ServiceProxy::Userspace => userspace::put_on(&set, topology, journal).map(on_each),
        ServiceProxy::Ebpf => ebpf::tc::put_on(&set, topology, journal).map(on_each),
        ServiceProxy::EbpfSocket => {
            let counted = ebpf::socket::put_on(&set, path.client, journal);
            counted.map(|count| vec![count])
        }
    }?;
    let by_netfilter = !matches!(
        services.proxy,
        ServiceProxy::Ebpf | ServiceProxy::EbpfSocket
    );
    for node in nodes.iter().filter(|_| by_netfilter) {
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
        has_sets: services.proxy == ServiceProxy::Ipvs,
        rules: nodes.iter().cloned().zip(counts).collect(),
        enforcement: None,
        beside: Vec::new(),
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

/// Connects to a service from where the sender is going to, and waits until the receiver
/// has the connection: a proxy may take it and go no further.
fn arrives(path: BarePath<'_>, set: &ServiceSet) -> Result<io::Result<()>, LabError> {
    let (listens, asks) = (set.receiver(), set.service(set.last()));
    let listener = match listen(path.server, listens) {
        Ok(listener) => listener,
        Err(error) => return Ok(Err(error)),
    };
    let client = &path.client.namespace;
    let connected = client.run(|| TcpStream::connect_timeout(&asks, CONNECTED))?;
    // Open until the receiver has it.
    Ok(connected.and_then(|_open| accepts(&listener)))
}

fn accepts(listener: &TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + CONNECTED;
    loop {
        match listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            accepted => return accepted.map(drop),
        }
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(PAUSE);
    }
}
