//! The own namespace, as the programs know it by numbers.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use plumbline_protocol::{TracedDevice, TracedPlace};
use plumbline_sys::netlink::{DeviceInfo, NetlinkError, NetlinkSocket};

/// The devices of the namespace that this socket was opened in.
///
/// # Errors
///
/// Devices that cannot be listed.
pub fn devices(netlink: &NetlinkSocket) -> Result<Vec<TracedDevice>, NetlinkError> {
    let links = netlink.links()?;
    let describe = |link: &DeviceInfo| {
        let master = links.iter().find(|it| Some(it.index) == link.master);
        TracedDevice {
            index: link.index,
            name: link.name.clone(),
            kind: link.kind.clone(),
            discipline: link.qdisc.clone(),
            port_of: master.map(|it| it.kind.clone()),
        }
    };
    Ok(links.iter().map(describe).collect())
}

/// The namespace of this process, its devices, and which kernel it is of.
///
/// # Errors
///
/// A namespace whose number or devices are not shown.
pub fn own_place() -> io::Result<TracedPlace> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let namespace = fs::metadata("/proc/self/ns/net")?.ino();
    let listed = NetlinkSocket::open().and_then(|netlink| devices(&netlink));
    Ok(TracedPlace {
        boot: boot.trim().to_owned(),
        // Inodes of namespaces are 32 bits wide.
        namespace: namespace as u32,
        devices: listed.map_err(io::Error::other)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_namespace_has_a_number_and_its_loopback() {
        let place = own_place().unwrap();
        assert!(place.namespace > 0 && !place.boot.is_empty());
        assert!(place.devices.iter().any(|it| it.name == "lo"));
    }
}
