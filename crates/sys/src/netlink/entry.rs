//! What is added to a namespace, and deleted again as it was added.

use std::fmt::Display;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;

use super::socket::Verb;
use super::{NetlinkError, NetlinkSocket};

/// An entry of one of the kernel's tables: an address, a route, a rule, a neighbour.
/// It is shown as errors name it.
pub trait TableEntry: Display {
    /// The library's message for it.
    type Message;
    /// The request that adds it.
    const ADD: fn(Self::Message) -> RouteNetlinkMessage;
    /// The request that deletes it.
    const DELETE: fn(Self::Message) -> RouteNetlinkMessage;
    /// What becomes of one that is there already: it is an error.
    const FLAGS: u16 = NLM_F_CREATE | NLM_F_EXCL;

    /// Describes it to the kernel.
    fn message(&self) -> Self::Message;
}

impl NetlinkSocket {
    /// Adds an entry.
    pub fn add<E: TableEntry>(&self, entry: &E) -> Result<(), NetlinkError> {
        let verb = Verb::new("add", entry.to_string());
        self.execute(verb, E::ADD(entry.message()), E::FLAGS)
    }

    /// Deletes an entry.
    pub fn delete<E: TableEntry>(&self, entry: &E) -> Result<(), NetlinkError> {
        let verb = Verb::new("delete", entry.to_string());
        self.execute(verb, E::DELETE(entry.message()), 0)
    }
}
