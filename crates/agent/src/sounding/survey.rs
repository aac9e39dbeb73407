//! What a namespace looks like from inside.

use std::error::Error;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;

use plumbline_protocol::{LocalAddress, Survey, SurveyedDevice, Way};
use plumbline_sys::counters;
use plumbline_sys::ethtool;
use plumbline_sys::netlink::{Address, DeviceInfo, NetlinkSocket};

/// Looks at the namespace of the calling thread.
pub(super) fn look(towards: &[IpAddr]) -> Result<Survey, Box<dyn Error>> {
    let netlink = NetlinkSocket::open()?;
    let links = netlink.links()?;
    let named = |index: u32| links.iter().find(|link| link.index == index);
    let way = |to: &IpAddr| {
        let route = netlink.route_to(*to).ok()?;
        Some(Way {
            device: named(route.device)?.name.clone(),
            source: route.source,
            mtu: route.mtu,
            gateway: route.gateway,
        })
    };
    let address = |it: Address| {
        Some(LocalAddress {
            device: named(it.device)?.name.clone(),
            address: it.address,
            prefix: it.prefix,
        })
    };
    let addresses = netlink.addresses()?;
    let tracked = counters::conntrack()?;
    Ok(Survey {
        // Inodes of namespaces are 32 bits wide.
        namespace: fs::metadata("/proc/thread-self/ns/net")?.ino() as u32,
        counters: counters::protocol_by_name()?,
        tracked: (tracked.entries, tracked.max, tracked.dropped),
        devices: links.iter().map(describe).collect(),
        rp_filter: rp_filter("all"),
        addresses: addresses.into_iter().filter_map(address).collect(),
        ways: towards.iter().map(way).collect(),
    })
}

fn describe(link: &DeviceInfo) -> SurveyedDevice {
    let stats = &link.stats;
    SurveyedDevice {
        index: link.index,
        name: link.name.clone(),
        kind: link.kind.clone(),
        mtu: link.mtu,
        rx_packets: stats.rx_packets,
        tx_packets: stats.tx_packets,
        dropped: stats.rx_dropped + stats.tx_dropped + stats.rx_errors + stats.tx_errors,
        // What a driver does not show is not known to be off.
        switched_off: ethtool::switched_off(&link.name).unwrap_or_default(),
        rp_filter: rp_filter(&link.name),
    }
}

/// The reverse path filter of a device, or of `all`.
fn rp_filter(of: &str) -> Option<u8> {
    let text = fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{of}/rp_filter")).ok()?;
    text.trim().parse().ok()
}
