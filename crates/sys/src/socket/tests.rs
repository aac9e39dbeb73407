use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::*;
use crate::poll::{Interest, Poller, Trigger};

fn loopback() -> [SocketAddr; 2] {
    [
        (Ipv4Addr::LOCALHOST, 0).into(),
        (Ipv6Addr::LOCALHOST, 0).into(),
    ]
}

/// Repeats a call that says `WouldBlock` for at most 20 s.
fn patiently<T>(mut call: impl FnMut() -> io::Result<T>) -> T {
    let start = Instant::now();
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                assert!(start.elapsed() < Duration::from_secs(20), "nothing came");
                std::thread::yield_now();
            }
            other => return other.unwrap(),
        }
    }
}

#[test]
fn tcp_carries_bytes_both_ways() {
    for at in loopback() {
        let listener = Socket::listen_tcp(at, false).unwrap();
        let near = Socket::connect_tcp(listener.local_addr().unwrap(), None).unwrap();
        let far = patiently(|| listener.accept());
        assert!(near.take_error().unwrap().is_none());
        assert_eq!(patiently(|| near.send(b"ping")), 4);
        let mut buffer = [0; 16];
        assert_eq!(patiently(|| far.receive(&mut buffer)), 4);
        assert_eq!(&buffer[..4], b"ping");
        patiently(|| far.send(b"pong!"));
        assert_eq!(patiently(|| near.receive(&mut buffer)), 5);
        drop(far);
        assert_eq!(patiently(|| near.receive(&mut buffer)), 0);
        assert!(near.tcp_info().unwrap().bytes_acked >= 4);
    }
}

