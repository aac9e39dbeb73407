//! Single connections that are tried, to see whether something lets them through: one agent
//! listens, another one connects.

use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_protocol::FromAgent;

use crate::job::JobOutcome;

/// How long an address may stay in use after the receiver there was stopped.
const IN_USE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// What an agent listens on so that connections can be tried. Nobody accepts them: the
/// kernel answers.
#[derive(Clone, Default)]
pub(crate) struct Listening(Arc<Mutex<Vec<TcpListener>>>);

impl Listening {
    /// Listens at these addresses, and no longer at those of before.
    pub(crate) fn listen(&self, addresses: &[SocketAddr]) -> JobOutcome {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.clear();
        for address in addresses {
            let bound = bind(*address);
            let listener =
                bound.map_err(|error| format!("nobody can listen at {address}: {error}"))?;
            open.push(listener);
        }
        Ok(FromAgent::Listens)
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    let started = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && started.elapsed() < IN_USE => {
                thread::sleep(PAUSE);
            }
            bound => return bound,
        }
    }
}

/// Tries a connection for so long.
pub(crate) fn connect(address: SocketAddr, limit: Duration) -> JobOutcome {
    let refused = match TcpStream::connect_timeout(&address, limit) {
        Ok(_) => None,
        Err(error) if is_refusal(&error) => Some(error.to_string()),
        Err(error) => {
            return Err(format!("no connection to {address} can be tried: {error}").into());
        }
    };
    Ok(FromAgent::Tried { refused })
}

/// Whether something on the way has dropped or rejected a connection, as opposed to what
/// keeps it from being tried.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::TimedOut
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    fn refused(address: SocketAddr) -> Option<String> {
        match connect(address, LIMIT).unwrap() {
            FromAgent::Tried { refused } => refused,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_connection_arrives_as_long_as_somebody_listens() {
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let address = address.unwrap();
        let listening = Listening::default();
        listening.listen(&[address]).unwrap();
        assert_eq!(refused(address), None);
        listening.listen(&[]).unwrap();
        assert!(refused(address).is_some());
    }

    #[test]
    fn an_address_of_nobody_here_is_an_error() {
        // Of those that RFC 5737 set aside for documentation.
        let error = Listening::default().listen(&["192.0.2.1:7".parse().unwrap()]);
        assert!(error.unwrap_err().to_string().contains("192.0.2.1:7"));
    }
}
