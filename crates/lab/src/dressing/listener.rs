//! Something that listens in a place, so that a connection to it can be tried.

use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::Place;

/// How long an address may stay in use after its listener was closed: a process that
/// is being started has all descriptors of this one until it becomes another program.
const IN_USE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

/// Listens at an address in a place.
pub(super) fn listen(place: &Place, address: SocketAddr) -> Result<TcpListener> {
    let started = Instant::now();
    loop {
        let bound = place.namespace.run(|| TcpListener::bind(address));
        match bound.map_err(Error::other)? {
            Err(error) if error.kind() == ErrorKind::AddrInUse && started.elapsed() < IN_USE => {
                thread::sleep(PAUSE);
            }
            bound => return bound,
        }
    }
}