/// What any process may choose.
#[test]
fn connections_inherit_the_congestion_control_of_who_listens() {
    let allowed = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let allowed = std::fs::read_to_string(allowed).unwrap();
    for name in allowed.split_whitespace() {
        let listener = Socket::listen_tcp(loopback()[0], false).unwrap();
        listener.set_congestion_control(name).unwrap();
        let near = Socket::connect_tcp(listener.local_addr().unwrap(), None).unwrap();
        let far = patiently(|| listener.accept());
        let chosen = far.0.tcp_congestion().unwrap();
        assert!(chosen.starts_with(name.as_bytes()), "{chosen:?}");
        drop(near);
    }
    let listener = Socket::listen_tcp(loopback()[0], false).unwrap();
    let missing = listener.set_congestion_control("none-such").unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_reset_tells_the_other_side_and_frees_the_port() {
    let listener = Socket::listen_tcp(loopback()[0], false).unwrap();
    let at = listener.local_addr().unwrap();
    let near = Socket::connect_tcp(at, None).unwrap();
    let far = patiently(|| listener.accept());
    let port = near.local_addr().unwrap();
    near.reset().unwrap();
    let error = far.receive(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    // A port that waits for late packets is not to be had.
    std::net::TcpListener::bind(port).unwrap();
}

#[test]
fn a_refused_connection_is_told_by_take_error() {
    let listener = Socket::listen_tcp(loopback()[0], false).unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let refused = match Socket::connect_tcp(nobody, None) {
        Err(e) => e,
        Ok(socket) => {
            let mut poller = Poller::new(1).unwrap();
            poller
                .add(socket.as_fd(), 0, Interest::ReadWrite, Trigger::Edge)
                .unwrap();
            poller.wait(1_000_000_000).unwrap();
            socket.take_error().unwrap().unwrap()
        }
    };
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn datagrams_go_out_and_come_back_in_batches() {
    for at in loopback() {
        let far = Socket::bind_udp(at, false).unwrap();
        let near = Socket::connect_udp(far.local_addr().unwrap(), None).unwrap();
        let mut out = Messages::new(8, 32);
        for i in 0..5_u8 {
            out.push(10 + usize::from(i)).fill(i);
        }
        assert_eq!(near.send_messages(&mut out, 0).unwrap(), 5);
        let mut received = Messages::new(8, 32);
        assert_eq!(patiently(|| far.receive_messages(&mut received)), 5);
        let mut replies = Messages::new(8, 32);
        for i in 0..5 {
            let message = received.get(i);
            assert_eq!(message, vec![i as u8; 10 + i]);
            replies.push_reply(&received, i, 3).fill(b'a' + i as u8);
        }
        assert_eq!(far.send_messages(&mut replies, 1).unwrap(), 4);
        assert_eq!(patiently(|| near.receive_messages(&mut received)), 4);
        assert_eq!(received.get(0), b"bbb");
    }
}

#[test]
fn two_sockets_share_a_port_only_when_both_ask() {
    let first = Socket::bind_udp(loopback()[0], true).unwrap();
    let at = first.local_addr().unwrap();
    assert!(Socket::bind_udp(at, true).is_ok());
    assert!(Socket::bind_udp(at, false).is_err());
}

#[test]
fn a_train_arrives_whole_and_is_taken_apart() {
    const SIZE: usize = 100;
    for at in loopback() {
        let far = Socket::bind_udp(at, false).unwrap();
        far.accept_trains().unwrap();
        let near = Socket::connect_udp(far.local_addr().unwrap(), None).unwrap();
        let mut sent = Messages::new(8, SIZE);
        for number in 0..8 {
            sent.push(SIZE).fill(number);
        }
        assert_eq!(near.send_train(&sent, 3, 5).unwrap(), 5);
        // The second one comes by itself.
        assert_eq!(near.send_train(&sent, 0, 1).unwrap(), 1);
        let mut received = Messages::for_trains(4);
        let mut numbers = Vec::new();
        while numbers.len() < 6 {
            patiently(|| far.receive_messages(&mut received));
            for index in 0..received.len() {
                for datagram in received.datagrams(index) {
                    assert_eq!(datagram.len(), SIZE);
                    assert!(datagram.iter().all(|&byte| byte == datagram[0]));
                    numbers.push(datagram[0]);
                }
            }
        }
        assert_eq!(numbers, [3, 4, 5, 6, 7, 0]);
    }
}

#[test]
fn a_receiver_that_knows_no_trains_gets_single_datagrams() {
    let far = Socket::bind_udp(loopback()[0], false).unwrap();
    let near = Socket::connect_udp(far.local_addr().unwrap(), None).unwrap();
    let mut sent = Messages::new(3, 64);
    for _ in 0..3 {
        sent.push(64);
    }
    near.send_train(&sent, 0, 3).unwrap();
    let mut received = Messages::new(8, 65);
    assert_eq!(patiently(|| far.receive_messages(&mut received)), 3);
    assert_eq!(received.datagrams(1).count(), 1);
    assert_eq!(received.get(2).len(), 64);
}

#[test]
fn a_connection_starts_from_the_address_asked_for() {
    let listener = Socket::listen_tcp(loopback()[0], false).unwrap();
    let to = listener.local_addr().unwrap();
    let from = "127.0.0.7".parse().unwrap();
    let near = Socket::connect_tcp(to, Some(from)).unwrap();
    assert_eq!(near.local_addr().unwrap().ip(), from);
    assert!(near.path_mtu().unwrap() >= 1_280);
    let foreign = "192.0.2.1".parse().unwrap();
    let error = Socket::connect_udp(to, Some(foreign)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
}

#[test]
fn a_send_without_a_copy_is_told_of_and_loopback_copies_it() {
    static BYTES: [u8; 100_000] = [7; 100_000];
    for at in loopback() {
        let listener = Socket::listen_tcp(at, false).unwrap();
        let near = Socket::connect_tcp(listener.local_addr().unwrap(), None).unwrap();
        let far = patiently(|| listener.accept());
        near.allow_zero_copy().unwrap();
        let sent = patiently(|| near.send_zero_copy(&BYTES)).unwrap();
        let (mut got, mut buffer) = (0, vec![0; 65_536]);
        while got < sent {
            let count = patiently(|| far.receive(&mut buffer));
            assert!(buffer[..count].iter().all(|&byte| byte == 7));
            got += count;
        }
        let told = ZeroCopyNotice {
            sends: 1,
            copied: true,
        };
        assert_eq!(patiently(|| near.zero_copy_notice()), told);
        let none = near.zero_copy_notice().unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        assert!(near.tcp_info().unwrap().established);
    }
}
