//! One figure of one comparison: what to reach, and whether it was.

use plumbline_stats::{order, paired};
use serde::Serialize;

use super::Fought;
use super::bouts::{OPEN_RATE, Reading};

/// A quantity that a run gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Metric {
    /// Requests or messages per second.
    Rate,
    /// Bits per second, counted where they arrived.
    BitRate,
    /// CPU nanoseconds of the client per request.
    CpuPerRequest,
    /// Of these, in user space.
    UserPerRequest,
    /// CPU nanoseconds of the server per request.
    ServerCpuPerRequest,
    /// CPU nanoseconds of both ends per kilobyte.
    CpuPerKilobyte,
    /// Median latency, nanoseconds.
    P50,
    /// 99th percentile of the latency, nanoseconds.
    P99,
    /// 99.9th percentile of the latency, nanoseconds.
    P999,
    /// 99th percentile of sent − intended, nanoseconds.
    LagP99,
    /// Bytes of memory per connection.
    Memory,
}

/// What is to be reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goal {
    /// Ours at most so many times theirs.
    AtMost(f64),
    /// Ours at least so many times theirs.
    AtLeast(f64),
    /// Ours at most so many times theirs, or so many nanoseconds more.
    AtMostOr(f64, f64),
    /// No further apart than this, in the metric's unit.
    Within(f64),
    /// Ours alone at most this, in the metric's unit.
    Ceiling(f64),
}

/// One figure to compare.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) what: &'static str,
    pub(super) metric: Metric,
    pub(super) goal: Option<Goal>,
}

/// What came of one figure.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) comparison: &'static str,
    pub(super) what: &'static str,
    pub(super) against: &'static str,
    pub(super) metric: Metric,
    /// Medians over the pairs; `None` where a run's samples do not carry the
    /// figure (D4).
    pub(super) ours: Option<f64>,
    pub(super) theirs: Option<f64>,
    /// Hodges–Lehmann estimate of ours/theirs over the pairs.
    pub(super) ratio: Option<f64>,
    /// Its exact signed-rank interval; needs six pairs.
    pub(super) interval: Option<(f64, f64)>,
    pub(super) reach: Option<String>,
    pub(super) met: Option<bool>,
    /// What to know of the figure: that too few samples carry it.
    pub(super) note: Option<String>,
    /// Theirs and ours of every pair.
    pub(super) pairs: Vec<(Option<f64>, Option<f64>)>,
}

/// Judges every point of a bout of which at least one pair was run.
pub(super) fn judge(fought: &Fought) -> Vec<Outcome> {
    let points = fought.bout.points.iter();
    points
        .filter(|_| !fought.ours.is_empty())
        .map(|point| outcome(fought, point))
        .collect()
}

fn outcome(fought: &Fought, point: &Point) -> Outcome {
    let of = |reading: &Reading| reading.get(&point.metric).copied();
    let sides = fought.theirs.iter().zip(&fought.ours);
    let pairs: Vec<_> = sides.map(|(theirs, ours)| (of(theirs), of(ours))).collect();
    let theirs = median(pairs.iter().filter_map(|pair| pair.0));
    let ours = median(pairs.iter().filter_map(|pair| pair.1));
    let both: Vec<(f64, f64)> = pairs
        .iter()
        .filter_map(|&(theirs, ours)| Some((ours?, theirs?)))
        .collect();
    let effect = paired::effect(&both, 0.05).ok();
    let ratio = effect.map(|effect| 1.0 + effect.ratio_minus_one);
    let interval = effect.and_then(|effect| effect.interval);
    Outcome {
        comparison: fought.bout.name,
        what: point.what,
        against: fought.bout.against,
        metric: point.metric,
        ours,
        theirs,
        ratio,
        interval: interval.map(|it| (1.0 + it.low, 1.0 + it.high)),
        reach: point.goal.map(|goal| goal.in_words(point.metric)),
        met: point
            .goal
            .and_then(|goal| goal.is_met(ours?, theirs, ratio)),
        note: too_few(point.metric, fought.bout.is_alone(), &pairs),
        pairs,
    }
}

