//! The server's event loop for everything over TCP.
//!
//! A busy connection costs one receive and one send per request, and a wait for
//! each 64 or so. On the machine where this was measured (100 B over HTTP, a
//! veth pair, no profile but `perf record`) 97 % of the CPU is the kernel's way
//! through those two calls; the code here and the calls' stubs are the other 3
//! %, some 0.2 µs of a request. What could still be saved is in the kernel.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_record::ServeResult;
use plumbline_sys::clock::now_ns;
use plumbline_sys::socket::Socket;

use crate::EngineError;
use crate::driver::{Driver, Epoll, Event, WatchMode};
use crate::error::out_of_files;

/// Longest time between two looks at the stop flag.
const NAP_NS: u64 = 5_000_000;
/// Bytes read at once.
const READ_BUFFER: usize = 256 << 10;
/// Connections accepted before others get their turn.
const ACCEPTS: usize = 64;
/// The slot of the listening socket; connections follow.
const LISTENER: usize = 0;

/// What a server makes of the bytes of its connections.
pub(super) trait Service {
    /// How far the requests of one connection have been read.
    type Reader: Default;

    /// Reads the next bytes of a connection and appends what is to be answered
    /// to `out`.
    fn read(
        &mut self,
        reader: &mut Self::Reader,
        bytes: &[u8],
        out: &mut Vec<u8>,
        seen: &mut ServeResult,
    ) -> Next;
}

/// Whether the connection stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It stays open.
    Keep,
    /// It is closed once the answers are out.
    Close,
}

struct Connection<R> {
    reader: R,
    /// Answers that the kernel would not take yet. While there are any, nothing
    /// more is read: a client that does not take its answers gets no further
    /// ones.
    rest: Vec<u8>,
    /// How many of these the kernel has taken since.
    rest_sent: usize,
    closing: bool,
}

struct Server<S: Service> {
    service: S,
    io: Epoll,
    connections: Vec<Option<Connection<S::Reader>>>,
    spare: Vec<usize>,
    /// A spare file, kept open so that it can be closed to accept one more
    /// connection.
    reserve: Option<Socket>,
    out: Vec<u8>,
    seen: ServeResult,
}

/// Serves until asked to stop.
pub(super) fn serve<S: Service>(
    service: S,
    listener: Socket,
    stop: &AtomicBool,
) -> Result<ServeResult, EngineError> {
    let setup = EngineError::system("setting up epoll");
    let mut io = Epoll::relaxed(1, READ_BUFFER).map_err(setup)?;
    io.insert(LISTENER, listener, WatchMode::Queue)
        .map_err(EngineError::system("watching the listening socket"))?;
    let mut server = Server {
        service,
        io,
        connections: vec![None],
        spare: Vec::new(),
        reserve: None,
        out: Vec::new(),
        seen: ServeResult::default(),
    };
    server.reserve = server
        .io
        .socket(LISTENER)
        .and_then(|it| it.duplicate().ok());
    while !stop.load(Ordering::Relaxed) {
        let now = now_ns();
        let events = server
            .io
            .wait(now, now + NAP_NS)
            .map_err(EngineError::system("waiting for the sockets"))?;
        for index in 0..events {
            let event = server.io.event(index);
            if event.slot == LISTENER {
                server.accept();
            } else {
                server.event(event);
            }
        }
    }
    Ok(server.seen)
}

impl<S: Service> Server<S> {
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
        let slot = self.spare.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.io.grow(self.connections.len());
            self.connections.len() - 1
        });
        if self.io.insert(slot, socket, WatchMode::Stream).is_err() {
            self.spare.push(slot);
            return;
        }
        self.seen.connections += 1;
        self.connections[slot] = Some(Connection {
            reader: S::Reader::default(),
            rest: Vec::new(),
            rest_sent: 0,
            closing: false,
        });
    }

    fn close(&mut self, slot: usize) {
        self.io.remove(slot);
        self.connections[slot] = None;
        self.spare.push(slot);
    }

    fn event(&mut self, event: Event) {
        let slot = event.slot;
        let Some(connection) = &mut self.connections[slot] else {
            return;
        };
        if !connection.rest.is_empty() {
            if !event.writable || !self.send_rest(slot) {
                return;
            }
        } else if !event.readable {
            return;
        }
        self.read(slot, event.hangup);
    }

    /// Sends what was left; true when all is out and the connection goes on.
    fn send_rest(&mut self, slot: usize) -> bool {
        let Some(connection) = &mut self.connections[slot] else {
            return false;
        };
        while connection.rest_sent < connection.rest.len() {
            match self.io.send(slot, &connection.rest[connection.rest_sent..]) {
                Ok(sent) => connection.rest_sent += sent,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => {
                    self.close(slot);
                    return false;
                }
            }
        }
        connection.rest.clear();
        connection.rest_sent = 0;
        if connection.closing {
            self.close(slot);
            return false;
        }
        true
    }

    fn read(&mut self, slot: usize, hangup: bool) {
        while let Some(connection) = &mut self.connections[slot] {
            let received = match self.io.receive(slot) {
                Ok(received) => received,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.close(slot),
            };
            if received.bytes.is_empty() {
                return self.close(slot);
            }
            let drained = received.drained;
            self.out.clear();
            self.seen.bytes_received += received.bytes.len() as u64;
            let next = self.service.read(
                &mut connection.reader,
                received.bytes,
                &mut self.out,
                &mut self.seen,
            );
            connection.closing = next == Next::Close;
            if !self.send_out(slot) || drained && !hangup {
                return;
            }
        }
    }

    /// Sends the answers just made; true when the connection may be read on.
    fn send_out(&mut self, slot: usize) -> bool {
        let Some(connection) = &mut self.connections[slot] else {
            return false;
        };
        let mut sent = 0;
        while sent < self.out.len() {
            match self.io.send(slot, &self.out[sent..]) {
                Ok(more) => sent += more,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    connection.rest.extend_from_slice(&self.out[sent..]);
                    return false;
                }
                Err(_) => {
                    self.close(slot);
                    return false;
                }
            }
        }
        if connection.closing {
            self.close(slot);
            return false;
        }
        true
    }
}
