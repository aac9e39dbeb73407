//! How exactly a machine measures: what it shows where nothing differs, and how narrow
//! the intervals became.

use crate::analysis::{Comparison, Summary};
use crate::{describe, number};

/// `, between host and a copy of it, this machine shows p50 −0.4 to 0.6 % under rr`.
pub(super) fn controls(summary: &Summary) -> Option<String> {
    let shown = |one: &Comparison| {
        let interval = one.effect?.interval?;
        let baseline = &summary.treatments[one.baseline].treatment;
        let between = number::percent_interval(interval.low, interval.high);
        let task = describe::clean(baseline.task.name());
        Some(format!("{} {between} under {task}", one.metric.words))
    };
    let shown: Vec<String> = summary.controls.iter().filter_map(shown).collect();
    let first = summary.controls.first()?;
    let baseline = describe::clean(&summary.treatments[first.baseline].treatment.label);
    let what = match shown.is_empty() {
        true => "too few blocks to say".to_owned(),
        false => shown.join(", "),
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
    let widest = match reached.widest() {
        widest if widest.is_finite() => format!("the widest is ±{}", number::percent(widest)),
        _ => "there are too few blocks for some".to_owned(),
    };
    Some(format!(
        ": ±{asked} was not reached in {blocks} blocks, {widest}{but}; raise design.budget or \
         design.blocks, or compare fewer networks"
    ))
}
