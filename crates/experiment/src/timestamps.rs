//! The share of a workload's requests that the kernel timestamps (L-17).

use crate::section::FileSection;
use crate::{SpecError, typed};

/// `"1%"` as 0.01, `"off"` as 0 (L-17).
pub(crate) fn share(section: &FileSection<'_>) -> Result<Option<f64>, SpecError> {
    let Some((text, place)) = section.text("timestamps")? else {
        return Ok(None);
    };
    stamped_share(text).map(Some).ok_or_else(|| {
        SpecError::at(
            place,
            format!("`timestamps` is \"{text}\""),
            "write the share of requests that the kernel timestamps, such as \"1%\", or \"off\"",
        )
    })
}

/// Reads a share of requests to timestamp: `off`, or a percentage above 0 and
/// up to 100, such as `1%`.
pub fn stamped_share(text: &str) -> Option<f64> {
    if text == "off" {
        return Some(0.0);
    }
    typed::percent(text).filter(|share| *share > 0.0 && *share <= 1.0)
}
