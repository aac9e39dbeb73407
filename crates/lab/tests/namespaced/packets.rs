//! Real packets between the two ends of a path.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use plumbline_harness::Path;
use plumbline_lab::{Place, Pod, StandingNetwork};
use plumbline_sys::fragment;

const PATIENCE: Duration = Duration::from_secs(20);
const BULK_BYTES: usize = 8 << 20;
const UDP_HEADER: u32 = 8;
/// `EMSGSIZE`, which has no stable kind in the standard library.
const MESSAGE_SIZE: i32 = 90;

/// One end of a path.
pub(crate) struct End<'a> {
    place: &'a Place,
    address: IpAddr,
}

pub(crate) fn client(standing: &StandingNetwork) -> End<'_> {
    End {
        place: standing.client_place(),
        address: Path::client(standing).address(),
    }
}

pub(crate) fn server(standing: &StandingNetwork) -> End<'_> {
    End {
        place: standing.server_place(),
        address: Path::server(standing).address(),
    }
}

/// A pod, where it is reached from within the network.
pub(crate) fn pod(pod: &Pod) -> End<'_> {
    End {
        place: &pod.place,
        address: pod.reached_by(),
    }
}

impl End<'_> {
    fn listener(&self) -> TcpListener {
        let bind = || TcpListener::bind((self.address, 0));
        self.place
            .namespace
            .run(bind)
            .expect("entered")
            .expect("listening")
    }

    fn connect(&self, to: SocketAddr) -> TcpStream {
        let connect = || TcpStream::connect_timeout(&to, PATIENCE);
        let stream = self.place.namespace.run(connect).expect("entered");
        let stream = stream.expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
        stream
    }

    fn socket(&self) -> UdpSocket {
        let bind = || UdpSocket::bind((self.address, 0));
        let socket = self
            .place
            .namespace
            .run(bind)
            .expect("entered")
            .expect("bound");
        socket.set_read_timeout(Some(PATIENCE)).expect("timeout");
        socket
    }
}

/// A connection from one end to the other, with a word each way.
pub(crate) fn tcp_exchange(from: &End<'_>, to: &End<'_>) {
    let listener = to.listener();
    let mut here = from.connect(listener.local_addr().expect("address"));
    let (mut there, peer) = listener.accept().expect("accepted");
    assert_eq!(
        peer.ip(),
        from.address,
        "the source address is the sender's own"
    );
    there.set_read_timeout(Some(PATIENCE)).expect("timeout");
    here.write_all(b"ping").expect("sent");
    let mut word = [0; 4];
    there.read_exact(&mut word).expect("received");
    assert_eq!(&word, b"ping");
    there.write_all(b"pong").expect("sent");
    here.read_exact(&mut word).expect("received");
    assert_eq!(&word, b"pong");
}

/// Datagrams, each answered.
pub(crate) fn udp_exchanges(from: &End<'_>, to: &End<'_>, count: u32) {
    let (here, there) = (from.socket(), to.socket());
    let target = there.local_addr().expect("address");
    let mut buffer = [0; 64];
    for number in 0..count {
        let word = number.to_be_bytes();
        here.send_to(&word, target).expect("sent");
        let (length, source) = receive(&there, &mut buffer);
        assert_eq!(&buffer[..length], &word);
        assert_eq!(source, here.local_addr().expect("address"));
        there.send_to(&buffer[..length], source).expect("answered");
        let (length, _) = receive(&here, &mut buffer);
        assert_eq!(&buffer[..length], &word);
    }
}

/// How many of so many datagrams arrive, none of which is answered. One has to
/// arrive before: until then the neighbours may not have found each other.
pub(crate) fn datagrams_that_arrive(from: &End<'_>, to: &End<'_>, count: u32) -> u32 {
    /// Far longer than a datagram is on its way here.
    const SILENCE: Duration = Duration::from_millis(200);
    /// Few enough for the receiver's buffer.
    const AT_ONCE: u32 = 50;
    let (here, there) = (from.socket(), to.socket());
    there.set_read_timeout(Some(SILENCE)).expect("timeout");
    let target = there.local_addr().expect("address");
    let arrive = |count: u32| {
        for number in 0..count {
            here.send_to(&number.to_be_bytes(), target).expect("sent");
        }
        let mut arrived = 0;
        let mut buffer = [0; 64];
        loop {
            match there.recv_from(&mut buffer) {
                Ok(_) => arrived += 1,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return arrived,
            }
        }
    };
    let deadline = Instant::now() + 10 * PATIENCE;
    while arrive(1) == 0 {
        assert!(Instant::now() < deadline, "one arrives");
    }
    (0..count / AT_ONCE).map(|_| arrive(AT_ONCE)).sum()
}

