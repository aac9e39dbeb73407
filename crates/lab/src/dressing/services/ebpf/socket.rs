//! Cilium's services at the socket: where a program connects, the service's address becomes
//! that of an endpoint, and no packet ever has the other. So packets pay nothing, and a
//! connection three lookups and an entry by which getpeername(2) still gives the service.
//!
//! What was read in cilium/cilium, and is done here: `bpf/bpf_sock.c`@00c22b1
//! (`__sock4_xlate_fwd`, `sock4_update_revnat`, `__sock4_xlate_rev`). Cilium attaches its
//! programs to the root of the cgroups; here they are attached to the cgroup of this
//! process, whose agents are in it, and go with the process. They leave sockets of other
//! network namespaces than the sender's alone: those pay for a look at which they have. So
//! does each path for the programs of the others that stand.
//!
//! Not modelled: UDP (sendmsg, recvmsg), node ports, session affinity.

use std::fs::File;

use plumbline_experiment::Family;
use plumbline_sys::bpf::ObjectFile;
use plumbline_sys::cgroup;

use super::tables::{count, load, refused};
use crate::dressing::dressed::RuleCount;
use crate::dressing::services::service_set::ServiceSet;
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;

static OBJECT: &ObjectFile<[u8]> =
    &ObjectFile(*include_bytes!("../../../../bpf/services_socket.o"));

/// Attaches the programs for sockets in the sender's namespace.
pub(in crate::dressing::services) fn put_on(
    set: &ServiceSet,
    client: &Place,
    journal: &mut Journal,
) -> Result<RuleCount, LabError> {
    let failed = |error| refused(set, error);
    let cookie = client.namespace.cookie().map_err(|error| {
        let needs = format!("needs Linux 5.14, which numbers network namespaces: {error}");
        set.unsupported(needs)
    })?;
    let cgroup = own_cgroup(set)?;
    let constants = [
        ("netns_low", cookie as u32),
        ("netns_high", (cookie >> 32) as u32),
    ];
    let mut object = load(&OBJECT.0, &constants, set).map_err(failed)?;
    let programs = match set.family() {
        Family::V4 => ["connect4", "getpeername4"],
        Family::V6 => ["connect6", "getpeername6"],
    };
    for name in programs {
        object.attach_to_cgroup(name, &cgroup).map_err(failed)?;
    }
    journal.keep(object);
    Ok(count(set, 0))
}

/// The cgroup of this process and of the agents that it starts.
fn own_cgroup(set: &ServiceSet) -> Result<File, LabError> {
    let needs = "needs version 2 of cgroups (`mount -t cgroup2`)";
    let path = cgroup::own().ok_or_else(|| set.unsupported(needs))?;
    File::open(&path)
        .map_err(|error| set.unsupported(format!("{needs}; {}: {error}", path.display())))
}
