//! A limit that a load has to hold, as typed: `p99<1ms`, `loss=0`, `loss<0.5%`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What the highest load has to hold. Written as in files and flags.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Limit {
    /// A percentile of the latency from the intended time, and no errors.
    Latency {
        /// Above 0 and below 1, such as 0.99.
        quantile: f64,
        /// Nanoseconds.
        below_ns: u64,
    },
    /// The share of requests that may stay without an answer.
    Loss {
        /// From 0 to below 1.
        ratio: f64,
    },
}

/// Why a text is no limit.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a limit: {problem}; write p99<1ms, loss=0 or loss<0.5%")]
pub struct LimitError {
    text: String,
    problem: &'static str,
}

/// Units of time, the longer names before those that end them.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
];

/// The longest latency that a histogram holds, nanoseconds.
const LONGEST_NS: f64 = 60e9;

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        read(text).map_err(|problem| LimitError {
            text: text.to_owned(),
            problem,
        })
    }
}

fn read(text: &str) -> Result<Limit, &'static str> {
    let at = text.find(['<', '=']).ok_or("it has neither `<` nor `=`")?;
    let what = text[..at].trim();
    let (equals, value) = match text[at..].strip_prefix("<=") {
        Some(value) => (false, value),
        None => (text[at..].starts_with('='), &text[at + 1..]),
    };
    let value = value.trim();
    if what == "loss" {
        return loss(value, equals);
    }
    let percentile: f64 = what
        .strip_prefix('p')
        .and_then(|number| number.parse().ok())
        .ok_or("only `loss` and percentiles such as `p99` can be limited")?;
    if !(percentile > 0.0 && percentile < 100.0) {
        return Err("a percentile lies above 0 and below 100");
    }
    if equals {
        return Err("a latency is limited with `<`");
    }
    Ok(Limit::Latency {
        quantile: percentile / 100.0,
        below_ns: nanoseconds(value)?,
    })
}

fn loss(value: &str, equals: bool) -> Result<Limit, &'static str> {
    let number = |text: &str| -> Result<f64, &'static str> {
        text.trim()
            .parse()
            .map_err(|_| "a loss is a number such as 0 or 0.5%")
    };
    let ratio = match value.strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(value)?,
    };
    match (ratio, equals) {
        (ratio, _) if !(0.0..1.0).contains(&ratio) => Err("a loss lies from 0 to below 100%"),
        (0.0, false) => Err("nothing is below a loss of 0: write loss=0"),
        (ratio, true) if ratio > 0.0 => Err("a loss above 0 is limited with `<`"),
        (ratio, _) => Ok(Limit::Loss { ratio }),
    }
}

fn nanoseconds(value: &str) -> Result<u64, &'static str> {
    let digits = value
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .ok_or("a latency needs a unit, such as 1ms")?;
    let (number, unit) = value.split_at(digits);
    let number: f64 = number
        .parse()
        .map_err(|_| "a latency is a number with a unit")?;
    let (_, scale) = UNITS
        .iter()
        .find(|(name, _)| *name == unit.trim())
        .ok_or("the units of latency are ns, us, ms and s")?;
    let ns = number * scale;
    if !(1.0..=LONGEST_NS).contains(&ns) {
        return Err("a latency lies from 1ns to 60s");
    }
    Ok(ns.round() as u64)
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Loss { ratio: 0.0 } => write!(f, "loss=0"),
            // Twelve digits hide what binary fractions add to a decimal one.
            Self::Loss { ratio } => write!(f, "loss<{}%", rounded(ratio * 100.0)),
            Self::Latency { quantile, below_ns } => {
                let ns = below_ns as f64;
                let (unit, scale) = UNITS
                    .iter()
                    .rfind(|(name, scale)| *name != "µs" && ns >= *scale)
                    .unwrap_or(&UNITS[0]);
                write!(f, "p{}<{}{unit}", rounded(quantile * 100.0), ns / scale)
            }
        }
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

impl TryFrom<String> for Limit {
    type Error = LimitError;

    fn try_from(text: String) -> Result<Self, LimitError> {
        text.parse()
    }
}

impl From<Limit> for String {
    fn from(limit: Limit) -> Self {
        limit.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_people_write_them_and_written_back() {
        let latency = |quantile, below_ns| Limit::Latency { quantile, below_ns };
        let cases = [
            ("p99<1ms", latency(0.99, 1_000_000), "p99<1ms"),
            (" p99.9 <= 250 µs ", latency(0.999, 250_000), "p99.9<250us"),
            ("p50<1.5s", latency(0.5, 1_500_000_000), "p50<1.5s"),
            ("p99.99<900ns", latency(0.9999, 900), "p99.99<900ns"),
            ("loss=0", Limit::Loss { ratio: 0.0 }, "loss=0"),
            ("loss = 0%", Limit::Loss { ratio: 0.0 }, "loss=0"),
            ("loss<0.5%", Limit::Loss { ratio: 0.005 }, "loss<0.5%"),
            ("loss<0.003", Limit::Loss { ratio: 0.003 }, "loss<0.3%"),
        ];
        for (text, limit, written) in cases {
            let read: Limit = text.parse().unwrap();
            match (read, limit) {
                (
                    Limit::Latency { quantile, below_ns },
                    Limit::Latency {
                        quantile: q,
                        below_ns: ns,
                    },
                ) => {
                    assert!((quantile - q).abs() < 1e-12 && below_ns == ns, "{text}");
                }
                _ => assert_eq!(read, limit, "{text}"),
            }
            assert_eq!(read.to_string(), written);
            let again: Limit = serde_json::from_value(serde_json::to_value(read).unwrap()).unwrap();
            assert_eq!(again.to_string(), written);
        }
    }

    #[test]
    fn what_is_no_limit_is_told_with_the_reason() {
        let cases = [
            ("", "neither"),
            ("p99", "neither"),
            ("p99<", "unit"),
            ("p99<1", "unit"),
            ("p99<1 hour", "units"),
            ("p99<0ms", "1ns"),
            ("p99<61s", "60s"),
            ("p99<-1ms", "number"),
            ("p100<1ms", "below 100"),
            ("p0<1ms", "above 0"),
            ("p99=1ms", "`<`"),
            ("mean<1ms", "percentiles"),
            ("loss<0", "loss=0"),
            ("loss=1%", "`<`"),
            ("loss<100%", "below 100%"),
            ("loss<much", "number"),
            ("loss<-1%", "from 0"),
            ("loss=NaN", "from 0"),
        ];
        for (text, reason) in cases {
            let error = text.parse::<Limit>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert!(error.contains("write p99<1ms"), "{error}");
        }
    }
}
