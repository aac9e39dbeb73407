//! The blocking socket of routing netlink.

use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::RouteNetlinkMessage;

use super::NetlinkError;
use super::raw::Raw;

pub(super) use super::raw::Verb;

/// A routing netlink socket. It always belongs to the network namespace of the
/// thread that opened it; any thread may use it.
#[derive(Debug)]
pub struct NetlinkSocket(Raw);

impl NetlinkSocket {
    /// Opens a socket in the network namespace of the calling thread.
    pub fn open() -> Result<Self, NetlinkError> {
        Raw::open(libc::NETLINK_ROUTE).map(Self)
    }

    /// Sends a request and waits for the kernel's acknowledgement.
    pub(super) fn execute(
        &self,
        verb: Verb,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<(), NetlinkError> {
        self.exchange(verb, message, flags | NLM_F_ACK, |_| {})
    }

    /// Sends a request and gives every answer to `each`: one for a plain
    /// request, many for a dump.
    pub(super) fn query(
        &self,
        verb: Verb,
        message: RouteNetlinkMessage,
        dump: bool,
        each: impl FnMut(RouteNetlinkMessage),
    ) -> Result<(), NetlinkError> {
        let flags = if dump { NLM_F_DUMP } else { NLM_F_ACK };
        self.exchange(verb, message, flags, each)
    }

    fn exchange(
        &self,
        verb: Verb,
        message: RouteNetlinkMessage,
        flags: u16,
        mut each: impl FnMut(RouteNetlinkMessage),
    ) -> Result<(), NetlinkError> {
        let mut body = vec![0; message.buffer_len()];
        message.serialize(&mut body);
        self.0
            .exchange(verb, message.message_type(), flags, &body, |answer| {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(answer.bytes)?;
                if let NetlinkPayload::InnerMessage(inner) = message.payload {
                    each(inner);
                }
                Ok(())
            })
    }
}

impl AsFd for NetlinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
