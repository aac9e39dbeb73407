//! `http`: a body of fixed size for every GET.

use plumbline_experiment::Workload;
use plumbline_record::ServeResult;

use super::streams::{Next, Service};
use crate::codec::body_of;
use crate::codec::lines::{Line, LineReader, decimal, has_word, header};

/// Most bytes of a request's head.
const HEAD_LIMIT: usize = 64 << 10;

/// A server of one document, whatever the path.
pub(super) struct Web {
    head: Vec<u8>,
    last_head: Vec<u8>,
    body: Vec<u8>,
}

/// How far one request has been read.
#[derive(Default)]
pub(super) struct RequestReader {
    lines: LineReader,
    head_bytes: usize,
    request: Option<Request>,
}

/// What a request has said about itself so far.
#[derive(Clone, Copy, Default)]
struct Request {
    /// HEAD wants no body.
    head_only: bool,
    /// The client wants the connection closed after the answer.
    last: bool,
    /// It has a body, which we would have to read.
    has_body: bool,
}

impl Web {
    pub(super) fn new(spec: &Workload) -> Self {
        let head = |connection: &str| {
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n{connection}Content-Length: {}\r\n\r\n",
                spec.response_size
            )
            .into_bytes()
        };
        Self {
            head: head(""),
            last_head: head("Connection: close\r\n"),
            body: body_of(spec.response_size),
        }
    }

    fn answer(&self, request: Request, out: &mut Vec<u8>, seen: &mut ServeResult) -> Next {
        if request.has_body {
            return refuse(b"413 Content Too Large", out);
        }
        let head = if request.last {
            &self.last_head
        } else {
            &self.head
        };
        out.extend_from_slice(head);
        if !request.head_only {
            out.extend_from_slice(&self.body);
            seen.bytes_sent += self.body.len() as u64;
        }
        seen.requests += 1;
        if request.last {
            Next::Close
        } else {
            Next::Keep
        }
    }
}

/// Answers with an error; the connection is closed after it.
fn refuse(status: &[u8], out: &mut Vec<u8>) -> Next {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status);
    out.extend_from_slice(b"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    Next::Close
}

impl Service for Web {
    type Reader = RequestReader;

    #[inline]
    fn read(
        &mut self,
        reader: &mut RequestReader,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        seen: &mut ServeResult,
    ) -> Next {
        while !bytes.is_empty() {
            let (taken, line) = reader.lines.next(bytes);
            bytes = &bytes[taken..];
            reader.head_bytes += taken;
            if reader.head_bytes > HEAD_LIMIT {
                return refuse(b"431 Request Header Fields Too Large", out);
            }
            let Some(line) = line else {
                break;
            };
            match &mut reader.request {
                // Empty lines between requests are allowed (RFC 9112, 2.2).
                None if line.text.is_empty() => {}
                None => match request_line(line) {
                    Ok(request) => reader.request = Some(request),
                    Err(status) => return refuse(status, out),
                },
                Some(request) if line.text.is_empty() => {
                    let request = *request;
                    reader.request = None;
                    reader.head_bytes = 0;
                    if self.answer(request, out, seen) == Next::Close {
                        return Next::Close;
                    }
                }
                Some(request) => {
                    if !note_header(request, line) {
                        return refuse(b"400 Bad Request", out);
                    }
                }
            }
        }
        Next::Keep
    }
}

fn request_line(line: Line<'_>) -> Result<Request, &'static [u8]> {
    let head_only = line.text.starts_with(b"HEAD ");
    if !head_only && !line.text.starts_with(b"GET ") {
        let looks_like_http = line.text.first().is_some_and(u8::is_ascii_uppercase);
        return Err(if looks_like_http {
            b"405 Method Not Allowed"
        } else {
            b"400 Bad Request"
        });
    }
    // The path is so long that the version is cut off: treated as 1.1.
    let old = !line.cut && line.text.ends_with(b" HTTP/1.0");
    if !line.cut && !old && !line.text.ends_with(b" HTTP/1.1") {
        return Err(b"400 Bad Request");
    }
    Ok(Request {
        head_only,
        last: old,
        has_body: false,
    })
}

/// False when this is not a header.
fn note_header(request: &mut Request, line: Line<'_>) -> bool {
    let Some((name, value)) = header(line.text) else {
        return false;
    };
    match name.len() {
        10 if name.eq_ignore_ascii_case(b"connection") => {
            if has_word(value, b"close") {
                request.last = true;
            } else if has_word(value, b"keep-alive") {
                request.last = false;
            }
        }
        14 if name.eq_ignore_ascii_case(b"content-length") => {
            request.has_body |= decimal(value) != Some(0);
        }
        17 if name.eq_ignore_ascii_case(b"transfer-encoding") => request.has_body = true,
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::{Arrival, DriverChoice, Protocol, Wait, WorkloadKind};

    use super::*;

    fn web() -> Web {
        Web::new(&Workload {
            name: "test".into(),
            kind: WorkloadKind::Http,
            protocol: Protocol::Tcp,
            request_size: 0,
            response_size: 3,
            connections: 1,
            arrival: Arrival::Closed,
            keep_alive: true,
            server: Default::default(),
            wait: Wait::Block,
            driver: DriverChoice::Auto,
            zero_copy: false,
            timestamps: 0.0,
        })
    }

    /// Statuses of the answers to a stream cut into pieces of `size`, and
    /// whether the connection closes.
    fn statuses(stream: &str, size: usize) -> (Vec<String>, Next) {
        let mut web = web();
        let (mut reader, mut out) = (RequestReader::default(), Vec::new());
        let mut next = Next::Keep;
        for piece in stream.as_bytes().chunks(size) {
            next = web.read(&mut reader, piece, &mut out, &mut ServeResult::default());
            if next == Next::Close {
                break;
            }
        }
        let text = String::from_utf8_lossy(&out).into_owned();
        let statuses = text
            .match_indices("HTTP/1.1 ")
            .map(|(at, _)| text[at + 9..at + 12].to_owned());
        (statuses.collect(), next)
    }

    #[test]
    fn requests_are_answered_however_they_are_cut() {
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(500));
        let huge = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(70_000));
        let cases = [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", vec!["200"], Next::Keep),
            (
                "GET / HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n\r\nHEAD / HTTP/1.1\r\n\r\n",
                vec!["200", "200", "200"],
                Next::Keep,
            ),
            (
                "GET / HTTP/1.1\r\nConnection: Close\r\n\r\nGET / HTTP/1.1\r\n\r\n",
                vec!["200"],
                Next::Close,
            ),
            ("GET / HTTP/1.0\r\n\r\n", vec!["200"], Next::Close),
            (long.as_str(), vec!["200"], Next::Keep),
            ("POST / HTTP/1.1\r\n\r\n", vec!["405"], Next::Close),
            (
                "GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
                vec!["413"],
                Next::Close,
            ),
            ("\u{16}\u{3}\u{1}\r\n", vec!["400"], Next::Close),
            (
                "GET / HTTP/1.1\r\nnonsense\r\n\r\n",
                vec!["400"],
                Next::Close,
            ),
            (huge.as_str(), vec!["431"], Next::Close),
            ("GET / HTTP/1.1\r\nHost", vec![], Next::Keep),
        ];
        for (stream, want, next) in cases {
            for size in [1, 2, 7, 100_000] {
                let name = &stream[..stream.len().min(60)];
                assert_eq!(
                    statuses(stream, size),
                    (want.iter().map(|s| (*s).to_owned()).collect(), next),
                    "{name:?} by {size}"
                );
            }
        }
    }
}
