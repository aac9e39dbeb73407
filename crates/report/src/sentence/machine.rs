//! How exactly a machine measures: what it shows where nothing differs, and how narrow
//! the intervals became.

use crate::analysis::Summary;
use crate::{describe, number};

/// `, between host and a copy of it, this machine shows p50 −0.4 to 0.6 % under rr`.
pub(super) fn controls(summary: &Summary) -> Option<String> {
    let mut by_task: Vec<(String, Vec<String>)> = Vec::new();
    for one in &summary.controls {
        let Some(interval) = one.effect.and_then(|effect| effect.interval) else {
            continue;
        };
        let task = describe::clean(summary.treatments[one.baseline].treatment.task.name());
        let between = number::percent_interval(interval.low, interval.high);
        let shown = format!("{} {between}", one.metric.title);
        match by_task.last_mut().filter(|(last, _)| *last == task) {
            Some((_, all)) => all.push(shown),
            None => by_task.push((task, vec![shown])),
        }
    }
    let shown: Vec<String> = by_task
        .into_iter()
        .map(|(task, all)| format!("under {task} {}", all.join(", ")))
        .collect();
    let first = summary.controls.first()?;
    let baseline = describe::clean(&summary.treatments[first.baseline].treatment.label);
    let what = match shown.is_empty() {
        true => "too few blocks to say".to_owned(),
        false => shown.join("; "),
    };
    Some(format!(
        ", between {baseline} and a copy of it, this machine shows {what}"
    ))
}

/// `: every main interval is within ±3 % after 24 blocks`.
pub(super) fn precision(summary: &Summary) -> Option<String> {
    let reached = summary.precision.as_ref()?;
    let (asked, blocks) = (number::percent(reached.asked), summary.blocks);
    let but = match reached.beyond_meter {
        0 => String::new(),
        many => format!("; the meter itself keeps {many} of them wider"),
    };
    if reached.is_reached() {
        return Some(format!(
            ": every main interval is within ±{asked} after {blocks} blocks{but}"
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
        ": ±{asked} was not reached in {blocks} blocks, {widest}{but}; raise design.budget or \
         design.blocks, or compare fewer networks"
    ))
}
