use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;

use super::*;
use crate::clock::now_ns;

const ROOM: Room = Room {
    incoming: 4,
    incoming_size: 64,
    slots: 2,
    outgoing_size: 32,
};
const TOKEN: Token = Token {
    slot: 1,
    generation: 7,
};
const SECOND: u64 = 1_000_000_000;

/// A ring, and the two ends of a connection; `None`, counted as a skip, where
/// io_uring is not allowed.
fn rig(test: &str) -> Option<(Ring, TcpStream, TcpStream)> {
    let mut ring = match Ring::new(8, ROOM) {
        Ok(ring) => ring,
        Err(error) => {
            plumbline_testkit::skip(test, &format!("no io_uring: {error}"));
            return None;
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    ring.attach(TOKEN.slot, near.as_fd()).unwrap();
    Some((ring, near, listener.accept().unwrap().0))
}

#[test]
fn what_arrives_is_told_again_and_again_and_buffers_come_back() {
    let Some((mut ring, _near, mut far)) = rig("what_arrives_is_told_again_and_again") else {
        return;
    };
    ring.receive(TOKEN).unwrap();
    // More often than there are buffers.
    for round in 0..20_u8 {
        far.write_all(&[round; 10]).unwrap();
        assert_eq!(ring.wait(SECOND).unwrap(), 1);
        let done = ring.completion(0);
        assert_eq!((done.operation, done.token), (Operation::Receive, TOKEN));
        assert!(done.more);
        assert_eq!(ring.received(0), [round; 10]);
    }
    drop(far);
    assert_eq!(ring.wait(SECOND).unwrap(), 1);
    let end = ring.completion(0);
    assert_eq!((end.result, end.more), (0, false));
}

#[test]
fn a_send_goes_out_with_the_next_wait_and_frees_its_buffer() {
    let Some((mut ring, _near, mut far)) = rig("a_send_goes_out_with_the_next_wait") else {
        return;
    };
    assert!(ring.send(TOKEN, b"hello").unwrap());
    assert!(ring.is_sending(TOKEN.slot));
    assert!(!ring.send(TOKEN, b"again").unwrap());
    assert_eq!(ring.wait(SECOND).unwrap(), 1);
    assert_eq!(ring.completion(0).operation, Operation::Send);
    assert_eq!(ring.completion(0).result, 5);
    assert!(!ring.is_sending(TOKEN.slot));
    let mut bytes = [0; 5];
    far.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
    assert!(!ring.send(TOKEN, &[0; 33]).unwrap(), "too long");
}

#[test]
fn a_cancelled_receive_ends() {
    let Some((mut ring, _near, _far)) = rig("a_cancelled_receive_ends") else {
        return;
    };
    ring.receive(TOKEN).unwrap();
    ring.submit().unwrap();
    ring.cancel(Operation::Receive, TOKEN).unwrap();
    let mut ends = Vec::new();
    while ends.len() < 2 {
        let count = ring.wait(SECOND).unwrap();
        assert!(count > 0);
        ends.extend((0..count).map(|index| ring.completion(index)));
    }
    let receive = ends.iter().find(|e| e.operation == Operation::Receive);
    assert_eq!(receive.unwrap().result, -libc::ECANCELED);
}

#[test]
fn room_is_told_once_and_a_wait_lasts_its_nanoseconds() {
    let Some((mut ring, _near, _far)) = rig("room_is_told_once") else {
        return;
    };
    ring.watch_room(TOKEN).unwrap();
    assert_eq!(ring.wait(SECOND).unwrap(), 1);
    assert_eq!(ring.completion(0).operation, Operation::Room);
    let start = now_ns();
    assert_eq!(ring.wait(3_000_000).unwrap(), 0);
    assert!(now_ns() - start >= 3_000_000);
    assert_eq!(ring.wait(0).unwrap(), 0);
}
