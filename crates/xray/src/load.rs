//! The load that is looked into, and what it measured.

use plumbline_experiment::{
    ArrivalProcess, Refusal, Timing, Workload, WorkloadKind, WorkloadRequest,
};
use plumbline_record::Histogram;

/// Requests and answers that follow each other on one connection: one message is under way
/// at a time, so that its way through the kernel is that of nothing else.
pub(crate) fn workload() -> Result<Workload, Refusal> {
    let asked = WorkloadRequest {
        connections: Some(1),
        process: Some(ArrivalProcess::Closed),
        ..WorkloadRequest::default()
    };
    asked.workload(WorkloadKind::Rr)
}

/// Phases of each trial. Many short ones, with and without observing in turn, meet more of
/// what changes on a machine than a few long ones.
pub(crate) const TIMING: Timing = Timing {
    warm_up_ns: 50_000_000,
    measure_ns: 250_000_000,
    drain_ns: 100_000_000,
};

/// Share of the requests that are quick enough to be in means. A single wait for a CPU that
/// was taken away would be in a mean of ten thousand requests otherwise, and in no hop of
/// the path.
const USUAL_SHARE: f64 = 0.99;

/// The longest latency that counts, in nanoseconds, as a first trial shows it.
pub(crate) fn limit(latency: &Histogram) -> u64 {
    latency.value_at(USUAL_SHARE)
}

/// What one trial measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrialLatency {
    /// Mean of what was not above the limit, nanoseconds.
    pub(crate) mean_ns: f64,
    /// Median of all, nanoseconds.
    pub(crate) p50_ns: f64,
}

impl TrialLatency {
    /// Of a histogram that is not empty below the limit.
    pub(crate) fn of(latency: &Histogram, limit_ns: u64) -> Option<Self> {
        Some(Self {
            mean_ns: mean_within(latency, limit_ns)?,
            p50_ns: latency.value_at(0.5) as f64,
        })
    }
}

/// The mean of what is not above the limit; `None` where nothing is.
pub(crate) fn mean_within(times: &Histogram, limit_ns: u64) -> Option<f64> {
    let quick = times.buckets().filter(|(ns, _)| *ns <= limit_ns);
    let (sum, count) = quick.fold((0.0, 0), |(sum, all), (ns, count)| {
        (sum + ns as f64 * count as f64, all + count)
    });
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_limit_is_in_no_mean() {
        let mut latency = Histogram::new();
        latency.record_n(10, 50);
        latency.record_n(20, 50);
        latency.record(1_000_000);
        let seen = TrialLatency::of(&latency, limit(&latency)).unwrap();
        assert_eq!(seen.mean_ns, 15.0);
        assert_eq!(TrialLatency::of(&latency, 5), None);
    }

    #[test]
    fn one_request_is_under_way_at_a_time() {
        let load = workload().unwrap();
        assert_eq!((load.connections, load.arrival.rate()), (1, None));
    }
}
