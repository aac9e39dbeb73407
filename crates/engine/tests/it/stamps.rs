//! Time stamps of the kernel say where a latency comes from (L-17).

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plumbline_engine::{EngineError, LoadPlan, ServePlan, run};
use plumbline_experiment::{Arrival, Protocol, Workload, WorkloadKind};
use plumbline_record::{LoadResult, Spans};
use plumbline_sys::cpu;

use crate::rig::{
    Server, in_time, load, loopback_v4, loopback_v6, serve, serving, short, skip, workload,
};

/// A workload of which every request is to be stamped.
fn stamped(kind: WorkloadKind) -> Workload {
    Workload {
        timestamps: 1.0,
        ..workload(kind)
    }
}

fn spans(result: &LoadResult) -> &Spans {
    result.spans.as_deref().expect("stamps were asked for")
}

/// The spans of the sample add up to its service time: within the 0.1 % of
/// each histogram, for every single request does.
fn check_sum(spans: &Spans, name: &str) {
    let sum: f64 = spans.in_order().iter().map(|(_, span)| span.mean()).sum();
    let whole = spans.service_time.mean();
    assert!(
        (sum - whole).abs() <= whole * 0.002 + 4.0,
        "{name}: {sum} of {whole}"
    );
    for (part, span) in spans.in_order() {
        assert_eq!(span.len(), spans.complete, "{name}: {part}");
    }
    assert_eq!(spans.service_time.len(), spans.complete, "{name}");
}

#[test]
fn the_spans_of_every_workload_add_up_to_its_service_time() {
    let poisson = Arrival::Poisson { rate: 2_000.0 };
    for (kind, protocol) in [
        (WorkloadKind::Rr, Protocol::Tcp),
        (WorkloadKind::Rr, Protocol::Udp),
        (WorkloadKind::Http, Protocol::Tcp),
    ] {
        for arrival in [Arrival::Closed, poisson] {
            for listen in [loopback_v4(), loopback_v6()] {
                let spec = Workload {
                    protocol,
                    arrival,
                    ..stamped(kind)
                };
                let name = format!("{kind:?} {protocol:?} {arrival:?} {listen}");
                let server = Server::start(&serving(&spec, listen));
                // Each line takes one sample at a time, and some answers are
                // read together: all that came while there was no CPU. And a busy kernel
                // begins to stamp a while after it was asked to.
                let is_sampled = |it: &LoadResult| {
                    spans(it).complete >= it.completed / 2 && spans(it).unstamped == 0
                };
                let result = in_time(|| load(&short(spec.clone(), server.address)), is_sampled);
                assert_eq!(result.errors.total(), 0, "{name}");
                assert!(is_sampled(&result), "{name}: {result:?}");
                let spans = spans(&result);
                assert!(
                    spans.sampled() <= result.completed + result.censored,
                    "{name}"
                );
                assert_eq!((spans.clock_set, spans.unstamped), (0, 0), "{name}");
                check_sum(spans, &name);
            }
        }
    }
}

#[test]
fn a_small_share_is_sampled_and_none_where_none_is_asked_for() {
    let mut spec = workload(WorkloadKind::Rr);
    let server = Server::start(&serving(&spec, loopback_v4()));
    assert!(load(&short(spec.clone(), server.address)).spans.is_none());
    spec.timestamps = 0.05;
    let share = || {
        let result = load(&LoadPlan {
            threads: 2,
            ..short(spec.clone(), server.address)
        });
        spans(&result).sampled() as f64 / result.completed as f64
    };
    // By chance, of few where there is little CPU.
    let is_small = |share: &f64| (0.03..0.07).contains(share);
    let share = in_time(share, is_small);
    assert!(is_small(&share), "{share}");
}

/// A server that answers late moves one span and no other.
#[test]
fn a_late_server_shows_in_the_span_of_network_and_server() {
    const LATE: Duration = Duration::from_millis(3);
    let target = serve(|mut connection| {
        let mut request = [0; 64];
        while connection.read_exact(&mut request).is_ok() {
            thread::sleep(LATE);
            if connection.write_all(&[0; 100]).is_err() {
                return;
            }
        }
    });
    let late = LATE.as_nanos() as u64;
    let load_it = || {
        load(&LoadPlan {
            verify: false,
            ..short(stamped(WorkloadKind::Rr), target)
        })
    };
    // Where the sender gets its CPU when it wants it.
    let is_moved = |result: &LoadResult| {
        let others = spans(result).in_order().into_iter();
        let mut others = others.filter(|(name, _)| *name != "network and server");
        others.all(|(_, span)| span.value_at(0.5) < late / 10)
    };
    let result = in_time(load_it, is_moved);
    assert!(is_moved(&result), "{result:?}");
    let spans = spans(&result);
    assert!(spans.network_and_server.value_at(0.01) >= late);
    check_sum(spans, "late");
}

