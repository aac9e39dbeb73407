//! What came of all comparisons.

use crate::bout::Bout;
use crate::error::ValidationError;
use crate::judgement::{FigureVerdict, judge};
use crate::pairs::BoutPairs;

/// What came of all comparisons.
#[derive(Debug, Default)]
pub struct Comparisons {
    pub(crate) judgements: Vec<FigureVerdict>,
    /// What could not be compared, and the program that it lacks.
    pub(crate) missing: Vec<(&'static Bout, &'static str)>,
    /// What could not be finished, and why.
    pub(crate) failed: Vec<(&'static Bout, ValidationError)>,
    /// Whether it was ended before all was compared that was asked for.
    pub(crate) is_interrupted: bool,
}

impl Comparisons {
    pub(crate) fn add(&mut self, pairs: BoutPairs) {
        self.judgements.extend(judge(&pairs));
        self.failed
            .extend(pairs.error.map(|error| (pairs.bout, error)));
    }

    /// Whether something was compared, nothing failed, and nothing was left out for an
    /// interruption.
    pub fn succeeded(&self) -> bool {
        self.failed.is_empty() && !self.judgements.is_empty() && !self.is_interrupted
    }

    /// The figures that do not reach what they are to reach, in words. A figure
    /// that too few samples carry is not among them.
    pub fn missed(&self) -> Vec<String> {
        let missed = self.judgements.iter().filter(|it| it.met == Some(false));
        missed
            .map(|it| {
                let reach = it.reach.as_deref().unwrap_or_default();
                format!("{} ({}): not {reach}", it.what, it.comparison)
            })
            .collect()
    }
}
