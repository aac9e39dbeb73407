//! Rates in bits per second, as files write them.

use crate::SpecError;
use crate::section::text;
use crate::tree::SpannedValue;

/// Rates that a token bucket still holds with some accuracy, in bits per second.
const RATES: std::ops::RangeInclusive<f64> = 1e5..=1e12;
/// Units of rates, the longer names before those that end them.
const UNITS: &[(&str, f64)] = &[("Gbit", 1e9), ("Mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

/// Whether a file may ask for so many bits per second.
pub(crate) fn is_possible(rate: u64) -> bool {
    // It is far below 2^53.
    RATES.contains(&(rate as f64))
}

/// Bits per second, such as `10 Gbit/s`.
pub(crate) fn in_words(rate: u64) -> String {
    let mut units = UNITS.iter();
    let fits = units.find(|(_, factor)| rate as f64 >= *factor);
    let (unit, factor) = fits.unwrap_or(&("bit", 1.0));
    format!("{} {unit}/s", rate as f64 / factor)
}

/// Bits per second.
pub(crate) fn read(key: &str, value: &SpannedValue) -> Result<u64, SpecError> {
    let (written, place) = text(key, value)?;
    let bits = UNITS.iter().find_map(|(unit, factor)| {
        let number: f64 = written.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * factor)
    });
    match bits {
        Some(bits) if RATES.contains(&bits) => Ok(bits.round() as u64),
        Some(_) => Err(SpecError::at(
            place,
            format!("`{key}` is \"{written}\", which is not possible"),
            "use a rate from \"100kbit\" to \"1000Gbit\"",
        )),
        None => Err(SpecError::at(
            place,
            format!("`{key}` is \"{written}\", which is not a rate"),
            "write a number with its unit per second, such as \"10Gbit\" or \"100Mbit\"",
        )),
    }
}
