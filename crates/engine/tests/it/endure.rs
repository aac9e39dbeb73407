//! Loads that endure what happens to their path.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use plumbline_engine::{Endured, LoadPlan, endure};
use plumbline_experiment::{Arrival, Protocol, Workload, WorkloadKind};
use plumbline_record::{RequestOutcome, RequestSpell};

use crate::rig::{Server, eventually, in_time, loopback_v4, serving, short, workload};

const RATE: f64 = 1_000.0;
const MS: u64 = 1_000_000;

fn steady(kind: WorkloadKind, protocol: Protocol) -> Workload {
    Workload {
        protocol,
        connections: 10,
        arrival: Arrival::Constant { rate: RATE },
        ..workload(kind)
    }
}

/// Sends for so long to an address.
fn endured(spec: &Workload, target: SocketAddr, measure: Duration) -> Endured {
    let plan = LoadPlan {
        warm_up: Duration::from_millis(20),
        measure,
        ..short(spec.clone(), target)
    };
    endure(&plan, &AtomicBool::new(false), &mut ()).unwrap()
}

fn requests(spells: &[RequestSpell], is: impl Fn(RequestOutcome) -> bool) -> u64 {
    let of = spells.iter().filter(|it| is(it.outcome));
    of.map(|it| it.requests).sum()
}

#[test]
fn all_requests_of_a_sound_path_are_answered_and_in_order() {
    for (kind, protocol) in [
        (WorkloadKind::Rr, Protocol::Tcp),
        (WorkloadKind::Crr, Protocol::Tcp),
        (WorkloadKind::Rr, Protocol::Udp),
    ] {
        let spec = steady(kind, protocol);
        let server = Server::start(&serving(&spec, loopback_v4()));
        let is_answered = |it| !matches!(it, RequestOutcome::Failed | RequestOutcome::Unanswered);
        // One that has no CPU for half a second is given up.
        let seen = in_time(
            || endured(&spec, server.address, Duration::from_millis(300)),
            |seen| requests(&seen.spells, is_answered) == 300,
        );
        assert_eq!(
            requests(&seen.spells, is_answered),
            300,
            "{:?}",
            seen.spells
        );
        assert_eq!(seen.broken, 0);
        assert_eq!(seen.spells[0].first_ns, 0);
        let last = seen.spells.last().unwrap();
        assert_eq!(last.last_ns, 299 * MS, "{:?}", seen.spells);
        let touch = seen
            .spells
            .windows(2)
            .all(|two| two[0].last_ns + MS == two[1].first_ns);
        assert!(touch, "{:?}", seen.spells);
    }
}

/// Carries bytes between clients and a server, unless it is told to hold what comes back.
#[derive(Clone, Default)]
struct HoldingRelay {
    holds: Arc<AtomicBool>,
    /// Bytes of requests that came.
    came: Arc<AtomicU64>,
    clients: Arc<Mutex<Vec<TcpStream>>>,
}

impl HoldingRelay {
    fn to(&self, server: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let relay = self.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let near = TcpStream::connect(server).unwrap();
                near.set_nodelay(true).unwrap();
                client.set_nodelay(true).unwrap();
                let copy = |it: &TcpStream| it.try_clone().unwrap();
                relay.clients.lock().unwrap().push(copy(&client));
                relay.carry(copy(&client), copy(&near), Self::counts);
                relay.carry(near, client, Self::may_hold);
            }
        });
        address
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream, look: fn(&Self, usize)) {
        let relay = self.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                look(&relay, length);
                if to.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
    }

    fn counts(&self, bytes: usize) {
        self.came.fetch_add(bytes as u64, Ordering::SeqCst);
    }

    fn may_hold(&self, _: usize) {
        while self.holds.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// Holds answers until so many requests have come. Gives how many did.
    fn hold(&self, requests: u64, request_size: u64) -> u64 {
        self.holds.store(true, Ordering::SeqCst);
        let before = self.came.load(Ordering::SeqCst);
        let held = || (self.came.load(Ordering::SeqCst) - before) / request_size;
        eventually("requests come", || held() >= requests);
        let held = held();
        self.holds.store(false, Ordering::SeqCst);
        held
    }
}

/// Requests of the time in which an answer is not late, with both ends.
const ANSWERED: u64 = 11;

/// What is held is late, but for those that came last, and as a rule nothing else is: the
/// machine may hold answers, too.
#[test]
fn a_planted_outage_is_as_long_as_it_was_and_broken_connections_are_counted() {
    let is_as_long = |(late, held): &(u64, u64)| *late <= held + ANSWERED;
    let seen = in_time(outage, is_as_long);
    assert!(is_as_long(&seen), "{seen:?}");
}

/// How many requests in a row were late, and how many were held. Three connections break.
fn outage() -> (u64, u64) {
    let spec = steady(WorkloadKind::Rr, Protocol::Tcp);
    let server = Server::start(&serving(&spec, loopback_v4()));
    let relay = HoldingRelay::default();
    let target = relay.to(server.address);
    let (seen, held) = thread::scope(|scope| {
        let load = scope.spawn(|| endured(&spec, target, Duration::from_secs(1)));
        eventually("the load runs", || {
            relay.came.load(Ordering::SeqCst) > 200 * u64::from(spec.request_size)
        });
        let held = relay.hold(200, spec.request_size.into());
        thread::sleep(Duration::from_millis(50));
        // The first is that of the probe.
        for client in &relay.clients.lock().unwrap()[1..4] {
            client.shutdown(Shutdown::Both).unwrap();
        }
        (load.join().unwrap(), held)
    });
    assert_eq!(seen.broken, 3, "{:?}", seen.spells);
    let is_late = |it: &RequestSpell| it.outcome != RequestOutcome::InTime;
    let runs = seen
        .spells
        .chunk_by(|one, next| is_late(one) == is_late(next));
    let late = runs.filter(|run| is_late(&run[0]));
    let late = late.map(|run| requests(run, |_| true)).max();
    let late = late.unwrap_or_default();
    assert!(
        late + ANSWERED >= held,
        "{late} of {held}: {:?}",
        seen.spells
    );
    (late, held)
}

/// Nobody answers, and nothing waits for that.
#[test]
fn requests_go_out_whatever_became_of_those_before() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let spec = steady(WorkloadKind::Rr, Protocol::Udp);
    let is_prompt = |seen: &Endured| seen.load.generator_lag.value_at(0.5) < 2 * MS;
    let seen = in_time(
        || endured(&spec, closed, Duration::from_millis(200)),
        is_prompt,
    );
    assert_eq!(
        requests(&seen.spells, |it| it != RequestOutcome::InTime),
        200
    );
    assert!(is_prompt(&seen), "{seen:?}");
}
