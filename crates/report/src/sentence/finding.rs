//! The part of a sentence that follows a network's name.

use plumbline_stats::verdict::{Direction, Verdict};

use super::leading::has_one_of_each;
use crate::analysis::{Comparison, Effect, Metric, Quantity, Summary, TreatmentSummary};
use crate::{describe, number};

/// A primary comparison that has an effect.
#[derive(Clone, Copy)]
struct Found<'a> {
    of: &'a Comparison,
    effect: Effect,
    treatment: &'a TreatmentSummary,
}

/// What the primary comparisons of treatments that share a label show: ` costs
/// +9.1 µs at p50 (+31 %, 95 % interval 27 to 35 %), +22 % CPU per request`. Each
/// workload is named unless its metrics tell it.
pub(super) fn text(summary: &Summary, treatments: &[&TreatmentSummary]) -> String {
    let is_alone = has_one_of_each(summary, treatments);
    let groups: Vec<&[&TreatmentSummary]> = match is_alone {
        true => vec![treatments],
        false => treatments.chunks(1).collect(),
    };
    let workload = |one: &TreatmentSummary| describe::clean(one.treatment.task.name());
    let mut text = String::new();
    let mut open: Vec<Found<'_>> = Vec::new();
    for group in groups {
        let found: Vec<_> = group.iter().flat_map(|one| found(summary, one)).collect();
        let (clear, others): (Vec<Found<'_>>, Vec<_>) = found.iter().partition(|one| is_clear(one));
        let mut part = joined(&clear);
        if found.is_empty() {
            part = format!(": {}", why_missing(summary, group[0]));
        }
        if !part.is_empty() {
            let end = if text.is_empty() { "" } else { ";" };
            let place = if is_alone {
                String::new()
            } else {
                format!(" under {}", workload(group[0]))
            };
            text += &format!("{end}{place}{part}");
        }
        open.extend(others);
    }
    let in_place = |one: &Found<'_>| match is_alone {
        true => one.of.metric.words.to_owned(),
        false => format!("{} under {}", one.of.metric.words, workload(one.treatment)),
    };
    for part in reserves(&open, in_place) {
        text += if text.is_empty() { ": " } else { "; " };
        text += &part;
    }
    text
}

fn found<'a>(summary: &'a Summary, treatment: &'a TreatmentSummary) -> Vec<Found<'a>> {
    let comparisons = summary.comparisons.iter();
    let primary = comparisons.filter(|one| one.treatment == treatment.id() && one.is_primary);
    let found = primary.filter_map(|of| {
        let effect = of.effect?;
        Some(Found {
            of,
            effect,
            treatment,
        })
    });
    found.collect()
}

/// Whether there is a difference, if only one that does not matter.
fn is_clear(one: &Found<'_>) -> bool {
    one.effect.verdict != Some(Verdict::Undecided) && one.effect.excludes_zero()
}

/// Clear differences: what costs more or less, gains, and what does not matter.
fn joined(clear: &[Found<'_>]) -> String {
    let is_different = |one: &&Found<'_>| one.effect.verdict.is_some_and(Verdict::is_different);
    let is_cost = |one: &&Found<'_>| one.of.metric.direction == Direction::LowerIsBetter;
    let different = || clear.iter().filter(is_different);
    let costs: Vec<String> = different().filter(is_cost).map(cost).collect();
    let gains = different().filter(|one| !is_cost(one)).map(gain);
    let small = clear.iter().filter(|one| !is_different(one)).map(small);
    let joint = if costs.is_empty() { ": " } else { " costs " };
    let costs = (!costs.is_empty()).then(|| costs.join(", "));
    let parts: Vec<String> = costs.into_iter().chain(gains).chain(small).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("{joint}{}", parts.join("; ")),
    }
}

/// `+9.1 µs at p50 (+31 %, 95 % interval 27 to 35 %)`, or `+22 % CPU per request`.
fn cost(one: &Found<'_>) -> String {
    let change = describe::change(&one.effect);
    match (one.of.metric.quantity, one.of.difference) {
        (Quantity::Latency | Quantity::Event, Some(difference)) => format!(
            "{} at {} ({change}{})",
            number::signed_duration(difference),
            one.of.metric.words,
            interval(one),
        ),
        _ => format!("{change} {}", one.of.metric.words),
    }
}

/// `throughput −18 %`.
fn gain(one: &Found<'_>) -> String {
    let change = describe::change(&one.effect);
    format!("{} {change}", one.of.metric.words)
}

