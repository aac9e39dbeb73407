//! The part of a sentence that follows a network's name.

use plumbline_stats::verdict::{Direction, Verdict};

use crate::analysis::{Comparison, Metric, Quantity, Summary, TreatmentSummary};
use crate::{describe, number};

/// Primary comparisons by what can be said about them.
#[derive(Default)]
pub(super) struct Findings<'a> {
    /// Better or worse in what should be low, such as latency and CPU.
    costs: Vec<&'a Comparison>,
    /// Better or worse in what should be high, such as throughput.
    gains: Vec<&'a Comparison>,
    /// The interval excludes 0, but not after Holm's adjustment.
    pub(super) doubtful: Vec<&'a Comparison>,
    /// A difference that does not matter.
    small: Vec<&'a Comparison>,
    /// No difference found.
    pub(super) same: Vec<&'a Comparison>,
    /// Too few blocks to say anything.
    pub(super) too_few: Vec<&'a Comparison>,
    /// Why nothing can be compared.
    missing: Vec<String>,
}

impl<'a> Findings<'a> {
    /// What there is to say about treatments that share a sentence.
    pub(super) fn of(summary: &'a Summary, treatments: &[&TreatmentSummary]) -> Self {
        let mut found = Self::default();
        treatments.iter().for_each(|one| found.add(summary, one));
        found
    }

    fn add(&mut self, summary: &'a Summary, treatment: &TreatmentSummary) {
        let comparisons = summary
            .comparisons
            .iter()
            .filter(|one| one.treatment == treatment.id() && one.is_primary);
        let mut has_effect = false;
        for comparison in comparisons {
            has_effect |= comparison.effect.is_some();
            self.sort(comparison);
        }
        if !has_effect {
            let why = why_missing(summary, treatment);
            if !self.missing.contains(&why) {
                self.missing.push(why);
            }
        }
    }

    fn sort(&mut self, comparison: &'a Comparison) {
        let Some(effect) = comparison.effect else {
            return;
        };
        let excludes_zero = effect.interval.is_some_and(|one| !one.contains(0.0));
        let kind = match comparison.verdict {
            Some(Verdict::Better | Verdict::Worse) => match comparison.metric.direction {
                Direction::LowerIsBetter => &mut self.costs,
                Direction::HigherIsBetter => &mut self.gains,
            },
            Some(Verdict::Equivalent) if excludes_zero => &mut self.small,
            Some(Verdict::Equivalent) => &mut self.same,
            None => &mut self.too_few,
            Some(_) if effect.pairs < comparison.blocks_needed => &mut self.too_few,
            Some(_) if excludes_zero => &mut self.doubtful,
            Some(_) => &mut self.same,
        };
        kind.push(comparison);
    }

    /// What needs no reserve, with what joins it to what it is about: `costs`, or a
    /// colon.
    pub(super) fn clear(&self) -> (&'static str, Vec<String>) {
        let mut parts = Vec::new();
        if !self.costs.is_empty() {
            parts.push(list(&self.costs, cost, ", "));
        }
        parts.extend(self.gains.iter().copied().map(gain));
        parts.extend(self.small.iter().copied().map(small));
        parts.extend(self.missing.iter().cloned());
        let joint = if self.costs.is_empty() {
            ": "
        } else {
            " costs "
        };
        (joint, parts)
    }

    /// All of it, with what joins it to a network's name.
    pub(super) fn text(&self) -> String {
        let (joint, mut parts) = self.clear();
        parts.extend(self.doubtful.iter().copied().map(doubtful));
        if !self.same.is_empty() {
            let is_all = parts.is_empty() && self.too_few.is_empty();
            parts.push(no_difference(&self.same, is_all));
        }
        if !self.too_few.is_empty() {
            parts.push(too_few(&self.too_few));
        }
        format!("{joint}{}", parts.join("; "))
    }
}

/// `+9.1 µs at p50 (+31 %, 95 % interval 27 to 35 %)`, or `+22 % CPU per request`.
fn cost(comparison: &Comparison) -> String {
    let change = number::signed_percent(change_of(comparison));
    match (comparison.metric.quantity, comparison.difference) {
        (Quantity::Latency, Some(difference)) => format!(
            "{} at {} ({change}{})",
            number::signed_duration(difference),
            comparison.metric.words,
            interval(comparison),
        ),
        _ => format!("{change} {}", comparison.metric.words),
    }
}

