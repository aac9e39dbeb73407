//! One comparison: two ways to do the same, and the figures that count.

use crate::bench::Bench;
use crate::error::ValidationError;
use crate::quantity::{Measurand, Reach, Readings};

/// One run of one side.
pub(crate) type SideRun = fn(&Bench<'_>) -> Result<Readings, ValidationError>;

/// Two ways to do the same, run in turn.
#[derive(Debug)]
pub(crate) struct Bout {
    /// What `--only` knows it by.
    pub(crate) name: &'static str,
    /// The other side.
    pub(crate) against: &'static str,
    /// Programs without which it cannot take place.
    pub(crate) needs: &'static [&'static str],
    pub(crate) theirs: SideRun,
    pub(crate) ours: SideRun,
    /// What both do, as the table says it.
    pub(crate) about: &'static str,
    pub(crate) figures: &'static [ComparedFigure],
}

impl Bout {
    /// Whether there is no other side.
    pub(crate) fn is_alone(&self) -> bool {
        self.against == "-"
    }
}

/// One figure to compare.
#[derive(Debug)]
pub(crate) struct ComparedFigure {
    /// In the words of the table; `{}` stands for what the bout is about.
    pub(crate) words: &'static str,
    pub(crate) quantity: Measurand,
    pub(crate) reach: Option<Reach>,
}

/// A figure that has nothing to reach.
pub(crate) const fn figure(quantity: Measurand) -> ComparedFigure {
    ComparedFigure {
        words: quantity.words(),
        quantity,
        reach: None,
    }
}

impl ComparedFigure {
    pub(crate) const fn called(mut self, words: &'static str) -> Self {
        self.words = words;
        self
    }

    pub(crate) const fn reaching(mut self, reach: Reach) -> Self {
        self.reach = Some(reach);
        self
    }
}
