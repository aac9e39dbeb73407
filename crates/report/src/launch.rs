//! Pods that were launched, in tables and sentences.

// In `object!` each key has a type of its own.
#![allow(non_camel_case_types)]

use plumbline_record::{LaunchPart, LimiterWait};
use serde::Serialize;

use crate::analysis::{
    LaunchQuantile, LaunchSummary, LaunchTimes, NotedPod, Section, Summary, TreatmentSummary,
};
use crate::figures::{Table, head, spread};
use crate::object::object;
use crate::spread::Spread;
use crate::{describe, number};

/// What the first table is, for a reader of the page.
pub(crate) const ABOUT: &str = "Over the pods of all trials, from the intended start of each. In \
    brackets, where a percentile lies by these pods at 95 %, as if they were independent: within \
    this run. The p50 of trials is the median of what half of the pods of each took, with its 95 % \
    interval where there are six trials or more. The stretches are medians of their own, so they \
    do not add up.";

/// What the table of the last steps is.
pub(crate) const ENDED: &str = "How pods ended: each step from the end of the one before it, the \
    first from when the end was begun.";

/// A row for each treatment of a section; `None` where no pods were launched.
pub(crate) fn table(summary: &Summary, section: &Section) -> Option<Table> {
    let launched = launched(summary, section);
    // A lab shows none as ready, and a cluster may not show how its pods came about.
    let is_seen = |name: &str| launched.iter().any(|(_, of)| middle_ns(of, name).is_some());
    let shown: Vec<(&str, &str)> = STRETCHES.into_iter().filter(|it| is_seen(it.0)).collect();
    let row = |&(treatment, of): &(&TreatmentSummary, &LaunchSummary)| {
        let up = of.time("network_up");
        let mut row = vec![describe::clean(&treatment.treatment.label)];
        row.extend(up.into_iter().flat_map(|it| &it.quantiles).map(bounded));
        row.push(or_none(up.and_then(|it| it.longest_ns)));
        let middle = up.and_then(|it| it.quantiles.first());
        let trials = middle.and_then(|it| it.over_trials);
        row.push(spread(trials, number::duration));
        row.extend(shown.iter().map(|(name, _)| or_none(middle_ns(of, name))));
        let mut pods = of.pods.to_string();
        for (count, what) in [
            (of.pods - of.up, "without network"),
            (of.up - of.whole, "without some other phase"),
        ] {
            if count > 0 {
                pods += &format!(", {count} {what}");
            }
        }
        row.push(pods);
        row
    };
    let rows: Vec<Vec<String>> = launched.iter().map(row).collect();
    let mut head = head([
        "network",
        "up p50",
        "up p90",
        "up p99",
        "longest",
        "p50 of trials",
    ]);
    head.extend(shown.iter().map(|(_, heading)| (*heading).to_owned()));
    head.push("pods".to_owned());
    (!rows.is_empty()).then_some(Table { head, rows })
}

/// The times that stand beside the whole, and their headings.
const STRETCHES: [(&str, &str); 9] = [
    ("attach", "attach"),
    ("add", "of it ADD"),
    ("first_out", "first out"),
    ("first_in", "first in"),
    ("ready", "ready"),
    ("release", "release"),
    ("namespace", "namespace"),
    ("program", "program"),
    ("lag", "lag"),
];

fn middle_ns(of: &LaunchSummary, name: &str) -> Option<f64> {
    of.time(name)?.middle_ns()
}

/// The chosen steps of pods on each network; `None` where there were none.
pub(crate) fn steps(
    summary: &Summary,
    section: &Section,
    choose: fn(&LaunchSummary) -> &[LaunchTimes],
) -> Option<Table> {
    let of_one = |(treatment, of): (&TreatmentSummary, &LaunchSummary)| -> Vec<Vec<String>> {
        let row = |step: &LaunchTimes| {
            let label = describe::clean(&treatment.treatment.label);
            let mut row = vec![label, describe::clean(&step.name)];
            row.extend(step.quantiles.iter().map(bounded));
            row.push(or_none(step.longest_ns));
            row
        };
        choose(of).iter().map(row).collect()
    };
    let rows = launched(summary, section).into_iter().flat_map(of_one);
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| Table {
        head: head(["network", "step", "p50", "p90", "p99", "longest"]),
        rows,
    })
}

/// The slowest pod of each treatment, the dearest first, and where its time went.
pub(crate) fn tails(summary: &Summary, section: &Section) -> Vec<String> {
    let tail = |(treatment, of): (&TreatmentSummary, &LaunchSummary)| {
        let slowest = of.slowest.as_ref()?;
        let label = describe::clean(&treatment.treatment.label);
        let apart = watches_apart(of).unwrap_or_default();
        let unseen = of.calls_unseen.as_deref().map(unseen).unwrap_or_default();
        let limited: String = of.limiter.iter().map(limited).collect();
        Some(format!(
            "{label}: {}{apart}{unseen}{limited}",
            told(slowest)?
        ))
    };
    let launched = launched(summary, section).into_iter();
    launched.rev().filter_map(tail).collect()
}

