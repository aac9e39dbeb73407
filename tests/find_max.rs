//! `load --find-max` against a server whose capacity is known.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::{in_time, output, stderr, stdout};

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

/// What is found of the server, all of which adds up; only where its threads have the CPU when
/// they want it is that its capacity.
#[test]
fn the_capacity_of_a_server_lies_between_the_bounds() {
    // Answers may come 10 ms and more after a trial of 250 ms, and the server
    // makes up for 5 ms; the bounds may be a tenth off each.
    let is_right = |value: &Value| {
        bounds(value).is_some_and(|(lower, upper)| lower < CAPACITY * 1.3 && upper > CAPACITY * 0.7)
    };
    let value = in_time(search, is_right);
    assert!(is_right(&value), "{value}");
    assert_eq!(value["seed"], 42);
    let purposes = purposes(&value);
    for purpose in ["ramp", "floor", "search"] {
        assert!(purposes.contains(&purpose), "{purposes:?}");
    }
    let trials = value["trials"].as_array().unwrap();
    let missed = trials.iter().find(|t| t["held"] == false).unwrap();
    assert!(missed["loss_ratio"].as_f64().unwrap() > 0.0, "{missed}");
    assert!(
        missed["latency_ns"]["max"].as_u64().unwrap() > 0,
        "{missed}"
    );
}

/// Where a search found a maximum.
fn bounds(search: &Value) -> Option<(f64, f64)> {
    let bound = |key: &str| search[key].as_f64();
    bound("lower_bound").zip(bound("upper_bound"))
}

/// What each trial of a search was for.
fn purposes(search: &Value) -> Vec<&str> {
    let trials = search["trials"].as_array().unwrap().iter();
    trials.map(|it| it["purpose"].as_str().unwrap()).collect()
}

/// Searches for the maximum of a server of its own.
fn search() -> Value {
    let url = format!("http://{}/", limited_server());
    let searched = output(&[
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
    let value: Value = serde_json::from_slice(&searched.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", stderr(&searched)));
    crate::documented::check("search", &value);
    for (trial, seed) in value["trials"].as_array().unwrap().iter().zip(42..) {
        assert_eq!(trial["seed"], seed);
    }
    assert_eq!(purposes(&value)[0], "path");
    // Without a maximum there is no number, and another exit code.
    let is_found = value["outcome"] == "found";
    let code = if is_found { 0 } else { 2 };
    assert_eq!(searched.status.code(), Some(code), "{}", value["verdict"]);
    assert_eq!(bounds(&value).is_some(), is_found, "{value}");
    if let Some((lower, upper)) = bounds(&value) {
        assert!((upper - lower) / upper <= 0.1, "{value}");
        let throughput = value["conditional_throughput"].as_f64().unwrap();
        assert!(throughput <= lower * 1.1, "{value}");
    }
    value
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
