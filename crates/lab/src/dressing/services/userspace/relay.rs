//! Connections to services carried on to endpoints, as kube-proxy's proxy in user space
//! carried them (kubernetes/kubernetes, v1.25, `pkg/proxy/userspace/proxysocket.go` and
//! `roundrobin.go`): it accepts a connection, opens one to the service's next endpoint, and
//! copies what comes on either to the other, in pieces of 32 KiB, until one of them ends;
//! then it closes both. Each socket is asked for more until it has none, and then waited
//! for, as Go's runtime does.
//!
//! One thread here; the real one has as many as the machine has CPUs. What newer versions
//! of Go do instead of copying (`splice`) is not modelled, nor are further attempts where
//! an endpoint does not answer.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use plumbline_sys::forwarder::Carrier;
use plumbline_sys::poll::{Interest, Poller, Ready, Trigger};
use plumbline_sys::socket::Socket;

/// Connections to services at a time. One more is closed as soon as it was accepted.
pub(super) const CONNECTIONS: usize = 1_024;

/// Bytes that are read at once (`io.Copy`).
const PIECE: usize = 32 * 1024;
/// Pieces copied of one connection before others have their turn.
const TURN: usize = 16;
/// Sockets reported by one wait.
const EVENTS: usize = 256;
/// Longest time of one wait, in nanoseconds. Nothing happens at its end.
const WAIT_NS: u64 = 3_600_000_000_000;

/// Listens for connections to services, and carries them on.
#[derive(Debug)]
pub(super) struct Relay {
    poller: Poller,
    /// One for each service.
    listeners: Vec<Socket>,
    /// Those of every service.
    endpoints: Vec<SocketAddr>,
    /// By service, how many connections it has had.
    turns: Vec<usize>,
    connections: Vec<Option<Connection>>,
    /// Positions in `connections` that are empty.
    free: Vec<usize>,
    /// Two pieces for each of `connections`.
    buffers: Vec<u8>,
}

/// A connection to a service, and the one that carries it on.
#[derive(Debug)]
struct Connection {
    /// To the client, and to the endpoint.
    ends: [Socket; 2],
    /// Whether the attempt to reach the endpoint has succeeded.
    is_connected: bool,
    /// By the end that it came from, what is in the buffer and still to be sent to the other.
    held: [Range<usize>; 2],
}

/// How copying one way stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    /// Until a socket has something, or room.
    Waits,
    /// Its turn is over.
    Yields,
    /// One of the connections has ended.
    Ended,
}

impl Relay {
    /// Connections to each of `listeners`, one for each service, go to `endpoints` by turns.
    ///
    /// # Errors
    ///
    /// Those of epoll_create1(2) and epoll_ctl(2).
    pub(super) fn new(listeners: Vec<Socket>, endpoints: Vec<SocketAddr>) -> std::io::Result<Self> {
        let poller = Poller::new(EVENTS)?;
        for (service, listener) in listeners.iter().enumerate() {
            let token = service as u64;
            poller.add(listener.as_fd(), token, Interest::Read, Trigger::Level)?;
        }
        Ok(Self {
            poller,
            turns: vec![0; listeners.len()],
            listeners,
            endpoints,
            connections: (0..CONNECTIONS).map(|_| None).collect(),
            free: (0..CONNECTIONS).collect(),
            // The kernel gives a page when it is first written to.
            buffers: vec![0; CONNECTIONS * 2 * PIECE],
        })
    }

    /// Does what one socket is ready for.
    fn react(&mut self, ready: Ready) {
        let token = ready.token as usize;
        let Some(number) = token.checked_sub(self.listeners.len()) else {
            return self.accept(token);
        };
        let (at, end) = (number / 2, number % 2);
        let Some(connection) = self.connections.get_mut(at).and_then(Option::as_mut) else {
            // It has ended since.
            return;
        };
        if !connection.is_connected {
            if end == 0 || !ready.writable {
                return;
            }
            if !matches!(connection.ends[1].take_error(), Ok(None)) {
                return self.close(at);
            }
            connection.is_connected = true;
            self.copy(at, 0);
            return self.copy(at, 1);
        }
        let waits_for_room = !connection.held[1 - end].is_empty();
        if ready.readable {
            self.copy(at, end);
        }
        if ready.writable && waits_for_room {
            self.copy(at, 1 - end);
        }
    }

