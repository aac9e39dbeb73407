//! Every workload, both ends ours, over IPv4 and IPv6.

use plumbline_experiment::{Arrival, Protocol, Wait, Workload, WorkloadKind};
use plumbline_record::{LoadResult, ServeResult};

use crate::rig::{both_ends, loopback_v4, loopback_v6, workload};

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
}

fn check_both_families(spec: &Workload) {
    for listen in [loopback_v4(), loopback_v6()] {
        let (load, serve) = both_ends(spec, listen);
        check_exchange(spec, &load, &serve);
        assert_eq!(load.censored, 0, "over loopback everything is answered");
        if let Some(rate) = spec.arrival.rate() {
            let planned = rate * 0.2;
            let spread = 5.0 * planned.sqrt() + 2.0;
            assert!((load.planned as f64 - planned).abs() < spread);
        }
    }
}

#[test]
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

#[test]
fn large_requests_go_out_in_parts() {
    check_both_families(&Workload {
        request_size: 3_000_000,
        response_size: 5_000_000,
        connections: 2,
        ..workload(WorkloadKind::Rr)
    });
}

#[test]
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
