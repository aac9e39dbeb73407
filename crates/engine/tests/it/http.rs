//! HTTP servers of every sort, on real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use plumbline_engine::LoadPlan;
use plumbline_experiment::{Arrival, Workload, WorkloadKind};

use crate::rig::{load, serve, short, workload};

/// Reads one HTTP request; false at the end.
fn read_request(connection: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        match connection.read(&mut byte) {
            Ok(1) => request.push(byte[0]),
            _ => return false,
        }
    }
    true
}

/// A server that answers every HTTP request with these bytes, in pieces with a
/// pause between, and closes after each answer if told so.
fn http_server(pieces: Vec<Vec<u8>>, close: bool) -> SocketAddr {
    serve(move |mut connection| {
        connection.set_nodelay(true).unwrap();
        while read_request(&mut connection) {
            for piece in &pieces {
                if connection.write_all(piece).is_err() {
                    return;
                }
                if pieces.len() > 1 {
                    thread::sleep(Duration::from_millis(2));
                }
            }
            if close {
                return;
            }
        }
    })
}

fn http_plan(target: SocketAddr) -> LoadPlan {
    LoadPlan {
        verify: false,
        ..short(
            Workload {
                connections: 2,
                ..workload(WorkloadKind::Http)
            },
            target,
        )
    }
}

fn good_http_in_any_shape_is_counted_right() {
    let cases: [(&[&str], bool); 6] = [
        (
            &["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"],
            false,
        ),
        (
            &[
                "HTTP/1.1 200 O",
                "K\r\nContent-Len",
                "gth: 5\r\n\r",
                "\nhe",
                "llo",
            ],
            false,
        ),
        (
            &[
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe",
                "\r\n3\r\nllo\r\n0\r",
                "\n\r\n",
            ],
            false,
        ),
        (
            &["HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"],
            true,
        ),
        // Said to close, but does not: the client closes.
        (
            &["HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"],
            false,
        ),
        // Ends with the connection.
        (&["HTTP/1.1 200 OK\r\n\r\nhello"], true),
    ];
    for (pieces, close) in cases {
        let bytes = pieces.iter().map(|p| p.as_bytes().to_vec()).collect();
        let result = load(&http_plan(http_server(bytes, close)));
        assert_eq!(result.errors.total(), 0, "{pieces:?}: {:?}", result.errors);
        assert!(result.completed >= 5, "{pieces:?}: {}", result.completed);
        assert_eq!(result.bytes_received, 5 * result.completed);
    }
}

fn bad_http_is_an_error_of_its_kind() {
    let huge = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    let cases: [(&str, bool, &str); 7] = [
        (
            "HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno",
            false,
            "protocol",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello",
            true,
            "closed",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Le", true, "closed"),
        ("", true, "closed"),
        ("220 mail.example ESMTP\r\n", false, "protocol"),
        (&huge, false, "protocol"),
        // More than was asked for.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n",
            false,
            "protocol",
        ),
    ];
    for (answer, close, kind) in cases {
        let result = load(&http_plan(http_server(vec![answer.into()], close)));
        let name = &answer[..answer.len().min(50)];
        let errors = result.errors;
        let count = match kind {
            "protocol" => errors.protocol,
            _ => errors.closed,
        };
        assert!(count > 0, "{name:?}: {errors:?}");
        assert_eq!(errors.total(), count, "{name:?}: {errors:?}");
        if !answer.contains("ok") {
            assert_eq!(result.completed, 0, "{name:?}");
        }
        let by_second: u64 = result.seconds.iter().map(|s| s.errors).sum();
        assert_eq!(by_second, count, "{name:?}");
    }
}

fn a_server_that_never_answers_is_censored_not_waited_for() {
    let silent = serve(|mut connection| {
        let mut sink = Vec::new();
        let _ = connection.read_to_end(&mut sink);
    });
    for arrival in [Arrival::Closed, Arrival::Constant { rate: 200.0 }] {
        let mut plan = http_plan(silent);
        plan.workload.arrival = arrival;
        plan.warm_up = Duration::ZERO;
        plan.drain = Duration::from_millis(100);
        let result = load(&plan);
        assert_eq!(result.completed + result.errors.total(), 0);
        assert_eq!(result.censored, result.planned);
        assert_eq!(result.latency.len(), result.planned);
        // At least as late as the end of the drain.
        assert!(result.latency.value_at(0.0) >= 100_000_000);
        if arrival != Arrival::Closed {
            assert!(result.latency.max() >= 299_000_000);
            assert_eq!(result.planned, 40);
            // Two went out, the rest found no connection.
            assert_eq!((result.sent, result.waited_for_connection), (2, 38));
        }
    }
}

fn a_broken_connection_is_opened_again() {
    // Hangs up on every twentieth request without an answer.
    let target = serve(|mut connection| {
        for _ in 0..19 {
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            if !read_request(&mut connection) || connection.write_all(answer).is_err() {
                return;
            }
        }
        read_request(&mut connection);
    });
    let result = load(&http_plan(target));
    // Several lives of 19 answers and one error each, 10 ms or two apart; the
    // window may cut the first and the last life of both connections.
    assert!(result.errors.closed >= 4, "{:?}", result.errors);
    assert_eq!(result.errors.total(), result.errors.closed);
    let lives = result.completed as f64 / result.errors.closed as f64;
    assert!((10.0..=30.0).contains(&lives), "{lives} answers per error");
}

/// Of every ten answers one is garbage, one ends early, and one is closed in
/// the middle of a chunk: all are counted, each once, and the seven others too.
fn errors_among_good_answers_are_counted_one_by_one() {
    let asked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&asked);
    let target = serve(move |mut connection| {
        while read_request(&mut connection) {
            let (answer, close): (&[u8], _) = match counter.fetch_add(1, Ordering::SeqCst) % 10 {
                3 => (b"\x16\x03\x01 no HTTP\r\n\r\n", false),
                5 => (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", true),
                8 => (
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nsho",
                    true,
                ),
                _ => (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false),
            };
            if connection.write_all(answer).is_err() || close {
                return;
            }
        }
    });
    let mut plan = http_plan(target);
    plan.workload.arrival = Arrival::Constant { rate: 250.0 };
    plan.warm_up = Duration::ZERO;
    plan.measure = Duration::from_millis(400);
    let result = load(&plan);
    let asked = asked.load(Ordering::SeqCst);
    let of = |kinds: &[u64]| (0..asked).filter(|i| kinds.contains(&(i % 10))).count() as u64;
    let (errors, bad) = (result.errors, of(&[3, 5, 8]));
    assert_eq!((errors.protocol, errors.closed), (of(&[3]), of(&[5, 8])));
    assert_eq!((errors.total(), result.completed), (bad, asked - bad));
    assert_eq!(result.bytes_received, 5 * (asked - bad));
    // A line that breaks at the very end is not opened again: what waited for
    // it is unanswered, and said to be.
    assert_eq!((result.planned, result.censored), (100, 100 - asked));
    assert!(asked >= 50, "{asked} of 100 were sent");
}

by_each_driver! {
    errors_among_good_answers_are_counted_one_by_one,
    good_http_in_any_shape_is_counted_right,
    bad_http_is_an_error_of_its_kind,
    a_server_that_never_answers_is_censored_not_waited_for,
    a_broken_connection_is_opened_again,
}
