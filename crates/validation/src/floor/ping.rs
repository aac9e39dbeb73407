//! Blocking reads and writes over one TCP connection.

use std::convert::Infallible;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use plumbline_record::Histogram;
use plumbline_sys::clock::now_ns;

use super::connection::{FloorError, connect};

/// Round trips before those that count.
const WARM_UP: u32 = 1_000;

/// Answers one client after the other, `size` bytes each way, until the process
/// is ended from outside.
///
/// # Errors
///
/// The address is taken, or a connection cannot be accepted.
pub fn answer(address: SocketAddr, size: usize) -> Result<Infallible, FloorError> {
    let listener =
        TcpListener::bind(address).map_err(|source| FloorError::Listen { address, source })?;
    let mut bytes = vec![0; size];
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        // The client hangs up when it has seen enough.
        while stream.read_exact(&mut bytes).is_ok() && stream.write_all(&bytes).is_ok() {}
    }
}

/// Round trips of `size` bytes each way for `length`, in nanoseconds.
///
/// # Errors
///
/// The server cannot be reached, or hangs up.
pub fn ping(address: SocketAddr, size: usize, length: Duration) -> Result<Histogram, FloorError> {
    let mut stream = connect(address)?;
    let mut bytes = vec![0; size];
    let mut latency = Histogram::new();
    let mut round_trip = || -> io::Result<(u64, u64)> {
        let sent = now_ns();
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)?;
        Ok((sent, now_ns()))
    };
    for _ in 0..WARM_UP {
        round_trip()?;
    }
    let end = now_ns() + length.as_nanos() as u64;
    loop {
        let (sent, received) = round_trip()?;
        latency.record(received - sent);
        if received >= end {
            return Ok(latency);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_takes_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        std::thread::spawn(move || answer(address, 16));
        // It may not listen yet.
        let mut tries = (0..400).map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            ping(address, 16, Duration::from_millis(50))
        });
        let latency = tries.find_map(Result::ok).expect("it listens");
        assert!(!latency.is_empty() && latency.value_at(0.5) > 1_000);
    }
}