    /// Takes a connection to a service, and begins one to its next endpoint.
    fn accept(&mut self, service: usize) {
        let Some(Ok(client)) = self.listeners.get(service).map(Socket::accept) else {
            return;
        };
        let Some(at) = self.free.pop() else {
            return;
        };
        self.connections[at] = self.carry_on(service, at, client);
        if self.connections[at].is_none() {
            self.free.push(at);
        }
    }

    /// `None` where the endpoint cannot be asked; the client's connection is closed then.
    fn carry_on(&mut self, service: usize, at: usize, client: Socket) -> Option<Connection> {
        let turn = self.turns.get_mut(service)?;
        let endpoint = *self.endpoints.get(*turn % self.endpoints.len().max(1))?;
        *turn = turn.wrapping_add(1);
        let ends = [client, Socket::connect_tcp(endpoint, None).ok()?];
        for (end, socket) in ends.iter().enumerate() {
            let (token, fd) = (self.token(at, end), socket.as_fd());
            let added = self
                .poller
                .add(fd, token, Interest::ReadWrite, Trigger::Edge);
            added.ok()?;
        }
        Some(Connection {
            ends,
            is_connected: false,
            held: [0..0, 0..0],
        })
    }

    /// Copies what comes from one end to the other.
    fn copy(&mut self, at: usize, end: usize) {
        let token = self.token(at, end);
        let Some(connection) = self.connections.get_mut(at).and_then(Option::as_mut) else {
            return;
        };
        let number = at * 2 + end;
        let Some(buffer) = self.buffers.get_mut(number * PIECE..(number + 1) * PIECE) else {
            return;
        };
        let (from, to) = (&connection.ends[end], &connection.ends[1 - end]);
        match copy(from, to, &mut connection.held[end], buffer) {
            Copied::Waits => {}
            Copied::Yields => {
                let (fd, both) = (from.as_fd(), Interest::ReadWrite);
                if self.poller.renew(fd, token, both, Trigger::Edge).is_err() {
                    self.close(at);
                }
            }
            Copied::Ended => self.close(at),
        }
    }

    fn close(&mut self, at: usize) {
        if self
            .connections
            .get_mut(at)
            .and_then(Option::take)
            .is_some()
        {
            self.free.push(at);
        }
    }

    fn token(&self, at: usize, end: usize) -> u64 {
        (self.listeners.len() + at * 2 + end) as u64
    }
}

/// Copies until a socket has no more, or no room. When it yields, nothing is held.
fn copy(from: &Socket, to: &Socket, held: &mut Range<usize>, buffer: &mut [u8]) -> Copied {
    for piece in 0..=TURN {
        while held.start < held.end {
            match to.send(&buffer[held.clone()]) {
                Ok(sent) => held.start += sent,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Copied::Waits,
                Err(_) => return Copied::Ended,
            }
        }
        if piece == TURN {
            break;
        }
        match from.receive(buffer) {
            Ok(0) => return Copied::Ended,
            Ok(got) => *held = 0..got,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Copied::Waits,
            Err(_) => return Copied::Ended,
        }
    }
    Copied::Yields
}

