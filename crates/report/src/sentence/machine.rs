//! How exactly a machine measures: what it shows where nothing differs, and how narrow
//! the intervals became.

use plumbline_stats::verdict::Verdict;

use super::finding::join;
use crate::analysis::{Comparison, Summary};
use crate::{describe, number};

/// What the controls of one metric show together: its title, the outermost ends, and what
/// they are hundredths of.
type Span = (&'static str, [f64; 2], &'static str);

/// `, between host and a copy of it, this machine shows under rr p50 −0.4 to 0.6 %`.
pub(super) fn controls(summary: &Summary) -> Option<String> {
    let mut by_task: Vec<(&str, Vec<Span>)> = Vec::new();
    for one in &summary.controls {
        let Some(effect) = one.effect else { continue };
        let Some([low, high]) = effect.ends() else {
            continue;
        };
        let task = summary.treatments[one.baseline].treatment.task.name();
        let span = (one.metric.title, [low, high], effect.unit());
        let Some((_, spans)) = by_task.iter_mut().find(|it| it.0 == task) else {
            by_task.push((task, vec![span]));
            continue;
        };
        match spans.iter_mut().find(|it| it.0 == span.0) {
            Some((_, ends, _)) => *ends = [ends[0].min(low), ends[1].max(high)],
            None => spans.push(span),
        }
    }
    let span = |&(title, ends, unit): &Span| format!("{title} {}", number::interval(ends, unit));
    let of_task = |(task, spans): &(&str, Vec<Span>)| {
        let spans: Vec<String> = spans.iter().map(span).collect();
        format!("under {} {}", describe::clean(task), spans.join(", "))
    };
    let shown: Vec<String> = by_task.iter().map(of_task).collect();
    let label = |at: usize| &summary.treatments[at].treatment.label;
    let first = label(summary.controls.first()?.baseline);
    let baseline = match summary
        .controls
        .iter()
        .all(|it| label(it.baseline) == first)
    {
        true => describe::clean(first),
        false => "each baseline".to_owned(),
    };
    let what = match shown.is_empty() {
        true => "too few blocks to say".to_owned(),
        false => shown.join("; "),
    };
    Some(format!(
        ", between {baseline} and a copy of it, this machine shows {what}"
    ))
}

/// `: run again before small differences in CPU/GB under stream are believed: …`; `None` where
/// the machine showed none that matters.
pub(super) fn doubt(summary: &Summary) -> Option<String> {
    let is_different = |one: &&Comparison| {
        let verdict = one.effect.and_then(|effect| effect.verdict);
        verdict.is_some_and(Verdict::is_different)
    };
    let mut seen: Vec<String> = Vec::new();
    for one in summary.controls.iter().filter(is_different) {
        let task = summary.treatments[one.baseline].treatment.task.name();
        let text = format!("{} under {}", one.metric.title, describe::clean(task));
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    (!seen.is_empty()).then(|| {
        format!(
            ": run again before small differences in {} are believed: this machine showed one where \
             nothing differs; by chance that is seen in at most one of 20 runs",
            join(&seen, " and ")
        )
    })
}

/// `: every main interval is within ±3 % of its ratio after 24 blocks`.
pub(super) fn precision(summary: &Summary) -> Option<String> {
    let reached = summary.precision.as_ref()?;
    let asked = number::percent(reached.asked);
    let blocks = number::counted(summary.blocks as u64, "block");
    let but = match reached.beyond_meter {
        0 => String::new(),
        many => format!("; the meter itself keeps {many} of them wider"),
    };
    if reached.is_reached() {
        return Some(format!(
            ": every main interval is within ±{asked} of its ratio after {blocks}{but}"
        ));
    }
    if reached.half_widths.is_empty() {
        let why = match reached.beyond_meter {
            0 => "nothing was compared".to_owned(),
            many => format!("the meter itself keeps all {many} wider"),
        };
        return Some(format!(": ±{asked} cannot be reached: {why}"));
    }
    let widest = match reached.widest() {
        widest if widest.is_finite() => format!("the widest is ±{}", number::percent(widest)),
        _ => "there are too few blocks for some".to_owned(),
    };
    Some(format!(
        ": ±{asked} was not reached in {blocks}, {widest}{but}; raise design.budget or \
         design.blocks, or compare fewer networks"
    ))
}
