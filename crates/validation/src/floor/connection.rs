//! A connection of a bare loop, and why it ended.

use std::io;
use std::net::{SocketAddr, TcpStream};

/// Why a bare loop ended early.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FloorError {
    #[error("cannot listen on {address}: {source}; is the port in use?")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot connect to {address}: {source}; does the server run?")]
    Connect {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("a connection failed: {0}; does the server still run?")]
    Stream(#[from] io::Error),
    #[error("io_uring is not allowed here: {0}; use --driver epoll")]
    Ring(#[source] io::Error),
    #[error("the server closed a connection; does it still run?")]
    Closed,
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
