//! Loads whose receiver wants to be shown a secret, and strangers who know none.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use plumbline_engine::{LoadPlan, ServePlan};
use plumbline_experiment::{Arrival, Protocol, Workload, WorkloadKind};
use plumbline_record::{LoadResult, ServeResult};

use crate::rig::{Server, in_time, load, loopback_v4, secret, short, workload};

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

/// What a load of ours sends that has no secret, or another one.
fn what_strangers_send_is_dropped_and_in_no_figure() {
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
    what_strangers_send_is_dropped_and_in_no_figure,
    a_load_without_the_secret_gets_nothing,
}
