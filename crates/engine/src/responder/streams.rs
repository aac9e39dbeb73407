//! The server's event loop for everything over TCP.
//!
//! A busy connection costs one receive and one send per request, and a wait for
//! each 64 or so. On the machine where this was measured (100 B over HTTP, a
//! veth pair, no profile but `perf record`) 97 % of the CPU is the kernel's way
//! through those two calls; the code here and the calls' stubs are the other 3
//! %, some 0.2 µs of a request. What could still be saved is in the kernel.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_record::ServeResult;
use plumbline_sys::clock::now_ns;
use plumbline_sys::socket::Socket;

use super::connection::ServerConnection;
use super::service::Service;
use crate::driver::{Driver, Epoll, Event, WatchMode};
use crate::error::out_of_files;
use crate::{EngineError, ServePlan};

/// Longest time between two looks at the stop flag.
const NAP_NS: u64 = 5_000_000;
/// Bytes read at once.
const READ_BUFFER: usize = 256 << 10;
/// Connections accepted before others get their turn.
const ACCEPTS: usize = 64;
/// Reads from one connection before others get their turn.
const TURN: usize = 16;
/// The slot of the listening socket; connections follow.
const LISTENER: usize = 0;
/// How often idle connections are looked for.
const SWEEP_NS: u64 = 1_000_000_000;
/// How long a client may take to show the secret.
const SHOW_LIMIT_NS: u64 = 5_000_000_000;

struct Server<'a, S: Service> {
    plan: &'a ServePlan,
    service: S,
    io: Epoll,
    connections: Vec<Option<ServerConnection<S>>>,
    spare: Vec<usize>,
    /// Connections that had their turn and may have more to be read.
    queue: VecDeque<usize>,
    /// A spare file, kept open so that it can be closed to accept one more
    /// connection.
    reserve: Option<Socket>,
    out: Vec<u8>,
    seen: ServeResult,
    /// The last reading of the clock, and when idle connections are looked for next.
    now: u64,
    next_sweep: u64,
}

/// Serves until asked to stop.
pub(super) fn serve<S: Service>(
    service: S,
    plan: &ServePlan,
    listener: Socket,
    stop: &AtomicBool,
) -> Result<ServeResult, EngineError> {
    let io = Epoll::relaxed(1, READ_BUFFER).map_err(EngineError::system("setting up epoll"))?;
    let mut server = Server::new(service, plan, listener, io)
        .map_err(EngineError::system("watching the listening socket"))?;
    while !stop.load(Ordering::Relaxed) {
        server
            .look()
            .map_err(EngineError::system("waiting for the sockets"))?;
    }
    Ok(server.seen)
}

impl<'a, S: Service> Server<'a, S> {
    fn new(service: S, plan: &'a ServePlan, listener: Socket, mut io: Epoll) -> io::Result<Self> {
        let reserve = listener.duplicate().ok();
        io.insert(LISTENER, listener, WatchMode::Queue)?;
        Ok(Self {
            plan,
            service,
            io,
            connections: vec![None],
            spare: Vec::new(),
            queue: VecDeque::new(),
            reserve,
            out: Vec::new(),
            seen: ServeResult::default(),
            now: now_ns(),
            next_sweep: 0,
        })
    }

