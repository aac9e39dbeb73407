//! What eBPF programs need of a machine, and how they come to a device.

use std::sync::Arc;

use plumbline_sys::bpf::{BpfError, BpfObject};
use plumbline_sys::netlink::{Hooks, NetlinkError};

use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;

/// The kernel does not know the hooks of tc, or programs there.
pub(crate) const HOOKS: &str = "needs CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF; try \
                                `modprobe cls_bpf`, or `--kernel uml`";
/// A device has hooks already.
pub(crate) const TAKEN: &str = "needs a network without eBPF programs of its own";

/// What is missing where programs could not be loaded; `None` where that is another fault.
pub(crate) fn needs(error: &BpfError) -> Option<&'static str> {
    if error.is_forbidden() {
        return Some(
            "needs CAP_BPF and CAP_NET_ADMIN of the machine itself; run as root, or with \
             `--kernel uml`",
        );
    }
    let is_old = error.is_unsupported();
    is_old.then_some(
        "needs eBPF as of Linux 5.10 (CONFIG_BPF_SYSCALL); use a newer kernel, or `--kernel uml`",
    )
}

/// What stops those who load programs; `lacking` says it where something is missing.
pub(crate) fn refused(error: BpfError, lacking: impl FnOnce(&str) -> LabError) -> LabError {
    match needs(&error) {
        Some(needs) => lacking(needs),
        None => LabError::network(error),
    }
}

/// Has a program of an object see all that comes in by a device, and another one all that goes
/// out by it, until the journal takes them away.
pub(crate) fn attach(
    object: &mut BpfObject,
    [comes_in, goes_out]: [&str; 2],
    (place, device): (&Arc<Place>, u32),
    journal: &mut Journal,
    lacking: impl Fn(&str) -> LabError,
) -> Result<(), LabError> {
    let (netlink, hooks) = (place.netlink(), Hooks(device));
    let unhooked = |error| unhooked(place, error, &lacking);
    netlink.add(&hooks).map_err(unhooked)?;
    journal.undo_request(place, move |netlink| netlink.delete(&hooks));
    let refused = |error| refused(error, &lacking);
    let program = object.classifier(comes_in).map_err(refused)?;
    let attached = netlink.add_ingress_program(device, comes_in, &program);
    attached.map_err(unhooked)?;
    let program = object.classifier(goes_out).map_err(refused)?;
    let attached = netlink.add_egress_program(device, goes_out, &program);
    attached.map_err(unhooked)
}

fn unhooked(
    place: &Place,
    error: NetlinkError,
    lacking: impl FnOnce(&str) -> LabError,
) -> LabError {
    if error.is_taken() {
        return lacking(TAKEN);
    }
    // The kernel's answer to a kind that it does not know.
    if error.is_unsupported() || error.is_gone() {
        return lacking(HOOKS);
    }
    place.failed(error)
}
