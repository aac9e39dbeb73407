//! Loads whose receiver wants to be shown a secret, and strangers who know none.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_engine::{LoadPlan, ServePlan};
use plumbline_experiment::{Arrival, DriverChoice, Protocol, Workload, WorkloadKind};
use plumbline_record::{LoadResult, ServeResult};

use crate::rig::{
    self, LIMIT, Server, eventually, in_time, load, loopback_v4, secret, short, workload,
};

/// Every way in which a secret is shown.
fn workloads() -> Vec<Workload> {
    let udp = |kind| Workload {
        protocol: Protocol::Udp,
        arrival: Arrival::Constant { rate: 2_000.0 },
        ..workload(kind)
    };
    vec![
        workload(WorkloadKind::Rr),
        workload(WorkloadKind::Crr),
        workload(WorkloadKind::Http),
        Workload {
            keep_alive: false,
            ..workload(WorkloadKind::Http)
        },
        workload(WorkloadKind::Stream),
        udp(WorkloadKind::Rr),
        udp(WorkloadKind::Datagram),
        // No byte but the head.
        Workload {
            request_size: 16,
            ..udp(WorkloadKind::Datagram)
        },
    ]
}

/// A load with the secret, and `strangers` before and beside it, who get the server's address.
fn beside(spec: &Workload, strangers: impl Fn(SocketAddr) + Sync) -> (LoadResult, ServeResult) {
    let server = Server::start(&ServePlan {
        secret: Some(secret()),
        ..ServePlan::new(spec.clone(), loopback_v4())
    });
    let plan = LoadPlan {
        secret: Some(secret()),
        ..short(spec.clone(), server.address)
    };
    let address = server.address;
    strangers(address);
    let result = thread::scope(|scope| {
        scope.spawn(|| strangers(address));
        load(&plan)
    });
    // For datagrams that are still in the socket.
    thread::sleep(Duration::from_millis(50));
    (result, server.finish())
}

/// Whether all datagrams, and all that strangers sent, have come: what a receiver without a CPU
/// has no room for is lost.
fn have_all_come((result, seen): &(LoadResult, ServeResult), strangers: u64) -> bool {
    let counts = seen.datagrams.as_ref();
    seen.strangers == strangers && counts.is_none_or(|it| it.received == result.sent)
}

/// What a responder counts, beside the strangers.
fn is_undisturbed(spec: &Workload, result: &LoadResult, seen: &ServeResult) {
    let name = &spec.in_words("64", "100");
    assert!(
        result.sent > 0 && seen.bytes_received > 0,
        "{name}: {result:?}"
    );
    assert_eq!((result.errors.total(), seen.corrupt), (0, 0), "{name}");
    match seen.datagrams {
        Some(counts) => {
            assert_eq!(counts.received, result.sent, "{name}");
            assert_eq!((counts.duplicated, counts.missing), (0, 0), "{name}");
        }
        None if spec.kind == WorkloadKind::Stream => {}
        None => {
            assert!(
                result.completed > 0 && seen.requests >= result.completed,
                "{name}"
            );
            assert_eq!(
                seen.bytes_sent,
                seen.requests * u64::from(spec.response_size),
                "{name}"
            );
        }
    }
}

fn one_who_knows_the_secret_is_served() {
    for spec in workloads() {
        let (result, seen) = in_time(|| beside(&spec, |_| {}), |it| have_all_come(it, 0));
        is_undisturbed(&spec, &result, &seen);
        assert_eq!(seen.strangers, 0, "{}", spec.name);
    }
}

/// Strangers before a load, and as many beside it.
const AT_ONCE: u64 = 100;

fn stray_datagrams(server: SocketAddr, usual_size: usize) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    for size in [0, 1, usual_size, 1_000] {
        socket.send(&random(size)).unwrap();
    }
    socket
        .set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    socket.recv(&mut [0; 1]).expect_err("nothing is answered");
}

fn stray_connection(server: SocketAddr) {
    let mut client = TcpStream::connect(server).unwrap();
    let _ = client.write_all(&random(2_000));
    // It may be closed with what was sent still unread.
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert!(answer.is_empty(), "nothing is answered");
}

fn random(size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    let source = File::open("/dev/urandom");
    source.unwrap().read_exact(&mut bytes).unwrap();
    bytes
}

fn what_strangers_send_is_dropped_and_counted() {
    for spec in workloads() {
        let stray = |address| {
            for _ in 0..AT_ONCE {
                if spec.is_udp() {
                    stray_datagrams(address, spec.request_size as usize);
                } else {
                    stray_connection(address);
                }
            }
        };
        let strangers = 2 * AT_ONCE * if spec.is_udp() { 4 } else { 1 };
        let (result, seen) = in_time(|| beside(&spec, stray), |it| have_all_come(it, strangers));
        is_undisturbed(&spec, &result, &seen);
        assert_eq!(seen.strangers, strangers, "{}", spec.name);
    }
}

/// The drivers take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Not made by `by_each_driver`: docs/promises.md names it.
#[test]
fn what_strangers_send_is_in_no_figure() {
    rig::by(
        DriverChoice::Epoll,
        &TURN,
        what_strangers_send_is_dropped_and_counted,
    );
}

#[test]
fn what_strangers_send_is_in_no_figure_by_uring() {
    if rig::has_ring("what_strangers_send_is_in_no_figure_by_uring") {
        rig::by(
            DriverChoice::Uring,
            &TURN,
            what_strangers_send_is_dropped_and_counted,
        );
    }
}

