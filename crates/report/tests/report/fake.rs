//! Runs that never happened: deterministic figures with known effects, for
//! tests, the demonstration and the benchmark.

use plumbline_experiment::{
    Arrival, DriverChoice, Plan, Protocol, Scene, Timing, Treatment, Wait, Workload, WorkloadKind,
};
use plumbline_record::{
    DeviceFingerprint, FORMAT_VERSION, Fingerprint, Floor, LoadObservation, Observation,
    Provenance, Run, Trial, TrialStatus, Warning,
};

// By their paths, because the demonstration includes this file from elsewhere.
#[path = "fake/growing.rs"]
pub(crate) mod growing;
#[path = "fake/observed.rs"]
pub(crate) mod observed;

/// Phases of every trial.
const TIMING: Timing = Timing {
    warm_up_ns: 100_000_000,
    measure_ns: 350_000_000,
    drain_ns: 200_000_000,
};

/// What a made-up network does to the figures of host networking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    /// Its label.
    pub(crate) label: &'static str,
    /// Factor on latency.
    pub(crate) latency: f64,
    /// Factor on the part of the latency beyond the median.
    pub(crate) tail: f64,
    /// Factor on CPU time.
    pub(crate) cpu: f64,
    /// Factor on throughput.
    pub(crate) throughput: f64,
}

impl Network {
    /// A network that does nothing.
    pub(crate) const fn same(label: &'static str) -> Self {
        Self {
            label,
            latency: 1.0,
            tail: 1.0,
            cpu: 1.0,
            throughput: 1.0,
        }
    }
}

/// The first network is the baseline.
#[derive(Clone, Debug)]
pub(crate) struct Fake {
    pub(crate) networks: Vec<Network>,
    pub(crate) workloads: Vec<Workload>,
    pub(crate) blocks: u32,
    /// Answers of one trial.
    pub(crate) samples: u64,
    /// Spread of a trial's figures as a fraction.
    pub(crate) noise: f64,
}

impl Fake {
    /// `rr` and `stream`, 10 blocks, 1,750 answers in each trial, noise of 1 %.
    pub(crate) fn new(networks: &[Network]) -> Self {
        Self {
            networks: networks.to_vec(),
            workloads: vec![rr(), stream()],
            blocks: 10,
            samples: 1_750,
            noise: 0.01,
        }
    }

    /// The run and its trials, in the order in which they were run.
    pub(crate) fn run(&self) -> (Run, Vec<Trial>) {
        let plan = self.plan();
        let mut noise = Noise(plan.seed);
        let mut trials = Vec::new();
        for (block, order) in plan.blocks.iter().enumerate() {
            // What a block's trials share: the hour, the neighbours.
            let drift = 1.0 + 3.0 * self.noise * noise.next();
            for (position, &treatment) in order.iter().enumerate() {
                let network = &self.networks[treatment % self.networks.len()];
                let noise = [(); 4].map(|()| drift * (1.0 + self.noise * noise.next()));
                let workload = plan.treatments[treatment].task.load().unwrap();
                trials.push(Trial {
                    block: block as u32,
                    position: position as u32,
                    treatment,
                    pair: None,
                    attempt: 0,
                    session: 0,
                    started: format!("2026-01-01T12:{:02}:{:02}Z", block, position % 60),
                    took_ns: 560_000_000,
                    status: TrialStatus::Valid,
                    warnings: Vec::new(),
                    observation: Some(observed::observation(self, network, workload, noise)),
                    build: None,
                });
            }
        }
        (run_of(plan), trials)
    }

    fn plan(&self) -> Plan {
        let networks = self.networks.len();
        let mut treatments = Vec::new();
        for workload in &self.workloads {
            let first = treatments.len();
            for (index, network) in self.networks.iter().enumerate() {
                treatments.push(Treatment {
                    id: treatments.len(),
                    label: network.label.to_owned(),
                    scene: scene(network.label),
                    copy: 1,
                    task: workload.clone().into(),
                    timing: TIMING,
                    baseline: (index > 0).then_some(first),
                });
            }
        }
        let count = networks * self.workloads.len();
        Plan {
            experiment: "synthetic".to_owned(),
            study: None,
            question: "What would these networks cost, if they were real?".to_owned(),
            seed: 42,
            blocks: (0..self.blocks as usize)
                .map(|block| (0..count).map(|i| (i * 7 + block) % count).collect())
                .map(|order: Vec<usize>| shuffled_whole(order, count))
                .collect(),
            treatments,
            retries: 2,
            pairing: None,
            limits: Default::default(),
            link: Default::default(),
            rotate: false,
            slice_ns: 25_000_000,
            distribution: false,
            controls: 0,
            precision: None,
            sequential: None,
        }
    }
}

/// TCP request/response, open loop, Poisson at 5,000/s.
pub(crate) fn rr() -> Workload {
    Workload {
        name: "rr".to_owned(),
        kind: WorkloadKind::Rr,
        protocol: Protocol::Tcp,
        request_size: 64,
        response_size: 64,
        connections: 16,
        arrival: Arrival::Poisson { rate: 5_000.0 },
        keep_alive: true,
        server: Default::default(),
        wait: Wait::Block,
        driver: DriverChoice::Auto,
        zero_copy: false,
        timestamps: 0.0,
        think_ns: 0,
    }
}

/// A new TCP connection for each request.
pub(crate) fn opening() -> Workload {
    Workload {
        name: "crr".to_owned(),
        kind: WorkloadKind::Crr,
        ..rr()
    }
}

