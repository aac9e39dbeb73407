//! Every response, however it is cut, gives the same answers.

use plumbline_experiment::{Workload, WorkloadKind};
use proptest::prelude::*;

use super::*;

/// Reads a whole stream in pieces of the given sizes, over and over, and gives
/// all answers; `None` for garbage. `closed` tells the reader of the end.
fn read(codec: &mut Http, stream: &[u8], cuts: &[usize], closed: bool) -> Option<Vec<Answer>> {
    let mut reader = HttpReader::default();
    let mut answers = Vec::new();
    let mut cuts = cuts.iter().cycle();
    let mut rest = stream;
    while !rest.is_empty() {
        let cut = (*cuts.next().unwrap()).clamp(1, rest.len());
        let (mut piece, after) = rest.split_at(cut);
        rest = after;
        while !piece.is_empty() {
            let (taken, step) = codec.decode(&mut reader, piece);
            assert!(taken > 0 || step == DecodeStep::Garbage, "no progress");
            piece = &piece[taken..];
            match step {
                DecodeStep::More => assert!(piece.is_empty()),
                DecodeStep::Answer(answer) => answers.push(answer),
                DecodeStep::Garbage => return None,
            }
        }
    }
    if closed {
        answers.extend(codec.end(&mut reader));
    }
    Some(answers)
}

fn foreign() -> Http {
    http(None)
}

/// A client of a server whose body is known, or not.
fn http(body: Option<u32>) -> Http {
    let workload = Workload {
        response_size: body.unwrap_or_default(),
        ..Workload::of_kind(WorkloadKind::Http)
    };
    let plan = LoadPlan {
        verify: body.is_some(),
        ..LoadPlan::new(workload, ([127, 0, 0, 1], 80).into())
    };
    Http::new(&plan, &[])
}

fn good(bytes: u64) -> Answer {
    Answer {
        seq: None,
        bytes,
        quality: Quality::Good,
        last: false,
    }
}

/// Responses, whether the stream ends after them, and what they must give.
fn cases() -> Vec<(Vec<u8>, bool, Option<Vec<Answer>>)> {
    let refusal = |bytes| Answer {
        quality: Quality::Refusal,
        ..good(bytes)
    };
    let last = |bytes| Answer {
        last: true,
        ..good(bytes)
    };
    let huge = format!(
        "HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 2\r\n\r\nok",
        "y".repeat(60_000)
    );
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(70_000));
    let text: Vec<(&str, bool, Option<Vec<Answer>>)> = vec![
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            false,
            Some(vec![good(5)]),
        ),
        (
            "HTTP/1.1 200\nCONTENT-LENGTH:5\n\nhello",
            false,
            Some(vec![good(5)]),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            false,
            Some(vec![good(0)]),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx",
            false,
            Some(vec![good(2), refusal(1)]),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n00c;ext=\"1\"\r\n, big world!\r\n0\r\nTrailer: x\r\n\r\n",
            false,
            Some(vec![good(17)]),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            false,
            Some(vec![good(1)]),
        ),
        (
            "HTTP/1.1 204 No Content\r\n\r\n",
            false,
            Some(vec![good(0)]),
        ),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
            false,
            Some(vec![refusal(0)]),
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            false,
            Some(vec![good(1)]),
        ),
        (
            "HTTP/1.1 200 OK\r\nConnection: keep-alive, Close\r\nContent-Length: 1\r\n\r\nx",
            false,
            Some(vec![last(1)]),
        ),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
            false,
            Some(vec![last(1)]),
        ),
        (
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx",
            false,
            Some(vec![good(1)]),
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\nuntil the end",
            true,
            Some(vec![last(13)]),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
            true,
            Some(vec![last(3)]),
        ),
        // Cut short: no answer, and the caller knows that the line broke.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
            true,
            Some(vec![]),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            true,
            Some(vec![]),
        ),
        ("HTTP/1.1 200 OK\r\nContent-Le", true, Some(vec![])),
        // Not HTTP.
        ("SSH-2.0-OpenSSH_9.6\r\n", false, None),
        ("HTTP/2 200\r\n\r\n", false, None),
        ("HTTP/1.1 20 OK\r\n\r\n", false, None),
        ("HTTP/1.1 2000 OK\r\n\r\n", false, None),
        ("HTTP/1.1 099 OK\r\n\r\n", false, None),
        ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", false, None),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
            false,
            None,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            false,
            None,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
            false,
            None,
        ),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", false, None),
        ("HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n", false, None),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            false,
            None,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
            false,
            None,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1ffffffffffffffff\r\n",
            false,
            None,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n",
            false,
            None,
        ),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", false, None),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", false, None),
        (&huge, false, Some(vec![good(2)])),
        (&endless, false, None),
    ];
    text.into_iter()
        .map(|(text, closed, want)| (text.as_bytes().to_vec(), closed, want))
        .collect()
}

