//! Network devices as they are: looking them up, with their counters.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State};

use super::socket::Verb;
use super::{Mac, NetlinkError, NetlinkSocket};

/// A device as the kernel shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Index, unique in its namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Driver kind, such as `veth`; empty for devices that netlink did not make.
    pub kind: String,
    /// MTU in bytes.
    pub mtu: u32,
    /// Queueing discipline.
    pub qdisc: String,
    /// Hardware address, where it has one of six bytes.
    pub mac: Option<Mac>,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it can carry packets, as far as the stack knows. The kernel
    /// notices some time after both ends of a pair are up.
    pub running: bool,
    /// Whether the stack knows the operational state (RFC 2863). For tunnels it
    /// never does, and takes them as running.
    pub state_known: bool,
    /// Whether its neighbours have to be found before packets go to them
    /// (no `IFF_NOARP`).
    pub finds_neighbours: bool,
    /// Counters since it was made.
    pub stats: DeviceStats,
}

/// Counters of a device (`struct rtnl_link_stats64`), since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped on the way in.
    pub rx_dropped: u64,
    /// Packets dropped on the way out.
    pub tx_dropped: u64,
    /// Receive errors.
    pub rx_errors: u64,
    /// Transmit errors.
    pub tx_errors: u64,
}

impl DeviceInfo {
    fn from_message(message: LinkMessage) -> Self {
        let mut link = Self {
            index: message.header.index,
            up: message.header.flags.contains(LinkFlags::Up),
            running: message.header.flags.contains(LinkFlags::Running),
            finds_neighbours: !message.header.flags.contains(LinkFlags::Noarp),
            ..Self::default()
        };
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name = name,
                LinkAttribute::Mtu(mtu) => link.mtu = mtu,
                LinkAttribute::OperState(state) => link.state_known = state != State::Unknown,
                LinkAttribute::Qdisc(qdisc) => link.qdisc = qdisc,
                LinkAttribute::Address(bytes) => link.mac = bytes.try_into().ok(),
                LinkAttribute::LinkInfo(infos) => {
                    for info in infos {
                        if let LinkInfo::Kind(kind) = info {
                            link.kind = kind.to_string();
                        }
                    }
                }
                LinkAttribute::Stats64(stats) => {
                    link.stats = DeviceStats {
                        rx_packets: stats.rx_packets,
                        tx_packets: stats.tx_packets,
                        rx_bytes: stats.rx_bytes,
                        tx_bytes: stats.tx_bytes,
                        rx_dropped: stats.rx_dropped,
                        tx_dropped: stats.tx_dropped,
                        rx_errors: stats.rx_errors,
                        tx_errors: stats.tx_errors,
                    }
                }
                _ => {}
            }
        }
        link
    }
}

impl NetlinkSocket {
    /// The device of this name, with its counters.
    pub fn link(&self, name: &str) -> Result<DeviceInfo, NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        let verb = Verb::new("look up link", format!("`{name}`"));
        let mut found = None;
        let asked = self.query(
            verb,
            RouteNetlinkMessage::GetLink(message),
            false,
            |answer| {
                if let RouteNetlinkMessage::NewLink(message) = answer {
                    found = Some(DeviceInfo::from_message(message));
                }
            },
        );
        match asked {
            Err(error) if error.is_gone() => Err(NetlinkError::NoDevice { name: name.into() }),
            Err(error) => Err(error),
            Ok(()) => found.ok_or_else(|| NetlinkError::NoDevice { name: name.into() }),
        }
    }

    /// All devices of the namespace, with their counters.
    pub fn links(&self) -> Result<Vec<DeviceInfo>, NetlinkError> {
        let verb = Verb::new("list", "links");
        let message = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let mut links = Vec::new();
        self.query(verb, message, true, |answer| {
            if let RouteNetlinkMessage::NewLink(message) = answer {
                links.push(DeviceInfo::from_message(message));
            }
        })?;
        Ok(links)
    }
}
