//! The part of a sentence that follows a network's name, where several workloads
//! of a kind are behind it: what is clear for each of them, and the reserves once
//! for all.

use plumbline_stats::verdict::Verdict;

use super::finding::{Findings, change_of, join, place};
use crate::analysis::Comparison;
use crate::number;

/// Comparisons that share a reserve, each with the name of its workload.
type Named<'a> = Vec<(&'a str, &'a Comparison)>;

pub(super) fn text(found: &[(String, Findings<'_>)]) -> String {
    let mut parts: Vec<String> = found
        .iter()
        .filter_map(|(name, one)| {
            let (joint, parts) = one.clear();
            let text = parts.join("; ");
            (!text.is_empty()).then(|| format!("under {name}{joint}{text}"))
        })
        .collect();
    let joint = if parts.is_empty() { ": " } else { " " };
    parts.extend(perhaps(&named(found, |one| &one.doubtful)));
    parts.extend(no_difference(&named(found, |one| &one.same)));
    parts.extend(too_few(&named(found, |one| &one.too_few)));
    format!("{joint}{}", parts.join("; "))
}

fn named<'a>(
    found: &'a [(String, Findings<'a>)],
    of: impl Fn(&'a Findings<'a>) -> &'a Vec<&'a Comparison>,
) -> Named<'a> {
    let all = found.iter();
    all.flat_map(|(name, one)| of(one).iter().map(move |it| (name.as_str(), *it)))
        .collect()
}

/// `perhaps +19 % at p50 under crr (95 % interval 5 to 34 %) and +31 % at p50 under
/// http (16 to 47 %), but …`; intervals exclude 0 before Holm's adjustment only.
fn perhaps(doubtful: &Named<'_>) -> Option<String> {
    let mut what = format!("95{}% interval ", number::NO_BREAK_SPACE);
    let item = |(name, one): &(&str, &Comparison)| {
        let interval = one.effect.and_then(|effect| effect.interval);
        let interval = interval.map_or(String::new(), |it| {
            let what = std::mem::take(&mut what);
            format!(" ({what}{})", number::percent_interval(it.low, it.high))
        });
        let change = number::signed_percent(change_of(one));
        format!("{change} {} under {name}{interval}", place(one.metric))
    };
    let items: Vec<String> = doubtful.iter().map(item).collect();
    (!items.is_empty()).then(|| {
        format!(
            "perhaps {}, but among all comparisons of this run that may be chance",
            join(&items, " and ")
        )
    })
}

/// With what would have been seen (C-8).
fn no_difference(same: &Named<'_>) -> Option<String> {
    let mut words = " would have been seen";
    let item = |(name, one): &(&str, &Comparison)| {
        let mut notes = Vec::new();
        if let Some(smallest) = one.smallest_effect {
            notes.push(format!("{}{words}", number::percent(smallest)));
            words = "";
        }
        if one.verdict == Some(Verdict::Equivalent) {
            let margin = number::percent(one.margin);
            notes.push(format!("the same within {margin}"));
        }
        let notes = if notes.is_empty() {
            String::new()
        } else {
            format!(" ({})", notes.join("; "))
        };
        format!("{} under {name}{notes}", one.metric.words)
    };
    let items: Vec<String> = same.iter().map(item).collect();
    (!items.is_empty()).then(|| format!("no difference found in {}", join(&items, " and ")))
}

/// `too few blocks to judge CPU per request under crr (12 of at least 13; so far
/// +33 %)`.
fn too_few(comparisons: &Named<'_>) -> Option<String> {
    let item = |(name, one): &(&str, &Comparison)| {
        format!(
            "{} under {name} ({} of at least {}; so far {})",
            one.metric.words,
            one.effect.map_or(0, |effect| effect.pairs),
            one.blocks_needed,
            number::signed_percent(change_of(one)),
        )
    };
    let items: Vec<String> = comparisons.iter().map(item).collect();
    (!items.is_empty()).then(|| format!("too few blocks to judge {}", join(&items, " and ")))
}