    /// Waits for events and deals with them.
    fn look(&mut self) -> io::Result<()> {
        self.now = now_ns();
        let nap = if self.queue.is_empty() { NAP_NS } else { 0 };
        for index in 0..self.io.wait(self.now, self.now + nap)? {
            let event = self.io.event(index);
            if event.slot == LISTENER {
                self.accept();
            } else {
                self.event(event);
            }
        }
        for _ in 0..self.queue.len() {
            self.next_in_queue();
        }
        if self.now >= self.next_sweep {
            self.sweep();
            self.next_sweep = self.now + SWEEP_NS;
        }
        Ok(())
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let Some(accepted) = self.io.socket(LISTENER).map(Socket::accept) else {
                return;
            };
            match accepted {
                Ok(socket) => self.admit(socket),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if out_of_files(&e) => {
                    if !self.turn_away() {
                        return;
                    }
                }
                // Gone before it was accepted: the client sees a broken
                // connection. Others go on.
                Err(_) => return,
            }
        }
    }

    /// Accepts a connection in place of the reserve and closes it, so that the
    /// client learns of it at once instead of waiting in the queue. False when
    /// there was none.
    fn turn_away(&mut self) -> bool {
        self.reserve = None;
        let Some(listener) = self.io.socket(LISTENER) else {
            return false;
        };
        let turned_away = listener.accept().is_ok();
        self.seen.turned_away += u64::from(turned_away);
        // Failing again, the next one waits until a connection ends.
        self.reserve = listener.duplicate().ok();
        turned_away && self.reserve.is_some()
    }

    fn admit(&mut self, socket: Socket) {
        let open = self.connections.len() - 1 - self.spare.len();
        if open >= self.plan.connections as usize {
            self.seen.turned_away += 1;
            return;
        }
        let slot = self.spare.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.io.grow(self.connections.len());
            self.connections.len() - 1
        });
        if self.io.insert(slot, socket, WatchMode::Stream).is_err() {
            self.spare.push(slot);
            return;
        }
        let connection = ServerConnection::new(self.plan.secret, self.now);
        self.seen.connections += u64::from(!connection.is_stranger());
        self.connections[slot] = Some(connection);
    }

    fn close(&mut self, slot: usize) {
        self.io.remove(slot);
        self.connections[slot] = None;
        self.spare.push(slot);
    }

    /// Closes the connection of a client that is not ours.
    #[cold]
    fn drop_stranger(&mut self, slot: usize) {
        self.seen.strangers += 1;
        self.close(slot);
    }

    /// Closes connections on which nothing has happened for too long.
    fn sweep(&mut self) {
        for slot in 0..self.connections.len() {
            let Some(connection) = &self.connections[slot] else {
                continue;
            };
            let idle = self.now.saturating_sub(connection.active_ns);
            if connection.is_stranger() && idle > SHOW_LIMIT_NS {
                self.drop_stranger(slot);
            } else if u128::from(idle) > self.plan.idle.as_nanos() {
                self.close(slot);
            }
        }
    }

    fn event(&mut self, event: Event) {
        let slot = event.slot;
        let Some(connection) = &mut self.connections[slot] else {
            return;
        };
        connection.active_ns = self.now;
        let goes_on = if connection.unsent().is_empty() {
            event.readable
        } else {
            event.writable && self.send_unsent(slot)
        };
        if goes_on {
            self.turn(slot, event.hangup);
        }
    }

    fn next_in_queue(&mut self) {
        let Some(slot) = self.queue.pop_front() else {
            return;
        };
        // Another connection may have the slot by now.
        if let Some(connection) = &mut self.connections[slot]
            && std::mem::take(&mut connection.is_queued)
            && connection.unsent().is_empty()
        {
            // Whatever the kernel reported is long past: to the very end.
            self.turn(slot, true);
        }
    }

    /// Reads and answers until there is no more to read, the kernel takes no more, or
    /// others have waited for long enough.
    fn turn(&mut self, slot: usize, hangup: bool) {
        for _ in 0..TURN {
            if !self.step(slot, hangup) {
                return;
            }
        }
        if let Some(connection) = &mut self.connections[slot]
            && !std::mem::replace(&mut connection.is_queued, true)
        {
            self.queue.push_back(slot);
        }
    }

    /// Reads and answers once; true when there may be more.
    #[inline]
    fn step(&mut self, slot: usize, hangup: bool) -> bool {
        let Some(connection) = &mut self.connections[slot] else {
            return false;
        };
        self.out.clear();
        let out = (&mut self.out, self.plan.workload.think_ns);
        let mut more = true;
        if connection.is_behind() {
            connection.catch_up(&mut self.service, out, &mut self.seen);
        } else {
            let received = match self.io.receive(slot) {
                Ok(received) if !received.bytes.is_empty() => received,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                _ => {
                    self.close(slot);
                    return false;
                }
            };
            more = !received.drained || hangup;
            let mut bytes = received.bytes;
            if connection.is_stranger()
                && let Some(secret) = &self.plan.secret
            {
                let Some(rest) = connection.greet(secret, bytes) else {
                    self.drop_stranger(slot);
                    return false;
                };
                self.seen.connections += u64::from(!connection.is_stranger());
                bytes = rest;
            }
            self.seen.bytes_received += bytes.len() as u64;
            connection.read(&mut self.service, bytes, out, &mut self.seen);
        }
        self.send_out(slot) && (more || self.is_behind(slot))
    }

    fn is_behind(&self, slot: usize) -> bool {
        let connection = self.connections[slot].as_ref();
        connection.is_some_and(ServerConnection::is_behind)
    }

    /// Sends the answers just made; true when the connection goes on.
    fn send_out(&mut self, slot: usize) -> bool {
        let mut sent = 0;
        while sent < self.out.len() {
            match self.io.send(slot, &self.out[sent..]) {
                Ok(more) => sent += more,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if let Some(connection) = &mut self.connections[slot] {
                        connection.keep_unsent(&self.out[sent..]);
                    }
                    return false;
                }
                Err(_) => {
                    self.close(slot);
                    return false;
                }
            }
        }
        self.go_on(slot)
    }

    /// Sends what was left; true when all is out and the connection goes on.
    fn send_unsent(&mut self, slot: usize) -> bool {
        while let Some(connection) = &mut self.connections[slot]
            && !connection.unsent().is_empty()
        {
            match self.io.send(slot, connection.unsent()) {
                Ok(sent) => connection.sent(sent),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => {
                    self.close(slot);
                    return false;
                }
            }
        }
        self.go_on(slot)
    }

    /// All answers so far are out: closes a connection that has had its last one.
    fn go_on(&mut self, slot: usize) -> bool {
        let connection = self.connections[slot].as_ref();
        let is_done = connection.is_none_or(ServerConnection::is_done);
        if is_done && connection.is_some() {
            self.close(slot);
        }
        !is_done
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};

    use plumbline_experiment::{Workload, WorkloadKind};

    use super::*;
    use crate::responder::service::RequestStep;

    /// Bytes read at once.
    const READ: usize = 1_024;

    /// Sees to it that its connection is never empty.
    struct Refill(TcpStream);

    impl Service for Refill {
        type Reader = ();
        type Answer = ();

        fn read(
            &mut self,
            (): &mut (),
            bytes: &[u8],
            _: &mut ServeResult,
        ) -> (usize, RequestStep<()>) {
            self.0.write_all(bytes).unwrap();
            (bytes.len(), RequestStep::More)
        }

        fn piece(&mut self, (): (), _: usize) -> &[u8] {
            &[]
        }
    }

    #[test]
    fn a_connection_without_end_takes_turns_with_others() {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Socket::listen_tcp(loopback, false).unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        peer.write_all(&[0; 32 * READ]).unwrap();
        let plan = ServePlan::new(Workload::of_kind(WorkloadKind::Stream), loopback);
        let io = Epoll::relaxed(1, READ).unwrap();
        let mut server = Server::new(Refill(peer), &plan, listener, io).unwrap();
        while server.seen.bytes_received == 0 {
            server.look().unwrap();
        }
        assert_eq!(server.queue.len(), 1);
        // One turn by the event, and one from the queue.
        assert_eq!(server.seen.bytes_received, 2 * (TURN * READ) as u64);
    }
}
