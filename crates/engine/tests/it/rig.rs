//! A responder in the background, and plans to run against it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plumbline_engine::{LoadPlan, Responder, ServePlan, run};
use plumbline_experiment::{Arrival, Protocol, Wait, Workload, WorkloadKind};
use plumbline_record::{LoadResult, ServeResult};

/// A small workload of a kind: 4 connections, 64 B out, 100 B back, closed.
pub(crate) fn workload(kind: WorkloadKind) -> Workload {
    Workload {
        name: "test".into(),
        kind,
        protocol: Protocol::Tcp,
        request_size: 64,
        response_size: 100,
        connections: 4,
        arrival: Arrival::Closed,
        keep_alive: true,
        server: Default::default(),
        wait: Wait::Block,
    }
}

/// A plan of some 300 ms.
pub(crate) fn short(workload: Workload, target: SocketAddr) -> LoadPlan {
    LoadPlan {
        warm_up: Duration::from_millis(50),
        measure: Duration::from_millis(200),
        drain: Duration::from_millis(500),
        ..LoadPlan::new(workload, target)
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
    run(plan, &AtomicBool::new(false), &mut ()).unwrap()
}

/// Runs a short load of a workload against a responder of its own.
pub(crate) fn both_ends(spec: &Workload, listen: SocketAddr) -> (LoadResult, ServeResult) {
    let server = Server::start(&ServePlan::new(spec.clone(), listen));
    let result = load(&short(spec.clone(), server.address));
    (result, server.finish())
}
