//! The devices of a namespace, as the programs know them by numbers.

use plumbline_protocol::TracedDevice;
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
