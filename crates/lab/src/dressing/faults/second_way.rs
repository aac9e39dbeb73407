//! A second link between the nodes, which some packets take.

use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::netlink::{NeighbourSpec, Parent, RouteSpec, RuleSelector, RuleSpec};

use super::site::{FaultSite, chain, lay};
use crate::error::LabError;
use crate::journal::Journal;
use crate::link::bucket;
use crate::network::WireFormat;
use crate::place::Place;
use crate::topology::{NEAR_INDEX, UPLINK, Underlay, veth};

/// The device at both ends of it.
const DEVICE: &str = "second0";
/// Behind those of the underlay and of pods.
const INDEX: u32 = NEAR_INDEX + 30;
/// What marks packets that take it, and the table that leads them there.
const MARK: u32 = 0x77;
const TABLE: u32 = 77;
/// `NF_IP_PRI_MANGLE`.
const MANGLE: i32 = -150;
/// Of a slow one: less than half of what a train of 2,000 small datagrams a second takes.
const SLOW_BITS: u64 = 1_200_000;

/// What comes back takes the second link. Gives the node that it comes back to.
pub(super) fn answer_by<'a>(
    site: &FaultSite<'a>,
    journal: &mut Journal,
) -> Result<&'a Arc<Place>, LabError> {
    let [near, far] = build(site, journal)?;
    let [client, _] = site.addresses;
    let route = lead(site, [far, near], client, journal)?;
    journal.add(far, route)?;
    Ok(near)
}

/// The same, and what comes by another link than the own route is dropped.
pub(super) fn filter_reverse_path(
    site: &FaultSite<'_>,
    journal: &mut Journal,
) -> Result<(), LabError> {
    if site.topology.addressing.family() == Family::V6 {
        return Err(site.lacks("IPv4: the kernel has no such filter for IPv6"));
    }
    let near = answer_by(site, journal)?;
    let strict = (format!("net/ipv4/conf/{DEVICE}/rp_filter"), "1".to_owned());
    journal.device_sysctls(near, &[strict])
}

/// Every other packet to the server takes the second link, which is slow.
pub(super) fn reorder(site: &FaultSite<'_>, journal: &mut Journal) -> Result<(), LabError> {
    let [near, far] = build(site, journal)?;
    let [_, server] = site.addresses;
    let route = lead(site, [near, far], server, journal)?;
    journal.add(near, route.table(TABLE))?;
    let marked = match site.topology.addressing.family() {
        Family::V4 => RuleSelector::MarkedV4(MARK),
        Family::V6 => RuleSelector::MarkedV6(MARK),
    };
    journal.add(near, RuleSpec::new(marked, TABLE, 100))?;
    let device = near.index(DEVICE)?;
    let slow = bucket(SLOW_BITS, site.topology.mtu);
    // It goes with the device.
    near.ask(|it| it.add_token_bucket(device, Parent::Root, &slow))?;
    let every_other = format!("numgen inc mod 2 == 0 meta mark set {MARK}");
    let rule = format!("{} {every_other}", site.to_server());
    let chains = [chain("prerouting", MANGLE, &[&rule])];
    lay(near, site.family(), &chains, journal)
}

/// Joins the nodes by a second link; gives the client's and the server's.
///
/// # Errors
///
/// [`LabError::Unsupported`] where the nodes do not route the pods' own packets to each other
/// over one link.
fn build<'a>(site: &FaultSite<'a>, journal: &mut Journal) -> Result<[&'a Arc<Place>; 2], LabError> {
    let about = site.about;
    let topology = site.topology;
    let [near, far] = [&topology.nodes[0], &topology.nodes[1]];
    let is_plain = about.wire == WireFormat::Plain && about.underlay == Underlay::Wire;
    let (there, back) = (site.router()?, site.router_back()?);
    let is_routed = there.device == UPLINK
        && back.device == UPLINK
        && Arc::ptr_eq(there.place, near)
        && Arc::ptr_eq(back.place, far);
    if !is_plain || !is_routed {
        return Err(site.lacks("a network whose nodes route the pods' own packets, as host-gw"));
    }
    journal.link(near, DEVICE, veth(DEVICE, INDEX, DEVICE, far, topology.mtu))?;
    far.bring_up(DEVICE)?;
    near.settle(DEVICE)?;
    far.settle(DEVICE)?;
    Ok([near, far])
}

/// A route of one node to an address behind the other, over the second link.
fn lead(
    site: &FaultSite<'_>,
    [from, to]: [&Arc<Place>; 2],
    address: std::net::IpAddr,
    journal: &mut Journal,
) -> Result<RouteSpec, LabError> {
    let topology = site.topology;
    let (gateway, mac) = (topology.address_of(to), to.mac(DEVICE)?);
    let device = from.index(DEVICE)?;
    journal.add(from, NeighbourSpec::permanent(device, gateway, mac))?;
    let host = topology.addressing.host_prefix();
    Ok(RouteSpec::to(address, host)
        .via(gateway)
        .dev(device)
        .onlink())
}
