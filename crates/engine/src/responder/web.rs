//! `http`: a body of fixed size for every GET.

use plumbline_experiment::Workload;
use plumbline_record::ServeResult;

use super::service::{RequestStep, Service};
use crate::codec::body_of;
use crate::codec::lines::{Line, LineReader, decimal, has_word, header};

/// Most bytes of a request's head.
const HEAD_LIMIT: usize = 64 << 10;

/// An answer without a body, after which the connection is closed.
macro_rules! refusal {
    ($status:literal) => {
        concat!(
            "HTTP/1.1 ",
            $status,
            "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
        .as_bytes()
    };
}

const BAD_REQUEST: &[u8] = refusal!("400 Bad Request");
const NOT_ALLOWED: &[u8] = refusal!("405 Method Not Allowed");
const TOO_LARGE: &[u8] = refusal!("413 Content Too Large");
const HEAD_TOO_LARGE: &[u8] = refusal!("431 Request Header Fields Too Large");

/// A server of one document, whatever the path.
pub(super) struct Web {
    head: Vec<u8>,
    last_head: Vec<u8>,
    body: Vec<u8>,
}

/// What a request is answered with.
#[derive(Clone, Copy)]
pub(super) enum WebAnswer {
    Document { last: bool, head_only: bool },
    Refusal(&'static [u8]),
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

    fn answer(&self, request: Request, seen: &mut ServeResult) -> RequestStep<WebAnswer> {
        if request.has_body {
            return refuse(TOO_LARGE);
        }
        let Request {
            last, head_only, ..
        } = request;
        seen.requests += 1;
        if !head_only {
            seen.bytes_sent += self.body.len() as u64;
        }
        let answer = WebAnswer::Document { last, head_only };
        if last {
            RequestStep::Last(answer)
        } else {
            RequestStep::Answer(answer)
        }
    }
}

fn refuse(text: &'static [u8]) -> RequestStep<WebAnswer> {
    RequestStep::Last(WebAnswer::Refusal(text))
}

impl Service for Web {
    type Reader = RequestReader;
    type Answer = WebAnswer;

    #[inline]
    fn read(
        &mut self,
        reader: &mut RequestReader,
        bytes: &[u8],
        seen: &mut ServeResult,
    ) -> (usize, RequestStep<WebAnswer>) {
        let mut read = 0;
        while read < bytes.len() {
            let (taken, line) = reader.lines.next(&bytes[read..]);
            read += taken;
            reader.head_bytes += taken;
            if reader.head_bytes > HEAD_LIMIT {
                return (read, refuse(HEAD_TOO_LARGE));
            }
            let Some(line) = line else {
                break;
            };
            match &mut reader.request {
                // Empty lines between requests are allowed (RFC 9112, 2.2).
                None if line.text.is_empty() => {}
                None => match request_line(line) {
                    Ok(request) => reader.request = Some(request),
                    Err(status) => return (read, refuse(status)),
                },
                Some(request) if line.text.is_empty() => {
                    let request = *request;
                    reader.request = None;
                    reader.head_bytes = 0;
                    return (read, self.answer(request, seen));
                }
                Some(request) => {
                    if !note_header(request, line) {
                        return (read, refuse(BAD_REQUEST));
                    }
                }
            }
        }
        (read, RequestStep::More)
    }

    #[inline]
    fn piece(&mut self, answer: WebAnswer, from: usize) -> &[u8] {
        let (head, body): (&[u8], &[u8]) = match answer {
            WebAnswer::Refusal(text) => (text, &[]),
            WebAnswer::Document { last, head_only } => (
                if last { &self.last_head } else { &self.head },
                if head_only { &[] } else { &self.body },
            ),
        };
        match from.checked_sub(head.len()) {
            None => &head[from..],
            Some(from) => &body[from..],
        }
    }
}

fn request_line(line: Line<'_>) -> Result<Request, &'static [u8]> {
    let head_only = line.text.starts_with(b"HEAD ");
    if !head_only && !line.text.starts_with(b"GET ") {
        let looks_like_http = line.text.first().is_some_and(u8::is_ascii_uppercase);
        return Err(if looks_like_http {
            NOT_ALLOWED
        } else {
            BAD_REQUEST
        });
    }
    // The path is so long that the version is cut off: treated as 1.1.
    let old = !line.cut && line.text.ends_with(b" HTTP/1.0");
    if !line.cut && !old && !line.text.ends_with(b" HTTP/1.1") {
        return Err(BAD_REQUEST);
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

/// What [`fuzzing`](crate::fuzzing) makes public.
#[cfg(any(test, fuzzing))]
pub(crate) fn answers_to(
    stream: &[u8],
    piece_bytes: usize,
    workload: &Workload,
) -> Vec<(bool, Vec<u8>)> {
    let (mut web, mut reader) = (Web::new(workload), RequestReader::default());
    let mut seen = ServeResult::default();
    let mut answers = Vec::new();
    for mut piece in stream.chunks(piece_bytes) {
        while !piece.is_empty() {
            let (taken, step) = web.read(&mut reader, piece, &mut seen);
            assert!(taken > 0, "a piece is left");
            piece = &piece[taken..];
            let (RequestStep::Answer(answer) | RequestStep::Last(answer)) = step else {
                continue;
            };
            let is_head = matches!(
                answer,
                WebAnswer::Document {
                    head_only: true,
                    ..
                }
            );
            answers.push((is_head, whole(&mut web, answer)));
            if matches!(step, RequestStep::Last(_)) {
                return answers;
            }
        }
    }
    answers
}

/// An answer from its first byte to its last.
#[cfg(any(test, fuzzing))]
fn whole(web: &mut Web, answer: WebAnswer) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        match web.piece(answer, bytes.len()) {
            [] => return bytes,
            more => bytes.extend_from_slice(more),
        }
        assert!(bytes.len() < 1 << 10, "an answer has no end");
    }
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
            think_ns: 0,
        })
    }

    /// Statuses of the answers to a stream cut into pieces of `size`, and
    /// whether the connection closes.
    fn statuses(stream: &str, size: usize) -> (Vec<String>, bool) {
        let (mut web, mut reader) = (web(), RequestReader::default());
        let mut statuses = Vec::new();
        for mut piece in stream.as_bytes().chunks(size) {
            while !piece.is_empty() {
                let (taken, step) = web.read(&mut reader, piece, &mut ServeResult::default());
                piece = &piece[taken..];
                let (RequestStep::Answer(answer) | RequestStep::Last(answer)) = step else {
                    continue;
                };
                let head = String::from_utf8_lossy(web.piece(answer, 0)).into_owned();
                statuses.push(head[9..12].to_owned());
                if matches!(step, RequestStep::Last(_)) {
                    return (statuses, true);
                }
            }
        }
        (statuses, false)
    }

    #[test]
    fn requests_are_answered_however_they_are_cut() {
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(500));
        let huge = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(70_000));
        let cases = [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", vec!["200"], false),
            (
                "GET / HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n\r\nHEAD / HTTP/1.1\r\n\r\n",
                vec!["200", "200", "200"],
                false,
            ),
            (
                "GET / HTTP/1.1\r\nConnection: Close\r\n\r\nGET / HTTP/1.1\r\n\r\n",
                vec!["200"],
                true,
            ),
            ("GET / HTTP/1.0\r\n\r\n", vec!["200"], true),
            (long.as_str(), vec!["200"], false),
            ("POST / HTTP/1.1\r\n\r\n", vec!["405"], true),
            (
                "GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
                vec!["413"],
                true,
            ),
            ("\u{16}\u{3}\u{1}\r\n", vec!["400"], true),
            ("GET / HTTP/1.1\r\nnonsense\r\n\r\n", vec!["400"], true),
            (huge.as_str(), vec!["431"], true),
            ("GET / HTTP/1.1\r\nHost", vec![], false),
        ];
        for (stream, want, closes) in cases {
            for size in [1, 2, 7, 100_000] {
                let name = &stream[..stream.len().min(60)];
                assert_eq!(
                    statuses(stream, size),
                    (want.iter().map(|s| (*s).to_owned()).collect(), closes),
                    "{name:?} by {size}"
                );
            }
        }
    }
}
