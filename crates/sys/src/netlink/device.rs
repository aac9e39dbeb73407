//! Network devices as they are: looking them up, with their counters.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State, Stats64};

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
    pub stats: Stats64,
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
                LinkAttribute::Stats64(stats) => link.stats = stats,
                _ => {}
            }
        }
        link
    }
}

impl NetlinkSocket {
    /// The device of this name, with its counters.
    pub fn link(&self, name: &str) -> Result<DeviceInfo, NetlinkError> {
        let message = super::link::with(LinkAttribute::IfName(name.into()));
        let verb = Verb::new("look up link", format!("`{name}`"));
        let mut found = None;
        let request = RouteNetlinkMessage::GetLink(message);
        let asked = self.query(verb, request, false, |answer| {
            if let RouteNetlinkMessage::NewLink(message) = answer {
                found = Some(DeviceInfo::from_message(message));
            }
        });
        match asked {
            Err(error) if !error.is_gone() => Err(error),
            _ => found.ok_or_else(|| NetlinkError::NoDevice { name: name.into() }),
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
