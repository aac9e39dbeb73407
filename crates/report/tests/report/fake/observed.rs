//! What a made-up trial saw.

use plumbline_experiment::{Workload, WorkloadKind};
use plumbline_record::{
    Common, CpuTime, DatagramCounts, DeviceCounters, Histogram, IdleSample, LoadObservation,
    LoadResult, Observation, ProcessCpu, ServeResult, What,
};

use super::{Fake, Network, TIMING};

/// What the receiver sees in its life, of which 1 is the window: the warm-up
/// has the same load, and the counters go on through it.
const LIFE: f64 = 1.0 + TIMING.warm_up_ns as f64 / TIMING.measure_ns as f64;

/// What the sender spins away in every trial.
const SPIN_NS: u64 = 9_000_000;

/// How much of the median latency opening a connection takes, where requests do.
const HANDSHAKE: f64 = 0.4;

/// What a network's trial saw, with its figures off by `noise`.
pub(crate) fn observation(
    fake: &Fake,
    network: &Network,
    workload: &Workload,
    noise: [f64; 4],
) -> Observation {
    let is_bulk = matches!(workload.kind, WorkloadKind::Stream | WorkloadKind::Datagram);
    let window_ns = TIMING.measure_ns;
    let latency = if is_bulk {
        Histogram::new()
    } else {
        latencies(
            fake.samples,
            28_000.0 * network.latency * noise[0],
            network.tail * noise[1],
        )
    };
    let bytes = (4.2e8 * network.throughput * noise[2]) as u64;
    let (completed, busy) = if is_bulk {
        (bytes / 65_536, bytes as f64 * 0.55)
    } else {
        (fake.samples, fake.samples as f64 * 11_400.0)
    };
    let busy = busy * network.cpu * noise[3];
    let sent = bytes * u64::from(is_bulk);
    let seen = LoadObservation {
        load: load(workload, window_ns, completed, sent, latency, busy),
        serve: serve(workload, completed, sent),
        server_cpu: process(busy * 0.3 * LIFE),
    };
    let common = Common {
        machines: vec![cpu(window_ns, busy, network)],
        devices: vec![device(in_life(completed), in_life(bytes), is_bulk)],
        idle: IdleSample {
            busy_ns: 2_000_000,
            capacity_ns: 200_000_000,
        },
        rotation: None,
        ..Common::default()
    };
    Observation {
        common,
        what: What::Load(Box::new(seen)),
    }
}

fn in_life(in_window: u64) -> u64 {
    (in_window as f64 * LIFE) as u64
}

/// One datagram in a hundred is lost on the way.
fn serve(workload: &Workload, completed: u64, sent: u64) -> ServeResult {
    let arrived = ServeResult {
        bytes_received: in_life(sent),
        ..ServeResult::default()
    };
    match workload.kind {
        WorkloadKind::Stream => arrived,
        WorkloadKind::Datagram => ServeResult {
            bytes_received: in_life(sent * 99 / 100),
            datagrams: Some(DatagramCounts {
                received: completed * 99 / 100,
                bytes: sent * 99 / 100,
                span_ns: TIMING.measure_ns,
                ..DatagramCounts::default()
            }),
            ..arrived
        },
        _ => ServeResult {
            requests: in_life(completed),
            ..arrived
        },
    }
}

/// `samples` latencies in nanoseconds with median `p50` and an exponential
/// tail, by their quantiles rather than at random.
pub(crate) fn latencies(samples: u64, p50: f64, tail: f64) -> Histogram {
    let mut histogram = Histogram::new();
    for i in 0..samples {
        let u = (i as f64 + 0.5) / samples as f64;
        let beyond = -(2.0 * (1.0 - u)).ln();
        let factor = if beyond > 0.0 {
            1.0 + 0.22 * tail * beyond.powf(1.25)
        } else {
            1.0 + 0.25 * beyond
        };
        histogram.record((p50 * factor) as u64);
    }
    histogram
}

fn load(
    workload: &Workload,
    window_ns: u64,
    completed: u64,
    bytes_sent: u64,
    latency: Histogram,
    busy: f64,
) -> LoadResult {
    let samples = latency.len();
    let connect = match workload.keeps_connections() || samples == 0 {
        true => Histogram::new(),
        false => latencies(samples, latency.value_at(0.5) as f64 * HANDSHAKE, 1.0),
    };
    LoadResult {
        connect,
        driver: "epoll".to_owned(),
        arrival: workload.arrival,
        wait: workload.wait,
        seed: 7,
        window_ns,
        planned: completed,
        sent: completed,
        completed,
        bytes_sent,
        service_time: latency.clone(),
        latency,
        send_lag: latencies(samples, 900.0, 1.0),
        cpu: spinning(process(busy * 0.35)),
        spin_ns: SPIN_NS,
        ..LoadResult::default()
    }
}

fn cpu(window_ns: u64, busy: f64, network: &Network) -> CpuTime {
    let capacity_ns = 4 * window_ns;
    // One hundredth of the capacity is busy without load.
    let busy_ns = busy as u64 + SPIN_NS + capacity_ns / 100;
    let softirq = 0.28 + 0.3 * (network.cpu - 1.0);
    CpuTime {
        capacity_ns,
        busy_ns,
        user_ns: (busy * 0.18) as u64 + SPIN_NS,
        system_ns: (busy * (0.8 - softirq)) as u64,
        irq_ns: (busy * 0.02) as u64,
        softirq_ns: (busy * softirq) as u64,
        idle_ns: capacity_ns - busy_ns.min(capacity_ns),
        busiest_softirq_ns: (busy * softirq * 0.7) as u64,
        ..CpuTime::default()
    }
}

/// Spinning is the sender's user time.
fn spinning(cpu: ProcessCpu) -> ProcessCpu {
    ProcessCpu {
        user_ns: cpu.user_ns + SPIN_NS,
        ..cpu
    }
}

fn process(busy: f64) -> ProcessCpu {
    ProcessCpu {
        user_ns: (busy * 0.3) as u64,
        system_ns: (busy * 0.7) as u64,
    }
}

fn device(completed: u64, bytes: u64, is_bulk: bool) -> DeviceCounters {
    let packets = if is_bulk { bytes / 40_000 } else { completed };
    DeviceCounters {
        namespace: "node1".to_owned(),
        device: "eth0".to_owned(),
        rx_packets: packets / if is_bulk { 8 } else { 1 },
        tx_packets: packets,
        rx_bytes: packets / if is_bulk { 8 } else { 1 } * if is_bulk { 66 } else { 130 },
        tx_bytes: if is_bulk { bytes } else { packets * 130 },
        ..DeviceCounters::default()
    }
}
