//! Frames that pass a device are seen, in both directions, and no others.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use plumbline_sys::capture::Capture;
use plumbline_sys::namespace::Namespace;
use plumbline_sys::netlink::{AddressSpec, LinkSpec, NeighbourSpec};
use plumbline_testkit as testkit;

const HERE: &str = "198.18.0.1";
const THERE: &str = "198.18.0.2";
const HERE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const THERE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const PATIENCE: Duration = Duration::from_secs(20);

fn end(namespace: &Namespace, device: &str, own: &str, other: &str, mac: [u8; 6]) -> u32 {
    let netlink = namespace.netlink();
    let index = netlink.link(device).expect("there").index;
    netlink.set_link_up(index, true).expect("up");
    let own = own.parse().expect("an address");
    let other = other.parse().expect("an address");
    netlink
        .add(&AddressSpec::new(index, own, 24))
        .expect("address");
    let neighbour = NeighbourSpec::permanent(index, other, mac);
    netlink.add(&neighbour).expect("neighbour");
    index
}

/// Waits until the stack has taken note that a device can carry packets, which
/// it does up to a second after both ends are up; until then it drops them.
fn settle(namespace: &Namespace, device: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !namespace.netlink().link(device).expect("there").running {
        assert!(Instant::now() < deadline, "{device} carries nothing");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All that was captured.
fn frames(capture: &Capture) -> Vec<(bool, Vec<u8>)> {
    let mut buffer = [0; 256];
    let mut frames = Vec::new();
    while let Some(frame) = capture.take(&mut buffer).expect("captured") {
        frames.push((frame.sent, frame.bytes.to_vec()));
    }
    frames
}

#[test]
fn both_directions_of_one_device_are_seen() {
    if !testkit::in_private_namespaces("both directions of one device are seen") {
        return;
    }
    let near = Namespace::create().expect("a namespace");
    let far = Namespace::create().expect("a namespace");
    let peer = LinkSpec::peer("far").mac(THERE_MAC).inside(&far);
    let link = LinkSpec::veth("near", peer).mac(HERE_MAC);
    near.netlink().add_link(link).expect("a pair");
    let device = end(&near, "near", HERE, THERE, THERE_MAC);
    end(&far, "far", THERE, HERE, HERE_MAC);
    settle(&near, "near");
    settle(&far, "far");
    let capture = near.run(|| Capture::open(device)).expect("entered");
    let capture = capture.expect("opened");

    let bind = |namespace: &Namespace, address: &'static str| {
        let socket = namespace.run(|| UdpSocket::bind((address, 0)));
        let socket = socket.expect("entered").expect("bound");
        socket.set_read_timeout(Some(PATIENCE)).expect("timeout");
        socket
    };
    let (here, there) = (bind(&near, HERE), bind(&far, THERE));
    let to_there = there.local_addr().expect("address");
    let to_here = here.local_addr().expect("address");
    here.send_to(b"out", to_there).expect("sent");
    there.send_to(b"back", to_here).expect("sent");
    let own = bind(&near, "127.0.0.1");
    own.send_to(b"loop", own.local_addr().expect("address"))
        .expect("sent");
    let mut word = [0; 8];
    for socket in [&here, &there, &own] {
        socket.recv(&mut word).expect("arrived");
    }

    let frames = frames(&capture);
    let with = |word: &[u8], sent: bool| {
        let is = |it: &&(bool, Vec<u8>)| it.0 == sent && it.1.ends_with(word);
        frames.iter().filter(is).count()
    };
    let counts = (with(b"out", true), with(b"back", false));
    assert_eq!(counts, (1, 1), "{frames:?}");
    let others = with(b"out", false) + with(b"back", true);
    let elsewhere = with(b"loop", true) + with(b"loop", false);
    assert_eq!((others, elsewhere), (0, 0), "{frames:?}");
    let out = frames.iter().find(|it| it.1.ends_with(b"out"));
    let macs = [THERE_MAC, HERE_MAC].concat();
    assert!(out.expect("there").1.starts_with(&macs), "{out:?}");
    assert_eq!(capture.missed().expect("counted"), 0);
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    if !testkit::in_private_namespaces("a device that is not there is an error") {
        return;
    }
    let namespace = Namespace::create().expect("a namespace");
    let refused = namespace.run(|| Capture::open(4711)).expect("entered");
    let error = refused.expect_err("refused");
    assert_eq!(error.raw_os_error(), Some(19), "ENODEV, not {error}");
}
