//! A table of eBPF programs that is full, or nearly.

use plumbline_sys::bpf::{BpfObject, MapEntry};

use super::site::FaultSite;
use crate::dressing::services::TC_PROGRAMS;
use crate::ebpf;
use crate::error::LabError;
use crate::journal::Journal;

/// How many services there is room for, and how many are known.
const ROOM: u32 = 1_000;
const KNOWN: u32 = 950;
/// How many connections there is room for, and are known. Each CPU keeps up to 128 free entries
/// of such a map to itself, so one with little room may never be full.
const CONNECTIONS: u32 = 65_536;
/// Bytes of an address with its port, of a connection's addresses and ports, and of what is known
/// of it.
const ADDRESS: usize = 20;
const FLOW: usize = 40;
const CONNECTION: usize = 8;

/// Nearly as many services are known as may be.
pub(super) fn fill(site: &FaultSite<'_>, journal: &mut Journal) -> Result<(), LabError> {
    let services = (0..KNOWN).map(|number| (number.to_ne_bytes(), [0; ADDRESS]));
    run_programs(site, ("frontends", ROOM), services, journal)
}

/// As many connections are known as may be, and a new one takes the place of an old one.
pub(super) fn overfill(site: &FaultSite<'_>, journal: &mut Journal) -> Result<(), LabError> {
    let connections = (0..CONNECTIONS).map(|number| {
        let mut flow = [0; FLOW];
        flow[..4].copy_from_slice(&number.to_ne_bytes());
        (flow, [0; CONNECTION])
    });
    run_programs(site, ("connections", CONNECTIONS), connections, journal)
}

/// Has the client's device run the programs of services, with room for so many entries in a map,
/// and with these in it. What is sent is for none of them.
fn run_programs<const K: usize, const V: usize>(
    site: &FaultSite<'_>,
    (map, room): (&str, u32),
    entries: impl Iterator<Item = MapEntry<K, V>>,
    journal: &mut Journal,
) -> Result<(), LabError> {
    let lacks = |needs: &str| site.lacks(needs);
    let refused = |error| ebpf::refused(error, lacks);
    let file = &TC_PROGRAMS.object.0;
    let object = BpfObject::load_sized(file, &[], &[(map, room)]);
    let mut object = object.map_err(refused)?;
    for (key, value) in entries {
        object.set(map, key, value).map_err(refused)?;
    }
    let (place, device) = site.first_device();
    let index = place.index(device)?;
    ebpf::attach(
        &mut object,
        TC_PROGRAMS.names,
        (place, index),
        journal,
        lacks,
    )?;
    journal.keep(object);
    Ok(())
}
