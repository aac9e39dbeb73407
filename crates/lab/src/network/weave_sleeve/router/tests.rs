use std::net::SocketAddrV4;

use super::super::format::{ETHERNET, UDP_HEADER, UDP_OVERHEAD};
use super::super::too_long::checksum;
use super::*;

const OWN: Peer = Peer {
    name: [2, 0, 0, 0, 0, 1],
    address: SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 1), 6783),
};
const PEER: Peer = Peer {
    name: [2, 0, 0, 0, 0, 2],
    address: SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 2), 6783),
};

/// A frame with a packet of `length` bytes; `whole` sets its DF flag.
fn frame(length: usize, whole: bool) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET + length];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 8]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[ETHERNET] = 0x45;
    frame[ETHERNET + 6] = if whole { 0x40 } else { 0 };
    frame[ETHERNET + 12..ETHERNET + 16].copy_from_slice(&[198, 19, 1, 2]);
    frame[ETHERNET + 16..ETHERNET + 20].copy_from_slice(&[198, 19, 2, 2]);
    frame
}

fn frames(datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    unpack(datagram, PEER.name, OWN.name, |frame| {
        frames.push(frame.to_vec());
    });
    frames
}

#[test]
fn what_is_packed_is_unpacked() {
    let mut message = Message::new(OWN, PEER, 1500);
    let sent = [frame(100, true), frame(28, true), frame(300, true)];
    for frame in &sent {
        message.add(frame, true);
    }
    assert_eq!(message.frames, 3);
    let datagram = &message.bytes[UDP_HEADER..message.length];
    assert_eq!(frames(datagram), sent);
}

#[test]
fn the_longest_packet_fills_the_underlay() {
    let message = Message::new(OWN, PEER, 1500);
    assert_eq!(message.mtu, 1438);
    assert_eq!(message.fate(&frame(1438, true)), Fate::Whole);
    assert_eq!(message.fate(&frame(1439, true)), Fate::TooLong);
    assert_eq!(message.fate(&frame(9000, false)), Fate::Any);
    let mut message = Message::new(OWN, PEER, 1500);
    message.add(&frame(1438, true), true);
    assert_eq!(message.length - UDP_HEADER + UDP_OVERHEAD, 1500);
}

#[test]
fn a_torn_datagram_gives_what_is_whole() {
    let mut message = Message::new(OWN, PEER, 1500);
    message.add(&frame(50, true), true);
    let whole = message.length;
    message.add(&frame(60, true), true);
    for length in whole..message.length {
        let datagram = &message.bytes[UDP_HEADER..length];
        assert_eq!(frames(datagram), [frame(50, true)], "{length}");
    }
    assert!(frames(&[]).is_empty());
    unpack(
        &message.bytes[UDP_HEADER..whole],
        OWN.name,
        OWN.name,
        |_| panic!("of somebody else"),
    );
}

#[test]
fn a_frame_that_is_too_long_is_answered() {
    let long = frame(9000, true);
    let mut buffer = [0; ANSWER];
    let answer = too_long(&long, 1438, &mut buffer).expect("answered");
    assert_eq!(answer.len(), ETHERNET + 20 + 8 + 28);
    assert_eq!(answer[..6], long[6..12]);
    assert_eq!(answer[6..12], long[..6]);
    let (ip, icmp) = answer[ETHERNET..].split_at(20);
    assert_eq!(checksum(ip), 0);
    assert_eq!(checksum(icmp), 0);
    assert_eq!(ip[12..16], [198, 19, 2, 2]);
    assert_eq!(ip[16..20], [198, 19, 1, 2]);
    assert_eq!(icmp[..2], [3, 4]);
    assert_eq!(icmp[6..8], 1438u16.to_be_bytes());
    assert_eq!(icmp[8..], long[ETHERNET..ETHERNET + 28]);

    let mut to_many = long;
    to_many[0] = 0xff;
    assert_eq!(too_long(&to_many, 1438, &mut buffer), None);
    assert_eq!(too_long(&[0; 20], 1438, &mut buffer), None);
}
