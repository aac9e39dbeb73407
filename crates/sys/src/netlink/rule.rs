//! Policy routing rules.

use std::net::IpAddr;

use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::TableEntry;

/// Which packets are routed by a table instead of the main one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSpec {
    selector: RuleSelector,
    table: u32,
    priority: u32,
}

/// Packets that a rule is for, by network and length of its prefix in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSelector {
    /// Those from a network.
    From(IpAddr, u8),
    /// Those to a network.
    To(IpAddr, u8),
    /// All of IPv4.
    AllV4,
    /// All of IPv6.
    AllV6,
    /// Those of IPv4 that have this mark.
    MarkedV4(u32),
    /// Those of IPv6 that have this mark.
    MarkedV6(u32),
}

impl RuleSpec {
    /// These packets are routed by `table`. Rules with a smaller `priority` come first.
    pub fn new(selector: RuleSelector, table: u32, priority: u32) -> Self {
        Self {
            selector,
            table,
            priority,
        }
    }
}

impl TableEntry for RuleSpec {
    type Message = RuleMessage;
    const ADD: fn(RuleMessage) -> RouteNetlinkMessage = RouteNetlinkMessage::NewRule;
    const DELETE: fn(RuleMessage) -> RouteNetlinkMessage = RouteNetlinkMessage::DelRule;

    fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        let (v4, selected) = match self.selector {
            RuleSelector::From(source, prefix) => {
                message.header.src_len = prefix;
                (source.is_ipv4(), Some(RuleAttribute::Source(source)))
            }
            RuleSelector::To(to, prefix) => {
                message.header.dst_len = prefix;
                (to.is_ipv4(), Some(RuleAttribute::Destination(to)))
            }
            RuleSelector::AllV4 => (true, None),
            RuleSelector::AllV6 => (false, None),
            RuleSelector::MarkedV4(mark) => (true, Some(RuleAttribute::FwMark(mark))),
            RuleSelector::MarkedV6(mark) => (false, Some(RuleAttribute::FwMark(mark))),
        };
        message.header.family = match v4 {
            true => AddressFamily::Inet,
            false => AddressFamily::Inet6,
        };
        message.header.action = RuleAction::ToTable;
        message.attributes.extend(selected);
        message.attributes.push(RuleAttribute::Table(self.table));
        let priority = RuleAttribute::Priority(self.priority);
        message.attributes.push(priority);
        message
    }
}

impl std::fmt::Display for RuleSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.selector {
            RuleSelector::From(source, prefix) => write!(f, "rule from {source}/{prefix}")?,
            RuleSelector::To(destination, prefix) => write!(f, "rule to {destination}/{prefix}")?,
            RuleSelector::AllV4 | RuleSelector::AllV6 => write!(f, "rule from all")?,
            RuleSelector::MarkedV4(mark) | RuleSelector::MarkedV6(mark) => {
                write!(f, "rule with mark {mark}")?;
            }
        }
        write!(f, " table {}", self.table)
    }
}
