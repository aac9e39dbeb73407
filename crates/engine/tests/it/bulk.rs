//! Trains of datagrams, source addresses, and connections opened at a rate.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plumbline_engine::{EngineError, LoadPlan, run};
use plumbline_experiment::{Arrival, Workload, WorkloadKind};

use crate::rig::{
    Server, both_ends, eventually, in_time, load, loopback_v4, loopback_v6, serve, serving, short,
    workload,
};

#[test]
fn messages_in_trains_are_numbered_and_checked_one_by_one() {
    for listen in [loopback_v4(), loopback_v6()] {
        // One message fills a train of its own, two make up a train, many do.
        for size in [16, 64, 1_400, 32_000, 65_000] {
            let spec = Workload {
                request_size: size,
                arrival: Arrival::Constant { rate: 5_000.0 },
                connections: 2,
                ..workload(WorkloadKind::Datagram)
            };
            let in_trains = || {
                let server = Server::start(&serving(&spec, listen));
                let load = load(&LoadPlan {
                    trains: true,
                    ..short(spec.clone(), server.address)
                });
                (load, server.finish())
            };
            // A receiver that has to wait for a CPU loses what its socket cannot hold.
            let (load, serve) = in_time(in_trains, |(_, serve)| {
                size > 1_400 || serve.datagrams.as_ref().unwrap().received == 1_000
            });
            let counts = serve.datagrams.unwrap();
            assert_eq!(load.errors.total() + serve.corrupt, 0, "{size} B");
            assert_eq!((load.planned, load.sent), (1_000, 1_000));
            assert_eq!((counts.duplicated, counts.reordered), (0, 0));
            assert_eq!(counts.bytes, counts.received * u64::from(size));
            assert_eq!(load.send_lag.len(), 1_000);
            let train = if size <= 64 { 64 } else { 65_507 / size };
            assert_eq!(load.train, train.min(64), "{size} B");
            if size <= 1_400 {
                assert_eq!((counts.received, counts.missing), (1_000, 0), "{size} B");
            } else {
                // Three of these fill a receive buffer: a receiver that has to
                // wait for a CPU loses some, and must know it.
                assert!(counts.received > 0 && counts.received + counts.missing <= 1_000);
            }
        }
    }
}

#[test]
fn a_flood_of_trains_leaves_no_gaps_in_the_accounts() {
    let spec = workload(WorkloadKind::Datagram);
    let server = Server::start(&serving(&spec, loopback_v4()));
    let load = load(&LoadPlan {
        trains: true,
        ..short(spec, server.address)
    });
    let serve = server.finish();
    let counts = serve.datagrams.unwrap();
    assert_eq!(serve.corrupt, 0);
    assert_eq!(load.planned, load.sent + load.errors.send + load.censored);
    assert_eq!(load.send_lag.len(), load.sent);
    assert!(counts.received > 1_000 && counts.received <= load.sent);
    assert_eq!(counts.duplicated, 0);
}

#[test]
fn trains_are_for_datagrams_only() {
    let plan = LoadPlan {
        trains: true,
        ..short(workload(WorkloadKind::Rr), loopback_v4())
    };
    let result = run(&plan, &AtomicBool::new(false), &mut ());
    assert!(matches!(result, Err(EngineError::Plan(_))), "{result:?}");
}

fn connections_start_from_the_given_addresses_in_turn() {
    let peers = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&peers);
    let target = serve(move |stream| {
        seen.lock()
            .unwrap()
            .insert(stream.peer_addr().unwrap().ip());
    });
    let sources: Vec<IpAddr> = (2..5)
        .map(|last| Ipv4Addr::new(127, 0, 0, last).into())
        .collect();
    // What becomes of the requests does not matter: nobody answers them.
    load(&LoadPlan {
        sources: sources.clone(),
        ..short(workload(WorkloadKind::Rr), target)
    });
    eventually("each address is seen", || {
        let peers = peers.lock().unwrap();
        sources.iter().all(|source| peers.contains(source))
    });
}

