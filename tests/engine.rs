//! `load` and `serve`, as a user of wrk or iperf3 would.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::world::{Running, json, output, stderr, stdout};

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

#[test]
fn every_workload_gives_the_json_that_scripts_hold_on_to() {
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["--rate", "2000"]),
        (&["--udp"], &["--udp", "--rate", "2000"]),
        (
            &["--workload", "crr"],
            &["--workload", "crr", "--rate", "500"],
        ),
        (
            &["--workload", "http"],
            &["--workload", "http", "--rate", "2000"],
        ),
        (
            &["--workload", "http"],
            &["--workload", "http", "--rate", "500", "--no-keep-alive"],
        ),
        (
            &["--workload", "stream"],
            &["--workload", "stream", "-c", "1"],
        ),
        (
            &["--workload", "datagram"],
            &["--workload", "datagram", "-c", "1", "--rate", "2000"],
        ),
        (&[], &[]),
    ];
    for (server, client) in cases {
        let (mut server, address) = serve(server);
        let mut arguments = vec![
            "load",
            address.as_str(),
            "-d",
            "300ms",
            "--warm-up",
            "50ms",
            "--json",
        ];
        arguments.extend(*client);
        let result = json(&arguments);
        assert_eq!(result["errors"], 0, "{client:?}: {result}");
        assert!(
            result["requests"].as_u64().unwrap() > 0,
            "{client:?}: {result}"
        );
        assert!(result["achieved_rate"].as_f64().unwrap() > 0.0);
        assert!(result["cpu_seconds"].as_f64().unwrap() > 0.0);
        for key in ["latency_ns", "service_time_ns", "send_lag_ns"] {
            for quantile in [
                "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max", "mean",
            ] {
                assert!(
                    result[key].get(quantile).is_some(),
                    "{key} {quantile}: {result}"
                );
            }
            assert!(
                result[key]["p99.999"].is_null(),
                "300 ms cannot carry it: {result}"
            );
        }
        server.signal(Signal::SIGINT);
        assert_eq!(server.wait(Duration::from_secs(2)), Some(0));
        let mut told = String::new();
        server
            .0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut told)
            .unwrap();
        assert!(told.contains("requests"), "{told}");
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

#[test]
fn ctrl_c_ends_a_load() {
    let (_server, address) = serve(&[]);
    let mut load = Running::start(&["load", &address, "-d", "60s", "--rate", "100"]);
    std::thread::sleep(Duration::from_millis(300));
    load.signal(Signal::SIGINT);
    load.wait(Duration::from_secs(1));
}
