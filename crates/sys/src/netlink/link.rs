//! Network devices: making, changing and deleting them.

use std::marker::PhantomData;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoGeneve, InfoIpVlan, InfoKind, InfoMacVlan, InfoVeth, InfoVxlan, IpVlanMode,
    LinkAttribute, LinkFlags, LinkInfo, LinkMessage, MacVlanMode,
};

use super::socket::Verb;
use super::{Mac, NetlinkError, NetlinkSocket};

/// A device to be made, all of it in one request.
#[derive(Clone, Debug)]
pub struct LinkSpec<'ns> {
    name: String,
    kind: &'static str,
    message: LinkMessage,
    info: Vec<LinkInfo>,
    /// The namespace that the device is made in must outlive the request.
    inside: PhantomData<&'ns ()>,
}

/// Properties of a VXLAN device (RFC 7348) with a static forwarding database.
#[derive(Clone, Copy, Debug)]
pub struct VxlanProperties {
    /// Network identifier, 24 bits.
    pub vni: u32,
    /// UDP destination port.
    pub port: u16,
    /// Source address of the encapsulated packets.
    pub local: IpAddr,
    /// Index of the device that carries the encapsulated packets; 0 lets the
    /// routes choose.
    pub underlay: u32,
}

/// The encapsulation of a device that finds each packet's destination in its
/// metadata, as set by eBPF programs and Open vSwitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectMetadata {
    /// VXLAN (RFC 7348).
    Vxlan,
    /// Geneve (RFC 8926).
    Geneve,
}

/// A property of a device that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkNumber {
    /// Packets that may wait for it (`txqueuelen`), where its discipline asks for that.
    QueueLength,
    /// Bytes of the largest packet of IPv6 that the stack leaves to it to segment.
    GsoMaxSize,
    /// The same of IPv4.
    GsoIpv4MaxSize,
    /// Bytes of the largest packet that received segments of IPv6 are merged to.
    GroMaxSize,
    /// The same of IPv4.
    GroIpv4MaxSize,
}

impl LinkNumber {
    fn attribute(self, value: u32) -> LinkAttribute {
        match self {
            Self::QueueLength => LinkAttribute::TxQueueLen(value),
            Self::GsoMaxSize => LinkAttribute::GsoMaxSize(value),
            Self::GsoIpv4MaxSize => LinkAttribute::GsoIpv4MaxSize(value),
            Self::GroMaxSize => LinkAttribute::GroMaxSize(value),
            Self::GroIpv4MaxSize => LinkAttribute::GroIpv4MaxSize(value),
        }
    }

    pub(super) fn read(attribute: &LinkAttribute) -> Option<(Self, u32)> {
        Some(match attribute {
            LinkAttribute::TxQueueLen(value) => (Self::QueueLength, *value),
            LinkAttribute::GsoMaxSize(value) => (Self::GsoMaxSize, *value),
            LinkAttribute::GsoIpv4MaxSize(value) => (Self::GsoIpv4MaxSize, *value),
            LinkAttribute::GroMaxSize(value) => (Self::GroMaxSize, *value),
            LinkAttribute::GroIpv4MaxSize(value) => (Self::GroIpv4MaxSize, *value),
            _ => return None,
        })
    }
}

impl<'ns> LinkSpec<'ns> {
    pub(super) fn new(name: &str, kind: &'static str) -> Self {
        Self {
            name: name.into(),
            kind,
            message: with(LinkAttribute::IfName(name.into())),
            info: Vec::new(),
            inside: PhantomData,
        }
    }

    pub(super) fn with_info(mut self, kind: InfoKind, data: Option<InfoData>) -> Self {
        self.info.push(LinkInfo::Kind(kind));
        self.info.extend(data.map(LinkInfo::Data));
        self
    }

    /// The far end of a [`veth`](Self::veth) pair. It cannot be
    /// [`up`](Self::up) from the start: while the kernel makes it, it has no
    /// other end yet, and is refused with `ENOTCONN`.
    pub fn peer(name: &str) -> Self {
        Self::new(name, "veth")
    }

    /// A pair of devices, each the wire of the other. The peer may be placed
    /// in another namespace by [`inside`](Self::inside).
    pub fn veth(name: &str, peer: LinkSpec<'ns>) -> Self {
        let data = InfoData::Veth(InfoVeth::Peer(peer.message));
        Self::new(name, "veth").with_info(InfoKind::Veth, Some(data))
    }

