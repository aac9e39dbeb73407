//! Faults that are planted on a path that stands, by objects of the kernel: what is to find
//! faults has something to find. One row for each.

mod narrow;
mod room;
mod second_way;
mod site;
mod tracking;

use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::ethtool::Offload;

use crate::error::LabError;
use crate::journal::Journal;
use crate::topology::UPLINK;
use narrow::{black_hole, narrow_link, narrow_route};
pub(crate) use site::FaultSite;

/// Something that is wrong with a path.
#[derive(Debug)]
pub struct PathFault {
    /// As `--fault` takes it.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// The check of `plumbline doctor --path` that names it.
    pub check: &'static str,
    plant: fn(&FaultSite<'_>, &mut Journal) -> Result<(), LabError>,
}

/// All faults.
pub static FAULTS: &[PathFault] = &[
    fault(
        "cut",
        "a node on the way drops all that it forwards",
        "reach",
        |site, journal| site.filter(&["drop"], journal),
    ),
    fault(
        "tcp-cut",
        "a node on the way drops TCP and lets everything else pass",
        "TCP",
        |site, journal| site.filter(&["meta l4proto tcp drop"], journal),
    ),
    fault(
        "mtu-black-hole",
        "a link on the way takes less than the ends do, and nobody says so",
        "black hole",
        black_hole,
    ),
    fault(
        "mtu-one-way",
        "a link on the way takes less than the ends do, from client to server",
        "MTU",
        |site, journal| narrow_link(site, journal).map(drop),
    ),
    fault(
        "mtu-refused",
        "the client's own route to the server takes less than its device",
        "MTU",
        narrow_route,
    ),
    fault(
        "small-mss",
        "a node on the way has TCP make segments of at most 536 bytes",
        "MSS",
        |site, journal| {
            let rule = "tcp flags syn tcp option maxseg size set 536";
            site.filter(&[rule], journal)
        },
    ),
    fault(
        "loss",
        "a node on the way drops one in twenty packets to the server",
        "loss",
        |site, journal| {
            let rule = format!("{} numgen random mod 20 == 0 drop", site.to_server());
            site.filter(&[&rule], journal)
        },
    ),
    fault(
        "reordering",
        "every other packet to the server takes another way, which is slower",
        "order",
        second_way::reorder,
    ),
    fault(
        "checksum",
        "one in four packets to the server has a wrong checksum, and none is made by a device",
        "checksums",
        spoil_checksums,
    ),
    fault(
        "conntrack-full",
        "a node on the way tracks nearly as many connections as it may",
        "connection tracking",
        tracking::fill,
    ),
    fault(
        "maps-full",
        "programs of the client's device know nearly as many services as they have room for",
        "eBPF maps",
        room::fill,
    ),
    fault(
        "maps-evict",
        "programs of the client's device know as many connections as they have room for, and \
         forget old ones for new ones",
        "eBPF maps",
        room::overfill,
    ),
    fault(
        "asymmetric-route",
        "what comes back takes another way between the nodes",
        "route back",
        |site, journal| second_way::answer_by(site, journal).map(|_| ()),
    ),
    fault(
        "rp-filter",
        "the same, and the client's node drops what does not come by its own route",
        "reverse path filter",
        second_way::filter_reverse_path,
    ),
    fault(
        "offload-off",
        "the client's device leaves segmentation to the stack, early",
        "offloads",
        |site, journal| {
            let (place, device) = site.first_device();
            site.switch_off(place, device, &[Offload::Tso, Offload::Gso], journal)
        },
    ),
    fault(
        "gro-off",
        "a device on the server's side does not merge what it receives",
        "offloads",
        merge_nothing,
    ),
    fault(
        "offload-broken",
        "a node on the way drops what is to be segmented later",
        "offload trial",
        |site, journal| site.filter(&["meta length > 4000 drop"], journal),
    ),
    fault(
        "offload-broken-back",
        "the same, of what comes back from the server only",
        "offload trial",
        |site, journal| {
            let rule = format!("{} meta length > 4000 drop", site.to_client());
            site.filter_back(&[&rule], journal)
        },
    ),
    fault(
        "ipv6-away",
        "both ends have IPv6 addresses, and nothing carries it between them",
        "other IP version",
        |site, journal| give_addresses(Family::V6, site, journal),
    ),
    fault(
        "ipv4-away",
        "on a path of IPv6, both ends have IPv4 addresses, and nothing carries it between them",
        "other IP version",
        |site, journal| give_addresses(Family::V4, site, journal),
    ),
];

const fn fault(
    name: &'static str,
    about: &'static str,
    check: &'static str,
    plant: fn(&FaultSite<'_>, &mut Journal) -> Result<(), LabError>,
) -> PathFault {
    PathFault {
        name,
        about,
        check,
        plant,
    }
}

impl PathFault {
    /// Plants it; the journal takes it off again.
    ///
    /// # Errors
    ///
    /// [`LabError::Unsupported`] where the network has no place for it, or the kernel lacks
    /// what it takes.
    pub(crate) fn plant(
        &self,
        site: &FaultSite<'_>,
        journal: &mut Journal,
    ) -> Result<(), LabError> {
        (self.plant)(site, journal)
    }
}

fn spoil_checksums(site: &FaultSite<'_>, journal: &mut Journal) -> Result<(), LabError> {
    let (place, device) = site.first_device();
    // Else nobody computes any, and nobody looks.
    site.switch_off(place, device, &[Offload::TxChecksum], journal)?;
    // Bits from the beginning of the headers of UDP and TCP.
    let rules = [("udp", 48), ("tcp", 128)].map(|(protocol, at)| {
        let chosen = format!("{} meta l4proto {protocol}", site.to_server());
        format!("{chosen} numgen random mod 4 == 0 @th,{at},16 set 0xbeef")
    });
    site.filter(&rules.each_ref().map(String::as_str), journal)
}

/// Switches GRO off on the last device that merges what it receives: a veth does not unless it is
/// asked to, and a bridge never does.
fn merge_nothing(site: &FaultSite<'_>, journal: &mut Journal) -> Result<(), LabError> {
    for hop in site.hops.iter().rev().filter(|hop| !hop.sends) {
        let kind = hop.place.link(&hop.device)?.kind;
        if !matches!(kind.as_str(), "veth" | "bridge") {
            return site.switch_off(&hop.place, &hop.device, &[Offload::Gro], journal);
        }
    }
    Err(site.lacks("a network with a tunnel, such as vxlan"))
}

/// Gives both ends addresses of an IP version that nothing carries between them.
fn give_addresses(
    version: Family,
    site: &FaultSite<'_>,
    journal: &mut Journal,
) -> Result<(), LabError> {
    if site.topology.addressing.family() == version {
        return Err(site.lacks("a path of the other IP version (--family)"));
    }
    if version == Family::V6 && !crate::place::has_ipv6() {
        return Err(site.lacks("a kernel with IPv6"));
    }
    // Where nobody forwards, both ends are on one link.
    site.router()?;
    for (number, end) in [(1, site.client), (2, site.server)] {
        if version == Family::V6 {
            let settings = [("accept_dad", "0"), ("disable_ipv6", "0")]
                .map(|(key, value)| (format!("net/ipv6/conf/{UPLINK}/{key}"), value.to_owned()));
            journal.sysctls(end, &settings)?;
        }
        let (address, prefix) = site.stray(version, number);
        journal.address(end, end.index(UPLINK)?, address, prefix)?;
    }
    Ok(())
}

impl FaultSite<'_> {
    /// Switches offloads off on a device, until the journal is undone.
    fn switch_off(
        &self,
        place: &Arc<crate::place::Place>,
        device: &str,
        offloads: &'static [Offload],
        journal: &mut Journal,
    ) -> Result<(), LabError> {
        for offload in offloads {
            let turn = |on: bool| place.namespace.run(|| offload.switch(device, on));
            turn(false)?.map_err(|error| LabError::Unsupported {
                what: format!("{offload:?} off on `{device}` of {}", place.name),
                needs: error.to_string(),
            })?;
            let (place, device) = (Arc::clone(place), device.to_owned());
            journal.undo_by(move || {
                // It goes with the namespace at the latest.
                let _ = place.namespace.run(|| offload.switch(&device, true));
                Vec::new()
            });
        }
        Ok(())
    }
}
