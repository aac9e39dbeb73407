//! What was found: the hops of each network, held against the latency that was measured.

use std::ops::Range;

use plumbline_stats::family;

use crate::hop::Trip;

/// What programs at tracepoints are called in results.
pub(crate) const TRACEPOINTS: &str = "tracepoints";

/// Error probability of intervals.
const ALPHA: f64 = 0.05;

/// A mean over rounds, in nanoseconds, or a share, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanTime {
    /// The mean.
    pub ns: f64,
    /// Both ends of its interval; `None` with fewer than six rounds.
    pub interval: Option<(f64, f64)>,
}

impl MeanTime {
    /// The mean of one value for each round, with the interval that flipped signs give.
    pub(crate) fn of(values: &[f64]) -> Self {
        let column: Vec<_> = values.iter().copied().map(Some).collect();
        let means = family::means(&[column], ALPHA, 0).ok();
        let Some(mean) = means.and_then(|all| all.into_iter().next()) else {
            return Self {
                ns: f64::NAN,
                interval: None,
            };
        };
        let alone = (mean.alone.low, mean.alone.high);
        Self {
            ns: mean.mean,
            interval: Some(alone).filter(|(low, high)| low.is_finite() && high.is_finite()),
        }
    }

    /// Half of the width of its interval, where that is known.
    pub(crate) fn half_width(&self) -> Option<f64> {
        self.interval.map(|(low, high)| (high - low) / 2.0)
    }

    /// Whether its interval is known, and without 0.
    pub fn is_different(&self) -> bool {
        self.interval
            .is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// A hop, and how long it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct HopTime {
    /// What it is called.
    pub name: String,
    /// The namespace in which it begins.
    pub at: String,
    /// On the way to the receiver, or back.
    pub trip: Trip,
    /// How long it takes.
    pub time: MeanTime,
    /// Of that, how long a CPU works for it; `None` by taps, which see no waits apart.
    pub cpu: Option<MeanTime>,
}

/// What a network's hops add to those of the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Surplus {
    /// Name of the baseline.
    pub baseline: String,
    /// Difference of the latencies.
    pub total: MeanTime,
    /// Difference of the median latencies while nobody looked: what the hops are held against.
    pub alone_p50: MeanTime,
    /// Differences of hops, the largest first.
    pub by_name: Vec<HopSurplus>,
}

/// The hops of one name, both trips together; all stacks are one. Of what the baseline has too,
/// and the network more often, those that only one of them has stand apart: the second receive
/// behind a tunnel.
#[derive(Clone, Debug, PartialEq)]
pub struct HopSurplus {
    /// What they are called.
    pub name: String,
    /// By how much they differ.
    pub time: MeanTime,
    /// What they are compared by.
    pub(crate) kind: String,
    /// Which of a trip's hops of that kind.
    pub(crate) places: Range<usize>,
}

impl HopSurplus {
    /// Whether one of them is this hop of the network.
    pub(crate) fn has(&self, network: &NetworkHops, at: usize) -> bool {
        let hop = &network.hops[at];
        let is_alike = |it: &&HopTime| it.trip == hop.trip && kind(&it.name) == self.kind;
        let place = network.hops[..at].iter().filter(is_alike).count();
        kind(&hop.name) == self.kind && self.places.contains(&place)
    }
}

/// Where the time of one network goes.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkHops {
    /// The network.
    pub name: String,
    /// The mean latency that its hops are of, without the slowest requests: while nobody looked,
    /// where what a sight takes is out of them; else while hops were seen.
    pub total: MeanTime,
    /// The same while nobody looked.
    pub alone: MeanTime,
    /// The same while hops were seen.
    pub watched: MeanTime,
    /// The median of all requests while nobody looked.
    pub alone_p50: MeanTime,
    /// Its hops, in the order in which packets meet them.
    pub hops: Vec<HopTime>,
    /// Of them together, how long a CPU works; `None` by taps.
    pub cpu: Option<MeanTime>,
    /// What of the total is in no hop.
    pub unaccounted: MeanTime,
    /// Against the first network; `None` for that one itself.
    pub against: Option<Surplus>,
    /// Journeys that were followed from end to end.
    pub journeys: u64,
    /// Journeys whose packet was lost sight of, as in a program that copies it.
    pub lost: u64,
    /// Packets that were dropped: where, why, and how many.
    pub drops: Vec<(String, u64)>,
}

/// A network that requests could not be followed through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfollowed {
    /// The network.
    pub name: String,
    /// Why not.
    pub why: String,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Xray {
    /// The networks, the baseline first.
    pub networks: Vec<NetworkHops>,
    /// Those that could not be followed.
    pub unfollowed: Vec<Unfollowed>,
    /// What observing adds to the median latency, as a share, where that many are followed.
    pub observer_share: MeanTime,
    /// What each place that a packet is seen at adds to its latency, which is taken out of the
    /// hops; `None` where it is not known within a quarter: it is left in.
    pub sight: Option<MeanTime>,
    /// What each tap adds beside that to a request that it keeps, which is in no hop; `None` by
    /// tracepoints.
    pub kept: Option<MeanTime>,
    /// One of so many requests is followed: fewer than was asked for where that is cheaper.
    pub one_in: u64,
    /// Rounds in which each network was looked at.
    pub rounds: usize,
    /// What looked: `tracepoints` or `taps`.
    pub by: &'static str,
}

/// The kind of all stacks.
pub(crate) const STACK: &str = "stack";

/// What hops are compared by. The stacks of nodes and of pods are the same.
pub(crate) fn kind(hop: &str) -> &str {
    match hop.ends_with(" stack") {
        true => STACK,
        false => hop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_rounds_have_no_interval() {
        assert_eq!(MeanTime::of(&[1.0, 2.0]).interval, None);
        assert!(MeanTime::of(&[1.0, 1.1, 0.9, 1.0, 1.2, 0.8]).is_different());
    }
}