/// Says in how many pairs a percentile lacks the samples that it needs (D4),
/// and how long runs would have to last for it. A figure from some of the pairs
/// only is one of the quieter half, so it is never left unsaid.
fn too_few(metric: Metric, alone: bool, pairs: &[(Option<f64>, Option<f64>)]) -> Option<String> {
    let samples = metric.samples()?;
    let lacking = pairs
        .iter()
        .filter(|(theirs, ours)| ours.is_none() || (theirs.is_none() && !alone));
    let lacking = lacking.count();
    let seconds = samples.div_ceil(u64::from(OPEN_RATE));
    (lacking > 0).then(|| {
        format!(
            "too few samples in {lacking} of {} pairs: {seconds} s of independent ones are needed, \
             more --seconds where they are not",
            pairs.len()
        )
    })
}

impl Goal {
    /// `None` when the other side's figure is missing.
    fn is_met(self, ours: f64, theirs: Option<f64>, ratio: Option<f64>) -> Option<bool> {
        Some(match self {
            Self::AtMost(most) => ratio? <= most,
            Self::AtLeast(least) => ratio? >= least,
            Self::AtMostOr(most, more) => ratio? <= most || ours - theirs? <= more,
            Self::Within(distance) => (ours - theirs?).abs() <= distance,
            Self::Ceiling(most) => ours <= most,
        })
    }

    fn in_words(self, metric: Metric) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {most} ×"),
            Self::AtLeast(least) => format!("≥ {least} ×"),
            Self::AtMostOr(most, more) => {
                format!("≤ {most} × or +{}", metric.show(more))
            }
            Self::Within(distance) => format!("± {}", metric.show(distance)),
            Self::Ceiling(most) => format!("≤ {}", metric.show(most)),
        }
    }
}

impl Metric {
    /// How many samples a percentile of the open loop needs at least (D4);
    /// `None` for what every run has enough of.
    pub(super) fn samples(self) -> Option<u64> {
        match self {
            Self::P99 | Self::LagP99 => Some(order::samples_to_support(0.99)),
            Self::P999 => Some(order::samples_to_support(0.999)),
            _ => None,
        }
    }

    /// A value with its unit.
    pub(super) fn show(self, value: f64) -> String {
        use plumbline_report::number;
        number::plain(&match self {
            Self::Rate => number::rate(value),
            Self::BitRate => number::bit_rate(value),
            Self::Memory => number::bytes(value),
            _ => number::duration(value),
        })
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    if values.is_empty() {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    Some(if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_met_and_missed() {
        let met =
            |goal: Goal, ours, theirs: f64| goal.is_met(ours, Some(theirs), Some(ours / theirs));
        assert_eq!(met(Goal::AtMost(0.6), 6.0, 10.0), Some(true));
        assert_eq!(met(Goal::AtMost(0.6), 6.1, 10.0), Some(false));
        assert_eq!(met(Goal::AtLeast(2.0), 19.0, 10.0), Some(false));
        assert_eq!(
            met(Goal::AtMostOr(1.03, 1e3), 20_900.0, 20_000.0),
            Some(true)
        );
        assert_eq!(
            met(Goal::AtMostOr(1.03, 1e3), 21_500.0, 20_000.0),
            Some(false)
        );
        assert_eq!(met(Goal::Within(2e3), 20e3, 23e3), Some(false));
        assert_eq!(Goal::AtMost(1.0).is_met(1.0, None, None), None);
        assert_eq!(Goal::Ceiling(5.0).is_met(5.1, None, None), Some(false));
    }

    #[test]
    fn a_percentile_of_too_few_samples_says_so() {
        let pairs = [(None, Some(1.0)), (Some(1.0), Some(1.0))];
        let note = too_few(Metric::P999, false, &pairs).unwrap();
        assert_eq!(
            note,
            "too few samples in 1 of 2 pairs: 20 s of independent ones are needed, more --seconds where they are not"
        );
        assert_eq!(too_few(Metric::P999, true, &pairs), None);
        assert_eq!(too_few(Metric::P50, false, &pairs), None);
        assert!(too_few(Metric::LagP99, true, &[(None, None)]).is_some());
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median([4.0, 1.0, 3.0, 2.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
    }
}
