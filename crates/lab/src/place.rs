//! The namespaces of a lab: quiet, and each with a name.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumbline_experiment::Family;
use plumbline_sys::namespace::Namespace;
use plumbline_sys::netlink::{Address, DeviceInfo, Mac, NetlinkError, NetlinkSocket};
use plumbline_sys::sysctl;

use crate::error::LabError;

/// Longest wait for a device. The kernel may take a second (`linkwatch`).
const SETTLE_LIMIT: Duration = Duration::from_secs(3);
const SETTLE_PAUSE: Duration = Duration::from_micros(200);

/// A namespace with a name.
#[derive(Debug)]
pub struct Place {
    /// `node1`, `pod2`, `router`.
    pub name: String,
    /// The namespace itself.
    pub namespace: Namespace,
}

impl Place {
    pub(crate) fn create(
        name: String,
        role: NamespaceRole,
        family: Family,
    ) -> Result<Arc<Self>, LabError> {
        let namespace = Namespace::create()?;
        let settings = quiet(role, family);
        sysctl::set(&namespace, &settings).map_err(|source| LabError::Sysctl {
            place: name.clone(),
            source,
        })?;
        Ok(Arc::new(Self { name, namespace }))
    }

    /// The netlink socket inside.
    pub fn netlink(&self) -> &NetlinkSocket {
        self.namespace.netlink()
    }

    /// Makes a request by that socket; its error says where it was made.
    pub(crate) fn ask<T>(
        &self,
        request: impl FnOnce(&NetlinkSocket) -> Result<T, NetlinkError>,
    ) -> Result<T, LabError> {
        request(self.netlink()).map_err(|error| self.failed(error))
    }

    /// A device as it is now.
    pub(crate) fn link(&self, device: &str) -> Result<DeviceInfo, LabError> {
        self.ask(|netlink| netlink.link(device))
    }

    /// The index of a device.
    pub fn index(&self, device: &str) -> Result<u32, LabError> {
        Ok(self.link(device)?.index)
    }

    /// The hardware address of an Ethernet device.
    pub(crate) fn mac(&self, device: &str) -> Result<Mac, LabError> {
        Ok(self.link(device)?.mac.unwrap_or_default())
    }

    /// Brings a device up, and gives its index.
    pub fn bring_up(&self, device: &str) -> Result<u32, LabError> {
        let index = self.index(device)?;
        self.ask(|netlink| netlink.set_link_up(index, true))?;
        Ok(index)
    }

    /// Waits until a device carries packets and its addresses may be used. The
    /// kernel notices in the background that a link is up; until then IPv6 has
    /// no link-local address, and a first packet would wait a second.
    pub fn settle(&self, device: &str) -> Result<(), LabError> {
        let deadline = Instant::now() + SETTLE_LIMIT;
        while !self.ask(|netlink| is_settled(netlink, device))? {
            if Instant::now() > deadline {
                return Err(LabError::Unsettled {
                    place: self.name.clone(),
                    device: device.into(),
                    limit: SETTLE_LIMIT,
                });
            }
            std::thread::sleep(SETTLE_PAUSE);
        }
        Ok(())
    }

    /// An error that happened here.
    pub fn failed(&self, source: NetlinkError) -> LabError {
        LabError::Netlink {
            place: self.name.clone(),
            source,
        }
    }
}

fn is_settled(netlink: &NetlinkSocket, device: &str) -> Result<bool, NetlinkError> {
    let link = netlink.link(device)?;
    // Kernel 6.1, for one, takes a veth as running until it knows better.
    let carries = link.running && (link.state_known || link.kind != "veth");
    // Where no neighbour is looked for, nobody needs the address of the link,
    // which kernel 6.1, for one, leaves tentative for up to a second there.
    let is_needed = |it: &Address| link.finds_neighbours || !is_link_local(it.address);
    let waits = |it: &Address| it.device == link.index && it.tentative && is_needed(it);
    Ok(carries && !netlink.addresses()?.iter().any(waits))
}

/// Whether a namespace forwards packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamespaceRole {
    /// It does.
    Node,
    /// It does not.
    Pod,
}

/// Sysctls that make a namespace do nothing on its own, so that device counters
/// and latencies show the load alone. What a namespace would inherit from the
/// host or its modules (reverse path filters, netfilter on bridges) is set too,
/// for the same lab on every machine.
fn quiet(role: NamespaceRole, family: Family) -> Vec<(String, String)> {
    let forward = if role == NamespaceRole::Node {
        "1"
    } else {
        "0"
    };
    let mut settings = vec![("net/ipv4/ip_forward".to_string(), forward.to_string())];
    let mut both = |version: &str, key: &str, value: &str| {
        for device in ["all", "default"] {
            settings.push((format!("net/{version}/conf/{device}/{key}"), value.into()));
        }
    };
    both("ipv4", "rp_filter", "0");
    match family {
        Family::V4 if has_ipv6() => both("ipv6", "disable_ipv6", "1"),
        Family::V4 => {}
        Family::V6 => {
            both("ipv6", "disable_ipv6", "0");
            both("ipv6", "accept_dad", "0");
            both("ipv6", "accept_ra", "0");
            both("ipv6", "router_solicitations", "0");
            both("ipv6", "forwarding", forward);
        }
    }
    // Else a bridge hands each packet to netfilter, as routers do, on machines
    // that have the module: a cost of the machine that looks like the network's.
    if role == NamespaceRole::Node && has_bridge_netfilter() {
        for table in ["arptables", "iptables", "ip6tables"] {
            settings.push((format!("net/bridge/bridge-nf-call-{table}"), "0".into()));
        }
    }
    settings
}

/// Whether bridged packets may be handed to netfilter (`br_netfilter`), and
/// namespaces can decline it.
pub(crate) fn has_bridge_netfilter() -> bool {
    std::path::Path::new("/proc/sys/net/bridge").exists()
}

/// Whether the kernel has IPv6.
pub(crate) fn has_ipv6() -> bool {
    std::path::Path::new("/proc/sys/net/ipv6").exists()
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(it) if it.is_unicast_link_local())
}