/// So many strangers beside a load keep sending.
const CROWD: u64 = 200;
/// Of each, between what it sends: they are not to take the CPUs from the load.
const PAUSE: Duration = Duration::from_millis(200);

/// The median latency of a load, nanoseconds, beside a crowd of strangers: they come to the load's
/// receiver, or to another one like it.
fn median_beside_a_crowd(spec: &Workload, it_comes: bool) -> u64 {
    let [receiver, another] = [(); 2].map(|()| {
        Server::start(&ServePlan {
            secret: Some(secret()),
            ..ServePlan::new(spec.clone(), loopback_v4())
        })
    });
    let goal = if it_comes { &receiver } else { &another }.address;
    let plan = LoadPlan {
        warm_up: Duration::from_millis(30),
        measure: Duration::from_millis(100),
        secret: Some(secret()),
        ..short(spec.clone(), receiver.address)
    };
    let (has_ended, came) = (AtomicBool::new(false), AtomicU64::new(0));
    let stray = || {
        // They also end when the load fails, and nobody says that it has ended.
        let begun = Instant::now();
        while !has_ended.load(Ordering::Relaxed) && begun.elapsed() < LIMIT {
            if spec.is_udp() {
                stray_datagrams(goal, spec.request_size as usize);
            } else {
                stray_connection(goal);
            }
            came.fetch_add(1, Ordering::Relaxed);
            thread::park_timeout(PAUSE);
        }
    };
    let result = thread::scope(|scope| {
        let spawn = |_| {
            // Not all in one moment.
            thread::sleep(PAUSE / (2 * CROWD as u32));
            scope.spawn(stray)
        };
        let crowd: Vec<_> = (0..CROWD).map(spawn).collect();
        eventually("every stranger has come", || {
            came.load(Ordering::Relaxed) >= CROWD
        });
        let before = came.load(Ordering::Relaxed);
        let result = load(&plan);
        let meanwhile = came.load(Ordering::Relaxed) - before;
        has_ended.store(true, Ordering::Relaxed);
        crowd.iter().for_each(|it| it.thread().unpark());
        assert!(meanwhile > 0, "they went away");
        result
    });
    let name = &spec.in_words("64", "100");
    let [seen, elsewhere] = [receiver, another].map(Server::finish);
    assert_eq!((result.errors.total(), seen.corrupt), (0, 0), "{name}");
    let [visited, other] = if it_comes {
        [seen, elsewhere]
    } else {
        [elsewhere, seen]
    };
    assert!(visited.strangers >= CROWD, "{name}: {visited:?}");
    assert_eq!(other.strangers, 0, "{name}");
    assert!(result.completed > 0, "{name}: {result:?}");
    result.latency.value_at(0.5)
}

/// Whether the middle of `of` is further from all `others` than these are from each other.
fn is_beyond(mut of: [u64; 4], others: [u64; 4]) -> bool {
    of.sort_unstable();
    let middle = of[1].midpoint(of[2]);
    let (least, most) = (others.iter().min().unwrap(), others.iter().max().unwrap());
    let width = most - least;
    middle > most + width || middle + width < *least
}

/// A crowd that keeps sending random bytes to a load's receiver changes no latency by more than
/// latencies differ while it sends them to another one, which takes as much of the CPUs.
#[test]
fn a_crowd_of_strangers_that_comes_to_a_load_changes_no_latency() {
    let over_udp = Workload {
        protocol: Protocol::Udp,
        ..workload(WorkloadKind::Rr)
    };
    for spec in [workload(WorkloadKind::Rr), over_udp] {
        let mut seen = Vec::new();
        let is_alike = |_: &u32| {
            let pairs = [(); 4].map(|()| [false, true].map(|it| median_beside_a_crowd(&spec, it)));
            let [elsewhere, here] = [0, 1].map(|at| pairs.map(|pair| pair[at]));
            seen.push((elsewhere, here));
            !is_beyond(here, elsewhere)
        };
        // What others do to the machine in one try they may not do in the next.
        let alike = (0..3).filter(is_alike).take(2).count();
        assert_eq!(alike, 2, "{:?}: {seen:?}", spec.protocol);
    }
}

#[test]
fn a_latency_that_is_changed_is_told_from_noise() {
    let alone = [100, 104, 98, 102];
    for (beside, is_changed) in [
        ([101, 99, 250, 103], false),
        ([109, 110, 110, 111], false),
        ([111, 111, 111, 111], true),
        ([150, 140, 160, 99], true),
        ([91, 80, 91, 91], true),
    ] {
        assert_eq!(is_beyond(beside, alone), is_changed, "{beside:?}");
    }
}

/// The same load without the secret, or with another one.
fn a_load_without_the_secret_gets_nothing() {
    for spec in workloads() {
        let server = Server::start(&ServePlan {
            secret: Some(secret()),
            ..ServePlan::new(spec.clone(), loopback_v4())
        });
        let plan = LoadPlan {
            secret: None,
            ..short(spec.clone(), server.address)
        };
        // Connections are closed, so the load may not even begin.
        let result = plumbline_engine::run(&plan, &false.into(), &mut ());
        let is_bulk = !spec.kind.is_answered();
        assert!(is_bulk || result.is_err() || result.is_ok_and(|it| it.completed == 0));
        let seen = server.finish();
        assert!(seen.strangers > 0, "{}", spec.name);
        assert_eq!(
            (seen.requests, seen.bytes_received),
            (0, 0),
            "{}",
            spec.name
        );
        assert_eq!(seen.datagrams.unwrap_or_default().received, 0);
    }
}

by_each_driver! {
    one_who_knows_the_secret_is_served,
    a_load_without_the_secret_gets_nothing,
}
