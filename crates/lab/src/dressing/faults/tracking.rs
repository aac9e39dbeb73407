//! A table of tracked connections that is nearly full.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, UdpSocket};

use plumbline_sys::counters::conntrack;

use super::site::{FaultSite, chain, lay};
use crate::error::LabError;
use crate::journal::Journal;

/// Most connections that are made for it. The limit is the machine's, and no namespace may
/// change it.
const MOST: u64 = 300_000;
/// How full it is made.
const FULL: f64 = 0.95;
/// How long each is remembered, seconds.
const REMEMBERED: &str = "600";
/// Connections by one address.
const PORTS: u64 = 60_000;

/// Has the first node that routes track connections, and makes so many that nobody answers.
pub(super) fn fill(site: &FaultSite<'_>, journal: &mut Journal) -> Result<(), LabError> {
    let node = site.router()?.place;
    let counters = |source| LabError::Counters {
        place: node.name.clone(),
        source,
    };
    // Nothing comes of what is sent.
    let chains = [
        chain("output", 0, &["ct state new accept"]),
        chain("input", 0, &["iif lo meta l4proto udp drop"]),
    ];
    lay(node, "ip", &chains, journal)?;
    let table = node.namespace.run(conntrack)?.map_err(counters)?;
    if table.max == 0 || table.max > MOST {
        let needs = format!(
            "a kernel that tracks at most {MOST} connections (net.netfilter.nf_conntrack_max); \
             it is set to {}",
            table.max
        );
        return Err(site.lacks(&needs));
    }
    let remembered = (
        "net/netfilter/nf_conntrack_udp_timeout".to_owned(),
        REMEMBERED.to_owned(),
    );
    journal.sysctls(node, &[remembered])?;
    let wanted = (table.max as f64 * FULL) as u64;
    node.namespace
        .run(|| send_to_many(wanted))?
        .map_err(counters)
}

/// Sends a datagram to each of so many ports of this machine.
fn send_to_many(ports: u64) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    for number in 0..ports {
        // Ports in order, then the next address.
        let address = Ipv4Addr::new(127, 0, 1, 1 + (number / PORTS) as u8);
        let port = 1024 + (number % PORTS) as u16;
        match socket.send_to(&[0], (address, port)) {
            // Refused by the rules, or for want of room: the table is what counts.
            Err(error) if error.kind() != ErrorKind::PermissionDenied => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
