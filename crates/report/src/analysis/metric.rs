//! What treatments are compared on.

use plumbline_experiment::{Workload, WorkloadKind};
use plumbline_record::Observation;
use plumbline_stats::verdict::Direction;

use super::{cost, rates};

/// One number for each trial, on which treatments are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Median latency of the trial, nanoseconds.
    P50,
    /// 99th percentile of the trial's latency, nanoseconds.
    P99,
    /// CPU time of the machines per request, nanoseconds.
    CpuPerRequest,
    /// CPU time of the machines per payload byte, nanoseconds.
    CpuPerByte,
    /// Payload bits, or completed requests, per second.
    Throughput,
}

/// What a metric counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Nanoseconds for each byte, the same as seconds for each gigabyte.
    NanosecondsPerByte,
    /// Bits per second.
    BitsPerSecond,
    /// Requests per second.
    RequestsPerSecond,
}

impl Metric {
    /// The name in files: `p50`, `p99`, `cpu_per_request`, `cpu_per_byte`, `throughput`.
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::CpuPerRequest => "cpu_per_request",
            Self::CpuPerByte => "cpu_per_byte",
            Self::Throughput => "throughput",
        }
    }

    /// The name in sentences.
    pub fn words(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::CpuPerRequest => "CPU per request",
            Self::CpuPerByte => "CPU per byte",
            Self::Throughput => "throughput",
        }
    }

    /// Which way it should go.
    pub fn direction(self) -> Direction {
        match self {
            Self::Throughput => Direction::HigherIsBetter,
            _ => Direction::LowerIsBetter,
        }
    }

    /// What it counts under a workload.
    pub fn unit(self, workload: &Workload) -> Unit {
        match self {
            Self::P50 | Self::P99 | Self::CpuPerRequest => Unit::Nanoseconds,
            Self::CpuPerByte => Unit::NanosecondsPerByte,
            Self::Throughput if is_bulk(workload) => Unit::BitsPerSecond,
            Self::Throughput => Unit::RequestsPerSecond,
        }
    }

    /// The number of one trial; `None` when nothing was measured.
    pub(crate) fn value(self, workload: &Workload, observation: &Observation) -> Option<f64> {
        let latency = &observation.load.latency;
        let at = |quantile| (!latency.is_empty()).then(|| latency.value_at(quantile) as f64);
        match self {
            Self::P50 => at(0.5),
            Self::P99 => at(0.99),
            Self::CpuPerRequest | Self::CpuPerByte => cost::cpu_per_unit(workload, observation),
            Self::Throughput if is_bulk(workload) => {
                rates::throughput_bits_per_second(workload, observation)
            }
            Self::Throughput => rates::requests_per_second(observation),
        }
    }
}

/// The metrics of a workload; `true` marks the primary ones, which are declared
/// here, before any data, and judged together (C-10).
pub(crate) fn metrics_of(workload: &Workload) -> &'static [(Metric, bool)] {
    if is_bulk(workload) {
        return &[(Metric::Throughput, true), (Metric::CpuPerByte, true)];
    }
    match workload.arrival.rate() {
        Some(_) => &[
            (Metric::P50, true),
            (Metric::CpuPerRequest, true),
            (Metric::P99, false),
        ],
        None => &[
            (Metric::Throughput, true),
            (Metric::P50, true),
            (Metric::CpuPerRequest, false),
            (Metric::P99, false),
        ],
    }
}

/// Whether a workload moves bytes rather than answers requests.
pub(crate) fn is_bulk(workload: &Workload) -> bool {
    matches!(workload.kind, WorkloadKind::Stream | WorkloadKind::Datagram)
}
