//! Network devices as they are: looking them up, with their counters.

use std::collections::BTreeMap;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoVxlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State, Stats64,
};

use super::socket::Verb;
use super::{LinkNumber, Mac, NetlinkError, NetlinkSocket};

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
    /// Index of the device that it is joined to, the other end of a pair for one, in the
    /// namespace of that.
    pub joined: Option<u32>,
    /// Index of the bridge, or of another device, that it is a port of.
    pub master: Option<u32>,
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
    /// What it is set to, as far as the kernel knows such numbers.
    pub numbers: BTreeMap<LinkNumber, u32>,
    /// Of a VXLAN device.
    pub vxlan: Option<VxlanState>,
    /// Counters since it was made.
    pub stats: Stats64,
}

/// How a VXLAN device sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VxlanState {
    /// Whether its packets have a checksum in the UDP header.
    pub udp_checksum: bool,
    /// The UDP ports that it sends from: the first, and the one behind the last. Zeroes
    /// where the kernel chooses.
    pub source_ports: (u16, u16),
}

impl VxlanState {
    fn new(data: &[InfoVxlan]) -> Self {
        let is_v6 = data.iter().any(|it| matches!(it, InfoVxlan::Local6(_)));
        let mut state = Self::default();
        for attribute in data {
            match attribute {
                InfoVxlan::UDPCsum(on) if !is_v6 => state.udp_checksum = *on,
                InfoVxlan::UDPZeroCsumTX(off) if is_v6 => state.udp_checksum = !*off,
                InfoVxlan::PortRange(ports) => state.source_ports = *ports,
                _ => {}
            }
        }
        state
    }
}

impl DeviceInfo {
    pub(super) fn from_message(message: LinkMessage) -> Self {
        let mut link = Self {
            index: message.header.index,
            up: message.header.flags.contains(LinkFlags::Up),
            running: message.header.flags.contains(LinkFlags::Running),
            finds_neighbours: !message.header.flags.contains(LinkFlags::Noarp),
            ..Self::default()
        };
        for attribute in message.attributes {
            link.numbers.extend(LinkNumber::read(&attribute));
            match attribute {
                LinkAttribute::IfName(name) => link.name = name,
                LinkAttribute::Mtu(mtu) => link.mtu = mtu,
                LinkAttribute::OperState(state) => link.state_known = state != State::Unknown,
                LinkAttribute::Qdisc(qdisc) => link.qdisc = qdisc,
                LinkAttribute::Address(bytes) => link.mac = bytes.try_into().ok(),
                LinkAttribute::Link(index) => link.joined = Some(index),
                LinkAttribute::Controller(index) => link.master = Some(index),
                LinkAttribute::LinkInfo(infos) => {
                    for info in infos {
                        match info {
                            LinkInfo::Kind(kind) => link.kind = kind.to_string(),
                            LinkInfo::Data(InfoData::Vxlan(data)) => {
                                link.vxlan = Some(VxlanState::new(&data));
                            }
                            _ => {}
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
