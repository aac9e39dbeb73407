//! A run and trials of the usual size, for the tests of the run directory.

use plumbline_experiment::{Arrival, Experiment, Scene};
use plumbline_record::{
    ArrivalCheck, Common, CpuTime, DeviceCounters, FORMAT_VERSION, Fingerprint, Floor, GateFailure,
    Histogram, IdleSample, LoadObservation, LoadResult, NodeRules, Observation, ProcessCpu,
    ProtocolCounters, Provenance, Run, SecondOfLoad, ServeResult, SliceTail, SoftnetCounters,
    Trial, TrialStatus, Warning, What,
};

const EXPERIMENT: &str = r#"
name = "sample"
question = "Does it come back as it was written?"
[factors]
network = ["host", "vxlan"]
[[workload]]
kind = "rr"
rate = 5000
[design]
blocks = 40
[limits]
p50 = "10%"
"#;

/// A run of two treatments in forty blocks.
pub(crate) fn run() -> Run {
    let plan = Experiment::parse(EXPERIMENT, "sample.toml")
        .and_then(|experiment| {
            experiment.resolve(7, &|asked| Ok(vec![Scene::of(asked.network.word())]))
        })
        .unwrap_or_else(|e| panic!("{e}"));
    Run {
        damaged_lines: 0,
        format: FORMAT_VERSION,
        plan,
        experiment_text: Some(EXPERIMENT.to_owned()),
        provenance: Provenance {
            version: "0.1.0".to_owned(),
            command: vec!["plumbline".to_owned(), "run".to_owned()],
            started: "2026-01-31T23:59:59Z".to_owned(),
            target: "lab".to_owned(),
            anonymised: false,
            build: None,
            floor: Some(Floor {
                round_trips: 9_000,
                p50_ns: 21_000,
                p99_ns: 40_000,
            }),
        },
        fingerprint: Fingerprint {
            kernel: "6.18.0".to_owned(),
            conntrack: Some((12, 262_144)),
            ..Fingerprint::default()
        },
        maxima: Vec::new(),
        conditions: None,
        warnings: vec![Warning::OneKernel, Warning::SharedCpus { cpus: 2 }],
    }
}

/// The `n`th trial, different from all others, of the size that a trial of
/// 1,750 requests has.
pub(crate) fn trial(n: u32) -> Trial {
    let status = match n % 3 {
        0 | 1 => TrialStatus::Valid,
        _ => TrialStatus::Invalid {
            gates: vec![GateFailure::SendLag {
                quantile: 0.99,
                lag_ns: 70_000,
                limit_ns: 50_000,
            }],
        },
    };
    Trial {
        block: n % 40,
        position: n % 2,
        treatment: (n % 2) as usize,
        pair: None,
        attempt: n / 80,
        session: 0,
        started: format!("2026-01-31T23:59:59.{n:09}Z"),
        took_ns: 500_000_000 + u64::from(n),
        status,
        warnings: Vec::new(),
        observation: Some(observation(u64::from(n))),
        build: None,
    }
}

fn observation(n: u64) -> Observation {
    Observation {
        what: What::Load(Box::new(LoadObservation {
            load: load(n),
            serve: ServeResult::default(),
            server_cpu: ProcessCpu::default(),
        })),
        common: Common {
            machines: vec![CpuTime::default()],
            forwarders_cpu: Some(ProcessCpu::default()),
            ksoftirqd_ns: None,
            companions_cpu: ProcessCpu::default(),
            neighbour: None,
            devices: ["eth0", "vxlan1", "cni0", "veth1", "veth2", "eth0"]
                .map(|device| DeviceCounters {
                    namespace: "node1".to_owned(),
                    device: device.to_owned(),
                    rx_packets: 17_000 + n,
                    rx_bytes: 1_900_000,
                    ..DeviceCounters::default()
                })
                .to_vec(),
            protocols: vec![ProtocolCounters::default(); 4],
            rules: vec![NodeRules {
                namespace: "node1".to_owned(),
                rules: 520,
                chains: 209,
                elements: 0,
                connections: 12,
                connections_max: 65_536,
                connections_dropped: 0,
            }],
            softnet: SoftnetCounters::default(),
            idle: IdleSample::default(),
            rotation: None,
        },
    }
}

/// What a sender saw; another for each `n`.
pub(crate) fn load(n: u64) -> LoadResult {
    let mut random = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut spread = |around: u64| {
        let mut histogram = Histogram::new();
        for _ in 0..1_750 {
            // xorshift64: the sizes of the encoded histograms are what counts.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            histogram.record(around + random % around);
        }
        histogram
    };
    LoadResult {
        driver: "epoll".to_owned(),
        arrival: Arrival::Poisson { rate: 5000.0 },
        seed: n,
        window_ns: 350_000_000,
        planned: 1_750,
        sent: 1_750,
        completed: 1_750,
        bytes_sent: 112_000,
        bytes_received: 112_000,
        latency: spread(40_000),
        service_time: spread(35_000),
        send_lag: spread(2_000),
        generator_lag: spread(1_000),
        waited_for_connection: 3,
        seconds: vec![SecondOfLoad::default()],
        slice_p50_ns: (0..100).map(|slice| 52_000 + slice * 7).collect(),
        slice_tails: (0..100)
            .map(|slice| SliceTail {
                samples: 17 + slice % 2,
                beyond: u64::from(slice % 6 == 0),
            })
            .collect(),
        arrivals: Some(ArrivalCheck {
            gaps: 5_000,
            gap_error_p99_ns: 21_000,
            anderson_darling: Some(1.25),
            distance: Some(0.011),
        }),
        ..LoadResult::default()
    }
}
