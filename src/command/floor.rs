//! `plumbline floor`: a bare loop of blocking reads and writes over one TCP
//! connection. What it measures no generator can go below on this machine, so
//! it is what our engine's own share is measured against (L-13).
//!
//! With `--http` it is a bare loop over many connections instead: what the
//! kernel alone asks of a client for each request.

mod many;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use plumbline_record::Histogram;
use plumbline_report::latency::latency_json;
use plumbline_sys::clock::now_ns;
use serde_json::json;

use super::print_json;
use crate::cli::FloorArgs;

/// Round trips before those that count.
const WARM_UP: u32 = 1_000;

pub(crate) fn run(args: &FloorArgs) -> anyhow::Result<ExitCode> {
    if args.serve {
        return serve(args.address, args.size);
    }
    if let Some(connections) = args.http {
        return many::run(args, connections);
    }
    let latency = ping(args.address, args.size, Duration::from_secs(args.seconds))?;
    print_json(&json!({ "latency_ns": latency_json(&latency) }))?;
    Ok(ExitCode::SUCCESS)
}

/// Answers one client after the other until it is ended from outside.
fn serve(address: SocketAddr, size: usize) -> anyhow::Result<ExitCode> {
    let listener =
        TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let mut bytes = vec![0; size];
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        // The client hangs up when it has seen enough.
        while stream.read_exact(&mut bytes).is_ok() && stream.write_all(&bytes).is_ok() {}
    }
}

fn ping(address: SocketAddr, size: usize, length: Duration) -> anyhow::Result<Histogram> {
    let mut stream =
        TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_nodelay(true)?;
    let mut bytes = vec![0; size];
    let mut latency = Histogram::new();
    let mut round_trip = || -> std::io::Result<(u64, u64)> {
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
        std::thread::spawn(move || serve(address, 16));
        std::thread::sleep(Duration::from_millis(50));
        let latency = ping(address, 16, Duration::from_millis(50)).unwrap();
        assert!(latency.len() > 10 && latency.value_at(0.5) > 1_000);
    }
}
