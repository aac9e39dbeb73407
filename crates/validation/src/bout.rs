//! One comparison: two ways to do the same, and the figures that count.

use crate::bench::Bench;
use crate::error::ValidationError;
use crate::quantity::{Quantity, Reach, Readings};

/// One run of one side.
pub(crate) type Side = fn(&Bench<'_>) -> Result<Readings, ValidationError>;

/// Two ways to do the same, run in turn.
#[derive(Debug)]
pub(crate) struct Bout {
    /// What `--only` knows it by.
    pub(crate) name: &'static str,
    /// The other side.
    pub(crate) against: &'static str,
    /// Programs without which it cannot take place.
    pub(crate) needs: &'static [&'static str],
    pub(crate) theirs: Side,
    pub(crate) ours: Side,
    pub(crate) figures: &'static [Figure],
}

impl Bout {
    /// Whether there is no other side.
    pub(crate) fn is_alone(&self) -> bool {
        self.against == "-"
    }
}

/// One figure to compare.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) what: &'static str,
    pub(crate) quantity: Quantity,
    pub(crate) reach: Option<Reach>,
}

/// A figure in the words of the table.
pub(crate) const fn figure(what: &'static str, quantity: Quantity, reach: Option<Reach>) -> Figure {
    Figure {
        what,
        quantity,
        reach,
    }
}
