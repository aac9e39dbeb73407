//! The word that a reader takes home, and when it may be said (D10).

use std::fmt;

use crate::Interval;

/// What a comparison shows. Never printed without its interval, nor
/// "equivalent" and "undecided" without the smallest effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Different, in the direction that the metric wants.
    Better,
    /// Different, in the other direction.
    Worse,
    /// Whatever difference there may be lies inside the margin.
    Equivalent,
    /// The data do not decide.
    Undecided,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
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

impl Verdict {
    /// What an `interval` of effects says (D10): inside ±`margin`, the largest
    /// ratio less one that does not matter in practice (D9), equivalent, even
    /// when it excludes 0; else better or worse when it excludes 0; else undecided.
    ///
    /// Equivalence by the same 95 % interval is stricter than the usual two
    /// one-sided tests, which ask for 90 %. So one interval is all that is
    /// printed, and it errs towards "undecided".
    pub fn of(interval: &Interval, margin: f64, direction: Direction) -> Verdict {
        if interval.is_within(margin) {
            return Verdict::Equivalent;
        }
        if interval.contains(0.0) {
            return Verdict::Undecided;
        }
        let went_down = interval.high < 0.0;
        let wants_down = direction == Direction::LowerIsBetter;
        if went_down == wants_down {
            Verdict::Better
        } else {
            Verdict::Worse
        }
    }

    /// Whether there is a difference that matters.
    pub fn is_different(self) -> bool {
        matches!(self, Verdict::Better | Verdict::Worse)
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{HigherIsBetter, LowerIsBetter};
    use super::Verdict::{Better, Equivalent, Undecided, Worse};
    use super::*;

    fn judge(low: f64, high: f64, direction: Direction) -> Verdict {
        let level = 0.95;
        Verdict::of(&Interval { low, high, level }, 0.03, direction)
    }

    #[test]
    fn the_direction_decides_what_a_difference_is_worth() {
        for (low, high, direction, verdict) in [
            (-0.3, -0.2, LowerIsBetter, Better),
            (-0.3, -0.2, HigherIsBetter, Worse),
            (0.2, 0.3, LowerIsBetter, Worse),
            (0.2, 0.3, HigherIsBetter, Better),
        ] {
            assert_eq!(judge(low, high, direction), verdict, "{low} to {high}");
        }
    }

    #[test]
    fn a_certain_difference_inside_the_margin_does_not_matter() {
        assert_eq!(judge(0.01, 0.02, LowerIsBetter), Equivalent);
        assert_eq!(judge(0.01, 0.04, LowerIsBetter), Worse);
    }

    #[test]
    fn what_reaches_from_zero_beyond_the_margin_is_undecided() {
        assert_eq!(judge(-0.1, 0.2, LowerIsBetter), Undecided);
        assert_eq!(judge(0.0, 0.2, LowerIsBetter), Undecided);
        assert_eq!(judge(-1.0, f64::INFINITY, LowerIsBetter), Undecided);
    }

    #[test]
    fn words_are_lower_case_and_can_be_padded() {
        let words = [Better, Worse, Equivalent, Undecided].map(|verdict| verdict.to_string());
        assert_eq!(words, ["better", "worse", "equivalent", "undecided"]);
        assert_eq!(format!("{Better:>8}"), "  better");
    }
}
