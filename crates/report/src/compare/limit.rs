//! Overheads against the limits that an experiment states.

use plumbline_experiment::ceiling::MAX_LIMIT;
use plumbline_experiment::{Plan, metric};
use plumbline_record::Warning;
use plumbline_stats::looks::is_held;
use plumbline_stats::verdict::Direction;
use serde::Serialize;

use crate::analysis::{Comparison, Summary, TreatmentSummary, metrics_of};
use crate::describe::UNSEEN;
use crate::{describe, number};

/// One limit on one treatment.
#[derive(Clone, Debug, Serialize)]
pub struct LimitCheck {
    /// Position of the run among those compared.
    pub run: usize,
    /// Label of the treatment; empty when nothing is compared on the metric. One that could
    /// not carry a packet is in no table.
    #[serde(rename = "treatment")]
    pub label: String,
    /// Name of its workload.
    pub workload: String,
    /// Name of the metric as the experiment file has it.
    pub metric: String,
    /// The largest overhead allowed, as a fraction.
    pub limit: f64,
    /// What hundredths of it and of what was found are called.
    #[serde(skip)]
    pub unit: &'static str,
    /// The overhead found, as a fraction; of throughput, what was lost; of loss, how much
    /// larger a share of all datagrams.
    pub overhead: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// What follows.
    pub outcome: LimitOutcome,
    /// Why it is undecided, with the remedy; `None` when it is decided.
    pub reason: Option<String>,
}

/// What follows from an overhead and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitOutcome {
    /// The whole interval is within the limit.
    Held,
    /// The whole interval is beyond the limit.
    Broken,
    /// The interval holds the limit, or there is none.
    Undecided,
}

impl LimitOutcome {
    /// Whether all is within the limit; `None` where that is undecided.
    pub fn is_held(self) -> Option<bool> {
        match self {
            Self::Held => Some(true),
            Self::Broken => Some(false),
            Self::Undecided => None,
        }
    }
}

/// Checks every limit of a plan against every comparison on its metric. A limit
/// on what was never compared, or of what was left out because no packet came through, is
/// undecided, so that it cannot pass unnoticed. `run` is the position of the run among those
/// compared.
pub fn check_limits(run: usize, plan: &Plan, summary: &Summary) -> Vec<LimitCheck> {
    let mut checks = Vec::new();
    for (metric, &limit) in &plan.limits {
        let undecided = |label: &str, why: String| LimitCheck {
            run,
            label: label.to_owned(),
            workload: String::new(),
            metric: metric.clone(),
            limit,
            unit: number::PERCENT,
            overhead: None,
            low: None,
            high: None,
            outcome: LimitOutcome::Undecided,
            reason: Some(why),
        };
        let before = checks.len();
        let concerned = summary
            .comparisons
            .iter()
            .filter(|one| one.metric.name() == metric);
        checks.extend(concerned.map(|one| check_one(run, limit, summary, one)));
        if checks.len() == before {
            checks.push(undecided("", why_not_compared(metric, summary)));
        }
        for notice in &summary.notices {
            if let Warning::CarriesNothing { network, reason } = &notice.warning {
                let why = format!("it could not carry a packet: {reason}");
                checks.push(undecided(network, why));
            }
        }
    }
    checks
}

fn check_one(run: usize, limit: f64, summary: &Summary, of: &Comparison) -> LimitCheck {
    let treatment = &summary.treatments[of.treatment].treatment;
    let effect = of.effect;
    let (change, ends) = (
        effect.map(|it| it.change()),
        effect.and_then(|it| it.ends()),
    );
    let (overhead, interval) = match of.metric.direction {
        Direction::LowerIsBetter => (change, ends.map(|[low, high]| (low, high))),
        Direction::HigherIsBetter => (
            change.map(|change| -change),
            ends.map(|[low, high]| (-high, -low)),
        ),
    };
    let [ours, theirs] = effect.map_or([false; 2], |effect| effect.may_hide);
    let outcome = match interval.and_then(|(low, high)| is_held(low, high, limit)) {
        Some(false) if !theirs => LimitOutcome::Broken,
        Some(true) if !ours => LimitOutcome::Held,
        _ => LimitOutcome::Undecided,
    };
    LimitCheck {
        run,
        label: treatment.label.clone(),
        workload: treatment.task.name().to_owned(),
        metric: of.metric.name().to_owned(),
        limit,
        unit: effect.map_or(number::PERCENT, |effect| effect.unit()),
        overhead,
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        outcome,
        reason: (outcome == LimitOutcome::Undecided).then(|| why_undecided(summary, of)),
    }
}

