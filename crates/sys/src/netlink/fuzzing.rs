//! What fuzzing targets reach of the kernel's answers.

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;

use super::attribute::find;
use super::raw::NetlinkMessages;
use super::{DeviceInfo, address, route};

/// Reads bytes as one datagram of answers: how many messages are whole.
///
/// # Panics
///
/// When messages are longer than all of the datagram, or what is read of one is not in it.
pub fn answers(datagram: &[u8]) -> usize {
    let (mut count, mut length) = (0, 0);
    for message in (NetlinkMessages { rest: datagram }).map_while(|it| it) {
        count += 1;
        length += message.bytes.len();
        let text = message.error().and_then(|(_, text)| text);
        assert!(text.is_none_or(|it| it.len() <= 3 * message.bytes.len()));
        for kind in 0..16 {
            let found = find(message.body(), kind);
            assert!(found.is_none_or(|it| it.len() < message.body().len()));
        }
        of_routing(message.bytes);
    }
    assert!(length <= datagram.len(), "{length} of {}", datagram.len());
    count
}

/// Reads a message of routing netlink.
fn of_routing(bytes: &[u8]) {
    let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) else {
        return;
    };
    match message.payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
            let index = link.header.index;
            assert_eq!(DeviceInfo::from_message(link).index, index);
        }
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(message)) => {
            let _ = route::read(&message);
        }
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewAddress(message)) => {
            let device = message.header.index;
            assert!(address::read(&message).is_none_or(|it| it.device == device));
        }
        // Rules and neighbours are written and never asked for: they are read as messages,
        // and that is all.
        _ => {}
    }
}
