//! Whether policies act: connections that they allow and forbid are tried. Something
//! listens on every port that is tried, so that one which is refused was refused by a
//! rule.

use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::dressing::listener::listen;
use crate::place::Place;

/// Longest wait for a connection that is allowed. A first packet may be lost.
const ALLOWED: Duration = Duration::from_secs(3);
/// Longest wait for one that is forbidden, on a link without a delay: a thousand times as
/// long as an allowed one takes.
const FORBIDDEN: Duration = Duration::from_millis(100);

/// Connections from one place that policies allow, and such that they forbid.
#[derive(Debug)]
pub(crate) struct Enforcement {
    client: Arc<Place>,
    /// Of the link, to and fro.
    delay: Duration,
    attempts: Vec<Attempt>,
}

/// A connection that is tried.
#[derive(Debug)]
struct Attempt {
    to: Arc<Place>,
    address: SocketAddr,
    is_forbidden: bool,
}

impl Enforcement {
    /// Nothing to try yet, from this place; packets take `delay` to and fro.
    pub(super) fn from(client: &Arc<Place>, delay: Duration) -> Self {
        Self {
            client: Arc::clone(client),
            delay,
            attempts: Vec::new(),
        }
    }

    /// Tries a connection to this address, at which nobody else may listen meanwhile.
    pub(super) fn attempt(&mut self, to: &Arc<Place>, address: SocketAddr, is_forbidden: bool) {
        self.attempts.push(Attempt {
            to: Arc::clone(to),
            address,
            is_forbidden,
        });
    }

    /// Says which connection does not get through although there are no rules yet.
    pub(super) fn check_bare(&self) -> Option<String> {
        let failed = self
            .attempts
            .iter()
            .find_map(|it| Some((it, self.connect(it, ALLOWED).err()?)));
        let (attempt, error) = failed?;
        Some(format!(
            "a connection to {} fails without any policy: {error}",
            attempt.address
        ))
    }

    /// Says which connection gets through that is forbidden, or does not that is allowed;
    /// `None` when the policies do what they have to.
    pub(crate) fn check(&self) -> Option<String> {
        self.attempts.iter().find_map(|it| self.judge(it))
    }

    fn judge(&self, attempt: &Attempt) -> Option<String> {
        let (place, address) = (&attempt.to.name, attempt.address);
        if !attempt.is_forbidden {
            let error = self.connect(attempt, ALLOWED).err()?;
            return Some(format!(
                "a connection to {place}, {address}, that the policies allow did not get \
                 through: {error}"
            ));
        }
        match self.connect(attempt, FORBIDDEN) {
            Err(error) if is_refusal(&error) => None,
            Err(error) => Some(format!(
                "a connection to {place}, {address}, that the policies forbid could not be \
                 tried: {error}"
            )),
            Ok(()) => Some(format!(
                "a connection to {place}, {address}, that the policies forbid got through"
            )),
        }
    }

    fn connect(&self, attempt: &Attempt, limit: Duration) -> Result<()> {
        let (address, limit) = (attempt.address, limit + self.delay);
        let listener = listen(&attempt.to, address)?;
        let stream = self
            .client
            .namespace
            .run(|| TcpStream::connect_timeout(&address, limit));
        let stream = stream.map_err(Error::other)??;
        drop((stream, listener));
        Ok(())
    }
}

/// Whether a rule has dropped or rejected a connection, as opposed to what keeps it from
/// being tried.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::TimedOut
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
    )
}
