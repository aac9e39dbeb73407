//! How packets wait for devices.

use std::sync::Arc;

use plumbline_experiment::Qdisc;
use plumbline_sys::netlink::{LinkNumber, NetlinkError, Parent};

use super::knob::Knob;
use super::path::{Refused, TunedPath, is_so_already};
use crate::hop::Hop;
use crate::journal::Journal;
use crate::link;
use crate::topology::UPLINK;

/// How many packets may wait, which disciplines ask for when they are made.
pub(super) fn length(path: &TunedPath<'_>, journal: &mut Journal) -> Result<(), Refused> {
    if path.tuning.qdisc != Some(Qdisc::PfifoFast) {
        let needs = "qdisc = \"pfifo_fast\" in the same section: with others packets wait as many \
                     as they say, or not at all";
        return Err(Refused::Lacks(needs.to_owned()));
    }
    Knob::Number(LinkNumber::QueueLength).turn(path, path.tuning.txqueuelen, journal)
}

/// Gives every device of the path the discipline.
pub(super) fn discipline(path: &TunedPath<'_>, journal: &mut Journal) -> Result<(), Refused> {
    let Some(wanted) = path.tuning.qdisc else {
        return Ok(());
    };
    let link = path.topology.link;
    if link.has_distance() || link.rate_bits.is_some() {
        let needs = "a [link] without rate, delay and loss, which are disciplines too";
        return Err(Refused::Lacks(needs.to_owned()));
    }
    let mut is_changed = false;
    for hop in path.hops {
        let device = hop.place.link(&hop.device)?;
        if device.qdisc == wanted.as_str() {
            continue;
        }
        is_changed = true;
        let added = hop.place.netlink();
        let added = added.add_named_discipline(device.index, wanted.as_str());
        added.map_err(|error| refused(error, hop, wanted.as_str()))?;
        undo(hop, device.index, journal);
    }
    match is_changed {
        true => Ok(()),
        false => Err(is_so_already()),
    }
}

/// Limits what pods send and what they receive, at both ends of the pair that leads to them.
/// The CNI plugin `bandwidth` has the first on the node too, behind a device of its own.
pub(super) fn bandwidth(path: &TunedPath<'_>, journal: &mut Journal) -> Result<(), Refused> {
    let Some(bits) = path.tuning.bandwidth else {
        return Ok(());
    };
    let pods = &path.topology.pods;
    let [first, near, .., far, last] = path.hops else {
        return Err(no_pairs());
    };
    for hop in [first, near, far, last] {
        let device = hop.place.link(&hop.device)?;
        let mut pods = pods.iter();
        let is_in_pod = pods.any(|pod| Arc::ptr_eq(&pod.place, &hop.place));
        if device.kind != "veth" || is_in_pod != (hop.device == UPLINK) {
            return Err(no_pairs());
        }
        let bucket = link::bucket(bits, device.mtu);
        let added = hop.place.netlink();
        let added = added.add_token_bucket(device.index, Parent::Root, &bucket);
        added.map_err(|error| refused(error, hop, "tbf"))?;
        undo(hop, device.index, journal);
    }
    Ok(())
}

fn no_pairs() -> Refused {
    Refused::Lacks("a network whose pods have a pair of veth devices each".to_owned())
}

fn undo(hop: &Hop, device: u32, journal: &mut Journal) {
    journal.undo_request(&hop.place, move |netlink| netlink.delete_discipline(device));
}

fn refused(error: NetlinkError, hop: &Hop, kind: &str) -> Refused {
    // The kernel's answer to a discipline that it does not know.
    if error.is_gone() || error.is_unsupported() {
        let option = kind.to_uppercase();
        return Refused::Lacks(format!(
            "needs CONFIG_NET_SCH_{option}; try `modprobe sch_{kind}`, or `--kernel uml`"
        ));
    }
    if error.is_taken() {
        let device = &hop.device;
        return Refused::Lacks(format!("`{device}` has a discipline of its own already"));
    }
    Refused::Failed(hop.place.failed(error))
}
