//! `load` and `serve`, as a user of wrk or iperf3 would.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener};

use nix::sys::signal::Signal;

use crate::world::{PATIENCE, Running, in_time, json, output, stderr, stdout};

mod clients;
mod nginx;
mod stopped;

/// A responder on a port that the kernel picked.
fn serve(arguments: &[&str]) -> (Running, String) {
    let mut all = vec!["serve", "127.0.0.1:0"];
    all.extend(arguments);
    let mut server = Running::start(&all);
    let mut line = String::new();
    BufReader::new(server.0.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .split(" on ")
        .nth(1)
        .and_then(|rest| rest.split(';').next())
        .expect(&line);
    (server, address.to_owned())
}

/// Ends a responder as a user does, and gives what it printed.
fn farewell(mut server: Running) -> String {
    server.signal(Signal::SIGINT);
    assert_eq!(server.wait(PATIENCE), Some(0));
    read_all(server.0.stdout.take())
}

fn read_all(stream: Option<impl Read>) -> String {
    let mut text = String::new();
    let mut stream = stream.expect("it is piped");
    stream.read_to_string(&mut text).expect("it is text");
    text
}

/// A short load of the given kind, as its JSON.
#[track_caller]
fn short_load(target: &str, arguments: &[&str]) -> serde_json::Value {
    let mut all = vec!["load", target, "-d", "300ms", "--warm-up", "50ms", "--json"];
    all.extend(arguments);
    json(&all)
}

/// What scripts hold on to (the keys, and nulls instead of guesses).
#[track_caller]
fn check_json(result: &serde_json::Value) {
    assert_eq!(result["errors"], 0, "{result}");
    assert!(result["requests"].as_u64().unwrap() > 0, "{result}");
    assert!(result["achieved_rate"].as_f64().unwrap() > 0.0);
    assert!(result["cpu_seconds"].as_f64().unwrap() > 0.0);
    assert!(result["warnings"].is_array());
    assert_eq!(result["cut_off"], false);
    // L-13, with every result.
    assert!(result["floor_ns"]["p50"].as_u64().unwrap() > 1_000);
    for key in ["latency_ns", "service_time_ns", "send_lag_ns"] {
        for quantile in [
            "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max", "mean",
        ] {
            let value = result[key].get(quantile);
            assert!(value.is_some(), "{key} {quantile}: {result}");
        }
        let last = &result[key]["p99.999"];
        assert!(last.is_null(), "300 ms cannot carry it: {result}");
    }
}

#[test]
fn every_workload_gives_the_json_that_scripts_hold_on_to() {
    for (server, client) in [
        ("--workload rr", "--rate 2000"),
        ("--udp", "--udp --rate 2000"),
        ("--workload crr", "--workload crr --rate 500"),
        ("--workload http", "--workload http --rate 2000"),
        (
            "--workload http",
            "--workload http --rate 500 --no-keep-alive",
        ),
        ("--workload rr", "-c 2 -t 2"),
    ] {
        let words = |text: &'static str| text.split(' ').collect::<Vec<_>>();
        let (server, address) = serve(&words(server));
        check_json(&short_load(&address, &words(client)));
        let told = farewell(server);
        assert!(told.contains(" requests, "), "{told}");
        assert!(!told.contains("WRONG"), "{told}");
    }
}

/// L-12, D3: five million a second are more than a thread can send anywhere.
#[test]
fn a_generator_that_cannot_keep_up_is_told_aloud() {
    let (_server, address) = serve(&[]);
    let target = [
        "load",
        &address,
        "--warm-up",
        "0",
        "-d",
        "300ms",
        "-c",
        "256",
    ];
    let load = |rate| {
        let output = output(&[&target[..], &["--rate", rate]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        output
    };
    let verdict = "warning: the generator was the limit, not the network";
    // A thread whose CPU others use is not at its end: then it may be another attempt.
    // It may be late there, but it sends all that is due.
    let keeps_up = |said: &str| !said.contains(verdict) || said.contains("it sent 100 % of");
    assert!((0..20).any(|_| keeps_up(&stdout(&load("100")))));
    let behind = |said: &str| said.contains(verdict) && !keeps_up(said);
    assert!((0..20).any(|_| behind(&stdout(&load("5000000")))));
}

#[test]
fn a_stream_is_told_in_bytes() {
    let (server, address) = serve(&["--workload", "stream"]);
    check_json(&short_load(&address, &["--workload", "stream", "-c", "1"]));
    let told = output(&[
        "load",
        &address,
        "--workload",
        "stream",
        "-c",
        "1",
        "-d",
        "200ms",
    ]);
    let told = stdout(&told);
    assert!(
        told.contains("bit/s") && told.contains("per byte"),
        "{told}"
    );
    assert!(
        !told.contains("requests") && !told.contains("p50"),
        "{told}"
    );
    assert!(!farewell(server).contains("requests"));
}

#[test]
fn the_receiver_of_datagrams_counts_load_after_load() {
    let is_whole = |(expected, told): &(String, String)| told.contains(expected);
    let (expected, told) = in_time(two_loads_of_datagrams, is_whole);
    assert!(told.contains(&expected), "{expected}: {told}");
}

/// What the receiver of two loads should say, and what it says: one that has no CPU for long
/// loses what its socket cannot hold, and counts that.
fn two_loads_of_datagrams() -> (String, String) {
    let (server, address) = serve(&["--workload", "datagram"]);
    let arguments = ["--workload", "datagram", "-c", "2", "--rate", "2000"];
    let mut sent = 0;
    for _ in 0..2 {
        let result = short_load(&address, &arguments);
        check_json(&result);
        sent += result["requests"].as_u64().unwrap();
    }
    let told = farewell(server);
    assert!(told.contains(" 0 twice"), "{told}");
    let expected = format!("{sent} messages received, 0 lost (0.000 %), 0 reordered, 0 twice");
    (expected, told)
}

#[test]
fn ends_that_differ_are_told_how_to_agree() {
    for (server, client) in [
        ("--request-size 64", "--request-size 100"),
        ("--request-size 100", "--request-size 64"),
        ("--response-size 100", "--response-size 64"),
        ("--response-size 64", "--response-size 100"),
        ("--workload http", "--workload rr"),
        ("--udp --response-size 64", "--udp --response-size 100"),
    ] {
        let words = |text: &'static str| text.split(' ').collect::<Vec<_>>();
        let (_server, address) = serve(&words(server));
        let mut arguments = vec!["load", &address, "-d", "30s"];
        arguments.extend(words(client));
        let result = output(&arguments);
        let told = stderr(&result);
        assert_eq!(result.status.code(), Some(2), "{server}, {client}: {told}");
        assert!(told.contains("same workload and sizes"), "{told}");
        assert!(told.contains("plumbline serve 127.0.0.1:"), "{told}");
    }
}

/// A server that strangers could abuse is asked about first.
#[test]
fn a_server_is_open_to_strangers_only_where_that_was_said() {
    for (arguments, remedy) in [
        (&["serve", "8.8.8.8:7117"][..], "--i-own-this"),
        (
            &["serve", "127.0.0.1:0", "--udp", "--response-size", "100"],
            "--secret",
        ),
        (&["serve", "127.0.0.1:0", "--secret", "short"], "8 to 16"),
        (&["serve", "127.0.0.1:0", "--think", "2s"], "1s"),
        (
            &[
                "serve",
                "127.0.0.1:0",
                "--workload",
                "stream",
                "--think",
                "2us",
            ],
            "--think",
        ),
    ] {
        let result = output(arguments);
        let told = stderr(&result);
        assert_eq!(result.status.code(), Some(64), "{arguments:?}: {told}");
        assert!(told.contains(remedy), "{arguments:?}: {told}");
    }
}

#[test]
fn who_knows_the_secret_is_answered_and_others_are_counted() {
    let flags = ["--udp", "--response-size", "100", "--secret", "a good word"];
    let (server, address) = serve(&flags);
    let is_answered = || {
        let load = [&flags[..], &["--rate", "2000"]].concat();
        check_json(&short_load(&address, &load));
    };
    is_answered();
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&[0; 64], &address).unwrap();
    // What is answered was behind it in the same socket.
    is_answered();
    let told = farewell(server);
    assert!(told.contains("DROPPED      1 "), "{told}");
}

#[test]
fn a_server_that_thinks_answers_no_sooner() {
    let (_server, address) = serve(&["--think", "2ms"]);
    let result = short_load(&address, &["-c", "1"]);
    let mean = result["latency_ns"]["mean"].as_f64();
    assert!(mean.is_some_and(|ns| ns > 1.98e6), "{result}");
}

#[test]
fn contradictions_are_bad_usage() {
    for arguments in [
        &["load", "127.0.0.1:9", "--workload", "stream", "--rate", "9"][..],
        &["load", "127.0.0.1:9", "-t", "0"],
        &["load", "127.0.0.1:9", "--request-size", "15"],
        &["load", "127.0.0.1:9", "-d", "0"],
        &["serve", "127.0.0.1:0", "--udp", "--workload", "http"],
        &["serve", "127.0.0.1:0", "--response-size", "15"],
    ] {
        let result = output(arguments);
        let told = stderr(&result);
        assert_eq!(result.status.code(), Some(64), "{arguments:?}: {told}");
        assert!(!told.trim().is_empty());
    }
}

#[test]
fn nobody_there_is_an_error_with_its_cause() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let result = output(&["load", &free, "-d", "200ms"]);
    assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
    assert!(stderr(&result).contains("refused"), "{}", stderr(&result));
}

/// A server that answers every connection with the same bytes, then closes.
fn rude_server(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // The client may be gone before it is answered.
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer);
        }
    });
    address
}

#[test]
fn garbage_is_counted_and_never_a_number() {
    for answer in [
        &b"\x00\xff garbage\r\n\r\n"[..],
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
    ] {
        let url = format!("http://{}/", rude_server(answer));
        let result = output(&[
            "load",
            &url,
            "-d",
            "200ms",
            "--warm-up",
            "10ms",
            "-c",
            "2",
            "--json",
        ]);
        let value: serde_json::Value = serde_json::from_slice(&result.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}{}", stdout(&result), stderr(&result)));
        assert_eq!(value["requests"], 0, "{value}");
        assert!(value["errors"].as_u64().unwrap() > 0, "{value}");
        assert_eq!(result.status.code(), Some(2));
    }
}

#[test]
fn an_http_server_that_closes_each_connection_is_understood() {
    let url = format!(
        "http://{}/",
        rude_server(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end")
    );
    let value = json(&[
        "load",
        &url,
        "-d",
        "200ms",
        "--warm-up",
        "10ms",
        "-c",
        "2",
        "--json",
    ]);
    assert!(value["requests"].as_u64().unwrap() > 0, "{value}");
    assert_eq!(value["errors"], 0, "{value}");
}
