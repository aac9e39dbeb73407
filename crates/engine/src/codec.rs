//! How requests are written and answers are read.

mod fixed;
mod http;
pub(crate) mod lines;

pub(crate) use fixed::{Fixed, FixedFrame, FrameReader};
pub(crate) use http::Http;
pub use http::body_of;

/// The client's side of one workload's protocol.
pub(crate) trait Codec {
    /// How far the answer on one connection has been read.
    type Reader: Default;

    /// Bytes of a request.
    fn length(&self) -> usize;

    /// The bytes of the request with this sequence number from byte `from` on:
    /// all of them, or as many as fit. The same number gives the same bytes, so
    /// that a request that went out in part can be continued.
    fn encode(&mut self, seq: u64, from: usize) -> &[u8];

    /// Reads on, at most to the end of one answer, and gives how many bytes it
    /// took. The answer may be cut into pieces at any byte.
    fn decode(&mut self, reader: &mut Self::Reader, bytes: &[u8]) -> (usize, DecodeStep);

    /// The stream has ended; whether that completes an answer.
    fn end(&self, reader: &mut Self::Reader) -> Option<Answer>;

    /// Whether a datagram that is no good answer comes from our receiver.
    fn is_ours(&self, _bytes: &[u8]) -> bool {
        true
    }
}

/// How far the reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeStep {
    /// Inside an answer; all bytes were taken.
    More,
    /// An answer is complete.
    Answer(Answer),
    /// This is not the protocol. The connection is no longer usable.
    Garbage,
}

/// A complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Which request it claims to answer, where the protocol says so.
    pub(crate) seq: Option<u64>,
    /// Payload bytes.
    pub(crate) bytes: u64,
    /// Whether it is what was asked for.
    pub(crate) quality: Quality,
    /// Whether the other side closes the connection after it.
    pub(crate) last: bool,
}

/// Whether an answer is what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quality {
    Good,
    /// Not the content or size that was asked for.
    Corrupt,
    /// Well-formed, but a refusal (an HTTP status other than 2xx).
    Refusal,
}