#[test]
fn responses_are_read_whole_and_byte_by_byte() {
    for (stream, closed, want) in cases() {
        let name = String::from_utf8_lossy(&stream[..stream.len().min(120)]).into_owned();
        let mut codec = foreign();
        assert_eq!(
            read(&mut codec, &stream, &[usize::MAX], closed),
            want,
            "{name}"
        );
        assert_eq!(
            read(&mut codec, &stream, &[1], closed),
            want,
            "bytewise: {name}"
        );
    }
}

#[test]
fn every_single_split_gives_the_same() {
    for (stream, closed, want) in cases() {
        if stream.len() > 1_000 {
            continue; // Covered by the random cuts below.
        }
        for cut in 1..stream.len() {
            assert_eq!(
                read(&mut foreign(), &stream, &[cut, usize::MAX], closed),
                want
            );
        }
    }
}

#[test]
fn our_own_body_is_compared() {
    let mut codec = http(Some(100));
    let mut respond = |body: &[u8]| {
        let mut stream =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        stream.extend(body);
        read(&mut codec, &stream, &[7], false).unwrap()[0].quality
    };
    let mut body = body_of(100);
    assert_eq!(respond(&body), Quality::Good);
    assert_eq!(respond(&body[..99]), Quality::Corrupt);
    let longer = [body.as_slice(), b"x"].concat();
    assert_eq!(respond(&longer), Quality::Corrupt);
    body[50] ^= 1;
    assert_eq!(respond(&body), Quality::Corrupt);
}

proptest! {
    /// Random cuts change nothing.
    #[test]
    fn any_cuts_give_the_same(which in 0..cases().len(), cuts in prop::collection::vec(1_usize..3_000, 1..20)) {
        let (stream, closed, want) = cases().swap_remove(which);
        prop_assert_eq!(read(&mut foreign(), &stream, &cuts, closed), want);
    }

    /// Random bytes after a plausible start neither panic nor stall.
    #[test]
    fn random_bytes_end_somehow(tail in prop::collection::vec(any::<u8>(), 0..300), cuts in prop::collection::vec(1_usize..50, 1..10)) {
        for start in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"] {
            let stream = [start.as_bytes(), &tail].concat();
            let pieces = read(&mut foreign(), &stream, &cuts, true);
            prop_assert_eq!(pieces, read(&mut foreign(), &stream, &[usize::MAX], true));
        }
    }
}

#[test]
fn a_known_head_is_told_from_one_that_differs_late() {
    let mut codec = foreign();
    let respond = |length: &str, more: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{more}\r\nbody")
    };
    // Known from the second on; then another length, another end, cut pieces,
    // a refusal, and the first again.
    let stream = [
        respond("4", ""),
        respond("4", ""),
        respond("3", "").trim_end_matches('y').to_owned(),
        respond("4", "Connection: close\r\n"),
        respond("4", ""),
        respond("4", "").replace("200", "404"),
        respond("4", ""),
    ]
    .concat();
    let refusal = Answer {
        quality: Quality::Refusal,
        ..good(4)
    };
    let last = Answer {
        last: true,
        ..good(4)
    };
    let want = vec![good(4), good(4), good(3), last, good(4), refusal, good(4)];
    for cuts in [&[usize::MAX][..], &[1], &[7, 90], &[43, 200]] {
        let answers = read(&mut codec, stream.as_bytes(), cuts, false);
        assert_eq!(answers.as_ref(), Some(&want), "{cuts:?}");
    }
}