/// TCP bulk over one connection.
pub(crate) fn stream() -> Workload {
    Workload {
        name: "stream".to_owned(),
        kind: WorkloadKind::Stream,
        request_size: 65_536,
        connections: 1,
        arrival: Arrival::Closed,
        ..rr()
    }
}

/// UDP bulk in messages of 1,400 bytes.
pub(crate) fn datagram() -> Workload {
    Workload {
        name: "datagram".to_owned(),
        kind: WorkloadKind::Datagram,
        protocol: Protocol::Udp,
        request_size: 1_400,
        connections: 1,
        arrival: Arrival::Closed,
        ..rr()
    }
}

/// The networks of the demonstration.
pub(crate) fn networks() -> Vec<Network> {
    let network = |label, latency, tail, cpu, throughput| Network {
        label,
        latency,
        tail,
        cpu,
        throughput,
    };
    vec![
        Network::same("host"),
        network("macvlan", 1.004, 1.0, 1.01, 0.995),
        network("host-gw", 1.09, 1.1, 1.12, 0.95),
        network("routed", 1.06, 1.05, 1.08, 0.97),
        network("aws-vpc", 1.16, 1.2, 1.21, 0.91),
        network("vxlan", 1.31, 1.5, 1.38, 0.82),
        network("calico-vxlan", 1.27, 1.4, 1.34, 0.84),
    ]
}

/// As many networks and workloads as a first screen has to hold.
pub(crate) fn wide() -> Fake {
    const LABELS: [&str; 18] = [
        "host",
        "macvlan",
        "ipvlan-l2",
        "cilium",
        "routed",
        "host-gw",
        "romana",
        "kube-router",
        "aws-cni",
        "aws-vpc",
        "ipip",
        "geneve",
        "vxlan",
        "calico-vxlan",
        "cilium-geneve",
        "weave-fastdp",
        "wireguard",
        "flannel-udp",
    ];
    let network = |(place, label): (usize, &&'static str)| {
        let cost = place as f64 * 0.02;
        Network {
            label,
            latency: 1.0 + cost,
            tail: 1.0 + cost,
            cpu: 1.0 + 1.5 * cost,
            throughput: 1.0 - cost,
        }
    };
    let of_kind = |name: &str, kind| Workload {
        name: name.to_owned(),
        kind,
        ..rr()
    };
    let networks: Vec<Network> = LABELS.iter().enumerate().map(network).collect();
    Fake {
        workloads: vec![
            rr(),
            of_kind("crr", WorkloadKind::Crr),
            of_kind("http", WorkloadKind::Http),
            stream(),
            datagram(),
        ],
        noise: 0.03,
        ..Fake::new(&networks)
    }
}

/// Every treatment once, by a fixed permutation of the order.
fn shuffled_whole(order: Vec<usize>, count: usize) -> Vec<usize> {
    let mut whole: Vec<usize> = (0..count).collect();
    for (place, &pick) in order.iter().enumerate() {
        whole.swap(place, pick);
    }
    whole
}

fn run_of(plan: Plan) -> Run {
    Run {
        damaged_lines: 0,
        format: FORMAT_VERSION,
        plan,
        experiment_text: None,
        provenance: Provenance {
            version: "0.0.0 (synthetic)".to_owned(),
            command: vec!["plumbline".to_owned(), "run".to_owned()],
            started: "2026-01-01T12:00:00Z".to_owned(),
            target: "lab".to_owned(),
            anonymised: false,
            build: None,
            floor: Some(Floor {
                round_trips: 9_000,
                p50_ns: 21_000,
                p99_ns: 40_000,
            }),
        },
        fingerprint: fingerprint(),
        maxima: Vec::new(),
        conditions: None,
        warnings: vec![Warning::OneKernel],
    }
}

fn fingerprint() -> Fingerprint {
    Fingerprint {
        kernel: "6.12.0-synthetic".to_owned(),
        architecture: "x86_64".to_owned(),
        cpu_model: "Imaginary CPU at 3.0 GHz".to_owned(),
        cpus: 4,
        threads_per_core: Some(2),
        clock_source: "tsc".to_owned(),
        clock_read_ns: 22,
        memory_bytes: 16 << 30,
        sysctls: [("net.core.somaxconn".to_owned(), "4096".to_owned())].into(),
        devices: [(
            "vxlan".to_owned(),
            vec![DeviceFingerprint {
                namespace: "node1".to_owned(),
                device: "flannel.1".to_owned(),
                driver: "vxlan".to_owned(),
                mtu: 1450,
                route_mtu: None,
                qdisc: "noqueue".to_owned(),
                offloads: vec!["tx-checksumming".to_owned()],
            }],
        )]
        .into(),
        ..Fingerprint::default()
    }
}

/// SplitMix64, so that a figure never depends on the version of a crate.
struct Noise(u64);

impl Noise {
    /// Roughly normal with standard deviation 1.
    fn next(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// `vxlan`, or `calico/pod` of a run of several clusters.
fn scene(label: &str) -> Scene {
    match label.split_once('/') {
        Some((network, path)) => Scene::of(network).by(path),
        None => Scene::of(label),
    }
}

/// What a trial saw of its load, to change it.
pub(crate) fn load_of(trial: &mut Trial) -> &mut LoadObservation {
    let seen = trial.observation.as_mut().and_then(Observation::load_mut);
    seen.expect("every made-up trial is a load that was observed")
}
