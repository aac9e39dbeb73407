//! One comparison: two ways to do the same, and the figures that count.

use crate::bench::{self, Bench};
use crate::error::ValidationError;
use crate::quantity::{Measurand, Reach, Readings};

/// One way to do it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    /// Programs without which it cannot be run.
    pub(crate) needs: &'static [&'static str],
    pub(crate) run: fn(&Bench<'_>) -> Result<Readings, ValidationError>,
}

pub(crate) const fn side(
    needs: &'static [&'static str],
    run: fn(&Bench<'_>) -> Result<Readings, ValidationError>,
) -> Contender {
    Contender { needs, run }
}

/// Two ways to do the same, run in turn.
#[derive(Debug)]
pub(crate) struct Bout {
    /// What `--only` knows it by.
    pub(crate) name: &'static str,
    pub(crate) against: &'static str,
    pub(crate) theirs: Contender,
    pub(crate) ours: Contender,
    /// What both do, as the table says it.
    pub(crate) about: &'static str,
    pub(crate) figures: &'static [ComparedFigure],
}

/// A row of the catalogue.
pub(crate) const fn bout(
    name: &'static str,
    against: &'static str,
    about: &'static str,
    theirs: Contender,
    ours: Contender,
    figures: &'static [ComparedFigure],
) -> Bout {
    Bout {
        name,
        against,
        about,
        theirs,
        ours,
        figures,
    }
}

impl Bout {
    /// The first program that it needs and this machine lacks.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        let needs = self.theirs.needs.iter().chain(self.ours.needs);
        needs.copied().find(|name| bench::find(name).is_none())
    }

    /// Whether there is no other side.
    pub(crate) fn is_alone(&self) -> bool {
        self.against == "-"
    }
}

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
