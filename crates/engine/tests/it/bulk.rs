//! Trains of datagrams, source addresses, and connections opened at a rate.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use plumbline_engine::{EngineError, LoadPlan, ServePlan, run};
use plumbline_experiment::{Arrival, Workload, WorkloadKind};

use crate::rig::{Server, load, loopback_v4, loopback_v6, serve, short, workload};

#[test]
fn messages_in_trains_are_numbered_and_checked_one_by_one() {
    for listen in [loopback_v4(), loopback_v6()] {
        // One message fills a train of its own, two make up a train, many do.
        for size in [16, 64, 1_000, 32_000, 60_000] {
            let spec = Workload {
                request_size: size,
                arrival: Arrival::Constant { rate: 5_000.0 },
                connections: 2,
                ..workload(WorkloadKind::Datagram)
            };
            let server = Server::start(&ServePlan::new(spec.clone(), listen));
            let load = load(&LoadPlan {
                trains: true,
                ..short(spec, server.address)
            });
            let serve = server.finish();
            let counts = serve.datagrams.unwrap();
            assert_eq!(load.errors.total() + serve.corrupt, 0, "{size} B");
            assert_eq!((load.planned, load.sent), (1_000, 1_000));
            assert_eq!((counts.duplicated, counts.reordered), (0, 0));
            assert_eq!(counts.bytes, counts.received * u64::from(size));
            assert_eq!(load.send_lag.len(), 1_000);
            if size <= 1_000 {
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
    let server = Server::start(&ServePlan::new(spec.clone(), loopback_v4()));
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

#[test]
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
    let peers = peers.lock().unwrap();
    assert!(
        sources.iter().all(|source| peers.contains(source)),
        "{peers:?}"
    );
}

#[test]
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

#[test]
fn a_ramp_spreads_the_opening_of_connections() {
    let spec = Workload {
        connections: 21,
        ..workload(WorkloadKind::Rr)
    };
    let server = Server::start(&ServePlan::new(spec.clone(), loopback_v4()));
    let plan = short(spec, server.address);
    let took = |ramp| {
        let start = Instant::now();
        let result = load(&LoadPlan {
            ramp,
            ..plan.clone()
        });
        assert_eq!(result.errors.total(), 0);
        start.elapsed().as_millis()
    };
    // 20 more connections after the first at 100/s, before 250 ms of load.
    assert!(took(Some(100.0)) >= 200 + 250);
    assert!(took(None) >= 250);
}
