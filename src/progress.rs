//! Where a run is, on standard error.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use plumbline_harness::{Progress, Step};
use plumbline_record::{GateFailure, Trial, TrialStatus};

/// Says a line on standard error. When nobody can hear it, the run goes on.
pub(crate) fn say(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// A bar on a terminal, one line per block elsewhere. It draws between trials
/// only: a drawing thread would disturb what is measured.
pub(crate) struct Reporter {
    bar: Option<ProgressBar>,
    blocks: usize,
    last_block: Option<usize>,
    started: Instant,
    finished_before: Option<usize>,
}

impl Reporter {
    pub(crate) fn new(blocks: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:20} {pos}/{len}  {msg}")
                .expect("the template is constant")
                .progress_chars("━╸─");
            ProgressBar::new(0).with_style(style)
        });
        Self {
            bar,
            blocks,
            last_block: None,
            started: Instant::now(),
            finished_before: None,
        }
    }

    /// Takes the bar away, so that results stand alone.
    pub(crate) fn close(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Time left, from the pace so far.
    fn left(&self, step: &Step<'_>) -> Option<Duration> {
        let done = step.finished.checked_sub(self.finished_before?)?;
        (done > 0)
            .then(|| self.started.elapsed() / done as u32 * (step.trials - step.finished) as u32)
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }
}

impl Progress for Reporter {
    fn starts(&mut self, step: &Step<'_>) {
        self.finished_before.get_or_insert(step.finished);
        let left = self
            .left(step)
            .map(|t| format!(", {} s left", t.as_secs().max(1)))
            .unwrap_or_default();
        let block = format!("block {} of {}{left}", step.block + 1, self.blocks);
        if let Some(bar) = &self.bar {
            let again = if step.attempt > 0 { " (again)" } else { "" };
            let what = &step.treatment;
            bar.set_length(step.trials as u64);
            bar.set_position(step.finished as u64);
            bar.set_message(format!(
                "{block}  {} {}{again}",
                what.label, what.workload.name
            ));
            bar.tick();
        } else if self.last_block != Some(step.block) {
            say(&block);
        }
        self.last_block = Some(step.block);
    }

    fn ended(&mut self, step: &Step<'_>, trial: &Trial) {
        let between = trial.pair.as_ref();
        let between = between.map(|pair| format!(" from {} to {}", pair.client, pair.server));
        let what = format!(
            "{} {}{}, block {}",
            step.treatment.label,
            step.treatment.workload.name,
            between.unwrap_or_default(),
            step.block + 1
        );
        match &trial.status {
            TrialStatus::Valid => {}
            TrialStatus::Invalid { gates } => {
                let why: Vec<String> = gates.iter().map(describe).collect();
                self.say(&format!("{what}: not counted, {}", why.join("; ")));
            }
            TrialStatus::Failed { error } => self.say(&format!("{what}: failed, {error}")),
        }
    }
}

/// A gate's failure in words.
fn describe(gate: &GateFailure) -> String {
    let micro = |ns: u64| ns as f64 / 1000.0;
    match gate {
        GateFailure::SendLag {
            quantile,
            lag_ns,
            limit_ns,
        } => format!(
            "sent {:.0} µs late at p{} ({:.0} allowed)",
            micro(*lag_ns),
            quantile * 100.0,
            micro(*limit_ns)
        ),
        GateFailure::AchievedRate { planned, achieved } => {
            format!("sent {achieved} of {planned} planned requests in time")
        }
        GateFailure::Disturbed { by, amount, limit } if *limit > 0.0 => {
            format!(
                "disturbed by {by} ({:.1} %, {:.1} % allowed)",
                amount * 100.0,
                limit * 100.0
            )
        }
        GateFailure::Disturbed { by, amount, .. } => format!("disturbed by {by} ({amount:.0})"),
        GateFailure::WrongPath { detail } | GateFailure::PathFault { detail } => detail.clone(),
        GateFailure::NoSteadyState {
            before_ns,
            after_ns,
            ..
        } => format!(
            "no steady state: the latency went from {:.0} to {:.0} µs",
            micro(*before_ns),
            micro(*after_ns)
        ),
        GateFailure::GeneratorBusy { share, limit } => format!(
            "sender {:.0} % busy ({:.0} % allowed)",
            share * 100.0,
            limit * 100.0
        ),
        GateFailure::Errors { failed, planned } => format!("{failed} of {planned} requests failed"),
    }
}
