//! A comparison of runs for terminal and scripts.

// In `object!` each key has a type of its own.
#![allow(non_camel_case_types)]

use plumbline_record::Warning;
use plumbline_stats::verdict::Verdict;
use serde::Serialize;

use super::{Change, Compared, LimitCheck, LimitOutcome};
use crate::analysis::Notice;
use crate::json;
use crate::object::object;
use crate::terminal::{self, Style};
use crate::{describe, number};

/// What changed between runs and which limits hold, one line each. For a run
/// alone, its own report comes first.
pub fn render(compared: &Compared, style: Style) -> String {
    let mut out = String::new();
    if let [only] = compared.runs.as_slice() {
        out += &terminal::render(only, style);
        out.push('\n');
    } else {
        out += &doubts(compared, style);
    }
    for difference in &compared.differences {
        out += &format!(
            "warning: run {}: {} is {}, was {}; a change may come from that\n",
            difference.run + 1,
            describe::clean(&difference.fact),
            difference.later,
            difference.first
        );
    }
    for change in compared.changes.iter().filter(|change| change.is_primary) {
        out += &terminal::wrapped(&change_text(change), style);
    }
    for check in &compared.limits {
        out += &terminal::wrapped(&limit_text(check), style);
    }
    out
}

/// A warning for each run that several builds took part in, that lost lines, or
/// whose policies did not act.
fn doubts(compared: &Compared, style: Style) -> String {
    let mut out = String::new();
    for (at, run) in compared.runs.iter().enumerate() {
        let concerns_all = |one: &&Notice| {
            let warning = &one.warning;
            matches!(
                warning,
                Warning::NotEnforced { .. }
                    | Warning::MixedBuilds { .. }
                    | Warning::DamagedLines { .. }
            )
        };
        for notice in run.notices.iter().filter(concerns_all) {
            let text = terminal::notice_text(run, notice);
            out += &terminal::wrapped(&format!("warning: run {}: {text}", at + 1), style);
        }
    }
    out
}

/// `run 2, vxlan (rr): p50 against host +4.2 % (95 % interval 2.0 to 6.1 %), worse`.
fn change_text(change: &Change) -> String {
    let mut text = format!(
        "run {}, {} ({}): {} ",
        change.run + 1,
        describe::clean(&change.label),
        describe::clean(&change.workload),
        change.metric.words
    );
    if let Some(baseline) = &change.against {
        text += &format!("against {} ", describe::clean(baseline));
    }
    let Some(effect) = change.effect else {
        return text + "cannot be compared: a run has no valid trial of it";
    };
    text += &describe::change(&effect);
    if let Some(interval) = describe::interval(&effect) {
        text += &format!(" (95{}% interval {interval})", number::NO_BREAK_SPACE);
    }
    match effect.verdict {
        Some(Verdict::Undecided) if effect.is_partly_seen() => {
            text += &format!(", undecided: {}", describe::UNSEEN);
        }
        Some(verdict) => text += &format!(", {verdict}"),
        None if effect.interval.is_none() => text += ", too few blocks to judge",
        None => text += ", no verdict without a baseline in both runs",
    }
    let is_judged = effect.verdict.is_some() && !effect.is_partly_seen();
    if let Some(smallest) = effect.smallest.filter(|_| is_judged) {
        let smallest = describe::margin(&effect, smallest);
        text += &format!("; {smallest} would have been seen");
    }
    text
}

/// `limit broken: vxlan (rr): p50 +31 % (27 to 35 %), allowed 10 %`.
fn limit_text(check: &LimitCheck) -> String {
    let outcome = match check.outcome {
        LimitOutcome::Held => "limit held",
        LimitOutcome::Broken => "limit broken",
        LimitOutcome::Undecided => "limit undecided",
    };
    let metric = describe::clean(&check.metric);
    let mut text = format!("{outcome}: run {}", check.run + 1);
    if !check.label.is_empty() {
        text += &format!(
            ", {} ({})",
            describe::clean(&check.label),
            describe::clean(&check.workload)
        );
    }
    text += &format!(": {metric} overhead ");
    match check.overhead {
        Some(overhead) => text += &number::signed_hundredths(overhead, check.unit),
        None => text += "not known",
    }
    if let Some((low, high)) = check.low.zip(check.high) {
        text += &format!(" ({})", number::interval([low, high], check.unit));
    }
    let allowed = number::hundredths(check.limit, check.unit);
    text += &format!(", allowed {allowed}");
    if let Some(reason) = &check.reason {
        text += &format!(": {reason}");
    }
    text
}

/// The same for scripts: `changes`, `limits`, `differences`, `broken`,
/// `undecided`, and the report of each run under `runs`.
pub fn json(compared: &Compared) -> String {
    let object = object! {
        schema_version: json::SCHEMA_VERSION,
        broken: compared.is_broken(),
        undecided: compared.has_undecided(),
        changes: compared.changes.iter().map(change).collect::<Vec<_>>(),
        limits: &compared.limits,
        differences: &compared.differences,
        runs: compared.runs.iter().map(json::report).collect::<Vec<_>>(),
    };
    json::text(&object)
}

fn change(of: &Change) -> impl Serialize {
    let verdict = of.effect.and_then(|effect| effect.verdict);
    object! {
        run: of.run,
        treatment: &of.label,
        workload: &of.workload,
        metric: of.metric,
        primary: of.is_primary,
        against: &of.against,
        #[serde(flatten)]
        effect: json::effect(of.effect, verdict),
        margin: of.margin,
    }
}