/// Why there is no comparison on a metric.
fn why_not_compared(metric: &str, summary: &Summary) -> String {
    let has_metric = |one: &&TreatmentSummary| {
        let mut metrics = metrics_of(&one.treatment.task);
        metrics.any(|(known, _)| known.name() == metric)
    };
    let with_metric: Vec<_> = summary.treatments.iter().filter(has_metric).collect();
    match with_metric[..] {
        [] => "no workload of this run has that metric".to_owned(),
        [baseline] => format!(
            "only the baseline {} was run; add a network to compare with it",
            describe::clean(&baseline.treatment.label)
        ),
        _ => "nothing in this run is compared on that metric".to_owned(),
    }
}

/// Why a comparison does not decide a limit.
fn why_undecided(summary: &Summary, of: &Comparison) -> String {
    let Some(effect) = of.effect else {
        return why_no_effect(summary, of);
    };
    if effect.interval.is_none() {
        let give = if effect.blocks == 1 { "gives" } else { "give" };
        return format!(
            "{} {give} no interval; it takes at least {}",
            number::counted(effect.blocks as u64, "block"),
            effect.blocks_needed()
        );
    }
    match effect.is_partly_seen() {
        true => format!("{UNSEEN}; limit the CPU of the machine instead"),
        false => "the limit lies inside the interval; more blocks or longer trials would decide it"
            .to_owned(),
    }
}

fn why_no_effect(summary: &Summary, of: &Comparison) -> String {
    for id in [of.treatment, of.baseline] {
        let one = &summary.treatments[id];
        let label = describe::clean(&one.treatment.label);
        if !one.has_data() {
            let failures = one.account.failures.first();
            let why = failures.map_or("it was not run".to_owned(), |main| {
                format!("{}; {}", main.reason, main.remedy)
            });
            return format!("{label} has no valid trial ({why})");
        }
        if !one.shows(of.metric) {
            return format!(
                "the samples of {label} do not carry {}; use longer trials or more blocks",
                of.metric.words
            );
        }
        if one.values_of(of.metric.name()).is_empty() {
            return format!(
                "{} was not measured in any trial of {label}",
                of.metric.words
            );
        }
    }
    "no block holds a positive value of both it and its baseline; resume the run, or use more \
     blocks"
        .to_owned()
}

/// A limit that was typed and cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--limit {text}: {remedy}")]
pub struct LimitTextError {
    text: String,
    remedy: String,
}

/// Reads limits such as `p50=10%` or `p50=0.1`, at most one of each metric: the metric, and the
/// largest allowed overhead as a fraction.
///
/// # Errors
///
/// Text of another form, metrics that there are not, shares that can hardly be meant, and two
/// limits of one metric.
pub fn parse_limits(texts: &[String]) -> Result<Vec<(String, f64)>, LimitTextError> {
    let mut limits: Vec<(String, f64)> = Vec::new();
    for text in texts {
        let limit = parse_limit(text)?;
        if limits.iter().any(|known| known.0 == limit.0) {
            return Err(LimitTextError {
                text: text.clone(),
                remedy: format!("{} has a limit already; say one", limit.0),
            });
        }
        limits.push(limit);
    }
    Ok(limits)
}

fn parse_limit(text: &str) -> Result<(String, f64), LimitTextError> {
    let refused = |remedy: String| LimitTextError {
        text: text.to_owned(),
        remedy,
    };
    let wrong = || refused("write METRIC=SHARE, such as p50=10%".to_owned());
    let (name, share) = text.split_once('=').ok_or_else(wrong)?;
    let percent = share.strip_suffix('%');
    let number: f64 = percent
        .unwrap_or(share)
        .trim()
        .parse()
        .map_err(|_| wrong())?;
    let known = metric::names();
    if !known.contains(&name.trim()) {
        let known = known.join(", ");
        return Err(refused(format!("the metric is one of {known}")));
    }
    let share = percent.map_or(number, |_| number / 100.0);
    if !(0.0..=MAX_LIMIT).contains(&share) {
        let most = 100.0 * MAX_LIMIT;
        return Err(refused(format!("the share is from 0 to {most}%")));
    }
    if percent.is_none() && share >= 1.0 {
        let [percent, whole] = [number, 100.0 * number].map(|it| format!("{name}={it}%"));
        return Err(refused(format!(
            "write {percent}, or {whole} if you mean that"
        )));
    }
    Ok((name.trim().to_owned(), share))
}
