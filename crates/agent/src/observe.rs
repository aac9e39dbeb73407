//! Looking at the machine, for a controller that is on another one.

use std::error::Error;
use std::fs;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_protocol::{
    ClockReading, FromAgent, LocalAddress, LookOrder, NamespaceCounters, Sight, ToAgent, Way,
};
use plumbline_record::{DeviceCounters, DeviceFingerprint, Fingerprint, NodeRules};
use plumbline_sys::clock::now_ns;
use plumbline_sys::counters::{ConntrackTotals, conntrack};
use plumbline_sys::ethtool;
use plumbline_sys::netlink::{DeviceInfo, NetlinkError, NetlinkSocket};

use crate::idle;
use crate::job::JobOutcome;
use crate::nginx;
use crate::proxy;

/// Carries out an order to observe.
pub(crate) fn answer(order: &ToAgent, stop: &AtomicBool) -> JobOutcome {
    Ok(match order {
        ToAgent::Look(order) => FromAgent::Seen(Box::new(look(order)?)),
        ToAgent::Count { devices } => FromAgent::Counted(count(devices)?),
        ToAgent::Rest { length_ns } => FromAgent::Rested {
            sample: crate::idle_sample(Duration::from_nanos(*length_ns))?,
        },
        ToAgent::Floor {
            client_cpus,
            server_cpus,
        } => FromAgent::Floored {
            floor: plumbline_engine::floor(client_cpus, server_cpus, stop)?,
        },
        ToAgent::Clock => FromAgent::Clock(ClockReading {
            boot: boot(),
            now_ns: now_ns(),
        }),
        ToAgent::Watch(order) => FromAgent::Watched(Box::new(idle::watch(order, stop)?)),
        _ => return Err("this is not an order to observe".into()),
    })
}

fn look(order: &LookOrder) -> Result<Sight, Box<dyn Error>> {
    let netlink = NetlinkSocket::open()?;
    let links = netlink.links()?;
    let named = |index: u32| links.iter().find(|link| link.index == index);
    let way = |to: &IpAddr| {
        let route = netlink.route_to(*to).ok()?;
        let device = named(route.device)?.name.clone();
        Some(Way {
            device,
            source: route.source,
            mtu: route.mtu,
            gateway: route.gateway,
        })
    };
    let ways: Vec<Option<Way>> = order.towards.iter().map(way).collect();
    let addresses = netlink.addresses()?;
    let addresses = addresses.into_iter().filter_map(|one| {
        Some(LocalAddress {
            device: named(one.device)?.name.clone(),
            address: one.address,
            prefix: one.prefix,
        })
    });
    let mut wanted: Vec<&str> = Vec::new();
    let of_ways = ways.iter().flatten().map(|way| &way.device);
    for device in order.devices.iter().chain(of_ways) {
        if !wanted.contains(&device.as_str()) {
            wanted.push(device);
        }
    }
    let wanted = links
        .iter()
        .filter(|link| wanted.contains(&link.name.as_str()));
    let route_mtu = |device: &str| {
        let by = ways.iter().flatten().filter(|way| way.device == device);
        by.filter_map(|way| way.mtu).min()
    };
    let devices = wanted.map(|link| DeviceFingerprint {
        route_mtu: route_mtu(&link.name),
        ..describe(link)
    });
    let devices = devices.collect();
    Ok(Sight {
        fingerprint: Fingerprint {
            machine: identity(),
            ..crate::fingerprint()
        },
        boot: boot(),
        cpus: plumbline_sys::cpu::allowed()?,
        addresses: addresses.collect(),
        ways,
        devices,
        kube_proxy: order.kube_proxy.then(proxy::mode).flatten(),
        servers: nginx::servers(),
    })
}

fn boot() -> String {
    read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

fn describe(link: &DeviceInfo) -> DeviceFingerprint {
    DeviceFingerprint {
        namespace: String::new(),
        device: link.name.clone(),
        driver: driver(link),
        mtu: link.mtu,
        route_mtu: None,
        qdisc: link.qdisc.clone(),
        // A feature that the driver does not report is not known to be on.
        offloads: ethtool::active_features(&link.name).unwrap_or_default(),
    }
}

/// Netlink has a kind for virtual devices only; others have a driver, listed in
/// /sys, and loopback has neither.
fn driver(link: &DeviceInfo) -> String {
    if !link.kind.is_empty() {
        return link.kind.clone();
    }
    let bound = fs::read_link(format!("/sys/class/net/{}/device/driver", link.name)).ok();
    let name = bound.as_deref().and_then(|path| path.file_name());
    name.map_or_else(
        || link.name.clone(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// What a device has counted since it was made.
pub fn device_counters(namespace: &str, link: &DeviceInfo) -> DeviceCounters {
    let stats = &link.stats;
    DeviceCounters {
        namespace: namespace.to_owned(),
        device: link.name.clone(),
        rx_packets: stats.rx_packets,
        tx_packets: stats.tx_packets,
        rx_bytes: stats.rx_bytes,
        tx_bytes: stats.tx_bytes,
        rx_dropped: stats.rx_dropped,
        tx_dropped: stats.tx_dropped,
        errors: stats.rx_errors + stats.tx_errors,
    }
}

fn count(devices: &[String]) -> Result<NamespaceCounters, Box<dyn Error>> {
    let netlink = NetlinkSocket::open()?;
    let read = |device: &String| Ok(device_counters("", &netlink.link(device)?));
    Ok(NamespaceCounters {
        devices: devices
            .iter()
            .map(read)
            .collect::<Result<_, NetlinkError>>()?,
        protocol: crate::protocol_counters("")?,
        tracked: conntrack().ok().filter(|it| it.max > 0).map(tracked),
    })
}

fn tracked(seen: ConntrackTotals) -> NodeRules {
    NodeRules {
        connections: seen.entries,
        connections_max: seen.max,
        connections_dropped: seen.dropped,
        ..NodeRules::default()
    }
}

/// A digest of machine-id(5), which must not be disclosed itself. FNV-1a
/// (Fowler, Noll, Vo) of half its length: equal for the same machine, and the
/// identity cannot be computed from it.
fn identity() -> Option<String> {
    let id = read("/etc/machine-id").filter(|id| !id.is_empty())?;
    let digest = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Some(format!("{digest:016x}"))
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::HttpServer;

    use super::*;

    #[test]
    fn this_machine_is_seen_with_its_loopback() {
        let order = LookOrder {
            towards: vec![[127, 0, 0, 1].into()],
            ..LookOrder::default()
        };
        let sight = look(&order).unwrap();
        let way = sight.ways[0].as_ref().expect("loopback is up");
        assert_eq!(way.device, "lo");
        assert_eq!(way.source, Some([127, 0, 0, 1].into()));
        assert_eq!(sight.devices.len(), 1);
        assert!(!sight.cpus.is_empty());
        assert_eq!(sight.check_server(HttpServer::Plumbline), Ok(()));
        let nginx = sight.check_server(HttpServer::Nginx);
        assert_eq!(nginx, crate::check_server(HttpServer::Nginx));
        let local = LocalAddress {
            device: "lo".into(),
            address: [127, 0, 0, 1].into(),
            prefix: 8,
        };
        assert!(sight.addresses.contains(&local), "{:?}", sight.addresses);
    }

    #[test]
    fn counters_of_a_device_that_is_not_there_are_an_error() {
        assert_eq!(count(&["lo".into()]).unwrap().devices[0].device, "lo");
        let error = count(&["none".into()]).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }
}
