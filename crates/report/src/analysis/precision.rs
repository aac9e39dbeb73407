//! How narrow the intervals of a run became, where its plan asks for that.

use plumbline_experiment::Plan;

use super::Comparison;

/// How narrow the intervals became.
#[derive(Clone, Debug, PartialEq)]
pub struct ReachedPrecision {
    /// Half of the width that they may have, as a ratio less one.
    pub asked: f64,
    /// Half of the width of each primary one, as the logarithm of a ratio; infinite
    /// where there are too few blocks for one, or none.
    pub half_widths: Vec<f64>,
    /// How many primary ones are left out, because the meter keeps them wider than
    /// asked even with all blocks of the plan.
    pub beyond_meter: usize,
}

impl ReachedPrecision {
    pub(super) fn new(plan: &Plan, comparisons: &[Comparison]) -> Option<Self> {
        let asked = plan.precision?.half_width;
        let primary = comparisons.iter().filter(|one| one.is_primary);
        let most = plan.blocks.len().max(1) as f64;
        // Rounding averages away as blocks are added.
        let is_beyond = |one: &&Comparison| {
            let blocks = one.effect.as_ref().map_or(0, |effect| effect.blocks) as f64;
            blocks > 0.0 && one.resolution * (blocks / most).sqrt() >= asked
        };
        let (beyond, others): (Vec<_>, Vec<_>) = primary.partition(is_beyond);
        let width = |one: &&Comparison| {
            let effect = one.effect.as_ref();
            effect.map_or(f64::INFINITY, |it| it.half_width)
        };
        Some(Self {
            asked,
            half_widths: others.iter().map(width).collect(),
            beyond_meter: beyond.len(),
        })
    }

    /// The largest of the half-widths; infinite where there is none.
    pub fn widest(&self) -> f64 {
        let widths = self.half_widths.iter().copied();
        widths.max_by(f64::total_cmp).unwrap_or(f64::INFINITY)
    }

    /// Whether all are as narrow as asked: where nothing is compared, none is.
    pub fn is_reached(&self) -> bool {
        self.widest() <= self.asked
    }
}
