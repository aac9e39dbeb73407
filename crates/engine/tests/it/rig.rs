//! A responder in the background, and plans to run against it.

use std::cell::Cell;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plumbline_engine::{LoadPlan, Responder, Secret, ServePlan, run};
use plumbline_experiment::{Arrival, DriverChoice, Protocol, Wait, Workload, WorkloadKind};
use plumbline_record::{LoadResult, ServeResult};
use plumbline_sys::ring::{Ring, Room};
pub(crate) use plumbline_testkit::skip;

pub(crate) use crate::tries::{in_time, often_in_time};

/// How long something may take that does not hang, on a machine that others use too.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

thread_local! {
    /// What the test on this thread is about.
    static DRIVER: Cell<DriverChoice> = const { Cell::new(DriverChoice::Auto) };
}

/// Runs a test whose workloads go by one driver, when it is its turn.
pub(crate) fn by(driver: DriverChoice, turn: &Mutex<()>, test: fn()) {
    // That the other one failed is its own affair.
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    DRIVER.set(driver);
    test();
}

/// Whether io_uring is allowed here; else `test` is counted as skipped.
pub(crate) fn has_ring(test: &str) -> bool {
    let room = Room {
        incoming: 1,
        incoming_size: 64,
        slots: 1,
        outgoing_size: 64,
    };
    match Ring::new(1, room) {
        Ok(_) => true,
        Err(error) => {
            skip(test, &format!("no io_uring: {error}"));
            false
        }
    }
}

/// A small workload of a kind: 4 connections, 64 B out, 100 B back, closed.
pub(crate) fn workload(kind: WorkloadKind) -> Workload {
    Workload {
        name: "test".into(),
        kind,
        protocol: Workload::of_kind(kind).protocol,
        request_size: 64,
        response_size: 100,
        connections: 4,
        arrival: Arrival::Closed,
        keep_alive: true,
        server: Default::default(),
        wait: Wait::Block,
        driver: match kind {
            // These know but one.
            WorkloadKind::Stream | WorkloadKind::Datagram => DriverChoice::Auto,
            _ => DRIVER.get(),
        },
        zero_copy: false,
        timestamps: 0.0,
        think_ns: 0,
    }
}

/// A plan of some 300 ms.
pub(crate) fn short(workload: Workload, target: SocketAddr) -> LoadPlan {
    LoadPlan {
        warm_up: Duration::from_millis(50),
        measure: Duration::from_millis(200),
        drain: Duration::from_millis(500),
        secret: secret_for(&workload),
        ..LoadPlan::new(workload, target)
    }
}

/// Any secret.
pub(crate) fn secret() -> Secret {
    "any secret".parse().unwrap()
}

/// Over UDP, a responder whose answers are longer than its requests has to have one.
fn secret_for(workload: &Workload) -> Option<Secret> {
    (workload.protocol == Protocol::Udp).then(secret)
}

/// A responder that matches a [`short`] load.
pub(crate) fn serving(workload: &Workload, listen: SocketAddr) -> ServePlan {
    ServePlan {
        secret: secret_for(workload),
        ..ServePlan::new(workload.clone(), listen)
    }
}

pub(crate) fn loopback_v4() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

pub(crate) fn loopback_v6() -> SocketAddr {
    (Ipv6Addr::LOCALHOST, 0).into()
}

/// A responder on a thread of its own.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<ServeResult>>,
}

impl Server {
    pub(crate) fn start(plan: &ServePlan) -> Self {
        let responder = Responder::bind(plan).unwrap();
        let address = responder.local_addr();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = thread::spawn(move || responder.run(&flag).unwrap());
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }

    pub(crate) fn finish(mut self) -> ServeResult {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A foreign server that handles each connection on a thread of its own, and is
/// forgotten when the test ends.
pub(crate) fn serve(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle(connection));
        }
    });
    address
}

/// Runs a plan to its end.
pub(crate) fn load(plan: &LoadPlan) -> LoadResult {
    let result = run(plan, &AtomicBool::new(false), &mut ()).unwrap();
    let is_bulk = matches!(
        plan.workload.kind,
        WorkloadKind::Stream | WorkloadKind::Datagram
    );
    match plan.workload.driver {
        DriverChoice::Uring if !is_bulk => assert_eq!(result.driver, "uring"),
        DriverChoice::Epoll => assert_eq!(result.driver, "epoll"),
        _ => {}
    }
    result
}

/// Runs a short load of a workload against a responder of its own.
pub(crate) fn both_ends(spec: &Workload, listen: SocketAddr) -> (LoadResult, ServeResult) {
    let server = Server::start(&serving(spec, listen));
    let result = load(&short(spec.clone(), server.address));
    (result, server.finish())
}

/// Waits until something is so that has to become so.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {LIMIT:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
