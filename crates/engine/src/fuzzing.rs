//! What fuzzing targets reach of this crate.

use plumbline_experiment::{Workload, WorkloadKind};

use crate::bulk::{MeterMessage, Tally};
use crate::codec::{Codec, DecodeStep, FixedFrame, FrameReader, Http};
use crate::pattern::{Pattern, PayloadDirection};
use crate::responder::answers_to;
use crate::{LoadPlan, Secret};

/// `http` with a body of 16 bytes, so that an input may hold it.
fn workload() -> Workload {
    Workload {
        response_size: 16,
        ..Workload::of_kind(WorkloadKind::Http)
    }
}

/// What a client makes of a stream that comes in pieces of so many bytes: one line for
/// each answer, and one where it is no longer HTTP. `verify` says whether bodies have to
/// be those of our server.
///
/// # Panics
///
/// When the client stands still, or reads the same stream differently once it knows its
/// heads.
pub fn http_answers(stream: &[u8], piece_bytes: usize, verify: bool) -> Vec<String> {
    let plan = LoadPlan {
        verify,
        ..LoadPlan::new(workload(), ([127, 0, 0, 1], 80).into())
    };
    let mut client = Http::new(&plan, &[]);
    let first = steps(&mut client, stream, piece_bytes);
    assert_eq!(steps(&mut client, stream, piece_bytes), first);
    first.iter().map(|step| format!("{step:?}")).collect()
}

fn steps(client: &mut Http, stream: &[u8], piece_bytes: usize) -> Vec<DecodeStep> {
    let mut reader = <Http as Codec>::Reader::default();
    let mut steps = Vec::new();
    for mut piece in stream.chunks(piece_bytes) {
        while !piece.is_empty() {
            let (taken, step) = client.decode(&mut reader, piece);
            piece = &piece[taken..];
            match step {
                DecodeStep::More => assert!(piece.is_empty(), "a piece is left"),
                DecodeStep::Answer(answer) if !answer.last => {
                    assert!(taken > 0, "an answer out of nothing");
                    steps.push(step);
                }
                // The connection is closed.
                DecodeStep::Answer(_) | DecodeStep::Garbage => {
                    steps.push(step);
                    return steps;
                }
            }
        }
    }
    steps.extend(client.end(&mut reader).map(DecodeStep::Answer));
    steps
}

/// What a server answers to a stream that comes in pieces of so many bytes: each answer
/// whole, and whether it is that to a HEAD.
///
/// # Panics
///
/// When the server stands still, or an answer has no end.
pub fn http_served(stream: &[u8], piece_bytes: usize) -> Vec<(bool, Vec<u8>)> {
    answers_to(stream, piece_bytes, &workload())
}

/// Bytes of each message, so that an input may hold several.
const MESSAGE: usize = 32;

/// Reads bytes as what comes to a server of `rr`, in pieces of so many bytes, and as datagrams
/// of a load, without a secret and with one; gives how many messages of each are good: requests
/// and datagrams.
///
/// # Panics
///
/// When pieces of another size give other messages, when a good one is written otherwise, or
/// when more datagrams are counted than came.
pub fn messages(bytes: &[u8], piece_bytes: usize) -> (usize, usize) {
    let secret: Option<Secret> = "0123456789abcdef".parse().ok();
    let (mut requests, mut datagrams) = (0, 0);
    for secret in [None, secret] {
        let frame = FixedFrame::new(PayloadDirection::Request, MESSAGE as u32, secret);
        let read = requests_in(&frame, bytes, piece_bytes);
        assert_eq!(read, requests_in(&frame, bytes, bytes.len().max(1)));
        requests += read;
        datagrams += datagrams_in(bytes, secret);
    }
    (requests, datagrams)
}

