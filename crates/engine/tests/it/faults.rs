//! Servers that refuse, die, lie or babble: errors with their count, never a
//! hang, never a wrong number.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_engine::{EngineError, LoadPlan, Observer, Progress, Responder, ServePlan, run};
use plumbline_experiment::{Arrival, Protocol, Workload, WorkloadKind};

use crate::rig::{Server, load, loopback_v4, short, workload};

/// A server that handles each connection on a thread of its own, and is
/// forgotten when the test ends.
fn serve(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle(connection));
        }
    });
    address
}

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

#[test]
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

#[test]
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

#[test]
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
        assert!(result.latency.max() >= 299_000_000);
        assert!(result.latency.value_at(0.0) >= 100_000_000);
        if arrival != Arrival::Closed {
            assert_eq!(result.planned, 40);
            // Two went out, the rest found no connection.
            assert_eq!((result.sent, result.waited_for_connection), (2, 38));
        }
    }
}

#[test]
fn a_corrupt_answer_is_found() {
    // Echoes the request: the right size and number, the wrong content.
    let echo = serve(|mut connection| {
        let mut buffer = [0; 64];
        while connection.read_exact(&mut buffer).is_ok() {
            if connection.write_all(&buffer).is_err() {
                return;
            }
        }
    });
    let spec = Workload {
        response_size: 64,
        ..workload(WorkloadKind::Rr)
    };
    let result = load(&short(spec, echo));
    assert_eq!(result.completed, 0);
    assert!(result.errors.corrupt > 0);
    assert_eq!(result.errors.corrupt, result.errors.total());
}

#[test]
fn our_responder_finds_a_corrupt_request() {
    let spec = workload(WorkloadKind::Rr);
    let server = Server::start(&ServePlan::new(spec, loopback_v4()));
    let mut connection = TcpStream::connect(server.address).unwrap();
    connection.write_all(&[7; 64]).unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    assert!(answer.is_empty());
    let seen = server.finish();
    assert_eq!((seen.requests, seen.corrupt), (0, 1));
}

#[test]
fn a_server_that_dies_gives_errors_and_no_hang() {
    for kind in [WorkloadKind::Rr, WorkloadKind::Crr, WorkloadKind::Stream] {
        let spec = workload(kind);
        let server = Server::start(&ServePlan::new(spec.clone(), loopback_v4()));
        let target = server.address;
        let killer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(150));
            server.finish()
        });
        let start = Instant::now();
        let result = load(&short(spec, target));
        killer.join().unwrap();
        assert!(result.completed > 0, "{kind:?}");
        assert!(result.errors.total() > 0, "{kind:?}");
        assert!(start.elapsed() < Duration::from_secs(2), "{kind:?}");
    }
}

#[test]
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

#[test]
fn a_refused_target_is_told_in_a_sentence() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = nobody.local_addr().unwrap();
    drop(nobody);
    for kind in [
        WorkloadKind::Rr,
        WorkloadKind::Crr,
        WorkloadKind::Http,
        WorkloadKind::Stream,
    ] {
        let error = run(
            &short(workload(kind), target),
            &AtomicBool::new(false),
            &mut (),
        );
        let error = error.expect_err("nobody listens there");
        assert!(matches!(error, EngineError::Refused { .. }));
        assert!(error.to_string().contains(&target.to_string()));
    }
}

#[test]
fn a_refused_datagram_is_an_error() {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = nobody.local_addr().unwrap();
    drop(nobody);
    for (kind, arrival) in [
        (WorkloadKind::Rr, Arrival::Closed),
        (WorkloadKind::Rr, Arrival::Constant { rate: 500.0 }),
        (WorkloadKind::Datagram, Arrival::Constant { rate: 500.0 }),
    ] {
        let spec = Workload {
            protocol: Protocol::Udp,
            arrival,
            ..workload(kind)
        };
        let result = load(&short(spec, target));
        assert!(result.errors.total() > 0, "{kind:?} {arrival:?}");
        assert!(kind == WorkloadKind::Datagram || result.completed == 0);
    }
}

#[test]
fn lost_datagrams_are_censored_and_a_closed_loop_goes_on() {
    // Answers nothing at all.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let spec = Workload {
        protocol: Protocol::Udp,
        connections: 1,
        ..workload(WorkloadKind::Rr)
    };
    let mut plan = short(spec, silent.local_addr().unwrap());
    plan.warm_up = Duration::ZERO;
    plan.measure = Duration::from_millis(2_500);
    plan.drain = Duration::from_millis(100);
    let result = load(&plan);
    // It gives up after 1 s each: two given up, the third cut by the end.
    assert_eq!((result.sent, result.censored), (3, 3));
    assert!(result.latency.value_at(0.0) >= 500_000_000);
}