    /// A bridge without a spanning tree, which a lab does not need.
    pub fn bridge(name: &str) -> Self {
        Self::new(name, "bridge").with_info(InfoKind::Bridge, None)
    }

    /// A device that carries nothing, to have addresses on.
    pub fn dummy(name: &str) -> Self {
        Self::new(name, "dummy").with_info(InfoKind::Dummy, None)
    }

    /// A VXLAN device that learns nothing: every entry is static.
    pub fn vxlan(name: &str, vxlan: VxlanProperties) -> Self {
        let local = match vxlan.local {
            IpAddr::V4(address) => InfoVxlan::Local(address),
            IpAddr::V6(address) => InfoVxlan::Local6(address),
        };
        let data = vec![
            InfoVxlan::Id(vxlan.vni),
            InfoVxlan::Link(vxlan.underlay),
            local,
            InfoVxlan::Port(vxlan.port),
            InfoVxlan::Learning(false),
        ];
        Self::new(name, "vxlan").with_info(InfoKind::Vxlan, Some(InfoData::Vxlan(data)))
    }

    /// Of a VXLAN device: whether it puts a checksum into the UDP header of what it sends.
    /// Without one it takes what comes without one, too.
    #[must_use]
    pub fn udp_checksum(self, on: bool) -> Self {
        // Each is of one IP version, and says nothing of the other.
        self.vxlan_data(InfoVxlan::UDPCsum(on))
            .vxlan_data(InfoVxlan::UDPZeroCsumTX(!on))
            .vxlan_data(InfoVxlan::UDPZeroCsumRX(!on))
    }

    /// Of a VXLAN device: the UDP ports that it sends from, one for each flow, from the
    /// first to before the last.
    #[must_use]
    pub fn source_ports(self, first: u16, last: u16) -> Self {
        self.vxlan_data(InfoVxlan::PortRange((first, last)))
    }

    fn vxlan_data(mut self, attribute: InfoVxlan) -> Self {
        for info in &mut self.info {
            if let LinkInfo::Data(InfoData::Vxlan(data)) = info {
                data.push(attribute.clone());
            }
        }
        self
    }

    /// A tunnel device without an endpoint of its own; `port` is the UDP
    /// destination port, and the one that it listens on.
    pub fn collect_metadata(name: &str, encapsulation: CollectMetadata, port: u16) -> Self {
        match encapsulation {
            CollectMetadata::Vxlan => {
                let data = vec![
                    InfoVxlan::CollectMetadata(true),
                    InfoVxlan::Port(port),
                    InfoVxlan::Learning(false),
                ];
                Self::new(name, "vxlan").with_info(InfoKind::Vxlan, Some(InfoData::Vxlan(data)))
            }
            CollectMetadata::Geneve => {
                let data = vec![InfoGeneve::CollectMetadata, InfoGeneve::Port(port)];
                Self::new(name, "geneve").with_info(InfoKind::Geneve, Some(InfoData::Geneve(data)))
            }
        }
    }

    /// A macvlan device in bridge mode over the device with index `parent`.
    pub fn macvlan(name: &str, parent: u32) -> Self {
        let data = InfoData::MacVlan(vec![InfoMacVlan::Mode(MacVlanMode::Bridge)]);
        Self::new(name, "macvlan")
            .attribute(LinkAttribute::Link(parent))
            .with_info(InfoKind::MacVlan, Some(data))
    }

    /// An ipvlan device over the device with index `parent`.
    pub fn ipvlan(name: &str, parent: u32, mode: IpVlanMode) -> Self {
        let data = InfoData::IpVlan(vec![InfoIpVlan::Mode(mode)]);
        Self::new(name, "ipvlan")
            .attribute(LinkAttribute::Link(parent))
            .with_info(InfoKind::IpVlan, Some(data))
    }

    fn attribute(mut self, attribute: LinkAttribute) -> Self {
        self.message.attributes.push(attribute);
        self
    }

    /// Sets the MTU in bytes.
    pub fn mtu(self, mtu: u32) -> Self {
        self.attribute(LinkAttribute::Mtu(mtu))
    }

    /// Asks for an index number, which must be free in the namespace; otherwise
    /// the kernel takes the next one.
    pub fn index(mut self, index: u32) -> Self {
        self.message.header.index = index;
        self
    }