/// How many requests are good.
fn requests_in(frame: &FixedFrame, bytes: &[u8], piece_bytes: usize) -> usize {
    let (mut reader, mut end, mut count) = (FrameReader::default(), 0, 0);
    for mut piece in bytes.chunks(piece_bytes) {
        while !piece.is_empty() {
            let (taken, framed) = frame.read(&mut reader, piece);
            assert!(taken > 0, "a piece is left");
            (end, piece) = (end + taken, &piece[taken..]);
            let Some(framed) = framed else { continue };
            let message = &bytes[end - MESSAGE..end];
            let mut written = [0; MESSAGE];
            frame.write(framed.seq, 0, &mut written);
            assert_eq!(framed.intact, message == written);
            assert!(!framed.intact || frame.is_marked(message));
            count += usize::from(framed.intact);
        }
    }
    count
}

/// How many datagrams are good.
fn datagrams_in(bytes: &[u8], secret: Option<Secret>) -> usize {
    let pattern = Pattern::new(PayloadDirection::Request, MESSAGE, secret);
    let (mut tally, mut count) = (Tally::default(), 0);
    for (at, datagram) in bytes.chunks(MESSAGE).enumerate() {
        let Some(message) = MeterMessage::read(&pattern, datagram, MESSAGE) else {
            continue;
        };
        let mut written = [0; MESSAGE];
        message.write(&pattern, &mut written);
        assert_eq!(datagram, written);
        let known = tally.count(message, MESSAGE as u64, at as u64);
        count += usize::from(known);
    }
    let counts = tally.counts();
    assert_eq!((counts.received + counts.duplicated) as usize, count);
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::seed;

    /// What is made of a seed as the target reads it: whether bodies are checked, and the
    /// stream, in one piece.
    fn answers(name: &str) -> (bool, Vec<String>) {
        let bytes = seed(&format!("http_client/{name}"));
        let verify = bytes[0] & 0x80 != 0;
        (verify, http_answers(&bytes[1..], bytes.len(), verify))
    }

    #[test]
    fn answers_of_each_quality_are_seeds() {
        for (name, verify, qualities) in [
            ("ours", true, &["Good"][..]),
            ("ours-and-another", true, &["Good", "Corrupt"]),
            ("whole", true, &["Corrupt"]),
            ("two-answers", false, &["Good", "Good"]),
            ("chunked", false, &["Good"]),
            ("continue", false, &["Good"]),
            ("until-closed", false, &["Good"]),
            ("error", false, &["Refusal"]),
            ("not-http", false, &["Garbage"]),
        ] {
            let (is_checked, answers) = answers(name);
            assert_eq!(is_checked, verify, "{name}");
            assert_eq!(answers.len(), qualities.len(), "{name}: {answers:?}");
            for (answer, quality) in answers.iter().zip(qualities) {
                assert!(answer.contains(quality), "{name}: {answers:?}");
            }
        }
    }

    #[test]
    fn a_seed_is_what_our_responder_answers() {
        let answered = http_served(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 100);
        assert_eq!(seed("http_client/ours")[1..], answered[0].1);
    }

    #[test]
    fn requests_of_each_kind_are_seeds() {
        for (name, statuses) in [
            ("get", &["200", "200"][..]),
            ("old", &["200"]),
            ("head", &["200"]),
            ("post", &["405"]),
            ("body", &["413"]),
            ("not-http", &["400"]),
        ] {
            let answers = http_served(&seed(&format!("http_server/{name}"))[1..], 1_000);
            let said = |(_, answer): &(bool, Vec<u8>)| {
                String::from_utf8_lossy(&answer[9..12]).into_owned()
            };
            let said: Vec<_> = answers.iter().map(said).collect();
            assert_eq!(said, statuses, "{name}");
        }
        assert!(http_served(&seed("http_server/head")[1..], 1_000)[0].0);
    }

    #[test]
    fn messages_with_a_secret_and_without_are_seeds() {
        let read = |name: &str| messages(&seed(&format!("datagrams/{name}")), 7);
        assert_eq!(read("requests"), (2, 0));
        assert_eq!(read("requests-with-a-secret"), (2, 0));
        assert_eq!(read("load"), (0, 4));
        assert_eq!(read("load-with-a-secret"), (0, 4));
    }
}
