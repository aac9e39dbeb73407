//! Nothing is allocated while measuring.
//!
//! An allocator that counts, and an observer that reads the count at the
//! window's boundaries: between them no thread of this process may allocate.
#![allow(
    unsafe_code,
    reason = "a global allocator cannot be written without; it only counts and passes on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plumbline_engine::{LoadPlan, Responder, Secret, ServePlan, WindowObserver, run};
use plumbline_experiment::{Arrival, DriverChoice, Protocol, Wait, Workload, WorkloadKind};
use plumbline_sys::ring::{Ring, Room};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Default)]
struct Count {
    before: u64,
    during: u64,
}

impl WindowObserver for Count {
    fn window_opens(&mut self) {
        self.before = ALLOCATIONS.load(Ordering::Relaxed);
    }

    fn window_closes(&mut self) {
        self.during = ALLOCATIONS.load(Ordering::Relaxed) - self.before;
    }
}

fn workload(
    kind: WorkloadKind,
    protocol: Protocol,
    arrival: Arrival,
    keep_alive: bool,
) -> Workload {
    Workload {
        name: "test".into(),
        kind,
        protocol,
        request_size: 64,
        response_size: 100,
        connections: 8,
        arrival,
        keep_alive,
        server: Default::default(),
        wait: Wait::Block,
        driver: DriverChoice::Auto,
        zero_copy: false,
        timestamps: 0.0,
        think_ns: 0,
    }
}

fn secret() -> Secret {
    "any secret".parse().unwrap()
}

/// All loads that this test measures.
fn workloads() -> Vec<Workload> {
    let closed = Arrival::Closed;
    let poisson = Arrival::Poisson { rate: 3_000.0 };
    let mut all = Vec::new();
    for arrival in [closed, poisson] {
        all.push(workload(WorkloadKind::Rr, Protocol::Tcp, arrival, true));
        all.push(workload(WorkloadKind::Rr, Protocol::Udp, arrival, true));
        all.push(workload(WorkloadKind::Crr, Protocol::Tcp, arrival, true));
        all.push(workload(WorkloadKind::Http, Protocol::Tcp, arrival, true));
        all.push(workload(WorkloadKind::Http, Protocol::Tcp, arrival, false));
        all.push(workload(
            WorkloadKind::Datagram,
            Protocol::Udp,
            arrival,
            true,
        ));
    }
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        all.push(Workload {
            timestamps: 0.5,
            ..workload(WorkloadKind::Rr, protocol, poisson, true)
        });
    }
    all.push(workload(WorkloadKind::Stream, Protocol::Tcp, closed, true));
    all
}

/// The least that a ring can be made with.
const ROOM: Room = Room {
    incoming: 1,
    incoming_size: 64,
    slots: 1,
    outgoing_size: 64,
};

const SERVE: &str = "PLUMBLINE_TEST_SERVE";

/// The server's end runs in a process of its own, so that its allocations are
/// not ours: this same test binary, told so by its environment.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(index: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serve", "--nocapture"])
            .env(SERVE, index.to_string())
            .env(plumbline_testkit::STAY, "")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let port = std::io::BufRead::lines(std::io::BufReader::new(stdout))
            .map_while(Result::ok)
            .find_map(|line| line.split_once("port ")?.1.trim().parse().ok())
            .unwrap();
        Self { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test of its own: the other end of the one below.
#[test]
fn serve() {
    let Ok(index) = std::env::var(SERVE) else {
        return;
    };
    let spec = workloads().swap_remove(index.parse().unwrap());
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let plan = ServePlan {
        secret: Some(secret()),
        ..ServePlan::new(spec, listen)
    };
    let responder = Responder::bind(&plan).unwrap();
    println!("port {}", responder.local_addr().port());
    responder.run(&AtomicBool::new(false)).unwrap();
}

#[test]
fn a_load_does_not_allocate_while_it_measures() {
    if std::env::var_os(SERVE).is_some() {
        return;
    }
    let mut drivers = vec![DriverChoice::Epoll];
    match Ring::new(1, ROOM) {
        Ok(_) => drivers.push(DriverChoice::Uring),
        Err(error) => plumbline_testkit::skip(
            "a_load_does_not_allocate_while_it_measures by uring",
            &format!("no io_uring: {error}"),
        ),
    }
    for driver in drivers {
        none_allocates(driver);
    }
}

/// Bulk and time stamps know epoll only; `drivers.rs` tests that the rest is
/// refused.
fn goes_by_uring(spec: &Workload) -> bool {
    let bulk = matches!(spec.kind, WorkloadKind::Stream | WorkloadKind::Datagram);
    !bulk && spec.timestamps == 0.0
}

fn none_allocates(driver: DriverChoice) {
    for (index, mut spec) in workloads().into_iter().enumerate() {
        if driver == DriverChoice::Uring && !goes_by_uring(&spec) {
            continue;
        }
        spec.driver = driver;
        let server = Server::start(index);
        let name = format!(
            "{:?} {:?} {:?} {} {driver:?}",
            spec.kind, spec.protocol, spec.arrival, spec.timestamps
        );
        let target = (Ipv4Addr::LOCALHOST, server.port).into();
        let plan = LoadPlan {
            warm_up: Duration::from_millis(50),
            measure: Duration::from_millis(250),
            secret: Some(secret()),
            ..LoadPlan::new(spec, target)
        };
        let mut count = Count::default();
        let result = run(&plan, &AtomicBool::new(false), &mut count).unwrap();
        assert!(result.completed > 100, "{name}: {}", result.completed);
        assert_eq!(count.during, 0, "{name} allocated");
    }
}