    /// Sets the hardware address; without it the kernel picks one at random.
    pub fn mac(self, mac: Mac) -> Self {
        self.attribute(LinkAttribute::Address(mac.to_vec()))
    }

    /// Makes the device a port of the bridge with this index.
    pub fn master(self, index: u32) -> Self {
        self.attribute(LinkAttribute::Controller(index))
    }

    /// Puts the device into a group, so that
    /// [`delete_group`](NetlinkSocket::delete_group) finds it.
    pub fn group(self, group: u32) -> Self {
        self.attribute(LinkAttribute::Group(group))
    }

    /// Makes the device in this namespace instead of the socket's.
    pub fn inside(self, namespace: &'ns impl AsFd) -> Self {
        let fd = namespace.as_fd().as_raw_fd();
        self.attribute(LinkAttribute::NetNsFd(fd))
    }

    /// Brings the device up as it is made.
    pub fn up(mut self) -> Self {
        self.message.header.flags |= LinkFlags::Up;
        self.message.header.change_mask |= LinkFlags::Up;
        self
    }
}

impl NetlinkSocket {
    /// Makes a device.
    pub fn add_link(&self, spec: LinkSpec<'_>) -> Result<(), NetlinkError> {
        let LinkSpec {
            name,
            kind,
            mut message,
            info,
            ..
        } = spec;
        message.attributes.push(LinkAttribute::LinkInfo(info));
        let verb = Verb::new("add link", format!("{kind} `{name}`"));
        let message = RouteNetlinkMessage::NewLink(message);
        self.execute(verb, message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Deletes a device; the other end of a pair goes with it.
    pub fn delete_link(&self, name: &str) -> Result<(), NetlinkError> {
        let message = with(LinkAttribute::IfName(name.into()));
        let verb = Verb::new("delete link", format!("`{name}`"));
        self.execute(verb, RouteNetlinkMessage::DelLink(message), 0)
    }

    /// Deletes all devices of a group in one go. For each request the kernel
    /// waits until no CPU uses what was deleted, some 30 ms; so one request for
    /// many devices is many times faster than one for each.
    pub fn delete_group(&self, group: u32) -> Result<(), NetlinkError> {
        let message = with(LinkAttribute::Group(group));
        let verb = Verb::new("delete links", format!("of group {group}"));
        self.execute(verb, RouteNetlinkMessage::DelLink(message), 0)
    }

    /// Brings a device up or takes it down.
    pub fn set_link_up(&self, index: u32, up: bool) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.change_mask = LinkFlags::Up;
        message.header.flags.set(LinkFlags::Up, up);
        let action = if up { "bring up" } else { "take down" };
        let verb = Verb::new(action, format!("device {index}"));
        self.change_link(verb, index, message)
    }

    /// Gives a device that is down another name.
    pub fn rename_link(&self, index: u32, name: &str) -> Result<(), NetlinkError> {
        let verb = Verb::new("rename", format!("device {index} to `{name}`"));
        self.change_link(verb, index, with(LinkAttribute::IfName(name.into())))
    }

    /// Sets the MTU of a device, in bytes.
    pub fn set_link_mtu(&self, index: u32, mtu: u32) -> Result<(), NetlinkError> {
        let verb = Verb::new("set the MTU of", format!("device {index} to {mtu}"));
        self.change_link(verb, index, with(LinkAttribute::Mtu(mtu)))
    }

    /// Sets a number of a device.
    ///
    /// # Errors
    ///
    /// A number that the device does not take, such as one above what its driver
    /// segments.
    pub fn set_link_number(
        &self,
        index: u32,
        number: LinkNumber,
        value: u32,
    ) -> Result<(), NetlinkError> {
        let verb = Verb::new("set", format!("{number:?} of device {index} to {value}"));
        self.change_link(verb, index, with(number.attribute(value)))
    }

    fn change_link(
        &self,
        verb: Verb,
        index: u32,
        mut message: LinkMessage,
    ) -> Result<(), NetlinkError> {
        message.header.index = index;
        self.execute(verb, RouteNetlinkMessage::SetLink(message), 0)
    }
}

/// A message with one attribute.
pub(super) fn with(attribute: LinkAttribute) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes.push(attribute);
    message
}
