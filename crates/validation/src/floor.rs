//! Bare loops: what no generator can go below on this machine, so that our
//! engine's own share is measured against them (L-13).
//!
//! One is of blocking reads and writes over one TCP connection; the other asks
//! an HTTP server over many connections, which is what the kernel alone asks of
//! a client for each request.

mod connection;
mod many;
mod ping;

pub use connection::FloorError;
pub use many::{AnswerRate, ask};
pub use ping::{answer, ping};
