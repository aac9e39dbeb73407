//! Routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};

use super::socket::Verb;
use super::{NetlinkError, NetlinkSocket, TableEntry, family};

/// The main routing table.
const MAIN: u32 = 254;

/// A unicast route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteSpec {
    destination: IpAddr,
    prefix: u8,
    via: Option<IpAddr>,
    device: Option<u32>,
    onlink: bool,
    table: u32,
    mtu: Option<u32>,
}

impl RouteSpec {
    /// A route to `destination/prefix` in the main table.
    pub fn to(destination: IpAddr, prefix: u8) -> Self {
        Self {
            destination,
            prefix,
            via: None,
            device: None,
            onlink: false,
            table: MAIN,
            mtu: None,
        }
    }

    /// The default route of the family of `gateway`, through it.
    pub fn default_via(gateway: IpAddr) -> Self {
        let any = match gateway {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Self::to(any, 0).via(gateway)
    }

    /// Through this gateway.
    pub fn via(mut self, gateway: IpAddr) -> Self {
        self.via = Some(gateway);
        self
    }

    /// Out of the device with this index.
    pub fn dev(mut self, device: u32) -> Self {
        self.device = Some(device);
        self
    }

    /// The gateway is taken to be on the link, whatever its address.
    pub fn onlink(mut self) -> Self {
        self.onlink = true;
        self
    }

    /// In this table instead of the main one.
    pub fn table(mut self, table: u32) -> Self {
        self.table = table;
        self
    }

    /// For packets of at most `mtu` bytes, although the device may take more.
    pub fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = Some(mtu);
        self
    }
}

impl TableEntry for RouteSpec {
    type Message = RouteMessage;
    const ADD: fn(RouteMessage) -> RouteNetlinkMessage = RouteNetlinkMessage::NewRoute;
    const DELETE: fn(RouteMessage) -> RouteNetlinkMessage = RouteNetlinkMessage::DelRoute;

    fn message(&self) -> RouteMessage {
        let mut message = RouteMessage::default();
        let header = &mut message.header;
        header.address_family = family(self.destination);
        header.destination_prefix_length = self.prefix;
        header.protocol = RouteProtocol::Static;
        header.kind = RouteType::Unicast;
        header.scope = match (self.via, self.destination) {
            // The kernel wants link scope for an IPv4 route without a gateway;
            // IPv6 has no scopes for routes.
            (None, IpAddr::V4(_)) => RouteScope::Link,
            _ => RouteScope::Universe,
        };
        header.flags.set(RouteFlags::Onlink, self.onlink);
        let address = RouteAddress::from;
        let attributes = &mut message.attributes;
        attributes.push(RouteAttribute::Table(self.table));
        if self.prefix > 0 {
            attributes.push(RouteAttribute::Destination(address(self.destination)));
        }
        attributes.extend(self.via.map(|it| RouteAttribute::Gateway(address(it))));
        attributes.extend(self.device.map(RouteAttribute::Oif));
        let metric = |mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)]);
        attributes.extend(self.mtu.map(metric));
        message
    }
}

/// How the kernel would send to an address now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Index of the device that it leaves by.
    pub device: u32,
    /// The source address that the kernel would choose.
    pub source: Option<IpAddr>,
    /// Largest packet of this route in bytes, where it says so itself: the device
    /// may take larger ones.
    pub mtu: Option<u32>,
    /// Whom the packets are given to, where it is not their destination.
    pub gateway: Option<IpAddr>,
}

impl std::fmt::Display for RouteSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "route {}/{}", self.destination, self.prefix)?;
        if let Some(via) = self.via {
            write!(f, " via {via}")?;
        }
        if let Some(device) = self.device {
            write!(f, " dev {device}")?;
        }
        Ok(())
    }
}

impl NetlinkSocket {
    /// Asks the kernel how it would send to `destination`.
    ///
    /// # Errors
    ///
    /// No route leads there.
    pub fn route_to(&self, destination: IpAddr) -> Result<Route, NetlinkError> {
        let bits = if destination.is_ipv4() { 32 } else { 128 };
        let mut message = RouteSpec::to(destination, bits).message();
        // A query contains the destination and nothing else.
        message.header.table = 0;
        message.header.protocol = RouteProtocol::Unspec;
        message.header.kind = RouteType::Unspec;
        message.header.scope = RouteScope::Universe;
        message
            .attributes
            .retain(|attribute| matches!(attribute, RouteAttribute::Destination(_)));
        let verb = Verb::new("find the route to", destination.to_string());
        let mut found = None;
        let request = RouteNetlinkMessage::GetRoute(message);
        self.query(verb, request, false, |answer| {
            if let RouteNetlinkMessage::NewRoute(route) = answer {
                found = read(&route);
            }
        })?;
        found.ok_or_else(|| NetlinkError::Garbled {
            action: "find the route to",
            object: destination.to_string(),
            detail: "an answer without a device".to_owned(),
        })
    }
}

pub(super) fn read(message: &RouteMessage) -> Option<Route> {
    let attributes = &message.attributes;
    let device = attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(device) => Some(*device),
        _ => None,
    })?;
    let address = |address: &RouteAddress| match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    };
    let source = attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::PrefSource(source) => address(source),
        _ => None,
    });
    let gateway = attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(gateway) => address(gateway),
        _ => None,
    });
    let metrics = attributes.iter().filter_map(|attribute| match attribute {
        RouteAttribute::Metrics(metrics) => Some(metrics),
        _ => None,
    });
    let mtu = metrics.flatten().find_map(|metric| match metric {
        RouteMetric::Mtu(mtu) => Some(*mtu),
        _ => None,
    });
    Some(Route {
        device,
        source,
        mtu,
        gateway,
    })
}
