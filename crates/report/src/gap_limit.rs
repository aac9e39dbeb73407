//! A limit on gaps, as typed: `gap=1s`.

use std::fmt;
use std::str::FromStr;

use plumbline_experiment::typed;

use crate::analysis::{FlowSummary, Summary, SurviveSummary, TreatmentSummary};
use crate::compare::LimitOutcome;
use crate::{describe, number, survive};

/// The longest gap that any repetition may have, in any kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapLimit {
    ns: u64,
}

/// Text that is no such limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write gap=TIME, such as gap=1s or gap=200ms")]
pub struct GapLimitError;

impl FromStr for GapLimit {
    type Err = GapLimitError;

    fn from_str(text: &str) -> Result<Self, GapLimitError> {
        let (what, time) = text.split_once('=').ok_or(GapLimitError)?;
        let length = typed::time(time.trim(), "--limit").map_err(|_| GapLimitError)?;
        match u64::try_from(length.as_nanos()) {
            Ok(ns) if what.trim() == "gap" => Ok(Self { ns }),
            _ => Err(GapLimitError),
        }
    }
}

/// As it is typed.
impl fmt::Display for GapLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ns % 1_000_000 {
            0 => write!(f, "gap={}ms", self.ns / 1_000_000),
            _ => write!(f, "gap={}ns", self.ns),
        }
    }
}

impl GapLimit {
    /// Whether it is held, and a sentence for each kind of traffic of each network that has a
    /// longer gap, and for each network of which not every repetition counts: what those would
    /// have shown nobody knows.
    pub fn judge(self, summary: &Summary) -> (LimitOutcome, Vec<String>) {
        let all = || summary.treatments.iter();
        let broken = Vec::from_iter(all().flat_map(|of| self.broken(of)));
        let unknown = Vec::from_iter(all().filter_map(|of| self.unknown(of, summary.blocks)));
        let outcome = match (broken.is_empty(), unknown.is_empty()) {
            (false, _) => LimitOutcome::Broken,
            (true, false) => LimitOutcome::Undecided,
            (true, true) => LimitOutcome::Held,
        };
        (outcome, [broken, unknown].concat())
    }

    fn broken(self, of: &TreatmentSummary) -> Vec<String> {
        let survive: Option<&SurviveSummary> = of.survive.as_ref();
        let flows = survive.into_iter().flat_map(|it| &it.flows);
        let broken = flows.filter(|it| it.longest_ns > self.ns);
        let label = describe::clean(&of.treatment.label);
        let sentence = |it: &FlowSummary| {
            format!(
                "{label}: the longest gap of {} is {}, and {} is the limit",
                survive::in_words(it.kind),
                number::duration(it.longest_ns as f64),
                number::duration(self.ns as f64)
            )
        };
        broken.map(sentence).collect()
    }

    fn unknown(self, of: &TreatmentSummary, blocks: usize) -> Option<String> {
        let count = of.survive.as_ref().map_or(0, |it| it.repetitions);
        let label = describe::clean(&of.treatment.label);
        (count < blocks).then(|| {
            format!(
                "{label}: {count} of {blocks} repetitions count, so whether there was a gap of more \
                 than {} is not known",
                number::duration(self.ns as f64)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_as_it_is_read() {
        for ns in [0, 1, 1_500_000, 200_000_000, 90_000_000_000, (1 << 62) + 1] {
            let limit = GapLimit { ns };
            assert_eq!(limit.to_string().parse(), Ok(limit), "{limit}");
        }
        assert_eq!(GapLimit { ns: 1_000_000_000 }.to_string(), "gap=1000ms");
    }

    #[test]
    fn only_gaps_can_be_limited_and_by_a_time() {
        assert_eq!("gap=200ms".parse(), Ok(GapLimit { ns: 200_000_000 }));
        assert_eq!("gap = 1.5".parse(), Ok(GapLimit { ns: 1_500_000_000 }));
        for text in ["gap", "gap=", "gap=soon", "p50=1s", "gap=-1s"] {
            assert_eq!(text.parse::<GapLimit>(), Err(GapLimitError), "{text}");
        }
    }
}
