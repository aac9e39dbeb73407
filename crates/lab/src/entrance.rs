//! How to enter the namespaces of a path from outside.

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use plumbline_sys::namespace;

use crate::place::Place;
use crate::topology::Topology;

/// How to enter one of the namespaces of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrance {
    /// `node1`, `pod2`, `router`.
    pub name: String,
    /// The address of an endpoint or node; `None` for the router.
    pub address: Option<IpAddr>,
    /// The file of the namespace, as long as this process lives.
    pub file: String,
    /// A command line that starts a shell inside, as long as this process lives.
    pub command: String,
}

/// How to enter each namespace of a topology with `nsenter`.
pub(crate) fn entrances(topology: &Topology) -> Vec<Entrance> {
    let pid = std::process::id();
    let user = if namespace::in_user_namespace() {
        format!(" -t {pid} -U --preserve-credentials")
    } else {
        String::new()
    };
    let entrance = |place: &Place, address| {
        let fd = place.namespace.as_raw_fd();
        let file = format!("/proc/{pid}/fd/{fd}");
        Entrance {
            name: place.name.clone(),
            address,
            command: format!("nsenter{user} --net={file}"),
            file,
        }
    };
    let addressing = topology.addressing;
    let nodes = topology
        .numbered()
        .map(|(number, node)| entrance(node, Some(addressing.node(number))));
    let pods = topology
        .pods
        .iter()
        .map(|pod| entrance(&pod.place, Some(pod.reached_by())));
    let router = topology.router.iter().map(|router| entrance(router, None));
    nodes.chain(pods).chain(router).collect()
}
