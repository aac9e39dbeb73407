//! HTTP over many connections in the least code: wait, read, write, and
//! nothing else. Nothing is parsed, timed or recorded; whatever arrives on a
//! connection is taken for one whole answer, which holds for small bodies.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration;

use plumbline_experiment::DriverChoice;
use plumbline_sys::clock::now_ns;
use plumbline_sys::poll::{Interest, Poller, Trigger};
use plumbline_sys::ring::{Operation, Ring, Room, Token};
use serde::Serialize;

use super::connection::{FloorError, connect};

/// Bytes read at once.
const BUFFER: usize = 4 << 10;
/// Longest sleep: a server that has died must not hold us for ever.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Buffers that a ring receives into, and operations that it takes at once.
const BUFFERS: u16 = 256;
const ENTRIES: u32 = 512;

/// What came of the asking.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AnswerRate {
    /// Answers that were seen.
    pub requests: u64,
    /// Answers per second.
    pub rate: f64,
}

/// Asks an HTTP server for `/` over so many connections for `length`.
///
/// # Errors
///
/// The server cannot be reached, or hangs up; io_uring is not allowed.
pub fn ask(
    address: SocketAddr,
    connections: usize,
    driver: DriverChoice,
    length: Duration,
) -> Result<AnswerRate, FloorError> {
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut streams = Vec::with_capacity(connections);
    for _ in 0..connections {
        let stream = connect(address)?;
        stream.set_nonblocking(true)?;
        streams.push(stream);
    }
    let start = now_ns();
    let end = start + length.as_nanos() as u64;
    let requests = match driver {
        DriverChoice::Uring => by_uring(&streams, request.as_bytes(), end)?,
        DriverChoice::Auto | DriverChoice::Epoll => by_epoll(&streams, request.as_bytes(), end)?,
    };
    let seconds = (now_ns() - start) as f64 * 1e-9;
    Ok(AnswerRate {
        requests,
        rate: requests as f64 / seconds,
    })
}

/// Gives the number of answers until the clock reaches `end`. By edges:
/// what is reported as long as it is ready is looked at twice.
fn by_epoll(streams: &[TcpStream], request: &[u8], end: u64) -> Result<u64, FloorError> {
    let mut poller = Poller::new(streams.len())?;
    for (token, stream) in streams.iter().enumerate() {
        poller.add(stream.as_fd(), token as u64, Interest::Read, Trigger::Edge)?;
        (&mut &*stream).write_all(request)?;
    }
    let mut buffer = [0; BUFFER];
    let mut answers = 0;
    while now_ns() < end {
        let ready = poller.wait(PATIENCE_NS)?;
        for index in 0..ready {
            let mut stream = &streams[poller.ready(index).token as usize];
            if stream.read(&mut buffer)? == 0 {
                return Err(FloorError::Closed);
            }
            stream.write_all(request)?;
        }
        answers += ready as u64;
    }
    Ok(answers)
}

/// The same by io_uring: one standing receive for each connection, and all
/// requests of a turn in the call that waits for the next answers.
fn by_uring(streams: &[TcpStream], request: &[u8], end: u64) -> Result<u64, FloorError> {
    let room = Room {
        incoming: BUFFERS,
        incoming_size: BUFFER as u32,
        slots: streams.len(),
        outgoing_size: request.len(),
    };
    let mut ring = Ring::new(ENTRIES, room).map_err(FloorError::Ring)?;
    for (slot, stream) in streams.iter().enumerate() {
        ring.attach(slot as u32, stream.as_fd())?;
        ring.receive(token(slot))?;
        ring.send(token(slot), request)?;
    }
    let mut answers = 0;
    while now_ns() < end {
        for index in 0..ring.wait(PATIENCE_NS)? {
            let done = ring.completion(index);
            if done.result <= 0 {
                return Err(FloorError::Closed);
            }
            if done.operation != Operation::Receive {
                continue;
            }
            answers += 1;
            let slot = done.token.slot as usize;
            if !done.more {
                ring.receive(token(slot))?;
            }
            if !ring.send(token(slot), request)? {
                return Err(FloorError::Early);
            }
        }
    }
    Ok(answers)
}

fn token(slot: usize) -> Token {
    Token {
        slot: slot as u32,
        generation: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers whatever comes with the same bytes, for two connections.
    fn server() -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        for _ in 0..2 {
            let listener = listener.try_clone().unwrap();
            std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut buffer = [0; 256];
                while matches!(stream.read(&mut buffer), Ok(1..)) {
                    if stream.write_all(b"answer").is_err() {
                        break;
                    }
                }
            });
        }
        address
    }

    fn connect(address: std::net::SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    }

    #[test]
    fn both_loops_get_answers() {
        let address = server();
        let streams = [connect(address), connect(address)];
        let length = 500_000_000;
        assert!(by_epoll(&streams, b"request", now_ns() + length).unwrap() > 100);
        // What the first loop left on its way would be taken for a failure.
        let address = server();
        let streams = [connect(address), connect(address)];
        match by_uring(&streams, b"request", now_ns() + length) {
            Ok(answers) => assert!(answers > 100, "{answers}"),
            Err(error) => assert!(error.to_string().contains("not allowed"), "{error:#}"),
        }
    }
}
