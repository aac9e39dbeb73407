//! A table of eBPF programs that is nearly full.

use plumbline_sys::bpf::BpfObject;

use super::site::FaultSite;
use crate::dressing::services::TC_PROGRAMS;
use crate::ebpf;
use crate::error::LabError;
use crate::journal::Journal;

/// How many services there is room for, and how many are known.
const ROOM: u32 = 1_000;
const KNOWN: u32 = 950;
/// Bytes of an address with its port.
const ADDRESS: usize = 20;

/// Has the client's device run the programs of services, which know nearly as many as they may.
/// What is sent is for none of them.
pub(super) fn fill(site: &FaultSite<'_>, journal: &mut Journal) -> Result<(), LabError> {
    let lacks = |needs: &str| site.lacks(needs);
    let refused = |error| ebpf::refused(error, lacks);
    let file = &TC_PROGRAMS.object.0;
    let object = BpfObject::load_sized(file, &[], &[("frontends", ROOM)]);
    let mut object = object.map_err(refused)?;
    for number in 0..KNOWN {
        let set = object.set("frontends", number.to_ne_bytes(), [0; ADDRESS]);
        set.map_err(refused)?;
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
