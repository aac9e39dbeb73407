//! What a run is held against when it has ended, and the exit code that follows.

use std::path::Path;

use plumbline_record::{Run, Trial};
use plumbline_report::Summary;
use plumbline_report::compare::LimitOutcome;
use plumbline_report::decision::{Decision, HeadVerdict, json, sentence};
use plumbline_report::gap_limit::GapLimit;

use crate::GateArgs;

/// What a run is held against when it has ended.
#[derive(Clone, Copy, Debug)]
pub enum Against<'a> {
    /// Nothing: the limits of an experiment are for `plumbline compare`.
    Nothing,
    /// The longest gap that traffic may have: `plumbline survive --limit`.
    Gap(GapLimit),
    /// The network as it was: `plumbline gate`.
    Base(&'a GateArgs),
}

impl<'a> Against<'a> {
    /// The command that goes on with a run and holds it against the same.
    pub fn command(self) -> String {
        match self {
            Self::Nothing => "run".to_owned(),
            Self::Gap(limit) => format!("survive --limit {limit}"),
            Self::Base(_) => "gate".to_owned(),
        }
    }

    /// Judges a run by it, which may have been interrupted.
    pub fn judge(
        self,
        run: &Run,
        trials: &[Trial],
        summary: &Summary,
        interrupted: bool,
    ) -> Judged<'a> {
        let (outcome, lines) = match self {
            Self::Gap(limit) => limit.judge(summary),
            Self::Nothing | Self::Base(_) => (LimitOutcome::Held, Vec::new()),
        };
        let decision = match self {
            Self::Base(gate) => Some((gate, Decision::new(run, trials, interrupted))),
            Self::Nothing | Self::Gap(_) => None,
        };
        Judged {
            outcome,
            lines,
            decision,
            interrupted,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// Of a limit on all repetitions.
    outcome: LimitOutcome,
    /// What is said beside the report.
    pub lines: Vec<String>,
    /// Of a gate.
    decision: Option<(&'a GateArgs, Decision)>,
    interrupted: bool,
}

impl Judged<'_> {
    /// What a gate prints in place of the report.
    pub fn text(&self, as_json: bool) -> Option<String> {
        let (_, decision) = self.decision.as_ref()?;
        Some(match as_json {
            true => json(decision),
            false => sentence(decision) + "\n",
        })
    }

    /// The files that were asked for, each with its text.
    pub fn files(&self) -> Vec<(&Path, String)> {
        let of_gate = self.decision.iter();
        of_gate.flat_map(|(gate, it)| gate.files(it)).collect()
    }

    /// 0 held, 1 broken, 2 not known. What there are no trials for, or not all, is not known,
    /// but for a gap that is too long already.
    pub fn exit_code(&self, summary: &Summary) -> u8 {
        let is_whole = !self.interrupted && summary.has_results();
        match (&self.decision, self.outcome) {
            (Some((_, decision)), _) => exit_code_of(decision.verdict),
            (None, LimitOutcome::Broken) => 1,
            (None, LimitOutcome::Held) if is_whole => 0,
            (None, _) => 2,
        }
    }
}

/// Of a gate.
fn exit_code_of(verdict: HeadVerdict) -> u8 {
    match verdict {
        HeadVerdict::NotWorse => 0,
        HeadVerdict::Worse => 1,
        HeadVerdict::Undecided => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On whole gates it is held where the machine is quiet enough for a verdict.
    #[test]
    fn the_exit_code_of_a_gate_is_its_verdict() {
        let verdicts = [
            HeadVerdict::NotWorse,
            HeadVerdict::Worse,
            HeadVerdict::Undecided,
        ];
        assert_eq!(verdicts.map(exit_code_of), [0, 1, 2]);
    }

    /// What `survive` reads again, so that a run that goes on is held to the same limit.
    #[test]
    fn a_run_goes_on_with_the_command_and_the_limit_that_it_began_with() {
        assert_eq!(Against::Nothing.command(), "run");
        let limit = Against::Gap("gap = 1.5".parse().unwrap());
        assert_eq!(limit.command(), "survive --limit gap=1500ms");
    }
}
