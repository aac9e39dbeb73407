//! Policy routing rules.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::socket::Verb;
use super::{NetlinkError, NetlinkSocket};

/// Which packets are routed by a table instead of the main one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSpec {
    selector: RuleSelector,
    table: u32,
    priority: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleSelector {
    From(IpAddr, u8),
    To(IpAddr, u8),
    /// All packets of IPv4, or of IPv6.
    All {
        v4: bool,
    },
}

impl RuleSpec {
    /// Packets from `source/prefix` are routed by `table`. Rules with a smaller
    /// `priority` come first.
    pub fn from(source: IpAddr, prefix: u8, table: u32, priority: u32) -> Self {
        Self {
            selector: RuleSelector::From(source, prefix),
            table,
            priority,
        }
    }

    /// Packets to `destination/prefix` are.
    pub fn to(destination: IpAddr, prefix: u8, table: u32, priority: u32) -> Self {
        Self {
            selector: RuleSelector::To(destination, prefix),
            table,
            priority,
        }
    }

    /// All packets are; of IPv4, or else of IPv6.
    pub fn all(v4: bool, table: u32, priority: u32) -> Self {
        Self {
            selector: RuleSelector::All { v4 },
            table,
            priority,
        }
    }

    fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        let v4 = match self.selector {
            RuleSelector::From(source, prefix) => {
                message.header.src_len = prefix;
                message.attributes.push(RuleAttribute::Source(source));
                source.is_ipv4()
            }
            RuleSelector::To(destination, prefix) => {
                message.header.dst_len = prefix;
                message
                    .attributes
                    .push(RuleAttribute::Destination(destination));
                destination.is_ipv4()
            }
            RuleSelector::All { v4 } => v4,
        };
        message.header.family = if v4 {
            AddressFamily::Inet
        } else {
            AddressFamily::Inet6
        };
        message.header.action = RuleAction::ToTable;
        message.attributes.push(RuleAttribute::Table(self.table));
        message
            .attributes
            .push(RuleAttribute::Priority(self.priority));
        message
    }

    fn verb(&self, action: &'static str) -> Verb {
        Verb::new(action, self.to_string())
    }
}

impl std::fmt::Display for RuleSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.selector {
            RuleSelector::From(source, prefix) => write!(f, "from {source}/{prefix}")?,
            RuleSelector::To(destination, prefix) => write!(f, "to {destination}/{prefix}")?,
            RuleSelector::All { .. } => write!(f, "from all")?,
        }
        write!(f, " table {}", self.table)
    }
}

impl NetlinkSocket {
    /// Adds a rule.
    pub fn add_rule(&self, rule: &RuleSpec) -> Result<(), NetlinkError> {
        let message = RouteNetlinkMessage::NewRule(rule.message());
        self.execute(rule.verb("add rule"), message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Deletes a rule.
    pub fn delete_rule(&self, rule: &RuleSpec) -> Result<(), NetlinkError> {
        let message = RouteNetlinkMessage::DelRule(rule.message());
        self.execute(rule.verb("delete rule"), message, 0)
    }
}
