//! Links and routes that take less than the ends of a path do.

use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::netlink::RouteSpec;

use super::site::{FaultSite, chain, lay};
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;

/// By how many bytes.
const LESS: u32 = 200;

impl FaultSite<'_> {
    /// What a narrow link takes, in bytes, and the stack may still be given.
    fn narrow(&self) -> Result<u32, LabError> {
        let least = match self.topology.addressing.family() {
            Family::V4 => 576,
            // RFC 8200, section 5.
            Family::V6 => 1280,
        };
        let narrow = self.mtu.saturating_sub(LESS).max(least);
        match narrow < self.mtu {
            true => Ok(narrow),
            false => Err(self.lacks("a path that takes more than the least MTU")),
        }
    }
}

/// The link that leads out of the first node that routes takes less; gives that node.
pub(super) fn narrow_link(
    site: &FaultSite<'_>,
    journal: &mut Journal,
) -> Result<Arc<Place>, LabError> {
    let narrow = site.narrow()?;
    let router = site.router()?;
    let (place, index) = (Arc::clone(router.place), router.index);
    let before = place.link(router.device)?.mtu;
    journal.undo_request(&place, move |netlink| netlink.set_link_mtu(index, before));
    place.ask(|netlink| netlink.set_link_mtu(index, narrow))?;
    Ok(place)
}

/// The same, and that node tells nobody.
pub(super) fn black_hole(site: &FaultSite<'_>, journal: &mut Journal) -> Result<(), LabError> {
    let node = narrow_link(site, journal)?;
    let silence = match site.topology.addressing.family() {
        Family::V4 => "icmp type destination-unreachable icmp code frag-needed drop",
        Family::V6 => "icmpv6 type packet-too-big drop",
    };
    let chains = [chain("output", 0, &[silence])];
    lay(&node, site.family(), &chains, journal)
}

/// The client has a route of its own to the server, which takes less.
pub(super) fn narrow_route(site: &FaultSite<'_>, journal: &mut Journal) -> Result<(), LabError> {
    let [_, server] = site.addresses;
    let narrow = site.narrow()?;
    let known = site.client.ask(|netlink| netlink.route_to(server))?;
    let host = site.topology.addressing.host_prefix();
    let mut route = RouteSpec::to(server, host).dev(known.device).mtu(narrow);
    if let Some(gateway) = known.gateway {
        route = route.via(gateway).onlink();
    }
    journal.add(site.client, route)
}