/// `throughput −18 %`.
fn gain(comparison: &Comparison) -> String {
    format!(
        "{} {}",
        comparison.metric.words,
        number::signed_percent(change_of(comparison))
    )
}

/// What looks like a difference, but does not hold among so many comparisons.
fn doubtful(comparison: &Comparison) -> String {
    format!(
        "perhaps {} {}{}, but among all comparisons of this run that may be chance",
        number::signed_percent(change_of(comparison)),
        place(comparison.metric),
        interval(comparison),
    )
}

/// `+1.5 % CPU per request (1.4 to 1.6 %), within the 3.0 % that does not matter`.
fn small(comparison: &Comparison) -> String {
    let interval = comparison.effect.and_then(|effect| effect.interval);
    let interval = interval.map_or(String::new(), |one| {
        format!(" ({})", number::percent_interval(one.low, one.high))
    });
    let place = match comparison.metric {
        metric if metric.quantity == Quantity::Latency => place(metric),
        metric => metric.words.to_owned(),
    };
    format!(
        "{} {place}{interval}, within the {} that does not matter",
        number::signed_percent(change_of(comparison)),
        number::percent(comparison.margin)
    )
}

/// What would have been seen, so that "no difference" cannot pass for "none"
/// (C-8). When nothing differs at all, the metrics need no naming twice.
fn no_difference(same: &[&Comparison], is_all: bool) -> String {
    let mut text = if is_all {
        let seen = |one: &Comparison| {
            let smallest = one.smallest_effect.map(number::percent);
            smallest.map(|text| match same {
                [_] => text,
                _ => format!("{text} {}", place(one.metric)),
            })
        };
        let seen: Vec<String> = same.iter().copied().filter_map(seen).collect();
        if seen.is_empty() {
            "no difference found".to_owned()
        } else {
            format!(
                "no difference found; {} would have been seen",
                join(&seen, " and ")
            )
        }
    } else {
        let mut words = " would have been seen";
        let found = |one: &Comparison| match one.smallest_effect.map(number::percent) {
            Some(smallest) => {
                let text = format!("{} ({smallest}{words})", one.metric.words);
                words = "";
                text
            }
            None => one.metric.words.to_owned(),
        };
        let found: Vec<String> = same.iter().copied().map(found).collect();
        format!("no difference found in {}", join(&found, " and "))
    };
    let is_equivalent = |one: &&Comparison| one.verdict == Some(Verdict::Equivalent);
    if let Some(first) = same.first().filter(|_| same.iter().all(is_equivalent)) {
        text += &format!("; the same within {}", number::percent(first.margin));
    }
    text
}

fn too_few(comparisons: &[&Comparison]) -> String {
    let pairs = comparisons
        .iter()
        .filter_map(|one| one.effect)
        .map(|one| one.pairs);
    let needed = comparisons.iter().map(|one| one.blocks_needed).max();
    format!(
        "too few blocks to judge ({}); at least {} needed; so far {}",
        pairs.min().unwrap_or(0),
        needed.unwrap_or(0),
        list(
            comparisons,
            |one| format!(
                "{} {}",
                number::signed_percent(change_of(one)),
                place(one.metric)
            ),
            ", "
        ),
    )
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
        return format!("no valid trial in {} blocks ({reason})", account.planned);
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
fn interval(comparison: &Comparison) -> String {
    let interval = comparison.effect.and_then(|effect| effect.interval);
    interval.map_or(String::new(), |interval| {
        format!(
            ", 95{}% interval {}",
            number::NO_BREAK_SPACE,
            number::percent_interval(interval.low, interval.high)
        )
    })
}

pub(super) fn change_of(comparison: &Comparison) -> f64 {
    comparison
        .effect
        .map_or(0.0, |effect| effect.ratio_minus_one)
}

pub(super) fn place(metric: &Metric) -> String {
    let preposition = match metric.quantity {
        Quantity::Latency => "at",
        Quantity::Throughput | Quantity::Cpu => "in",
    };
    format!("{preposition} {}", metric.words)
}

/// Items with commas between them and `last` before the last one.
fn list(items: &[&Comparison], text: impl Fn(&Comparison) -> String, last: &str) -> String {
    let texts: Vec<String> = items.iter().map(|item| text(item)).collect();
    join(&texts, last)
}

pub(super) fn join(texts: &[String], last: &str) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{}{last}{end}", first.join(", ")),
    }
}
