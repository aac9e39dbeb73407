//! How sure a statement has to be.

/// Significance level of all verdicts, and the complement of all intervals (D8).
pub const ALPHA: f64 = 0.05;

/// Level of intervals that are not made from comparisons, such as that of a
/// median over runs (L-15).
pub const LEVEL: f64 = 1.0 - ALPHA;