impl Carrier for Relay {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let listeners = self.listeners.iter().map(Socket::as_fd);
        listeners.chain([self.poller.as_fd()]).collect()
    }

    fn carry(&mut self) {
        while let Ok(ready) = self.poller.wait(WAIT_NS) {
            for event in 0..ready {
                self.react(self.poller.ready(event));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::Duration;

    use plumbline_sys::forwarder::Forwarder;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn loopback() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    /// A relay of so many services, and where each is asked.
    fn started(services: usize, endpoints: &[&TcpListener]) -> (Forwarder, Vec<SocketAddr>) {
        let listen = |_| Socket::listen_tcp(loopback(), false).expect("listens");
        let listeners: Vec<Socket> = (0..services).map(listen).collect();
        let address = |socket: &Socket| socket.local_addr().expect("bound");
        let asked = listeners.iter().map(address).collect();
        let address = |endpoint: &&TcpListener| endpoint.local_addr().expect("bound");
        let endpoints = endpoints.iter().map(address).collect();
        let mut relay = Relay::new(listeners, endpoints).expect("made");
        let forwarder = Forwarder::start(c"relay-test", &mut relay).expect("started");
        (forwarder, asked)
    }

    fn connect(to: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect_timeout(&to, LIMIT).expect("connected");
        stream.set_read_timeout(Some(LIMIT)).expect("set");
        stream.set_write_timeout(Some(LIMIT)).expect("set");
        stream
    }

    /// The connection that a listener gets, within the limit.
    fn accepted(listener: &TcpListener) -> TcpStream {
        listener.set_nonblocking(true).expect("set");
        let began = std::time::Instant::now();
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).expect("set");
                    stream.set_read_timeout(Some(LIMIT)).expect("set");
                    return stream;
                }
                Err(error) => assert!(began.elapsed() < LIMIT, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn endpoints_of_a_service_have_turns_and_an_end_ends_both() {
        let bind = |_| TcpListener::bind(loopback()).expect("bound");
        let endpoints: Vec<TcpListener> = (0..2).map(bind).collect();
        let (_relay, asked) = started(3, &endpoints.iter().collect::<Vec<_>>());
        for endpoint in [0, 1, 0, 1] {
            // Another service has turns of its own.
            let mut streams = [connect(asked[0]), connect(asked[2])];
            let mut ends = [0, 1].map(|_| accepted(&endpoints[endpoint]));
            for stream in &mut streams {
                stream.write_all(b"question").expect("sent");
            }
            for end in &mut ends {
                let mut text = [0; 8];
                end.read_exact(&mut text).expect("came");
                assert_eq!(&text, b"question");
                end.write_all(b"answer").expect("sent");
            }
            drop(ends);
            for mut stream in streams {
                let mut text = String::new();
                stream.read_to_string(&mut text).expect("ended");
                assert_eq!(text, "answer");
            }
        }
    }

    /// Far more than buffers hold, to one who does not read for a while, both ways at once.
    #[test]
    fn nothing_is_lost_where_there_is_no_room() {
        let endpoint = TcpListener::bind(loopback()).expect("bound");
        let (_relay, asked) = started(1, &[&endpoint]);
        let client = connect(asked[0]);
        let server = accepted(&endpoint);
        server.set_write_timeout(Some(LIMIT)).expect("set");
        // No piece begins where another one does.
        let pattern = |from: u8| (from..from + 251).collect::<Vec<u8>>().repeat(100_000);
        let (question, answer) = (pattern(1), pattern(2));
        std::thread::scope(|scope| {
            for (mut stream, all) in [(&client, &question), (&server, &answer)] {
                scope.spawn(move || stream.write_all(all).expect("sent"));
            }
            std::thread::sleep(Duration::from_millis(200));
            for (mut stream, all) in [(&server, &question), (&client, &answer)] {
                scope.spawn(move || {
                    let mut came = vec![0; all.len()];
                    stream.read_exact(&mut came).expect("came");
                    assert!(came == *all, "another order");
                });
            }
        });
    }

    #[test]
    fn an_endpoint_that_is_gone_ends_the_connection() {
        let endpoint = TcpListener::bind(loopback()).expect("bound");
        let (_relay, asked) = started(1, &[&endpoint]);
        drop(endpoint);
        let mut text = Vec::new();
        let read = connect(asked[0]).read_to_end(&mut text);
        assert!(
            matches!(read, Ok(0)) || read.is_err_and(|it| it.kind() == ErrorKind::ConnectionReset)
        );
        assert!(text.is_empty());
    }
}
