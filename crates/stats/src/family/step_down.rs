//! The test that something differs at all, and what each comparison competes
//! with.

use super::flips::{Flips, LogRatios};

/// Two statistics that differ by less, relative to their size, are equal: the
/// sums are rounded.
const TIE: f64 = 1e-9;

/// p-values that no effect is 0, adjusted for all comparisons together by
/// stepping down: the largest statistic competes with all, the next with all
/// but the largest, and so on.
///
/// The share of choices of signs in which some competitor reaches what was
/// observed. As the data themselves are one choice, the test is exact for any
/// number of choices. Sources: P. H. Westfall and S. S. Young,
/// *Resampling-Based Multiple Testing* (1993), algorithm 2.8; J. P. Romano and
/// M. Wolf, "Exact and Approximate Stepdown Methods for Multiple Hypothesis
/// Testing", Journal of the American Statistical Association 100 (2005); for
/// drawn choices M. Dwass, "Modified Randomization Tests for Nonparametric
/// Hypotheses", Annals of Mathematical Statistics 28 (1957).
pub(super) fn adjusted_p(columns: &[LogRatios], flips: &Flips) -> Vec<f64> {
    let observed: Vec<f64> = columns.iter().map(observed).collect();
    let mut ascending: Vec<usize> = (0..columns.len()).collect();
    ascending.sort_by(|&i, &j| observed[i].total_cmp(&observed[j]));

    let mut p = vec![1.0; columns.len()];
    let mut largest = vec![0.0_f64; flips.len()];
    for &index in &ascending {
        p[index] = reached(&columns[index], flips, &mut largest);
    }
    let mut before: f64 = 0.0;
    for &index in ascending.iter().rev() {
        before = before.max(p[index]);
        p[index] = before;
    }
    p
}

/// The p-value of one comparison by itself.
pub(super) fn p_alone(column: &LogRatios, flips: &Flips) -> f64 {
    reached(column, flips, &mut vec![0.0; flips.len()])
}

/// Adds `column` to the `largest` statistic of each choice, and tells in which
/// share of them that reaches what the column shows unflipped.
fn reached(column: &LogRatios, flips: &Flips, largest: &mut [f64]) -> f64 {
    let bar = observed(column) * (1.0 - TIE);
    let mut count = 0_usize;
    for (flipped, largest) in column.flipped(flips).zip(largest.iter_mut()) {
        *largest = largest.max(column.at_zero(flipped));
        count += usize::from(*largest >= bar);
    }
    count as f64 / flips.len() as f64
}

fn observed(column: &LogRatios) -> f64 {
    if column.squares > 0.0 {
        (column.mean * column.blocks as f64).powi(2) / column.squares
    } else {
        0.0
    }
}

/// For each choice of signs, the largest statistics around the estimates.
pub(super) struct Rivals {
    /// The largest, and whose it is.
    first: Vec<(f64, usize)>,
    /// The largest of the others.
    second: Vec<f64>,
}

impl Rivals {
    /// Those of the `columns` for which `takes_part` holds.
    pub(super) fn new(
        columns: &[LogRatios],
        flips: &Flips,
        takes_part: impl Fn(usize) -> bool,
    ) -> Rivals {
        let mut rivals = Rivals {
            first: vec![(0.0, usize::MAX); flips.len()],
            second: vec![0.0; flips.len()],
        };
        let taking_part = columns.iter().enumerate().filter(|(at, _)| takes_part(*at));
        for (index, column) in taking_part {
            let best = rivals.first.iter_mut().zip(&mut rivals.second);
            for (flipped, (first, second)) in column.flipped(flips).zip(best) {
                let value = column.at_mean(flipped);
                if value > first.0 {
                    *second = first.0;
                    *first = (value, index);
                } else if value > *second {
                    *second = value;
                }
            }
        }
        rivals
    }

    /// The largest squared statistic of all but comparison `index`, by choice.
    pub(super) fn of(&self, index: usize) -> impl Iterator<Item = f64> {
        let first = self.first.iter().zip(&self.second);
        first.map(move |(first, &second)| if first.1 == index { second } else { first.0 })
    }

    /// The squared statistic that a comparison has to exceed to be called
    /// different: the `kept`-th largest. `None` when `kept` is 0.
    pub(super) fn critical(&self, kept: usize) -> Option<f64> {
        let mut squares: Vec<f64> = self.first.iter().map(|first| first.0).collect();
        let at = squares.len().checked_sub(kept).filter(|_| kept > 0)?;
        let (_, &mut critical, _) = squares.select_nth_unstable_by(at, f64::total_cmp);
        Some(critical)
    }
}
