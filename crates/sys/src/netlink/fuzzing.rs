//! What fuzzing targets reach of the kernel's answers.

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;

use super::attribute::find;
use super::raw::NetlinkMessages;
use super::{DeviceInfo, address, route};

/// Reads bytes as one datagram of answers: what each message is that is whole.
///
/// # Panics
///
/// When messages are longer than all of the datagram, or what is read of one is not in it.
pub fn answers(datagram: &[u8]) -> Vec<&'static str> {
    let (mut kinds, mut length) = (Vec::new(), 0);
    for message in (NetlinkMessages { rest: datagram }).map_while(|it| it) {
        length += message.bytes.len();
        let error = message.error();
        kinds.extend(error.is_some().then_some("error"));
        let text = error.and_then(|(_, text)| text);
        assert!(text.is_none_or(|it| it.len() <= 3 * message.bytes.len()));
        for kind in 0..16 {
            let found = find(message.body(), kind);
            assert!(found.is_none_or(|it| it.len() < message.body().len()));
        }
        kinds.extend(of_routing(message.bytes));
    }
    assert!(length <= datagram.len(), "{length} of {}", datagram.len());
    kinds
}

/// Reads a message of routing netlink: what it is.
fn of_routing(bytes: &[u8]) -> Option<&'static str> {
    let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes).ok()?;
    let NetlinkPayload::InnerMessage(message) = message.payload else {
        return None;
    };
    match message {
        RouteNetlinkMessage::NewLink(link) => {
            let index = link.header.index;
            assert_eq!(DeviceInfo::from_message(link).index, index);
            Some("device")
        }
        RouteNetlinkMessage::NewRoute(message) => route::read(&message).map(|_| "route"),
        RouteNetlinkMessage::NewAddress(message) => {
            let device = message.header.index;
            let address = address::read(&message)?;
            assert_eq!(address.device, device);
            Some("address")
        }
        // These are written and never asked for: they are read as messages, and that is all.
        RouteNetlinkMessage::NewRule(_) => Some("rule"),
        RouteNetlinkMessage::NewNeighbour(_) => Some("neighbour"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::seed;

    #[test]
    fn every_kind_of_answer_is_read_in_a_seed() {
        let seeds = [
            ("link", "device"),
            ("route", "route"),
            ("address", "address"),
            ("rule", "rule"),
            ("neighbour", "neighbour"),
            ("error", "error"),
        ];
        for (name, kind) in seeds {
            let kinds = answers(&seed(&format!("netlink/{name}")));
            assert!(kinds.contains(&kind), "{name}: {kind} not in {kinds:?}");
        }
    }
}
