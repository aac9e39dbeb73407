//! Servers that refuse, die, lie or lose: errors with their count, never a
//! hang, never a wrong number.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_engine::{
    EngineError, LoadPlan, LoadProgress, Responder, ServePlan, WindowObserver, run,
};
use plumbline_experiment::{Arrival, Protocol, Workload, WorkloadKind};
use plumbline_record::LoadResult;
use plumbline_sys::clock::now_ns;

use crate::rig::{
    LIMIT, Server, load, loopback_v4, often_in_time, serve, serving, short, workload,
};

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

/// Tells another thread that the window is open.
struct Opening(mpsc::Sender<()>);

impl WindowObserver for Opening {
    fn window_opens(&mut self) {
        self.0.send(()).unwrap();
    }

    fn window_closes(&mut self) {}
}

fn a_server_that_dies_gives_errors_and_no_hang() {
    for kind in [WorkloadKind::Rr, WorkloadKind::Crr, WorkloadKind::Stream] {
        let spec = workload(kind);
        let server = Server::start(&serving(&spec, loopback_v4()));
        let plan = LoadPlan {
            measure: Duration::from_secs(1),
            ..short(spec, server.address)
        };
        let (opening, opened) = mpsc::channel();
        let killer = thread::spawn(move || {
            opened.recv().unwrap();
            thread::sleep(Duration::from_millis(150));
            server.finish()
        });
        let start = Instant::now();
        let mut observer = Opening(opening);
        let result = run(&plan, &AtomicBool::new(false), &mut observer).unwrap();
        killer.join().unwrap();
        assert!(result.completed > 0, "{kind:?}");
        assert!(result.errors.total() > 0, "{kind:?}");
        assert!(start.elapsed() < LIMIT, "{kind:?}");
    }
}

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
    plan.drain = Duration::from_millis(400);
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
    let error = Responder::bind(&serving(&spec, at));
    assert!(matches!(error.err(), Some(EngineError::PortTaken { .. })));
    let foreign = "192.0.2.1:0".parse().unwrap();
    let error = Responder::bind(&ServePlan::new(spec, foreign));
    assert!(matches!(error.err(), Some(EngineError::Listen { .. })));
}

#[test]
fn more_connections_than_the_ceiling_are_refused_ahead() {
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
    assert!(matches!(error, EngineError::Plan(_)));
    assert!(error.to_string().contains("to 100000"), "{error}");
}

#[test]
fn a_cpu_that_is_not_there_is_told_by_every_worker() {
    let spec = workload(WorkloadKind::Rr);
    let server = Server::start(&serving(&spec, loopback_v4()));
    for cpus in [vec![0, 1_000], vec![1_000, 0], vec![1_000]] {
        let plan = LoadPlan {
            threads: 2,
            cpus,
            ..short(spec.clone(), server.address)
        };
        let error = run(&plan, &AtomicBool::new(false), &mut ());
        let error = error.expect_err("no machine of ours has that many");
        assert!(matches!(error, EngineError::Pin { cpu: 1_000, .. }));
    }
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

/// Says when the load starts, and notes when it was called, by the monotonic clock.
#[derive(Default)]
struct Witness {
    start_ns: u64,
    opened_ns: Option<u64>,
    closed_ns: Option<u64>,
}

impl WindowObserver for Witness {
    fn begins(&mut self) -> Option<u64> {
        self.start_ns = now_ns() + 2_000_000;
        Some(self.start_ns)
    }

    fn window_opens(&mut self) {
        assert!(self.opened_ns.replace(now_ns()).is_none());
    }

    fn window_closes(&mut self) {
        assert!(self.closed_ns.replace(now_ns()).is_none());
    }
}

fn the_observer_sees_the_window_and_progress_counts() {
    let spec = workload(WorkloadKind::Rr);
    let server = Server::start(&serving(&spec, loopback_v4()));
    let witnessed = || {
        let progress = Arc::new(LoadProgress::default());
        let plan = LoadPlan {
            progress: Some(Arc::clone(&progress)),
            ..short(spec.clone(), server.address)
        };
        let mut witness = Witness::default();
        let result = run(&plan, &AtomicBool::new(false), &mut witness).unwrap();
        assert!(progress.completed() >= result.completed);
        assert!(progress.bytes() > 0);
        assert!(result.cpu.user_ns + result.cpu.system_ns > 0);
        let open_ns = witness.start_ns + plan.warm_up.as_nanos() as u64;
        let close_ns = open_ns + plan.measure.as_nanos() as u64;
        let called = [witness.opened_ns, witness.closed_ns].map(Option::unwrap);
        // The machine may delay a call, and nothing makes one early.
        let late = called.iter().zip([open_ns, close_ns]);
        let late = late.map(|(called, due)| called.checked_sub(due).expect("it is not early"));
        Duration::from_nanos(late.max().unwrap_or_default())
    };
    let is_punctual = |late: &Duration| *late < Duration::from_millis(30);
    let late = often_in_time(3, witnessed, is_punctual);
    assert!(is_punctual(&late), "{late:?}");
}

/// Stops a load of a minute after 150 ms. Gives its result, and how long the sender took to
/// end and then the receiver.
fn stopped(kind: WorkloadKind) -> (LoadResult, [Duration; 2]) {
    let spec = workload(kind);
    let server = Server::start(&serving(&spec, loopback_v4()));
    let mut plan = short(spec, server.address);
    plan.measure = Duration::from_secs(60);
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let running = thread::spawn(move || run(&plan, &flag, &mut ()).unwrap());
    thread::sleep(Duration::from_millis(150));
    let told = Instant::now();
    stop.store(true, Ordering::Relaxed);
    let result = running.join().unwrap();
    let sender = told.elapsed();
    let told = Instant::now();
    server.finish();
    (result, [sender, told.elapsed()])
}

fn a_stop_ends_both_ends_within_100_ms() {
    for kind in [
        WorkloadKind::Rr,
        WorkloadKind::Crr,
        WorkloadKind::Http,
        WorkloadKind::Stream,
        WorkloadKind::Datagram,
    ] {
        let is_in_time = |(result, took): &(LoadResult, [Duration; 2])| {
            took.iter().all(|it| *it < Duration::from_millis(100))
                && (50_000_000..200_000_000).contains(&result.window_ns)
        };
        let seen = often_in_time(3, || stopped(kind), is_in_time);
        assert!(is_in_time(&seen), "{kind:?}: {seen:?}");
        // What was measured until then is kept.
        assert!(seen.0.completed > 0, "{kind:?}");
    }
}

by_each_driver! {
    a_corrupt_answer_is_found,
    a_server_that_dies_gives_errors_and_no_hang,
    a_refused_target_is_told_in_a_sentence,
    a_refused_datagram_is_an_error,
    lost_datagrams_are_censored_and_a_closed_loop_goes_on,
    the_observer_sees_the_window_and_progress_counts,
    a_stop_ends_both_ends_within_100_ms,
}
