//! Every workload, both ends ours, over IPv4 and IPv6.

use plumbline_engine::{LoadPlan, ServePlan};
use plumbline_experiment::{Arrival, Protocol, Wait, Workload, WorkloadKind};
use plumbline_record::{LoadResult, ServeResult};

use crate::rig::{
    Server, both_ends, in_time, load, loopback_v4, loopback_v6, serving, short, workload,
};

/// What must hold for every request and answer workload on a healthy path.
fn check_exchange(spec: &Workload, load: &LoadResult, serve: &ServeResult) {
    assert_eq!(load.errors.total(), 0, "{:?}", load.errors);
    assert_eq!(serve.corrupt, 0);
    assert!(load.completed > 0);
    assert_eq!(load.completed + load.censored, load.planned);
    assert_eq!(load.latency.len(), load.planned);
    assert_eq!(load.send_lag.len(), load.planned);
    assert!(serve.requests >= load.completed);
    assert_eq!(
        load.bytes_received,
        load.completed * u64::from(spec.response_size)
    );
    let by_second: u64 = load.seconds.iter().map(|s| s.completed).sum();
    assert_eq!(by_second, load.completed);
    assert_eq!(load.window_ns, 200_000_000);
    assert!(!load.slice_p50_ns.is_empty() && load.slice_p50_ns.len() <= 100);
    assert_eq!(load.slice_tails.len(), load.slice_p50_ns.len());
    let samples: u64 = load.slice_tails.iter().map(|it| it.samples).sum();
    let beyond: u64 = load.slice_tails.iter().map(|it| it.beyond).sum();
    assert_eq!(samples, load.latency.len());
    assert!(beyond <= samples / 100 + 1, "{beyond} of {samples}");
}

fn check_both_families(spec: &Workload) {
    for listen in [loopback_v4(), loopback_v6()] {
        let try_it = || both_ends(spec, listen);
        let is_answered = |load: &LoadResult| load.completed > 0 && load.censored == 0;
        let (load, serve) = in_time(try_it, |(load, _)| is_answered(load));
        check_exchange(spec, &load, &serve);
        assert_eq!(load.censored, 0, "over loopback everything is answered");
        if let Some(rate) = spec.arrival.rate() {
            let planned = rate * 0.2;
            let spread = 5.0 * planned.sqrt() + 2.0;
            assert!((load.planned as f64 - planned).abs() < spread);
        }
    }
}

fn rr_over_tcp_and_udp_in_all_loops() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for arrival in [
            Arrival::Closed,
            Arrival::Constant { rate: 2_000.0 },
            Arrival::Poisson { rate: 2_000.0 },
        ] {
            for wait in [Wait::Block, Wait::Spin] {
                check_both_families(&Workload {
                    protocol,
                    arrival,
                    wait,
                    ..workload(WorkloadKind::Rr)
                });
            }
        }
    }
}

fn large_requests_go_out_in_parts() {
    check_both_families(&Workload {
        request_size: 3_000_000,
        response_size: 5_000_000,
        connections: 2,
        ..workload(WorkloadKind::Rr)
    });
}

fn crr_opens_a_connection_for_each_request() {
    for arrival in [Arrival::Closed, Arrival::Constant { rate: 1_000.0 }] {
        let spec = Workload {
            arrival,
            ..workload(WorkloadKind::Crr)
        };
        check_both_families(&spec);
        let (load, serve) = both_ends(&spec, loopback_v4());
        assert_eq!(load.connect.len(), load.completed);
        assert!(serve.connections >= serve.requests);
    }
}

fn http_keeps_connections_or_opens_new_ones() {
    for keep_alive in [true, false] {
        for arrival in [Arrival::Closed, Arrival::Poisson { rate: 1_000.0 }] {
            let spec = Workload {
                arrival,
                keep_alive,
                ..workload(WorkloadKind::Http)
            };
            check_both_families(&spec);
            let (load, serve) = both_ends(&spec, loopback_v4());
            if keep_alive {
                // The four, and the one that looks whether anybody is there.
                assert_eq!(serve.connections, 5);
                assert_eq!(load.connect.len(), 4);
            } else {
                assert!(serve.connections >= serve.requests);
                assert_eq!(load.connect.len(), load.completed);
            }
        }
    }
}

fn http_bodies_may_be_empty_or_large() {
    for response_size in [0, 1, 1_000_000] {
        check_both_families(&Workload {
            response_size,
            ..workload(WorkloadKind::Http)
        });
    }
}

