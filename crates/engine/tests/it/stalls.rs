//! A server that stands still now and then, against the closed form.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_engine::LoadPlan;
use plumbline_experiment::{Arrival, Workload, WorkloadKind};

use crate::rig::{in_time, load, serve, short, workload};

const PERIOD: Duration = Duration::from_secs(2);
const STALL: Duration = Duration::from_millis(200);

/// How long each stall really was, sleeping too long included, nanoseconds.
type Stalls = Arc<Mutex<Vec<u64>>>;

/// Answers 100 bytes to every 64, but stands still for the first 200 ms of
/// every 2 s.
fn stalling_server() -> (SocketAddr, Stalls) {
    let stalls = Stalls::default();
    let log = Arc::clone(&stalls);
    let start = Instant::now();
    let address = serve(move |mut connection| {
        connection.set_nodelay(true).unwrap();
        let mut requests = vec![0; 1 << 20];
        let mut open = 0;
        while let Ok(read @ 1..) = connection.read(&mut requests) {
            let phase = start.elapsed().as_nanos() % PERIOD.as_nanos();
            if let Some(left) = STALL.as_nanos().checked_sub(phase) {
                thread::sleep(Duration::from_nanos(left as u64));
                let phase = start.elapsed().as_nanos() % PERIOD.as_nanos();
                log.lock().unwrap().push(phase as u64);
            }
            open += read;
            let answers = vec![0; open / 64 * 100];
            open %= 64;
            if connection.write_all(&answers).is_err() {
                break;
            }
        }
    });
    (address, stalls)
}

/// Requests come evenly, and the window holds two whole periods `T` of 2 s,
/// each with one stall of `S` = 200 ms. A request intended when `w` of a stall
/// is left is answered after `w`; all others take next to nothing. The share
/// of requests that take longer than `x` is therefore `(S − x) / T`, and the
/// quantile `q` of the latency, for `q` above 0.9,
///
///     S − (1 − q) × T
///
/// that is 100 ms at p95, 180 ms at p99, 198 ms at p99.9 and 200 ms at most.
/// Where the server overslept, the real `S` (the mean of both) takes the place
/// of 200 ms, so that a busy machine is not mistaken for a wrong account.
///
/// Requests are pipelined, so that those that wait are answered all together
/// when the stall ends, and none waits for another's round trip.
///
/// A machine that takes the CPU away for a millisecond when a stall ends moves
/// every percentile by as much. So there are ten attempts; a wrong account
/// would fail them all.
fn a_stalling_server_gives_the_percentiles_of_the_closed_form() {
    let compared = in_time(compare, Result::is_ok);
    assert_eq!(compared, Ok(()));
}

/// Runs the load once; tells the first percentile that is more than 1 % off.
fn compare() -> Result<(), String> {
    let (target, stalls) = stalling_server();
    let spec = Workload {
        connections: 1,
        arrival: Arrival::Constant { rate: 5_000.0 },
        ..workload(WorkloadKind::Rr)
    };
    // The window opens in the middle between two stalls.
    let result = load(&LoadPlan {
        verify: false,
        warm_up: PERIOD / 2,
        measure: 2 * PERIOD,
        ..short(spec, target)
    });
    if result.completed != 20_000 {
        // As when the worker was kept from its CPU at the end of the window.
        return Err(format!("{} of 20,000 were answered", result.completed));
    }
    let stalls = stalls.lock().unwrap();
    // The first was before the window.
    let &[_, first, second, ..] = stalls.as_slice() else {
        return Err(format!("{} of three stalls were seen", stalls.len()));
    };
    let stall_ms = (first + second) as f64 / 2e6;
    for quantile in [0.95, 0.99, 0.999] {
        let expected_ms = stall_ms - (1.0 - quantile) * 2_000.0;
        let measured_ms = result.latency.value_at(quantile) as f64 / 1e6;
        if (measured_ms / expected_ms - 1.0).abs() > 0.01 {
            return Err(format!(
                "p{}: {measured_ms:.2} ms instead of {expected_ms:.2} ms",
                quantile * 100.0
            ));
        }
    }
    Ok(())
}

by_each_driver! {
    a_stalling_server_gives_the_percentiles_of_the_closed_form,
}
