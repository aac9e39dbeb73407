//! A server that stands still now and then, against the closed form.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_engine::LoadPlan;
use plumbline_experiment::{Arrival, Workload, WorkloadKind};

use crate::rig::{load, short, workload};

const PERIOD: Duration = Duration::from_secs(2);
const STALL: Duration = Duration::from_millis(200);

/// Answers 100 bytes to every 64, but stands still for the first 200 ms of
/// every 2 s.
fn stalling_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let start = Instant::now();
        for mut connection in listener.incoming().flatten() {
            connection.set_nodelay(true).unwrap();
            let mut requests = vec![0; 1 << 20];
            let mut open = 0;
            while let Ok(read @ 1..) = connection.read(&mut requests) {
                let phase = start.elapsed().as_nanos() % PERIOD.as_nanos();
                if let Some(left) = STALL.as_nanos().checked_sub(phase) {
                    thread::sleep(Duration::from_nanos(left as u64));
                }
                open += read;
                let answers = vec![0; open / 64 * 100];
                open %= 64;
                if connection.write_all(&answers).is_err() {
                    break;
                }
            }
        }
    });
    address
}

/// Requests come evenly, so a tenth of them is intended during the stall of
/// 200 ms in each 2 s, and the window holds two whole periods. A request
/// intended when `w` of the stall is left is answered after `w`. As `w` is
/// uniform on (0, 200 ms], and all other requests take next to nothing, the
/// quantile `q` of the latency, for `q` above 0.9, is
///
///     200 ms × (q − 0.9) / 0.1
///
/// that is 100 ms at p95, 180 ms at p99, 198 ms at p99.9 and 200 ms at most.
///
/// Requests are pipelined, so that those that wait are answered all together
/// when the stall ends, and none waits for another's round trip.
#[test]
fn a_stalling_server_gives_the_percentiles_of_the_closed_form() {
    let spec = Workload {
        connections: 1,
        arrival: Arrival::Constant { rate: 5_000.0 },
        ..workload(WorkloadKind::Rr)
    };
    let result = load(&LoadPlan {
        verify: false,
        measure: 2 * PERIOD,
        ..short(spec, stalling_server())
    });
    assert_eq!(result.completed, 20_000);
    for (quantile, expected_ms) in [(0.95, 100.0), (0.99, 180.0), (0.999, 198.0), (1.0, 200.0)] {
        let measured_ms = result.latency.value_at(quantile) as f64 / 1e6;
        let error = measured_ms / expected_ms - 1.0;
        assert!(
            error.abs() < 0.01,
            "p{}: {measured_ms:.2} ms instead of {expected_ms} ms",
            quantile * 100.0
        );
    }
    // Nothing else was slow: below the stall's tenth there is no trace of it.
    assert!(result.latency.value_at(0.89) < 20_000_000);
}
