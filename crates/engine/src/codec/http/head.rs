//! What the lines of a response say: status, length, chunks.

use crate::codec::lines::{Line, decimal, has_word, header};

/// What a response has said about itself so far, and what must come next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    pub(super) stage: Stage,
    status: u16,
    length: Option<u64>,
    chunked: bool,
    /// Some other transfer coding: the body ends with the connection.
    coded: bool,
    /// The server closes after this response.
    pub(super) last: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Status,
    Headers,
    /// A body of a stated length; this many bytes are missing.
    Body(u64),
    /// A body that ends with the connection.
    UntilClose,
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
}

/// Where a line or a piece of body leads.
pub(super) enum Turn {
    Go(Stage),
    Done,
    Garbage,
}

impl Head {
    /// Whether the status is 2xx.
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// A piece of the body was read; `left` bytes of it are missing.
    #[inline]
    pub(super) fn after_body(&self, left: u64) -> Turn {
        match self.stage {
            Stage::Body(_) if left == 0 => Turn::Done,
            Stage::Body(_) => Turn::Go(Stage::Body(left)),
            _ if left == 0 => Turn::Go(Stage::ChunkEnd),
            _ => Turn::Go(Stage::Chunk(left)),
        }
    }

    /// A line was read.
    #[inline]
    pub(super) fn line(&mut self, line: Line<'_>) -> Turn {
        match self.stage {
            Stage::Status => self.status_line(line.text),
            Stage::Headers if line.text.is_empty() => self.end_of_headers(),
            Stage::Headers => self.header_line(line),
            Stage::ChunkSize => match chunk_size(line.text) {
                Some(0) => Turn::Go(Stage::Trailers),
                Some(size) => Turn::Go(Stage::Chunk(size)),
                None => Turn::Garbage,
            },
            Stage::ChunkEnd if line.text.is_empty() => Turn::Go(Stage::ChunkSize),
            Stage::Trailers if line.text.is_empty() => Turn::Done,
            Stage::Trailers => Turn::Go(Stage::Trailers),
            _ => Turn::Garbage,
        }
    }

    fn status_line(&mut self, line: &[u8]) -> Turn {
        let Some([minor, b' ', status @ ..]) = line.strip_prefix(b"HTTP/1.") else {
            return Turn::Garbage;
        };
        let (number, rest) = status.split_at(status.len().min(3));
        let ends = rest.first().is_none_or(|&b| b == b' ');
        match decimal(number) {
            Some(status @ 100..600) if number.len() == 3 && ends => self.status = status as u16,
            _ => return Turn::Garbage,
        }
        match minor {
            b'0' => self.last = true,
            b'1'..=b'9' => {}
            _ => return Turn::Garbage,
        }
        Turn::Go(Stage::Headers)
    }

    #[inline]
    fn header_line(&mut self, line: Line<'_>) -> Turn {
        let Some((name, value)) = header(line.text) else {
            return Turn::Garbage;
        };
        // Only three headers matter; their length rules out most others.
        let known = match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => self.content_length(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.chunked = has_word(last_word(value), b"chunked");
                self.coded = true;
                true
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                if has_word(value, b"close") {
                    self.last = true;
                } else if has_word(value, b"keep-alive") {
                    self.last = false;
                }
                return Turn::Go(Stage::Headers);
            }
            _ => return Turn::Go(Stage::Headers),
        };
        // A truncated line may hide half of a number.
        if known && !line.cut {
            Turn::Go(Stage::Headers)
        } else {
            Turn::Garbage
        }
    }

    /// False when this is not a length, or when two lengths differ.
    fn content_length(&mut self, value: &[u8]) -> bool {
        let length = decimal(value);
        let agrees = self.length.is_none() || self.length == length;
        self.length = length;
        length.is_some() && agrees
    }

    fn end_of_headers(&mut self) -> Turn {
        match self.status {
            // The connection would speak another protocol from here on.
            101 => return Turn::Garbage,
            // An interim response; the real one follows.
            100..200 => {
                *self = Self::default();
                return Turn::Go(Stage::Status);
            }
            204 | 304 => return Turn::Done,
            _ => {}
        }
        if self.chunked {
            return Turn::Go(Stage::ChunkSize);
        }
        match self.length {
            Some(0) if !self.coded => Turn::Done,
            Some(length) if !self.coded => Turn::Go(Stage::Body(length)),
            _ => {
                self.last = true;
                Turn::Go(Stage::UntilClose)
            }
        }
    }
}

fn last_word(value: &[u8]) -> &[u8] {
    value.rsplit(|&b| b == b',').next().unwrap_or(value)
}

/// The size at the head of a chunk's line, whatever extension follows it.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = line
        .iter()
        .position(|b| !b.is_ascii_hexdigit())
        .unwrap_or(line.len());
    let (digits, rest) = line.split_at(end);
    if !rest.first().is_none_or(|b| b"; \t".contains(b)) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
