//! The object's shape, key by key in the order in which they are written.

use std::collections::BTreeMap;

use plumbline_experiment::{FACTORS, Factor, Link, Protocol, Scene, WorkloadKind};
use plumbline_record::Maximum;
use serde::{Serialize, Serializer};

use crate::latency::LatencySummary;

#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) schema_version: u32,
    pub(super) experiment: &'a str,
    pub(super) question: &'a str,
    pub(super) started: &'a str,
    pub(super) target: &'a str,
    pub(super) link: Link,
    pub(super) builds: usize,
    pub(super) cut_off: bool,
    pub(super) floor_ns: Option<FloorNs>,
    pub(super) maxima: &'a [Maximum],
    pub(super) answers: Vec<String>,
    /// Only where places were brought up for the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) set_ups: Vec<serde_json::Value>,
    pub(super) treatments: Vec<Treatment<'a>>,
    pub(super) comparisons: Vec<Judged<'a>>,
    pub(super) mesh: Option<Mesh<'a>>,
    pub(super) published: Option<Published<'a>>,
    pub(super) trials: Trials,
    pub(super) warnings: Vec<String>,
}

/// What each pair of nodes showed; null for a run of one pair.
#[derive(Serialize)]
pub(super) struct Mesh<'a> {
    pub(super) nodes: &'a [String],
    pub(super) maps: Vec<MeshMap<'a>>,
}

#[derive(Serialize)]
pub(super) struct MeshMap<'a> {
    pub(super) label: &'a str,
    pub(super) workload: &'a str,
    pub(super) metric: &'static str,
    pub(super) typical: Option<f64>,
    pub(super) pairs: Vec<Pair<'a>>,
    /// Null when the nodes are too few to tell.
    pub(super) unlike_nodes: Option<Vec<UnlikeNode<'a>>>,
    pub(super) unlike_pairs: Option<Vec<UnlikePair<'a>>>,
    pub(super) dead_nodes: Vec<&'a str>,
    pub(super) dead_pairs: Vec<[&'a str; 2]>,
}

#[derive(Serialize)]
pub(super) struct Pair<'a> {
    pub(super) client: &'a str,
    pub(super) server: &'a str,
    pub(super) value: Option<f64>,
    pub(super) trials: usize,
}

#[derive(Serialize)]
pub(super) struct UnlikeNode<'a> {
    pub(super) node: &'a str,
    pub(super) ratio: f64,
}

#[derive(Serialize)]
pub(super) struct UnlikePair<'a> {
    pub(super) nodes: [&'a str; 2],
    pub(super) ratio: f64,
}

/// The published study beside the run.
#[derive(Serialize)]
pub(super) struct Published<'a> {
    pub(super) study: &'a str,
    pub(super) title: &'a str,
    pub(super) author: &'a str,
    pub(super) year: u16,
    pub(super) source: &'a str,
    pub(super) order: Vec<Order<'a>>,
    pub(super) tables: Vec<PublishedTable<'a>>,
}

#[derive(Serialize)]
pub(super) struct PublishedTable<'a> {
    pub(super) workload: &'a str,
    pub(super) about: &'a str,
    pub(super) columns: &'a [String],
    pub(super) rows: Vec<PublishedRow<'a>>,
    pub(super) order: Vec<Order<'a>>,
}

/// Figures by column; null where ours has none.
#[derive(Serialize)]
pub(super) struct PublishedRow<'a> {
    pub(super) label: &'a str,
    pub(super) network: &'a str,
    pub(super) published_ns: Vec<f64>,
    pub(super) here_ns: &'a [Option<f64>],
}

/// Kendall's tau-b with its interval, and the pairs behind it.
#[derive(Serialize)]
pub(super) struct Order<'a> {
    pub(super) percentile: &'a str,
    pub(super) tau: f64,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) level: Option<f64>,
    pub(super) highest_tau: f64,
    pub(super) pairs_same: u64,
    pub(super) pairs_opposite: u64,
    pub(super) pairs_tied_published: u64,
    pub(super) share_by_chance: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct FloorNs {
    pub(super) p50: u64,
    pub(super) p99: u64,
}