fn a_source_of_another_machine_is_an_error_with_its_remedy() {
    let target = serve(drop);
    let plan = |source: &str| LoadPlan {
        sources: vec![source.parse().unwrap()],
        ..short(workload(WorkloadKind::Rr), target)
    };
    let stop = AtomicBool::new(false);
    let foreign = run(&plan("192.0.2.1"), &stop, &mut ()).unwrap_err();
    assert!(matches!(foreign, EngineError::NoSource { .. }), "{foreign}");
    assert!(foreign.to_string().contains("ip_local_port_range"));
    let other_family = run(&plan("::1"), &stop, &mut ()).unwrap_err();
    assert!(
        matches!(other_family, EngineError::Plan(_)),
        "{other_family}"
    );
}

fn a_ramp_is_held_from_the_first_connection_to_the_last() {
    let is_late = |(count, seconds): &(usize, f64)| *seconds > 1.0 + *count as f64 / RAMP * 2.0;
    let opened = in_time(ramp, |opened| !opened.iter().any(is_late));
    let late = opened.iter().find(|it| is_late(it));
    assert_eq!(late, None, "{opened:?}");
}

/// Connections per second.
const RAMP: f64 = 200.0;

/// When each connection of a ramp was opened, by its number, in seconds: none too early.
fn ramp() -> Vec<(usize, f64)> {
    const CONNECTIONS: usize = 61;
    let opened = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&opened);
    let target = serve(move |_| seen.lock().unwrap().push(Instant::now()));
    let spec = Workload {
        connections: CONNECTIONS as u32,
        ..workload(WorkloadKind::Rr)
    };
    let start = Instant::now();
    // What becomes of the requests does not matter: nobody answers them.
    load(&LoadPlan {
        ramp: Some(RAMP),
        warm_up: Duration::ZERO,
        ..short(spec, target)
    });
    eventually("all are accepted", || {
        opened.lock().unwrap().len() > CONNECTIONS
    });
    let opened = opened.lock().unwrap();
    // The first is the probe; those after the 62nd are reopened ones.
    let seconds = opened[1..=CONNECTIONS]
        .iter()
        .map(|at| (*at - start).as_secs_f64());
    let opened: Vec<(usize, f64)> = seconds.enumerate().collect();
    for (count, seconds) in &opened {
        let allowed = 1.0 + seconds * RAMP;
        assert!(
            *count as f64 + 1.0 <= allowed + 1e-6,
            "{count} at {seconds} s"
        );
    }
    opened
}

#[test]
fn a_stream_without_copies_says_what_became_of_them() {
    for listen in [loopback_v4(), loopback_v6()] {
        for zero_copy in [true, false] {
            let spec = Workload {
                connections: 2,
                zero_copy,
                ..workload(WorkloadKind::Stream)
            };
            let (load, serve) = both_ends(&spec, listen);
            assert_eq!((load.errors.total(), serve.corrupt), (0, 0));
            assert!(load.bytes_sent > 1 << 20);
            match load.zero_copy {
                // Packets that stay on this machine are always copied.
                Some(counts) => {
                    assert!(zero_copy && counts.told > 10, "{counts:?}");
                    assert_eq!(counts.told, counts.copied);
                }
                None => assert!(!zero_copy),
            }
        }
    }
}

/// A notice and a broken connection look alike to a poller.
#[test]
fn a_stream_without_copies_still_sees_its_connection_break() {
    let target = serve(|mut stream| {
        let mut some = vec![0; 1 << 20];
        let _ = stream.read_exact(&mut some);
    });
    let spec = Workload {
        connections: 1,
        zero_copy: true,
        ..workload(WorkloadKind::Stream)
    };
    let result = load(&short(spec, target));
    assert!(result.errors.closed > 1, "{:?}", result.errors);
}

#[test]
fn only_a_stream_goes_without_copies() {
    let spec = Workload {
        zero_copy: true,
        ..workload(WorkloadKind::Rr)
    };
    let plan = short(spec, loopback_v4());
    let result = run(&plan, &AtomicBool::new(false), &mut ());
    assert!(matches!(result, Err(EngineError::Plan(_))), "{result:?}");
}

by_each_driver! {
    connections_start_from_the_given_addresses_in_turn,
    a_source_of_another_machine_is_an_error_with_its_remedy,
    a_ramp_is_held_from_the_first_connection_to_the_last,
}
