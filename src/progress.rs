//! Where a run is, on standard error.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use plumbline_harness::{Progress, Step};
use plumbline_record::{Trial, plain};
use plumbline_report::progress as words;
use plumbline_session::{News, Watch, with_causes};

/// Says a line on standard error, which may quote others. A run goes on where nobody hears it.
pub(crate) fn say(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", plain(text));
}

/// Says an error with its causes.
pub(crate) fn say_error(error: &anyhow::Error) {
    say(&format!("plumbline: {}", with_causes(&**error)));
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
                what.label,
                what.task.name()
            ));
            bar.tick();
        } else if self.last_block != Some(step.block) {
            say(&block);
        }
        self.last_block = Some(step.block);
    }

    fn ended(&mut self, step: &Step<'_>, trial: &Trial) {
        words::ended(step.treatment, trial)
            .iter()
            .for_each(|line| self.say(line));
    }

    fn took_turns(&mut self, steps: &[Step<'_>], trials: &[Trial]) {
        let members: Vec<_> = steps.iter().map(|it| it.treatment).zip(trials).collect();
        words::turns(&members)
            .iter()
            .for_each(|line| self.say(line));
    }
}

impl Watch for Reporter {
    fn hears(&mut self, news: &News<'_>) {
        say(&news.to_string());
    }
}
