//! A comparison of runs for terminal and scripts.

use plumbline_record::Warning;
use serde_json::{Value, json};

use super::{Change, Compared, LimitCheck, LimitOutcome};
use crate::analysis::Notice;
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
        out += &mixed_builds(compared, style);
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

/// A warning for each run that several builds took part in.
fn mixed_builds(compared: &Compared, style: Style) -> String {
    let mut out = String::new();
    for (at, run) in compared.runs.iter().enumerate() {
        let is_mixed = |one: &&Notice| matches!(one.warning, Warning::MixedBuilds { .. });
        for notice in run.notices.iter().filter(is_mixed) {
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
    text += &number::signed_percent(effect.ratio_minus_one);
    if let Some(interval) = effect.interval {
        let interval = number::percent_interval(interval.low, interval.high);
        text += &format!(" (95{}% interval {interval})", number::NO_BREAK_SPACE);
    }
    match effect.verdict {
        Some(verdict) => text += &format!(", {verdict}"),
        None if effect.interval.is_none() => text += ", too few blocks to judge",
        None => text += ", no verdict without a baseline in both runs",
    }
    if let Some(smallest) = effect.smallest.filter(|_| effect.verdict.is_some()) {
        text += &format!("; {} would have been seen", number::percent(smallest));
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
        Some(overhead) => text += &number::signed_percent(overhead),
        None => text += "not known",
    }
    if let Some((low, high)) = check.interval {
        text += &format!(" ({})", number::percent_interval(low, high));
    }
    text += &format!(", allowed {}", number::percent(check.limit));
    if let Some(reason) = &check.reason {
        text += &format!(": {reason}");
    }
    text
}

/// The same for scripts: `changes`, `limits`, `differences`, `broken`,
/// `undecided`, and the report of each run under `runs`.
pub fn json(compared: &Compared) -> String {
    let object = json!({
        "schema_version": crate::json::SCHEMA_VERSION,
        "broken": compared.is_broken(),
        "undecided": compared.has_undecided(),
        "changes": compared.changes.iter().map(change_json).collect::<Vec<_>>(),
        "limits": compared.limits.iter().map(limit_json).collect::<Vec<_>>(),
        "differences": compared.differences.iter().map(|one| json!({
            "run": one.run, "fact": one.fact, "first": one.first, "later": one.later,
        })).collect::<Vec<_>>(),
        "runs": compared.runs.iter().map(crate::json::value).collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

fn change_json(change: &Change) -> Value {
    let effect = change.effect;
    let interval = effect.and_then(|effect| effect.interval);
    let verdict = effect.and_then(|effect| effect.verdict);
    json!({
        "run": change.run,
        "treatment": change.label,
        "workload": change.workload,
        "metric": change.metric.name(),
        "primary": change.is_primary,
        "against": change.against,
        "effect": effect.map(|effect| effect.ratio_minus_one),
        "low": interval.map(|interval| interval.low),
        "high": interval.map(|interval| interval.high),
        "adjusted_p": effect.map(|effect| effect.adjusted_p),
        "verdict": verdict.map(|verdict| verdict.to_string()),
        "smallest_effect": effect.and_then(|effect| effect.smallest),
        "margin": change.margin,
    })
}

fn limit_json(check: &LimitCheck) -> Value {
    json!({
        "run": check.run,
        "treatment": check.label,
        "workload": check.workload,
        "metric": check.metric,
        "limit": check.limit,
        "overhead": check.overhead,
        "low": check.interval.map(|(low, _)| low),
        "high": check.interval.map(|(_, high)| high),
        "outcome": match check.outcome {
            LimitOutcome::Held => "held",
            LimitOutcome::Broken => "broken",
            LimitOutcome::Undecided => "undecided",
        },
        "reason": check.reason,
    })
}
