//! A connection of a bare loop, and why it ended.

use std::io;
use std::net::{SocketAddr, TcpStream};

/// Why a bare loop ended early.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FloorError {
    /// The server cannot listen there.
    #[error("cannot listen on {address}: {source}; is the port in use?")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    /// Nobody answers there.
    #[error("cannot connect to {address}: {source}; does the server run?")]
    Connect {
        address: SocketAddr,
        source: io::Error,
    },
    /// A connection failed.
    #[error("a connection failed: {0}; does the server still run?")]
    Stream(#[from] io::Error),
    /// io_uring could not be set up.
    #[error("io_uring is not allowed here: {0}; use --driver epoll")]
    Ring(#[source] io::Error),
    /// The server hung up.
    #[error("the server closed a connection; does it still run?")]
    Closed,
    /// The server answered what had not been asked.
    #[error("an answer came before its request was out; does the server answer in one piece?")]
    Early,
}

/// A connection without delay.
pub(super) fn connect(address: SocketAddr) -> Result<TcpStream, FloorError> {
    let stream =
        TcpStream::connect(address).map_err(|source| FloorError::Connect { address, source })?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
