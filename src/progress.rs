//! Where a run is, on standard error.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use plumbline_experiment::{Limit, Pairing, Sought};
use plumbline_harness::{Progress, Step};
use plumbline_record::{Floor, GateFailure, SearchTrial, Trial, TrialStatus};
use plumbline_report::number;
use plumbline_session::{News, Watch};

/// Says a line on standard error. When nobody can hear it, the run goes on.
pub(crate) fn say(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// What this generator measures where there is no network (L-13). A load does
/// not fail for want of it.
pub(crate) fn floor(cpus: &[usize], interrupted: &AtomicBool) -> Option<Floor> {
    plumbline_engine::floor(cpus, &[], interrupted).unwrap_or_else(|error| {
        say(&format!(
            "the generator's own round trip was not measured: {error}"
        ));
        None
    })
}

/// A bar on a terminal, one line per block elsewhere. It draws between trials
/// only: a drawing thread would disturb what is measured.
pub(crate) struct Reporter {
    bar: Option<ProgressBar>,
    last_block: Option<usize>,
    started: Instant,
    finished_before: Option<usize>,
}

impl Reporter {
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:20} {pos}/{len}  {msg}")
                .expect("the template is constant")
                .progress_chars("━╸─");
            ProgressBar::new(0).with_style(style)
        });
        Self {
            bar,
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
        let block = format!("block {} of {}{left}", step.block + 1, step.blocks);
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

impl Watch for Reporter {
    fn hears(&mut self, news: &News<'_>) {
        match news {
            News::Searching(sought) => {
                say(&format!("{}: searching, about a minute", maximum(sought)));
            }
            News::Tried { limit, trial } => say(&tried(*limit, trial)),
            News::Found {
                sought,
                maximum: found,
            } => {
                let rate = number::rate(found.rate.round());
                say(&format!("{}: {rate}", maximum(sought)));
            }
            News::Pairs {
                pairing,
                at_once,
                blocks,
                estimate,
            } => say(&pairs(pairing, *at_once, *blocks, *estimate)),
        }
    }
}

fn maximum(sought: &Sought) -> String {
    let Sought { treatment, limit } = sought;
    let (workload, network) = (&treatment.workload.name, treatment.scene.name());
    format!("maximum of {workload} with {limit} on {network}")
}

/// `  1,667/s missed: p99 12.3 ms, 0.4 % not answered in time`, to show where a
/// low maximum comes from.
fn tried(limit: Limit, trial: &SearchTrial) -> String {
    let verdict = if trial.held { "held" } else { "missed" };
    let disturbed = if trial.disturbed.is_empty() {
        ""
    } else {
        ", disturbed"
    };
    let latency = match limit {
        Limit::Latency { quantile, .. } => format!(
            ": {} {}",
            number::percentile_name(quantile),
            number::duration(trial.load.latency.value_at(quantile) as f64)
        ),
        Limit::Loss { .. } => String::new(),
    };
    let lost = if trial.loss_ratio > 0.0 {
        let share = number::percent(trial.loss_ratio);
        format!(", {share} not answered in time")
    } else {
        String::new()
    };
    let rate = number::rate(trial.rate.round());
    format!("  {rate} {verdict}{disturbed}{latency}{lost}")
}

/// `3 pairs of 3 nodes in 3 rounds, 10 blocks: about 2 min`.
fn pairs(pairing: &Pairing, at_once: bool, blocks: usize, estimate: Duration) -> String {
    let how = match (pairing.rounds(), at_once) {
        (_, false) if pairing.pairs() > 1 => {
            "one after the other, because they share a kernel".to_owned()
        }
        (..=1, _) => "all at once".to_owned(),
        (rounds, _) => format!("in {rounds} rounds"),
    };
    let some = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        several => format!("{several} {what}s"),
    };
    format!(
        "{} of {} {how}, {}: about {}",
        some(pairing.pairs(), "pair"),
        some(pairing.nodes.len(), "node"),
        some(blocks, "block"),
        match estimate.as_secs() {
            seconds @ 0..100 => format!("{} s", seconds.max(1)),
            seconds => format!("{} min", seconds.div_ceil(60)),
        }
    )
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
