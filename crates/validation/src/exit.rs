//! What a program left behind, and the figures in what it wrote.
//!
//! A figure that is missing is an error that names the tool and the key: a tool
//! whose output has changed must not look like one that saw too few samples.

use plumbline_sys::cpu::ProcessTime;
use serde_json::Value;

use crate::error::ValidationError;
use crate::quantity::{Measurand, Readings};

/// What a program left behind.
pub(crate) struct Exit {
    /// Which program: `oha`, `plumbline load`.
    pub(crate) tool: String,
    pub(crate) output: String,
    /// CPU from its start to its end.
    pub(crate) cpu: ProcessTime,
    /// Largest resident memory seen, in bytes; 0 when it was not watched.
    pub(crate) resident: u64,
}

impl Exit {
    /// User and system together, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> f64 {
        (self.cpu.user_ns + self.cpu.system_ns) as f64
    }

    /// The number that follows `label` in its output.
    pub(crate) fn after(&self, label: &str) -> Result<f64, ValidationError> {
        let word = self.word_after(label);
        self.figure(word.and_then(number), label)
    }

    /// The number that stands before `label` in its output.
    pub(crate) fn before(&self, label: &str) -> Result<f64, ValidationError> {
        let rest = self.output.split_once(label);
        let word = rest.and_then(|(rest, _)| rest.split_whitespace().next_back());
        self.figure(word.and_then(number), label)
    }

    /// The time that follows `label` in its output, such as `790.00us`, in
    /// nanoseconds.
    pub(crate) fn time_after(&self, label: &str) -> Result<f64, ValidationError> {
        let word = self.word_after(label);
        self.figure(word.and_then(nanoseconds), label)
    }

    /// All of its output, as one number.
    pub(crate) fn only_number(&self, key: &str) -> Result<f64, ValidationError> {
        self.figure(number(self.output.trim()), key)
    }

    fn word_after(&self, label: &str) -> Option<&str> {
        let (_, rest) = self.output.split_once(label)?;
        rest.split_whitespace().next()
    }

    fn figure(&self, found: Option<f64>, key: &str) -> Result<f64, ValidationError> {
        found.ok_or_else(|| no_figure(&self.tool, key.trim()))
    }

    pub(crate) fn json(&self) -> Result<Json<'_>, ValidationError> {
        let tool = self.tool.as_str();
        let value = serde_json::from_str(&self.output);
        let value = value.map_err(|source| ValidationError::NoJson {
            tool: tool.to_owned(),
            source,
        })?;
        Ok(Json { tool, value })
    }
}

fn number(word: &str) -> Option<f64> {
    word.parse().ok()
}

/// From `790.00us`.
fn nanoseconds(text: &str) -> Option<f64> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, unit) = text.split_at(unit_at);
    let scale = match unit {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * scale)
}

fn no_figure(tool: &str, key: &str) -> ValidationError {
    ValidationError::NoFigure {
        tool: tool.to_owned(),
        key: key.to_owned(),
    }
}

/// What a tool wrote as JSON. Keys are paths such as `/latency_ns/p99`.
pub(crate) struct Json<'a> {
    tool: &'a str,
    value: Value,
}

impl Json<'_> {
    /// A number that must be there.
    pub(crate) fn number(&self, key: &str) -> Result<f64, ValidationError> {
        let value = self.value.pointer(key).and_then(Value::as_f64);
        value.ok_or_else(|| no_figure(self.tool, key))
    }

    /// Quantities whose numbers must be there.
    pub(crate) fn readings(&self, keys: &[(Measurand, &str)]) -> Result<Readings, ValidationError> {
        let readings = keys.iter().map(|(of, key)| Ok((*of, self.number(key)?)));
        readings.collect()
    }

    /// Quantities that may be null.
    pub(crate) fn readings_or_null(
        &self,
        keys: &[(Measurand, &str)],
    ) -> Result<Readings, ValidationError> {
        let mut readings = Readings::new();
        for (quantity, key) in keys {
            readings.extend(self.number_or_null(key)?.map(|value| (*quantity, value)));
        }
        Ok(readings)
    }

    /// A number that is null where too few samples carry it (D4). The key must
    /// be there all the same.
    fn number_or_null(&self, key: &str) -> Result<Option<f64>, ValidationError> {
        match self.value.pointer(key) {
            Some(Value::Null) => Ok(None),
            _ => self.number(key).map(Some),
        }
    }

    /// The sum of the counts in an object with at least one.
    pub(crate) fn sum(&self, key: &str) -> Result<u64, ValidationError> {
        let counts = self.value.pointer(key).and_then(Value::as_object);
        let counts = counts
            .filter(|counts| !counts.is_empty())
            .ok_or_else(|| no_figure(self.tool, key))?;
        let numbers = counts.iter().map(|(name, count)| {
            let number = count.as_u64();
            number.ok_or_else(|| no_figure(self.tool, &format!("{key}/{name}")))
        });
        numbers.sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program that wrote `output`.
    pub(crate) fn wrote(tool: &str, output: &str) -> Exit {
        Exit {
            tool: tool.to_owned(),
            output: output.to_owned(),
            cpu: ProcessTime::default(),
            resident: 0,
        }
    }

    #[test]
    fn numbers_are_found_by_the_words_beside_them() {
        let exit = wrote("wrk", "  50%    1.25ms\n 237384 requests in 3.00s\n");
        assert_eq!(exit.before(" requests in ").unwrap(), 237_384.0);
        let error = exit.after("Requests/sec:").unwrap_err().to_string();
        assert!(error.starts_with("`wrk` gave no Requests/sec:"), "{error}");
        assert_eq!(exit.time_after(" 50%").unwrap(), 1.25e6);
        assert_eq!(nanoseconds("735.00us"), Some(735e3));
        assert_eq!(nanoseconds("735.00"), None);
    }

    #[test]
    fn null_is_no_figure_and_a_missing_key_is_an_error() {
        let exit = wrote(
            "plumbline load",
            r#"{"latency_ns": {"p50": 3, "p99": null}}"#,
        );
        let json = exit.json().unwrap();
        assert_eq!(json.number_or_null("/latency_ns/p50").unwrap(), Some(3.0));
        assert_eq!(json.number_or_null("/latency_ns/p99").unwrap(), None);
        let error = json.number_or_null("/latency_ns/p99.9").unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("`plumbline load` gave no /latency_ns/p99.9"),
            "{text}"
        );
        assert!(
            json.number("/latency_ns/p99").is_err(),
            "null is not a number"
        );
    }

    #[test]
    fn counts_that_are_none_are_an_error() {
        let sum = |text: &str| wrote("oha", text).json().unwrap().sum("/status");
        assert_eq!(sum(r#"{"status": {"200": 7, "404": 1}}"#).unwrap(), 8);
        for text in [
            "{}",
            r#"{"status": {}}"#,
            r#"{"status": {"200": {"count": 7}}}"#,
        ] {
            assert!(sum(text).is_err(), "{text}");
        }
    }
}