#[test]
fn a_taken_port_and_a_foreign_address_are_told_apart() {
    let spec = workload(WorkloadKind::Rr);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let error = Responder::bind(&ServePlan::new(spec.clone(), at));
    assert!(matches!(error.err(), Some(EngineError::PortTaken { .. })));
    let foreign = "192.0.2.1:0".parse().unwrap();
    let error = Responder::bind(&ServePlan::new(spec, foreign));
    assert!(matches!(error.err(), Some(EngineError::Listen { .. })));
}

#[test]
fn more_connections_than_files_are_refused_ahead() {
    let spec = Workload {
        connections: u32::MAX,
        ..workload(WorkloadKind::Rr)
    };
    let error = run(
        &short(spec, loopback_v4()),
        &AtomicBool::new(false),
        &mut (),
    );
    let error = error.err().unwrap();
    assert!(matches!(error, EngineError::TooManyFiles { .. }));
    assert!(error.to_string().contains("ulimit -n"));
}

#[test]
fn impossible_plans_are_refused() {
    let mut plan = short(workload(WorkloadKind::Rr), loopback_v4());
    plan.workload.request_size = 15;
    let small = plan.clone();
    plan.workload.request_size = 16;
    plan.workload.connections = 0;
    let none = plan.clone();
    plan.workload.connections = 1;
    plan.workload.arrival = Arrival::Constant { rate: 0.0 };
    let still = plan.clone();
    plan.workload.arrival = Arrival::Closed;
    plan.path = "/a b".into();
    for plan in [small, none, still, plan] {
        let error = run(&plan, &AtomicBool::new(false), &mut ()).err().unwrap();
        assert!(matches!(error, EngineError::Plan(_)), "{error}");
    }
}

/// Notes when it was called.
#[derive(Default)]
struct Witness {
    opened: Option<Instant>,
    closed: Option<Instant>,
}

impl Observer for Witness {
    fn window_opens(&mut self) {
        assert!(self.opened.replace(Instant::now()).is_none());
    }

    fn window_closes(&mut self) {
        assert!(self.closed.replace(Instant::now()).is_none());
    }
}

#[test]
fn the_observer_sees_the_window_and_progress_counts() {
    let spec = workload(WorkloadKind::Rr);
    let server = Server::start(&ServePlan::new(spec.clone(), loopback_v4()));
    let progress = Arc::new(Progress::default());
    let plan = LoadPlan {
        progress: Some(Arc::clone(&progress)),
        ..short(spec, server.address)
    };
    let mut witness = Witness::default();
    let result = run(&plan, &AtomicBool::new(false), &mut witness).unwrap();
    let seen = witness.closed.unwrap() - witness.opened.unwrap();
    assert!(
        seen.abs_diff(plan.measure) < Duration::from_millis(30),
        "{seen:?}"
    );
    assert!(progress.completed() >= result.completed);
    assert!(progress.bytes() > 0);
    assert!(result.cpu.user_ns + result.cpu.system_ns > 0);
}

#[test]
fn a_stop_ends_both_ends_within_100_ms() {
    for kind in [
        WorkloadKind::Rr,
        WorkloadKind::Crr,
        WorkloadKind::Http,
        WorkloadKind::Stream,
        WorkloadKind::Datagram,
    ] {
        let spec = workload(kind);
        let server = Server::start(&ServePlan::new(spec.clone(), loopback_v4()));
        let mut plan = short(spec, server.address);
        plan.measure = Duration::from_secs(60);
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let running = thread::spawn(move || run(&plan, &flag, &mut ()).unwrap());
        thread::sleep(Duration::from_millis(250));
        let start = Instant::now();
        stop.store(true, Ordering::Relaxed);
        let result = running.join().unwrap();
        assert!(
            start.elapsed() < Duration::from_millis(100),
            "{kind:?}: {:?}",
            start.elapsed()
        );
        // What was measured until then is kept, and its length told.
        assert!(result.completed > 0, "{kind:?}");
        assert!(
            (100_000_000..300_000_000).contains(&result.window_ns),
            "{kind:?}"
        );
        let start = Instant::now();
        server.finish();
        assert!(start.elapsed() < Duration::from_millis(100), "{kind:?}");
    }
}
