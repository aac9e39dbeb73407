//! How requests are written and answers are read.

mod fixed;
mod http;
pub(crate) mod lines;

pub(crate) use fixed::{Fixed, Frame, FrameReader};
pub(crate) use http::Http;
pub use http::body_of;

/// The language of one workload, as the client speaks it.
pub(crate) trait Codec {
    /// How far the answer on one connection has been read.
    type Reader: Default;

    /// Bytes of a request.
    fn length(&self) -> usize;

    /// The bytes of the request with this sequence number from byte `from` on:
    /// all of them, or a good piece. The same number gives the same bytes, so
    /// that a request that went out in part can be gone on with.
    fn encode(&mut self, seq: u64, from: usize) -> &[u8];

    /// Reads on, at most to the end of one answer, and gives how many bytes it
    /// took. The answer may be cut into pieces at any byte.
    fn decode(&mut self, reader: &mut Self::Reader, bytes: &[u8]) -> (usize, Step);

    /// The stream has ended; whether that completes an answer.
    fn end(&self, reader: &mut Self::Reader) -> Option<Answer>;
}

/// How far the reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// In the midst of an answer; all bytes were taken.
    More,
    /// An answer is complete.
    Answer(Answer),
    /// This is not the language. The connection is of no use any more.
    Garbage,
}

/// A complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Which request it says it answers, where the language says so.
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
    /// Another content or size than asked for.
    Corrupt,
    /// Well-formed, but a refusal (an HTTP status other than 2xx).
    Refusal,
}
