//! A limit on gaps, as typed: `gap=1s`.

use std::str::FromStr;

use plumbline_experiment::typed;

use crate::analysis::{FlowSummary, Summary, SurviveSummary, TreatmentSummary};
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

impl GapLimit {
    /// A sentence for each kind of traffic of each network that has a longer gap.
    pub fn broken(self, summary: &Summary) -> Vec<String> {
        let of_one = |of: &TreatmentSummary| {
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
            broken.map(sentence).collect::<Vec<String>>()
        };
        summary.treatments.iter().flat_map(of_one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gaps_can_be_limited_and_by_a_time() {
        assert_eq!("gap=200ms".parse(), Ok(GapLimit { ns: 200_000_000 }));
        assert_eq!("gap = 1.5".parse(), Ok(GapLimit { ns: 1_500_000_000 }));
        for text in ["gap", "gap=", "gap=soon", "p50=1s", "gap=-1s"] {
            assert_eq!(text.parse::<GapLimit>(), Err(GapLimitError), "{text}");
        }
    }
}
