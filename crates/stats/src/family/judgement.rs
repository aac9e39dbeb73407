use super::JointEffect;
use crate::verdict::Direction;

/// What the interval of one comparison among several says (D10).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// The joint interval excludes 0.
    Different {
        /// Whether it lies on the side that the metric wants.
        is_better: bool,
        /// Whether it lies inside the margin: certain, and of no consequence.
        is_negligible: bool,
    },
    /// It holds 0 and lies inside the margin.
    Equivalent,
    /// It holds 0 and reaches beyond the margin: the effect is between `low` and
    /// `high`, as ratios less one.
    Undecided {
        /// Lower end of the joint interval.
        low: f64,
        /// Upper end of the joint interval.
        high: f64,
    },
    /// No interval is bounded with so few blocks.
    TooFewBlocks {
        /// The fewest blocks that can bound one; with many comparisons or
        /// missing values it may take more.
        needed: usize,
    },
}

impl Judgement {
    /// Judges `comparison`, made at level `alpha`. `margin` is the largest ratio
    /// less one that does not matter in practice (D9), such as 0.03.
    pub fn new(
        comparison: &JointEffect,
        alpha: f64,
        margin: f64,
        direction: Direction,
    ) -> Judgement {
        let interval = comparison.joint;
        if comparison.is_different() {
            let went_down = interval.high < 0.0;
            Judgement::Different {
                is_better: went_down == (direction == Direction::LowerIsBetter),
                is_negligible: interval.is_within(margin),
            }
        } else if !comparison.is_bounded() {
            Judgement::TooFewBlocks {
                needed: super::minimum_blocks(alpha).max(comparison.blocks + 1),
            }
        } else if interval.is_within(margin) {
            Judgement::Equivalent
        } else {
            Judgement::Undecided {
                low: interval.low,
                high: interval.high,
            }
        }
    }
}
