//! Policy routing rules.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::socket::Verb;
use super::{NetlinkError, Socket};

/// Packets from `source/prefix` are routed by `table`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSpec {
    /// Source network.
    pub source: IpAddr,
    /// Length of its prefix in bits.
    pub prefix: u8,
    /// The table that decides.
    pub table: u32,
    /// Rules with a smaller number come first.
    pub priority: u32,
}

impl RuleSpec {
    fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = match self.source {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.header.src_len = self.prefix;
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Source(self.source),
            RuleAttribute::Table(self.table),
            RuleAttribute::Priority(self.priority),
        ];
        message
    }

    fn verb(&self, action: &'static str) -> Verb {
        let Self {
            source,
            prefix,
            table,
            ..
        } = self;
        Verb::new(action, format!("from {source}/{prefix} table {table}"))
    }
}

impl Socket {
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
