//! Cilium's services at tc: on the node's end of each pod's veth a program looks up where
//! each packet of the pod goes. For a service it picks an endpoint by chance where the
//! connection is new, remembers it, and translates the packet; another one translates the
//! answers back. No packet of a service meets netfilter as one.
//!
//! What was read in cilium/cilium, and is done here: `bpf/lib/lb.h`@0040d66 (`lb4_local`,
//! `lb4_xlate`): the map of services is asked for each packet, then that of connections,
//! then that of backends; a new connection gets an entry each way. Answers are known by
//! theirs, and get the address that a map has for the service's number.
//!
//! Not modelled: the states and life times of connections (the oldest of 65,536 entries
//! goes when there is no room), the tracking of connections to no service, policies, Maglev,
//! session affinity, a pod that is its own endpoint, UDP.

use plumbline_sys::bpf::ObjectFile;

use super::tables::{address, count, load, refused};
use crate::dressing::dressed::RuleCount;
use crate::dressing::services::service_set::ServiceSet;
use crate::ebpf;
use crate::error::LabError;
use crate::journal::Journal;
use crate::topology::{Pod, Topology, UPLINK};

/// An object file, and its programs: for what a pod sends, and for what it gets.
pub(in crate::dressing) struct TcPrograms {
    pub(in crate::dressing) object: &'static ObjectFile<[u8]>,
    pub(in crate::dressing) names: [&'static str; 2],
}

pub(in crate::dressing) static TC_PROGRAMS: TcPrograms = TcPrograms {
    object: &ObjectFile(*include_bytes!("../../../../bpf/services_tc.o")),
    names: ["from_container", "to_container"],
};

/// Loads the programs for each node, and puts them on the devices of its pods.
pub(in crate::dressing::services) fn put_on(
    set: &ServiceSet,
    topology: &Topology,
    journal: &mut Journal,
) -> Result<RuleCount, LabError> {
    if topology.pods.is_empty() {
        let needs = "needs a network with pods, whose devices have the programs; \
                     use the proxy ebpf-socket";
        return Err(set.unsupported(needs));
    }
    let failed = |error| refused(set, error);
    for (at, node) in topology.nodes.iter().enumerate() {
        let mut object = load(&TC_PROGRAMS.object.0, &[], set).map_err(failed)?;
        for number in set.numbers() {
            let frontend = address(set.service(number));
            let written = object.set("frontends", number.to_ne_bytes(), frontend);
            written.map_err(failed)?;
        }
        for pod in topology.pods.iter().filter(|pod| pod.node == at) {
            let port = (node, port_of(pod, set)?);
            ebpf::attach(&mut object, TC_PROGRAMS.names, port, journal, |needs| {
                lacking(set, needs)
            })?;
        }
        // A node without pods has the maps all the same.
        journal.keep(object);
    }
    Ok(count(set, u64::from(set.count())))
}

fn lacking(set: &ServiceSet, needs: &str) -> LabError {
    match needs {
        ebpf::TAKEN => set.unsupported(format!("{needs}; use the proxy ebpf-socket")),
        needs => set.unsupported(needs),
    }
}

/// Index of the node's end of a pod's veth.
fn port_of(pod: &Pod, set: &ServiceSet) -> Result<u32, LabError> {
    let device = pod.place.link(UPLINK)?;
    match device.joined {
        Some(port) if device.kind == "veth" => Ok(port),
        _ => Err(set.unsupported("needs a network whose pods have a veth with an end on the node")),
    }
}