/// A sender whose CPU is taken by others wakes late; network and server are
/// not to blame, and the split does not blame them.
///
/// A machine that takes the server's CPU away meanwhile makes the server late
/// as well, rightly told. So there are ten attempts; a wrong split would fail
/// them all, also where the calm ones show that nobody else has the CPUs.
#[test]
fn a_busy_cpu_of_the_sender_shows_as_wake_up() {
    let cpus = cpu::allowed().unwrap();
    let (Some(&own), Some(&other)) = (cpus.last(), cpus.first()) else {
        panic!("this process may run on no CPU at all");
    };
    let test = "a busy CPU of the sender shows as wake-up";
    if own == other {
        return skip(
            test,
            "with one CPU the server would be as late as the sender",
        );
    }
    let attempts = (0..10).map(|_| blame_the_wake_up(own, other));
    let failures: Vec<[Means; 2]> = attempts.map_while(Result::err).collect();
    if failures.len() < 10 {
        return;
    }
    let is_quiet = |[calm, _]: &[Means; 2]| calm.1 < 100e3;
    assert!(!failures.iter().any(is_quiet), "{failures:?}");
    skip(test, "other programs have the CPUs");
}

/// Mean times of the wake-up, and of network and server, nanoseconds.
type Means = (f64, f64);

/// A closed loop that wants more than a fair share of its CPU has to wait for
/// it whatever the scheduler prefers: what it gets is a thirteenth. Gives both where
/// that does not show, the calm ones first.
fn blame_the_wake_up(own: usize, other: usize) -> Result<(), [Means; 2]> {
    let spec = Workload {
        connections: 1,
        ..stamped(WorkloadKind::Rr)
    };
    let server = Server::start(&ServePlan {
        cpus: vec![other],
        ..serving(&spec, loopback_v4())
    });
    let plan = LoadPlan {
        cpus: vec![own],
        ..short(spec, server.address)
    };
    let means = |result: &LoadResult| {
        let spans = spans(result);
        (spans.wake_up.mean(), spans.network_and_server.mean())
    };
    let calm_ns = means(&load(&plan));
    let busy = Busy::on(own, 12);
    let busy_ns = means(&load(&plan));
    drop(busy);
    let (wake_up, network) = (busy_ns.0 - calm_ns.0, busy_ns.1 - calm_ns.1);
    if wake_up > 100e3 && wake_up > 2.0 * calm_ns.0 && wake_up > network {
        return Ok(());
    }
    Err([calm_ns, busy_ns])
}

/// Threads that do nothing but take a CPU.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Busy {
    fn on(cpu: usize, threads: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..threads)
            .map(|_| {
                let stop = Arc::clone(&stop);
                thread::spawn(move || {
                    cpu::pin_thread(cpu).unwrap();
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        Self { stop, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Requests that are lost on the way are counted, and block no later sample.
#[test]
fn requests_without_an_answer_are_counted() {
    let target = serve(|mut connection| {
        let mut request = [0; 64];
        for _ in 0..20 {
            if connection.read_exact(&mut request).is_err()
                || connection.write_all(&[0; 100]).is_err()
            {
                return;
            }
        }
        // The next request is read, and the connection dropped.
        let _ = connection.read_exact(&mut request);
    });
    let load_it = || {
        load(&LoadPlan {
            verify: false,
            ..short(stamped(WorkloadKind::Rr), target)
        })
    };
    let are_sampled = |it: &LoadResult| spans(it).complete > 10 * spans(it).unanswered;
    let result = in_time(load_it, are_sampled);
    assert!(result.errors.closed > 0);
    assert_eq!(spans(&result).unanswered, result.errors.closed);
    assert!(are_sampled(&result), "{result:?}");
}

#[test]
fn loads_that_stamps_cannot_split_are_refused() {
    let fresh = Workload {
        keep_alive: false,
        ..stamped(WorkloadKind::Http)
    };
    let too_many = Workload {
        timestamps: 1.5,
        ..workload(WorkloadKind::Rr)
    };
    for spec in [
        fresh,
        too_many,
        stamped(WorkloadKind::Crr),
        stamped(WorkloadKind::Stream),
        stamped(WorkloadKind::Datagram),
    ] {
        let plan = short(spec, loopback_v4());
        let refused = run(&plan, &AtomicBool::new(false), &mut ());
        assert!(matches!(refused, Err(EngineError::Plan(_))), "{refused:?}");
    }
}
