//! HTTP/1.1 as a client: a GET, and whatever a server may say to it
//! (RFC 9112).
//!
//! The reader allocates nothing, keeps 160 bytes per connection, and takes
//! each byte once. Anything that is not HTTP ends the connection as an error;
//! nothing makes it wait for what cannot come.

mod head;
mod known;
#[cfg(test)]
mod tests;

use super::lines::LineReader;
use super::{Answer, Codec, DecodeStep, Quality};
use crate::LoadPlan;
use crate::pattern::{Pattern, PayloadDirection};
use head::{Head, Stage, Turn};
use known::Known;

/// Most bytes of a head or of a chunk's size line.
const HEAD_LIMIT: usize = 64 << 10;

/// The client's side of `http`.
#[derive(Debug)]
pub(crate) struct Http {
    request: Vec<u8>,
    /// Our responder's body, which every answer must hold; `None` accepts any.
    expected: Option<Vec<u8>>,
    /// The head that was read last, over all connections.
    known: Known,
}

/// How far one response has been read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HttpReader {
    lines: LineReader,
    /// Bytes of the head, or of a chunk's size line, so far.
    head_bytes: usize,
    head: Head,
    body: u64,
    corrupt: bool,
}

impl Http {
    /// Requests of a plan, `shown` before each.
    pub(crate) fn new(plan: &LoadPlan, shown: &[u8]) -> Self {
        let (spec, path) = (&plan.workload, &plan.path);
        let address = plan.target.to_string();
        let authority = plan.authority.as_deref().unwrap_or(&address);
        let close = if spec.keep_alive {
            ""
        } else {
            "Connection: close\r\n"
        };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: plumbline\r\nAccept: */*\r\n{close}\r\n"
        );
        Self {
            request: [shown, request.as_bytes()].concat(),
            expected: plan.verify.then(|| body_of(spec.response_size)),
            known: Known::default(),
        }
    }

    /// Reads a piece of a body.
    #[inline]
    fn take_body(&self, reader: &mut HttpReader, piece: &[u8]) {
        if let Some(expected) = &self.expected
            && !reader.corrupt
        {
            let from = (reader.body as usize).min(expected.len());
            reader.corrupt = !expected[from..].starts_with(piece);
        }
        reader.body += piece.len() as u64;
    }

    fn complete(&self, reader: &mut HttpReader) -> Answer {
        let complete = |expected: &Vec<u8>| expected.len() as u64 == reader.body;
        let quality = if !reader.head.is_success() {
            Quality::Refusal
        } else if reader.corrupt || !self.expected.as_ref().is_none_or(complete) {
            Quality::Corrupt
        } else {
            Quality::Good
        };
        let answer = Answer {
            seq: None,
            bytes: reader.body,
            quality,
            last: reader.head.last,
        };
        reader.reset();
        answer
    }
}

/// The body that our responder gives: the same for every request, because HTTP
/// has no place for a sequence number.
pub fn body_of(size: u32) -> Vec<u8> {
    let size = size as usize;
    Pattern::new(PayloadDirection::Response, size, None)
        .content(0, 0, size)
        .to_vec()
}

impl Codec for Http {
    type Reader = HttpReader;

    fn length(&self) -> usize {
        self.request.len()
    }

    #[inline]
    fn encode(&mut self, _: u64, from: usize) -> &[u8] {
        &self.request[from..]
    }

    #[inline]
    fn decode(&mut self, reader: &mut HttpReader, bytes: &[u8]) -> (usize, DecodeStep) {
        let mut taken = 0;
        let is_fresh = reader.head_bytes == 0 && reader.head.stage == Stage::Status;
        if is_fresh && let Some((length, head)) = self.known.at_start_of(bytes) {
            taken = length;
            reader.head = head;
        }
        loop {
            let rest = &bytes[taken..];
            if rest.is_empty() {
                return (taken, DecodeStep::More);
            }
            let turn = match reader.head.stage {
                Stage::Body(left) | Stage::Chunk(left) => {
                    let piece =
                        &rest[..rest.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
                    self.take_body(reader, piece);
                    taken += piece.len();
                    reader.head.after_body(left - piece.len() as u64)
                }
                Stage::UntilClose => {
                    self.take_body(reader, rest);
                    return (bytes.len(), DecodeStep::More);
                }
                _ => {
                    let (length, turn) = reader.read_line(rest);
                    taken += length;
                    turn
                }
            };
            match turn {
                Turn::Go(stage) => {
                    let was_head = reader.head.stage == Stage::Headers;
                    reader.head.stage = stage;
                    if is_fresh && was_head && matches!(stage, Stage::Body(_)) {
                        self.known.learn(&bytes[..taken], reader.head);
                    }
                }
                Turn::Done => return (taken, DecodeStep::Answer(self.complete(reader))),
                Turn::Garbage => return (taken, DecodeStep::Garbage),
            }
        }
    }

    fn end(&self, reader: &mut HttpReader) -> Option<Answer> {
        (reader.head.stage == Stage::UntilClose).then(|| self.complete(reader))
    }
}

impl HttpReader {
    /// Ready for the next response. The line buffer needs no clearing.
    fn reset(&mut self) {
        self.lines.reset();
        self.head_bytes = 0;
        self.head = Head::default();
        self.body = 0;
        self.corrupt = false;
    }

    /// Reads at most one line and says what comes next.
    #[inline]
    fn read_line(&mut self, bytes: &[u8]) -> (usize, Turn) {
        let (taken, line) = self.lines.next(bytes);
        self.head_bytes += taken;
        if self.head_bytes > HEAD_LIMIT {
            return (taken, Turn::Garbage);
        }
        let Some(line) = line else {
            return (taken, Turn::Go(self.head.stage));
        };
        if self.head.stage == Stage::ChunkEnd {
            self.head_bytes = 0;
        }
        (taken, self.head.line(line))
    }
}