#[test]
fn a_stream_reports_what_the_receiver_acknowledged() {
    for listen in [loopback_v4(), loopback_v6()] {
        let is_punctual = |window_ns: u64| window_ns.abs_diff(200_000_000) < 20_000_000;
        let stream = || both_ends(&workload(WorkloadKind::Stream), listen);
        let (load, serve) = in_time(stream, |(load, _)| is_punctual(load.window_ns));
        assert_eq!(load.errors.total(), 0);
        assert_eq!(serve.corrupt, 0);
        // A tenth of a gigabit per second is far below any loopback.
        assert!(load.bytes_sent > 2_500_000, "{} bytes", load.bytes_sent);
        assert!(load.bytes_sent < serve.bytes_received);
        let by_second: u64 = load.seconds.iter().map(|s| s.bytes).sum();
        assert_eq!(by_second, load.bytes_sent);
        assert!(is_punctual(load.window_ns), "{} ns", load.window_ns);
        assert!(load.completed > 0 && load.latency.is_empty());
    }
}

#[test]
fn datagrams_of_the_window_are_counted_by_the_receiver() {
    for listen in [loopback_v4(), loopback_v6()] {
        for size in [16, 1_000] {
            let spec = Workload {
                request_size: size,
                arrival: Arrival::Constant { rate: 5_000.0 },
                ..workload(WorkloadKind::Datagram)
            };
            // A receiver that has no CPU for long loses what its socket cannot hold.
            let flow = || both_ends(&spec, listen);
            let span_ns = 150_000_000..250_000_000;
            let (load, serve) = in_time(flow, |(_, serve)| {
                let counts = serve.datagrams.as_ref().unwrap();
                counts.received == 1_000 && span_ns.contains(&counts.span_ns)
            });
            let counts = serve.datagrams.unwrap();
            assert_eq!(load.errors.total() + serve.corrupt, 0);
            assert_eq!(load.planned, 1_000);
            assert_eq!((load.sent, load.completed), (1_000, 1_000));
            // At this rate a loopback device loses nothing.
            assert_eq!(counts.received, 1_000);
            assert_eq!((counts.duplicated, counts.reordered), (0, 0));
            assert_eq!(counts.bytes, 1_000 * u64::from(size));
            assert!(span_ns.contains(&counts.span_ns));
            // The warm-up arrived too, but is not counted.
            assert!(serve.bytes_received > counts.bytes);
            assert_eq!(load.send_lag.len(), 1_000);
        }
    }
}

#[test]
fn a_flood_of_datagrams_is_counted_without_gaps_in_the_accounts() {
    let (load, serve) = both_ends(&workload(WorkloadKind::Datagram), loopback_v4());
    let counts = serve.datagrams.unwrap();
    assert_eq!(serve.corrupt, 0);
    assert_eq!(load.planned, load.sent + load.errors.send + load.censored);
    assert!(counts.received > 1_000 && counts.received <= load.sent);
    assert_eq!(counts.duplicated, 0);
}

fn several_workers_share_the_load() {
    for kind in [
        WorkloadKind::Rr,
        WorkloadKind::Crr,
        WorkloadKind::Http,
        WorkloadKind::Datagram,
    ] {
        let spec = Workload {
            connections: 5,
            arrival: Arrival::Constant { rate: 3_000.0 },
            ..workload(kind)
        };
        let shared = || {
            let server = Server::start(&ServePlan {
                threads: 2,
                ..serving(&spec, loopback_v4())
            });
            let load = load(&LoadPlan {
                threads: 3,
                ..short(spec.clone(), server.address)
            });
            let serve = server.finish();
            assert_eq!(load.errors.total() + serve.corrupt, 0);
            let received = serve.datagrams.map_or(load.completed, |it| it.received);
            (load.planned, load.completed, received)
        };
        // A receiver that has no CPU for long loses what its socket cannot hold.
        let whole = (600, 600, 600);
        assert_eq!(in_time(shared, |seen| *seen == whole), whole, "{kind:?}");
    }
}

fn the_time_spent_spinning_is_counted_apart() {
    let at = |wait, arrival| Workload {
        wait,
        arrival,
        ..workload(WorkloadKind::Rr)
    };
    let rate = Arrival::Constant { rate: 1_000.0 };
    let share = |wait, arrival| {
        let (load, _) = both_ends(&at(wait, arrival), loopback_v4());
        load.spin_ns as f64 / load.window_ns as f64
    };
    // Some 0.95 on a CPU of its own; less where others want that CPU too.
    let is_spinning = |share: &f64| (0.05..=1.0).contains(share);
    let spinning = in_time(|| share(Wait::Spin, rate), is_spinning);
    assert!(is_spinning(&spinning), "{spinning}");
    // A closed loop keeps no deadlines but the window's and the ticks'.
    let is_sleeping = |share: &f64| *share < 0.05;
    let sleeping = in_time(|| share(Wait::Block, Arrival::Closed), is_sleeping);
    assert!(is_sleeping(&sleeping), "{sleeping}");
}

by_each_driver! {
    rr_over_tcp_and_udp_in_all_loops,
    large_requests_go_out_in_parts,
    crr_opens_a_connection_for_each_request,
    http_keeps_connections_or_opens_new_ones,
    http_bodies_may_be_empty_or_large,
    several_workers_share_the_load,
    the_time_spent_spinning_is_counted_apart,
}
