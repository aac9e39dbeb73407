//! The one shape that all histograms have, and what is not of it.

/// Largest value kept apart, in nanoseconds; beyond it counts as overflow.
pub(super) const HIGHEST_NS: u64 = 60_000_000_000;
/// Significant decimal digits.
pub(super) const DIGITS: u8 = 3;

/// A histogram that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("a histogram is not base64: {0}; the file was changed or cut")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not an HDR V2 histogram of our shape.
    #[error("a histogram is not HDR V2 with 3 digits from 1 ns to 60 s: {0}")]
    Format(String),
}