/// The next datagram. Child processes of other tests may interrupt the call.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> (usize, SocketAddr) {
    loop {
        match socket.recv_from(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other.expect("a datagram arrives"),
        }
    }
}

/// Eight mebibytes over one connection; gives how many bytes arrived.
pub(crate) fn tcp_bulk(from: &End<'_>, to: &End<'_>) -> u64 {
    let listener = to.listener();
    let mut here = from.connect(listener.local_addr().expect("address"));
    let sender = std::thread::spawn(move || here.write_all(&vec![0x5a; BULK_BYTES]));
    let (mut there, _) = listener.accept().expect("accepted");
    there.set_read_timeout(Some(PATIENCE)).expect("timeout");
    let received = std::io::copy(&mut there, &mut std::io::sink()).expect("received");
    sender.join().expect("joined").expect("sent");
    assert_eq!(received, BULK_BYTES as u64);
    received
}

/// The largest datagram that `mtu` allows arrives whole; one byte more never
/// arrives, and the sender is told.
pub(crate) fn largest_datagram(from: &End<'_>, to: &End<'_>, mtu: u32) {
    let (here, there) = (from.socket(), to.socket());
    let larger = arrives_whole(&here, &there, mtu);
    let target = there.local_addr().expect("address");
    let refused = here
        .send_to(&larger, target)
        .expect_err("one byte more is refused");
    assert_eq!(refused.raw_os_error(), Some(MESSAGE_SIZE), "{refused}");
    assert_silent(&there);
}

/// As [`largest_datagram`], where only the path knows its MTU: what is too long
/// is lost, and refused once the path has said so.
pub(crate) fn largest_datagram_on_path(from: &End<'_>, to: &End<'_>, mtu: u32) {
    let (here, there) = (from.socket(), to.socket());
    let larger = arrives_whole(&here, &there, mtu);
    let target = there.local_addr().expect("address");
    let deadline = Instant::now() + PATIENCE;
    let refused = loop {
        match here.send_to(&larger, target) {
            Err(refused) => break refused,
            Ok(_) => assert!(Instant::now() < deadline, "the path says nothing"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(refused.raw_os_error(), Some(MESSAGE_SIZE), "{refused}");
    assert_silent(&there);
    let header = if target.is_ipv4() { 20 } else { 40 };
    let fits = &larger[..(mtu - header - UDP_HEADER) as usize];
    here.send_to(fits, target)
        .expect("a packet of the MTU leaves");
}

/// Sends a datagram that fills a packet of `mtu` bytes, and gives one that is a
/// byte longer.
fn arrives_whole(here: &UdpSocket, there: &UdpSocket, mtu: u32) -> Vec<u8> {
    fragment::forbid(here).expect("option");
    let target = there.local_addr().expect("address");
    let header = if target.is_ipv4() { 20 } else { 40 };
    // The length field of IPv4 counts its own header: the loopback device's
    // MTU is one byte more than a packet can have.
    let packet = if target.is_ipv4() {
        mtu.min(65_535)
    } else {
        mtu
    };
    let mut payload = vec![0xa5; (packet - header - UDP_HEADER) as usize];
    here.send_to(&payload, target)
        .expect("a packet of the MTU leaves");
    let mut buffer = vec![0; 70_000];
    let (length, _) = receive(there, &mut buffer);
    assert_eq!(&buffer[..length], &payload[..]);
    payload.push(0xa5);
    payload
}

fn assert_silent(there: &UdpSocket) {
    there.set_nonblocking(true).expect("option");
    let silence = there.recv_from(&mut [0; 1]).expect_err("nothing arrives");
    assert_eq!(silence.kind(), ErrorKind::WouldBlock);
}
