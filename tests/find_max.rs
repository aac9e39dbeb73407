//! `load --find-max` against a server whose capacity is known.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::world::{json, output, stderr, stdout};

/// What the server answers per second, whatever it is asked.
const CAPACITY: f64 = 1_000.0;

/// An HTTP server that answers at most [`CAPACITY`] requests per second: all
/// connections wait for one turnstile, which opens at fixed moments.
fn limited_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (queue, waiting) = mpsc::channel::<mpsc::Sender<()>>();
    thread::spawn(move || {
        let gap = Duration::from_secs_f64(1.0 / CAPACITY);
        let mut free = Instant::now();
        for answer in waiting {
            // A server that was idle does not answer faster afterwards; one
            // that overslept makes up for it.
            free = free.max(Instant::now() - Duration::from_millis(5)) + gap;
            thread::sleep(free.saturating_duration_since(Instant::now()));
            let _ = answer.send(());
        }
    });
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, queue) = (stream.unwrap(), queue.clone());
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                    let (open, opened) = mpsc::channel();
                    queue.send(open).unwrap();
                    opened.recv().unwrap();
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    if stream.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn the_capacity_of_a_server_lies_between_the_bounds() {
    let url = format!("http://{}/", limited_server());
    let value = json(&[
        "load",
        &url,
        "--find-max",
        "loss=0",
        "--trial",
        "250ms",
        "--trials",
        "5",
        "--width",
        "10",
        "--warm-up",
        "50ms",
        "-c",
        "8",
        "--seed",
        "42",
        "--json",
    ]);
    assert_eq!(value["outcome"], "found", "{}", value["verdict"]);
    assert_eq!(value["seed"], 42);
    for (trial, seed) in value["trials"].as_array().unwrap().iter().zip(42..) {
        assert_eq!(trial["seed"], seed);
    }
    let number = |key: &str| value[key].as_f64().unwrap();
    let (lower, upper) = (number("lower_bound"), number("upper_bound"));
    // Answers may come 10 ms and more after a trial of 250 ms, and the server
    // makes up for 5 ms; the bounds may be a tenth off each.
    assert!(
        lower < CAPACITY * 1.3 && upper > CAPACITY * 0.7,
        "{lower} {upper}"
    );
    assert!((upper - lower) / upper <= 0.1);
    assert!(number("conditional_throughput") <= lower * 1.1);

    let trials = value["trials"].as_array().unwrap();
    let purposes: Vec<&str> = trials
        .iter()
        .map(|t| t["purpose"].as_str().unwrap())
        .collect();
    assert_eq!(purposes[0], "path");
    for purpose in ["ramp", "floor", "search"] {
        assert!(purposes.contains(&purpose), "{purposes:?}");
    }
    let missed = trials.iter().find(|t| t["held"] == false).unwrap();
    assert!(missed["loss_ratio"].as_f64().unwrap() > 0.0, "{missed}");
    assert!(
        missed["latency_ns"]["max"].as_u64().unwrap() > 0,
        "{missed}"
    );
}

#[test]
fn a_limit_out_of_reach_gives_no_number() {
    let url = format!("http://{}/", limited_server());
    let output = output(&[
        "load",
        &url,
        "--find-max",
        "p50<1us",
        "--trial",
        "100ms",
        "--warm-up",
        "10ms",
    ]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("no number: p50<1us does not hold"), "{text}");
    assert!(text.contains("missed"), "{text}");
}