/// `the slowest pod, number 37 in block 3, had its network after 812 ms; its longest stretch was
/// “first out”, 700 ms`.
fn told(noted: &NotedPod) -> Option<String> {
    let up_ns = noted.pod.up_ns()?;
    let parts = noted.pod.parts();
    let length = |part: &LaunchPart<'_>| part.to_ns - part.from_ns;
    let until_up = parts.iter().filter(|part| part.to_ns <= up_ns);
    let longest = until_up.max_by_key(|part| length(part))?;
    Some(format!(
        "the slowest pod, number {} in block {}, had its network after {}; its longest stretch was “{}”, {}",
        noted.position + 1,
        u64::from(noted.block) + 1,
        number::duration(up_ns as f64),
        describe::clean(longest.name),
        number::duration(length(longest) as f64)
    ))
}

/// `; of 20 pods that began since, 19 had their network, the slowest after 812 ms, and 18 were
/// ready, the slowest after 3.20 s`.
pub(crate) fn beside_a_command(of: &LaunchSummary) -> String {
    let slowest = |name: &str| {
        let longest_ns = of.time(name).and_then(|it| it.longest_ns);
        let told = longest_ns.map(|ns| format!(", the slowest after {}", number::duration(ns)));
        told.unwrap_or_default()
    };
    format!(
        "; of {} pods that began since, {} had their network{}, and {} were ready{}",
        of.pods,
        of.up,
        slowest("network_up"),
        of.ready,
        slowest("ready")
    )
}

/// `; for 99 of 100 pods two watches of the cluster dated all they saw within 812 µs of each
/// other`: that much of its stretches is our own.
fn watches_apart(of: &LaunchSummary) -> Option<String> {
    let apart = of.time("watches_apart")?.quantiles.last()?;
    Some(format!(
        "; for {} of 100 pods two watches of the cluster dated all they saw within {} of each other",
        (apart.share * 100.0).round(),
        number::duration(apart.ns?)
    ))
}

/// `; what its plugins took of attaching a pod is not seen: this account may not …`.
fn unseen(why: &str) -> String {
    let why = describe::clean(why);
    format!("; what its plugins took of attaching a pod is not seen: {why}")
}

/// `; 100 requests “endpoint-create” waited 1.20 ms each, in the mean, in the rate limiter of its
/// agents`.
fn limited(of: &LimiterWait) -> String {
    format!(
        "; {} requests “{}” waited {} each, in the mean, in the rate limiter of its agents",
        of.requests,
        describe::clean(&of.call),
        number::duration(of.waited_ns as f64 / of.requests.max(1) as f64)
    )
}

/// The treatments of a section that launched pods.
pub(crate) fn launched<'a>(
    summary: &'a Summary,
    section: &Section,
) -> Vec<(&'a TreatmentSummary, &'a LaunchSummary)> {
    section.with(&summary.treatments, |one| one.launch.as_ref())
}

/// The same for scripts.
pub(crate) fn json(of: &LaunchSummary) -> impl Serialize + use<> {
    object! {
        pods: of.pods,
        up: of.up,
        ready: of.ready,
        whole: of.whole,
        calls_unseen: of.calls_unseen.clone(),
        limiter: of.limiter.clone(),
        times: of.times.iter().map(times).collect::<Vec<_>>(),
        steps: of.steps.iter().map(times).collect::<Vec<_>>(),
        release_steps: of.release_steps.iter().map(times).collect::<Vec<_>>(),
        slowest: of.slowest.as_ref().map(noted),
    }
}

fn times(of: &LaunchTimes) -> impl Serialize + use<> {
    let quantile = |it: &LaunchQuantile| {
        object! {
            share: it.share,
            ns: it.ns,
            low_ns: it.low_ns,
            high_ns: it.high_ns,
            over_trials_ns: Spread(it.over_trials),
        }
    };
    object! {
        name: of.name.clone(),
        quantiles: of.quantiles.iter().map(quantile).collect::<Vec<_>>(),
        longest_ns: of.longest_ns,
    }
}

fn noted(of: &NotedPod) -> impl Serialize + use<> {
    let part = |it: &LaunchPart<'_>| {
        object! { name: it.name.to_owned(), from_ns: it.from_ns, to_ns: it.to_ns }
    };
    object! {
        block: of.block,
        position: of.position,
        node: of.pod.node.clone(),
        network_up_ns: of.pod.up_ns(),
        parts: of.pod.parts().iter().map(part).collect::<Vec<_>>(),
    }
}

fn bounded(of: &LaunchQuantile) -> String {
    let text = number::duration;
    match (of.ns, of.low_ns, of.high_ns) {
        (Some(ns), Some(low), Some(high)) => {
            format!("{} ({} to {})", text(ns), text(low), text(high))
        }
        (ns, ..) => or_none(ns),
    }
}

fn or_none(ns: Option<f64>) -> String {
    ns.map_or_else(|| number::NONE.to_owned(), number::duration)
}