#[derive(Serialize)]
pub(super) struct Treatment<'a> {
    pub(super) label: &'a str,
    pub(super) factors: Factors<'a>,
    pub(super) latency_ns: LatencySummary,
    pub(super) latency_interval_ns: BTreeMap<String, Option<(u64, u64)>>,
    pub(super) service_time_ns: LatencySummary,
    pub(super) send_lag_ns: LatencySummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spans: Option<serde_json::Value>,
    pub(super) latency_over_trials_ns: InOrder,
    pub(super) rates: Rates,
    pub(super) costs: Costs,
    pub(super) packets: Packets<'a>,
    pub(super) trials: Trials,
    pub(super) outliers: Vec<Outlier>,
    pub(super) warnings: Vec<String>,
}

/// The level of every factor of a scene: a number where it is one.
pub(super) struct SceneLevels<'a>(pub(super) &'a Scene);

impl Serialize for SceneLevels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let level = |factor: &Factor| {
            let level = (factor.level)(self.0);
            let number = level.parse::<u64>();
            (
                factor.name,
                number.map_or_else(|_| level.into(), serde_json::Value::from),
            )
        };
        serializer.collect_map(FACTORS.iter().map(level))
    }
}

#[derive(Serialize)]
pub(super) struct Factors<'a> {
    #[serde(flatten)]
    pub(super) scene: SceneLevels<'a>,
    pub(super) workload: &'a str,
    pub(super) kind: WorkloadKind,
    pub(super) protocol: Protocol,
    pub(super) arrival: &'static str,
    pub(super) connections: u32,
    pub(super) request_size_bytes: u32,
    pub(super) response_size_bytes: u32,
    pub(super) keep_alive: bool,
}

/// A median over trials with its order-statistic interval.
#[derive(Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) level: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct Rates {
    pub(super) offered_requests_per_second: Option<f64>,
    pub(super) achieved_requests_per_second: Option<Spread>,
    pub(super) throughput_bits_per_second: Option<Spread>,
    pub(super) loss_share: Option<f64>,
    pub(super) planned: u64,
    pub(super) completed: u64,
    pub(super) errors: u64,
    pub(super) unanswered: u64,
}

/// Metrics by name in the order of their registry.
#[derive(Default)]
pub(super) struct InOrder(pub(super) Vec<(&'static str, Option<Spread>)>);

impl Serialize for InOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, spread)| (name, spread)))
    }
}

#[derive(Default, Serialize)]
pub(super) struct Costs {
    #[serde(flatten)]
    pub(super) totals: InOrder,
    pub(super) by_context: Option<Contexts>,
    pub(super) client_process_ns: Option<f64>,
    pub(super) server_process_ns: Option<f64>,
    pub(super) polling_cpus: Option<f64>,
    pub(super) busiest_cpu_softirq_share: Option<f64>,
}

/// Nanoseconds per request, or per byte for bulk.
#[derive(Serialize)]
pub(super) struct Contexts {
    pub(super) user_ns: f64,
    pub(super) system_ns: f64,
    pub(super) softirq_ns: f64,
    pub(super) irq_ns: f64,
}

#[derive(Serialize)]
pub(super) struct Packets<'a> {
    pub(super) device: Option<&'a str>,
    pub(super) per_second: Option<f64>,
    pub(super) mean_size_bytes: Option<f64>,
    pub(super) dropped: u64,
    pub(super) squeezed: u64,
    pub(super) retransmitted: u64,
    pub(super) buffer_errors: u64,
    pub(super) checksum_errors: u64,
}

#[derive(Serialize)]
pub(super) struct Trials {
    pub(super) kept: usize,
    pub(super) repeated: usize,
    pub(super) failed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) missing: Option<usize>,
    pub(super) reasons: BTreeMap<String, usize>,
}

#[derive(Serialize)]
pub(super) struct Outlier {
    pub(super) metric: &'static str,
    pub(super) block: u32,
    pub(super) value: f64,
}

#[derive(Serialize)]
pub(super) struct Judged<'a> {
    pub(super) treatment: &'a str,
    pub(super) baseline: &'a str,
    pub(super) workload: &'a str,
    pub(super) metric: &'static str,
    pub(super) primary: bool,
    pub(super) effect: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) level: Option<f64>,
    pub(super) difference: Option<f64>,
    pub(super) difference_unit: &'static str,
    pub(super) adjusted_p: Option<f64>,
    pub(super) verdict: String,
    pub(super) smallest_effect: Option<f64>,
    pub(super) margin: f64,
    pub(super) resolution: f64,
    pub(super) pairs: usize,
    pub(super) pairs_left_out: usize,
    pub(super) blocks_needed: usize,
}
