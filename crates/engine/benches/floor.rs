//! What the engine adds to a round trip: one connection, 16 bytes each way,
//! against the barest client there is, a loop of blocking write and read.
//!
//! Both talk to the same echo server over loopback, sender and server on CPUs
//! of their own where there are two, in alternation, and the median of the
//! pairs is what counts. `cargo bench -p plumbline-engine --bench floor`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use plumbline_engine::{LoadPlan, run};
use plumbline_experiment::{Arrival, Wait, Workload, WorkloadKind};
use plumbline_record::Histogram;
use plumbline_sys::clock::now_ns;
use plumbline_sys::cpu;

const SIZE: usize = 16;
const PAIRS: usize = 7;
const WARM_UP: Duration = Duration::from_millis(200);
const MEASURE: Duration = Duration::from_secs(1);

fn main() {
    let cpus = cpu::allowed().expect("the kernel tells the CPUs");
    let (near, far) = (cpus[0], cpus[cpus.len() - 1]);
    let target = echo_server(far);
    println!("p50 of a round trip, one connection, {SIZE} bytes each way, µs");
    println!(
        "{:>10}{:>14}{:>14}",
        "bare loop", "engine, block", "engine, spin"
    );
    let mut rows = Vec::new();
    for _ in 0..PAIRS {
        let row = [
            bare(target, near),
            engine(target, near, Wait::Block),
            engine(target, near, Wait::Spin),
        ];
        println!("{:>10.2}{:>14.2}{:>14.2}", row[0], row[1], row[2]);
        rows.push(row);
    }
    let ratio = |column: usize| median(rows.iter().map(|row| row[column] / row[0]).collect());
    println!(
        "median of the ratios: {:.3} blocking, {:.3} spinning",
        ratio(1),
        ratio(2)
    );
}

fn echo_server(cpu: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        cpu::pin_thread(cpu).expect("the CPU is ours");
        for mut connection in listener.incoming().flatten() {
            let mut buffer = [0; SIZE];
            connection.set_nodelay(true).expect("it is TCP");
            while connection.read_exact(&mut buffer).is_ok()
                && connection.write_all(&buffer).is_ok()
            {}
        }
    });
    address
}

/// The median of the barest loop, in microseconds.
fn bare(target: SocketAddr, cpu: usize) -> f64 {
    let client = thread::spawn(move || {
        cpu::pin_thread(cpu).expect("the CPU is ours");
        let mut connection = TcpStream::connect(target).expect("the server listens");
        connection.set_nodelay(true).expect("it is TCP");
        let mut histogram = Histogram::new();
        let start = now_ns();
        let open = start + WARM_UP.as_nanos() as u64;
        let close = open + MEASURE.as_nanos() as u64;
        let mut sent = start;
        while sent < close {
            let mut buffer = [1; SIZE];
            connection.write_all(&buffer).expect("the server reads");
            connection.read_exact(&mut buffer).expect("it answers");
            let received = now_ns();
            if sent >= open {
                histogram.record(received - sent);
            }
            sent = received;
        }
        histogram.value_at(0.5) as f64 / 1e3
    });
    client.join().expect("nothing panicked")
}

/// The median of the engine, in microseconds.
fn engine(target: SocketAddr, cpu: usize, wait: Wait) -> f64 {
    let spec = Workload {
        request_size: SIZE as u32,
        response_size: SIZE as u32,
        connections: 1,
        arrival: Arrival::Closed,
        wait,
        ..Workload::of_kind(WorkloadKind::Rr)
    };
    let plan = LoadPlan {
        warm_up: WARM_UP,
        measure: MEASURE,
        cpus: vec![cpu],
        // An echo is not our responder's answer.
        verify: false,
        ..LoadPlan::new(spec, target)
    };
    let result = run(&plan, &AtomicBool::new(false), &mut ()).expect("the server listens");
    assert_eq!(result.errors.total(), 0, "{:?}", result.errors);
    result.latency.value_at(0.5) as f64 / 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
