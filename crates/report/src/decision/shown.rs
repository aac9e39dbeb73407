//! A decision in a sentence, as a table for a pull request, and for scripts.

// In `object!` each key has a type of its own.
#![allow(non_camel_case_types)]

use super::{DecidedLimit, Decision, HeadVerdict};
use crate::compare::LimitOutcome;
use crate::figures::{Table, head};
use crate::json::{self as report_json, SCHEMA_VERSION};
use crate::markdown::{escape, table};
use crate::number;
use crate::object::object;

/// The answer in one sentence: of what is worse or undecided only that.
pub fn sentence(decision: &Decision) -> String {
    let Decision { base, head, .. } = decision;
    let concerned = |outcome| {
        let limits = decision.limits.iter();
        let limits = limits.filter(move |one| one.check.outcome == outcome);
        limits.map(clause).collect::<Vec<_>>().join(", ")
    };
    let after = format!(
        "after {} in {}",
        blocks(decision),
        number::long_duration(decision.took)
    );
    let text = match decision.verdict {
        HeadVerdict::NotWorse => format!(
            "{head} is not worse than {base}: {}; {after}.",
            concerned(LimitOutcome::Held)
        ),
        HeadVerdict::Worse => format!(
            "{head} is worse than {base}: {}; {after}.",
            concerned(LimitOutcome::Broken)
        ),
        HeadVerdict::Undecided if decision.limits.is_empty() => {
            format!("Whether {head} is worse than {base} is undecided: the run has no limits.")
        }
        HeadVerdict::Undecided => format!(
            "Whether {head} is worse than {base} is undecided {after}: {}{}.",
            concerned(LimitOutcome::Undecided),
            remedy(decision)
        ),
    };
    number::plain(&text)
}

fn blocks(decision: &Decision) -> String {
    number::counted(decision.blocks as u64, "block")
}

/// `p50 +21 % (19 to 24 %) where 3 % is allowed`.
fn clause(limit: &DecidedLimit) -> String {
    let allowed = allowed(limit);
    let Some(change) = &limit.change else {
        let why = limit.check.reason.as_deref().unwrap_or("not measured");
        return format!("{} is not known ({why})", limit.name);
    };
    let interval = limit.interval.as_ref();
    let interval = interval.map_or("too few blocks for an interval".to_owned(), String::clone);
    format!(
        "{} {change} ({interval}) where {allowed} is allowed",
        limit.name
    )
}

/// A limit as it was typed: `3 %`.
pub(super) fn allowed(limit: &DecidedLimit) -> String {
    number::tick(&number::hundredths(limit.check.limit, limit.check.unit))
}

/// What would decide it; nothing where that is said of what was not measured.
fn remedy(decision: &Decision) -> String {
    if decision.interrupted {
        return "; it was interrupted between two looks, and goes on with --resume".to_owned();
    }
    let unseen = decision.limits.iter().find(|one| one.is_unseen);
    if let Some(reason) = unseen.and_then(|one| one.check.reason.as_ref()) {
        return format!("; {reason}");
    }
    let mut undecided = decision.undecided();
    if let Some(more) = decision.more() {
        let would = match undecided.any(|one| one.interval.is_none()) {
            true => "give an interval",
            false => "decide it",
        };
        let (time, budget) = (number::long_duration(more), budget(decision, more));
        return format!("; about {time} more would {would} (--budget {budget})");
    }
    match undecided.any(|one| one.check.overhead.is_none()) {
        true => String::new(),
        false => "; it differs by about as much as is allowed, so more time would hardly decide it"
            .to_owned(),
    }
}

/// As `--budget` takes it.
fn budget(decision: &Decision, more: std::time::Duration) -> String {
    format!("{}m", (decision.took + more).as_secs().div_ceil(60))
}

/// The answer as Markdown: the sentence, and a row for each limit.
pub fn markdown(decision: &Decision) -> String {
    let row = |one: &DecidedLimit| {
        let or_none = |cell: &Option<String>| cell.clone().unwrap_or(number::NONE.to_owned());
        let outcome = match one.check.outcome {
            LimitOutcome::Held => "not worse",
            LimitOutcome::Broken => "worse",
            LimitOutcome::Undecided => "undecided",
        };
        vec![
            one.name.clone(),
            or_none(&one.values[0]),
            or_none(&one.values[1]),
            or_none(&one.change),
            or_none(&one.interval),
            allowed(one),
            outcome.to_owned(),
        ]
    };
    let titles = ["", "base", "head", "change", "95 % interval", "allowed", ""];
    let rows = Table {
        head: head(titles),
        rows: decision.limits.iter().map(row).collect(),
    };
    let Decision { base, head, .. } = decision;
    let doubts = decision.doubts.iter();
    let doubts: String = doubts.map(|it| format!("\n- {}\n", escape(it))).collect();
    format!(
        "**{}**\n\n{}\nBase: {}, head: {}, in turns. The intervals hold together at all looks that were planned.\n{doubts}",
        escape(&sentence(decision)),
        table(&rows),
        escape(base),
        escape(head)
    )
}

/// The answer as JSON.
pub fn json(decision: &Decision) -> String {
    let limit = |one: &DecidedLimit| {
        object! {
            treatment: one.check.label.clone(),
            workload: one.check.workload.clone(),
            metric: one.check.metric.clone(),
            limit: one.check.limit,
            overhead: one.check.overhead,
            low: one.check.low,
            high: one.check.high,
            outcome: one.check.outcome,
            reason: one.check.reason.clone(),
            more_ns: one.more.map(|it| it.as_nanos() as u64),
        }
    };
    report_json::text(&object! {
        schema_version: SCHEMA_VERSION,
        verdict: decision.verdict,
        sentence: sentence(decision),
        base: &decision.base,
        head: &decision.head,
        blocks: decision.blocks,
        took_ns: decision.took.as_nanos() as u64,
        more_ns: decision.more().map(|it| it.as_nanos() as u64),
        limits: decision.limits.iter().map(limit).collect::<Vec<_>>(),
        doubts: &decision.doubts,
    })
}
