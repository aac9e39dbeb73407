//! The word that a reader takes home, and when it may be said (D10).

use std::fmt;

use crate::paired::Effect;

/// What a comparison shows. Never printed without its interval, nor
/// "equivalent" and "inconclusive" without the smallest effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Different, in the direction that the metric wants.
    Better,
    /// Different, in the other direction.
    Worse,
    /// Whatever difference there may be lies inside the margin.
    Equivalent,
    /// The data do not decide.
    Inconclusive,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
        })
    }
}

/// Which way a metric should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Latency, CPU per request, loss.
    LowerIsBetter,
    /// Throughput.
    HigherIsBetter,
}

/// Judges `effect` of a treatment against its baseline (D10).
///
/// `adjusted_p` is the effect's p-value after [`holm`](crate::holm()) over all
/// comparisons that are judged together; `margin` is the largest ratio less
/// one that does not matter in practice (D9), such as 0.03.
///
/// * The interval lies inside ±`margin`: equivalent, even when it excludes 0.
///   A difference can be certain and still not matter.
/// * Else `adjusted_p` < `alpha` and the interval excludes 0: better or worse.
///   Both are required: Holm adjusts the p-value but not the interval, and only
///   the interval takes account of pairs without any difference.
/// * Else inconclusive; so is an effect without an interval.
///
/// Equivalence by the same 95 % interval is stricter than the usual two
/// one-sided tests, which ask for 90 %. So one interval is all that is printed,
/// and it errs towards "inconclusive".
pub fn judge(
    effect: &Effect,
    adjusted_p: f64,
    alpha: f64,
    margin: f64,
    direction: Direction,
) -> Verdict {
    let Some(interval) = effect.interval else {
        return Verdict::Inconclusive;
    };
    if interval.is_within(margin) {
        return Verdict::Equivalent;
    }
    let is_different = adjusted_p < alpha && !interval.contains(0.0);
    if !is_different {
        return Verdict::Inconclusive;
    }
    let went_down = interval.high < 0.0;
    let wants_down = direction == Direction::LowerIsBetter;
    if went_down == wants_down {
        Verdict::Better
    } else {
        Verdict::Worse
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{HigherIsBetter, LowerIsBetter};
    use super::Verdict::{Better, Equivalent, Inconclusive, Worse};
    use super::*;
    use crate::Interval;

    fn effect(low: f64, high: f64) -> Effect {
        Effect {
            ratio_minus_one: f64::midpoint(low, high),
            interval: Some(Interval {
                low,
                high,
                level: 0.95,
            }),
            p_value: 0.001,
            pairs: 10,
            smallest_effect: None,
        }
    }

    #[test]
    fn the_direction_decides_what_a_difference_is_worth() {
        let (down, up) = (effect(-0.3, -0.2), effect(0.2, 0.3));
        for (effect, direction, verdict) in [
            (down, LowerIsBetter, Better),
            (down, HigherIsBetter, Worse),
            (up, LowerIsBetter, Worse),
            (up, HigherIsBetter, Better),
        ] {
            assert_eq!(
                judge(&effect, 0.01, 0.05, 0.03, direction),
                verdict,
                "{effect:?}"
            );
        }
    }

    #[test]
    fn a_certain_difference_inside_the_margin_does_not_matter() {
        assert_eq!(
            judge(&effect(0.01, 0.02), 0.001, 0.05, 0.03, LowerIsBetter),
            Equivalent
        );
        assert_eq!(
            judge(&effect(0.01, 0.04), 0.001, 0.05, 0.03, LowerIsBetter),
            Worse
        );
    }

    #[test]
    fn a_difference_needs_both_the_adjusted_p_and_the_interval() {
        assert_eq!(
            judge(&effect(0.1, 0.2), 0.06, 0.05, 0.03, LowerIsBetter),
            Inconclusive
        );
        assert_eq!(
            judge(&effect(-0.1, 0.2), 0.01, 0.05, 0.03, LowerIsBetter),
            Inconclusive
        );
        assert_eq!(
            judge(&effect(0.1, 0.2), f64::NAN, 0.05, 0.03, LowerIsBetter),
            Inconclusive
        );
    }

    #[test]
    fn without_an_interval_nothing_is_said() {
        let unbounded = Effect {
            interval: None,
            ..effect(0.1, 0.2)
        };
        assert_eq!(
            judge(&unbounded, 0.01, 0.05, 0.03, LowerIsBetter),
            Inconclusive
        );
    }

    #[test]
    fn words_are_lower_case_and_can_be_padded() {
        let words = [Better, Worse, Equivalent, Inconclusive].map(|verdict| verdict.to_string());
        assert_eq!(words, ["better", "worse", "equivalent", "inconclusive"]);
        assert_eq!(format!("{Better:>8}"), "  better");
    }
}