/// `+1.5 % CPU per request (1.4 to 1.6 %), within the 3.0 % that does not matter`.
fn small(one: &Found<'_>) -> String {
    let interval = describe::interval(&one.effect);
    let interval = interval.map_or(String::new(), |it| format!(" ({it})"));
    format!(
        "{} {}{interval}, within the {} that does not matter",
        describe::change(&one.effect),
        at(one.of.metric),
        describe::margin(&one.effect, one.of.margin)
    )
}

/// What is the same, undecided, or had too few blocks; each with what would have
/// been seen, so that none can pass for "no difference" (C-8).
fn reserves(open: &[Found<'_>], place: impl Fn(&Found<'_>) -> String) -> Vec<String> {
    let with =
        |verdict: Option<Verdict>| open.iter().filter(move |one| one.effect.verdict == verdict);
    let mut words = " would have been seen";
    let mut seen = |one: &Found<'_>| {
        let words = std::mem::take(&mut words);
        let seen = |it| format!(" ({}{words})", describe::margin(&one.effect, it));
        one.effect.smallest.map_or(String::new(), seen)
    };
    let mut parts = Vec::new();
    let margin = with(Some(Verdict::Equivalent)).max_by(|a, b| a.of.margin.total_cmp(&b.of.margin));
    if let Some(margin) = margin {
        let same =
            with(Some(Verdict::Equivalent)).map(|one| format!("{}{}", place(one), seen(one)));
        let same = join(&same.collect::<Vec<_>>(), " and ");
        parts.push(format!(
            "the same within {} in {same}",
            describe::margin(&margin.effect, margin.of.margin)
        ));
    }
    let undecided: Vec<String> = with(Some(Verdict::Undecided))
        .map(|one| {
            let effect = &one.effect;
            let ends = effect.ends().map(|ends| match effect.excludes_zero() {
                true => number::interval(ends, effect.unit()),
                false => number::between(ends, effect.unit()),
            });
            let unseen = match effect.is_partly_seen() {
                true => ", without the network’s own processes",
                false => "",
            };
            let ends = ends.unwrap_or_default();
            format!("{} {ends}{}{unseen}", place(one), seen(one))
        })
        .collect();
    if !undecided.is_empty() {
        parts.push(format!("undecided: {}", undecided.join(", ")));
    }
    let too_few: Vec<&Found<'_>> = with(None).collect();
    let blocks = too_few.iter().map(|one| one.effect.blocks).min();
    let needed = too_few.iter().map(|one| one.effect.blocks_needed()).max();
    if let Some((blocks, needed)) = blocks.zip(needed) {
        let so_far = |one: &&Found<'_>| format!("{} {}", describe::change(&one.effect), place(one));
        let so_far: Vec<String> = too_few.iter().map(so_far).collect();
        parts.push(format!(
            "too few blocks to judge ({blocks}); at least {needed} needed; so far {}",
            so_far.join(", ")
        ));
    }
    parts
}

fn why_missing(summary: &Summary, treatment: &TreatmentSummary) -> String {
    let account = &treatment.account;
    if account.planned == 0 {
        return "not run before the run was cut off".to_owned();
    }
    if !treatment.has_data() {
        let reason = account
            .failures
            .first()
            .map_or("no reason recorded", |one| &one.reason);
        let blocks = number::counted(account.planned as u64, "block");
        return format!("no valid trial in {blocks} ({reason})");
    }
    let baseline = treatment
        .treatment
        .baseline
        .and_then(|id| summary.treatments.get(id));
    match baseline {
        Some(baseline) if !baseline.has_data() => format!(
            "cannot be compared, since its baseline {} has no valid trial",
            describe::clean(&baseline.treatment.label)
        ),
        _ => "cannot be compared: no block holds a value of both it and its baseline".to_owned(),
    }
}

/// `, 95 % interval 27 to 35 %`; empty without an interval.
fn interval(one: &Found<'_>) -> String {
    describe::interval(&one.effect).map_or(String::new(), |interval| {
        format!(", 95{}% interval {interval}", number::NO_BREAK_SPACE)
    })
}

fn at(metric: &Metric) -> String {
    match metric.quantity {
        Quantity::Latency | Quantity::Event => format!("at {}", metric.words),
        _ => metric.words.to_owned(),
    }
}

pub(crate) fn join(texts: &[String], last: &str) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{}{last}{end}", first.join(", ")),
    }
}
