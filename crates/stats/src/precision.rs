//! How many blocks it takes until intervals are as narrow as asked.
//!
//! Adding blocks *until something differs* makes any two systems differ sooner
//! or later. Adding blocks until intervals are *narrow* does not: how far
//! values spread says nothing about which way their mean errs. So this looks at
//! widths and at nothing else. What remains is that one stops a little too soon
//! where the spread happens to look small; the fewer blocks and the more looks,
//! the more so. Therefore the first look comes after [`FIRST_LOOK`] blocks, each
//! look asks for all that are missing by its estimate, so that there are two or
//! three, and the intervals are made at [`ALPHA_SHARE`] of the level that they
//! are said to have: by simulation of normal noise they then hold it. Sources: C. Stein, "A Two-Sample Test for a Linear Hypothesis
//! Whose Power Is Independent of the Variance", Annals of Mathematical
//! Statistics 16 (1945); Y. S. Chow and H. Robbins, "On the Asymptotic Theory
//! of Fixed-Width Sequential Confidence Intervals for the Mean", ibid. 36 (1965).

/// Blocks before the first look at any width.
pub const FIRST_LOOK: usize = 8;

/// Share of α at which to make the intervals and verdicts of a run whose length
/// was decided here: 95 % of runs hold by intervals of 96 %.
pub const ALPHA_SHARE: f64 = 0.8;

/// How many times as many blocks to ask for as the estimate says, so that most
/// runs end by an estimate made before their last blocks, and not because the
/// last ones happened to agree.
const RESERVE: f64 = 1.25;

/// How many blocks to add so that the widest of some intervals is no wider than
/// `target`; 0 when none is. `half_widths` are those after `blocks` blocks, in
/// the unit of `target`, infinite for an unbounded one. Those of logarithms, as
/// [`half_width`](crate::family::JointEffect::half_width) is one, shrink evenly on both sides.
///
/// Widths shrink with the root of the number of blocks, and while there are few
/// faster, so the answer errs on the high side. At most as many again as there
/// are: the first estimate of the spread may be far off.
pub fn more_blocks(half_widths: &[f64], blocks: usize, target: f64) -> usize {
    if blocks < FIRST_LOOK {
        return FIRST_LOOK - blocks;
    }
    let excess = half_widths
        .iter()
        .fold(0.0, |widest: f64, &one| widest.max(one / target));
    if excess <= 1.0 {
        return 0;
    }
    // The conversion saturates for an unbounded interval.
    let needed = (blocks as f64 * excess * excess * RESERVE).ceil() as usize;
    (needed - blocks).clamp(1, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_wide_takes_four_times_the_blocks_but_never_more_than_double_at_once() {
        assert_eq!(more_blocks(&[0.01, 0.033], 12, 0.03), 7);
        assert_eq!(more_blocks(&[0.06], 12, 0.03), 12);
        assert_eq!(more_blocks(&[f64::INFINITY, 0.01], 12, 0.03), 12);
    }

    #[test]
    fn narrow_enough_takes_none_but_not_before_the_first_look() {
        assert_eq!(more_blocks(&[0.03, 0.01], 12, 0.03), 0);
        assert_eq!(more_blocks(&[], 12, 0.03), 0);
        assert_eq!(more_blocks(&[0.001], 6, 0.03), 2);
    }

    #[test]
    fn a_hair_too_wide_takes_the_reserve() {
        assert_eq!(more_blocks(&[0.030_000_1], 12, 0.03), 4);
    }
}
