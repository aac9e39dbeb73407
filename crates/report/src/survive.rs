//! What traffic survived, in tables and sentences.

// In `object!` each key has a type of its own.
#![allow(non_camel_case_types)]

use plumbline_record::FlowKind;
use serde::Serialize;

use crate::analysis::{
    FlowSummary, ForbiddenSummary, LATE_NS, NotedRepetition, Section, Summary, SurviveSummary,
    TreatmentSummary,
};
use crate::figures::{Table, head, spread};
use crate::object::object;
use crate::spread::Spread;
use crate::{describe, launch, number};

/// What the table is, for a reader of the page.
pub(crate) const ABOUT: &str = "A gap goes from the intended moment of the first request that was \
    not answered within 10 ms to that of the first that was again. Given are the median over \
    repetitions of the longest gap of each with its 95 % interval, the longest of all, and the \
    longest that was there before the command began: what path and machine do by themselves.";

/// A row for each treatment of a section and kind of traffic: what broke, and for how long
/// there were no answers in time. `None` where no command was run.
pub(crate) fn gaps(summary: &Summary, section: &Section) -> Option<Table> {
    let cells = |flow: &FlowSummary| {
        vec![
            match flow.connections {
                0 => number::NONE.to_owned(),
                all => format!("{} of {all}", flow.broken),
            },
            spread(flow.gap, number::duration),
            number::duration(flow.longest_ns as f64),
            number::duration(flow.before_ns as f64),
        ]
    };
    let names = [
        "network",
        "traffic",
        "broken",
        "longest gap",
        "worst",
        "before",
    ];
    table(summary, section, head(names), cells)
}

/// As many rows: how many requests were late.
pub(crate) fn late(summary: &Summary, section: &Section) -> Option<Table> {
    let cells = |flow: &FlowSummary| {
        let late = flow.late.iter().map(u64::to_string);
        late.chain([flow.requests.to_string()]).collect()
    };
    let mut names = head(["network", "traffic"]);
    names.extend(LATE_NS.map(|ns| format!("after {}", number::duration(ns as f64))));
    names.push("requests".to_owned());
    table(summary, section, names, cells)
}

fn table(
    summary: &Summary,
    section: &Section,
    head: Vec<String>,
    cells: impl Fn(&FlowSummary) -> Vec<String>,
) -> Option<Table> {
    let mut rows = Vec::new();
    for (treatment, of) in survived(summary, section) {
        for flow in &of.flows {
            let label = describe::clean(&treatment.treatment.label);
            let mut row = vec![label, short(flow.kind).to_owned()];
            row.extend(cells(flow));
            rows.push(row);
        }
    }
    (!rows.is_empty()).then_some(Table { head, rows })
}

/// A kind of traffic in a word.
pub(crate) fn short(kind: FlowKind) -> &'static str {
    let words = in_words(kind);
    words.split(' ').next().unwrap_or(words)
}

/// A kind of traffic in words.
pub(crate) fn in_words(kind: FlowKind) -> &'static str {
    match kind {
        FlowKind::Standing => "standing connections",
        FlowKind::New => "new connections",
        FlowKind::Datagram => "datagrams",
    }
}

/// `vxlan: the command took 309 ms (308 to 312), and traffic was well again 310 ms (309 to 313)
/// after it had begun`; the dearest first.
pub(crate) fn sentences(summary: &Summary, section: &Section) -> Vec<String> {
    let sentence = |(treatment, of): (&TreatmentSummary, &SurviveSummary)| {
        let label = describe::clean(&treatment.treatment.label);
        let took = spread(of.command, number::duration);
        let again = again(of);
        let policy = of.forbidden.as_ref();
        let policy = policy.map_or_else(String::new, |it| let_through(it, of.repetitions));
        let pods = treatment.launch.as_ref().map(launch::beside_a_command);
        let pods = pods.unwrap_or_default();
        format!("{label}: the command took {took}, and {again}{policy}{pods}")
    };
    let all = survived(summary, section).into_iter();
    all.rev().map(sentence).collect()
}

/// When traffic was well again. Where it was never unwell in most of the repetitions in which it
/// was so at the end, there is no usual time.
fn again(of: &SurviveSummary) -> String {
    const NO_GAP: &str = "no gap was longer than those before it had begun";
    let well = of.repetitions - of.unwell;
    if well == 0 {
        return "in no repetition was traffic well again at the end".to_owned();
    }
    if of.always_well == of.repetitions {
        return NO_GAP.to_owned();
    }
    if 2 * of.always_well <= well {
        let after = spread(of.well_again, number::duration);
        let some = match of.unwell {
            0 => String::new(),
            _ => format!(", in {well} of {} repetitions", of.repetitions),
        };
        return format!("traffic was well again {after} after it had begun{some}");
    }
    let mut parts = vec![format!(
        "in {} of {} repetitions {NO_GAP}",
        of.always_well, of.repetitions
    )];
    if well > of.always_well {
        let longest = number::duration(of.longest_again_ns);
        let others = well - of.always_well;
        parts.push(format!(
            "in {others} traffic was well again within {longest} of its beginning"
        ));
    }
    if of.unwell > 0 {
        parts.push(format!("in {} traffic was not well at the end", of.unwell));
    }
    parts.join(", ")
}

/// `; of 4000 connections that the policy forbids 12 got through, for 12 ms (10 to 14) of a
/// repetition, 14 ms of the worst`.
fn let_through(of: &ForbiddenSummary, repetitions: usize) -> String {
    let ForbiddenSummary { tried, opened, .. } = of;
    let forbidden = format!("; of {tried} connections that the policy forbids");
    if *opened == 0 {
        return format!("{forbidden} none got through");
    }
    let open = spread(of.open, number::duration);
    let longest = number::duration(of.longest_ns as f64);
    let at_end = match of.open_at_end {
        0 => String::new(),
        some => format!(", and in {some} of {repetitions} still at the end"),
    };
    format!(
        "{forbidden} {opened} got through, for {open} of a repetition, {longest} of the \
         worst{at_end}"
    )
}

/// The treatments of a section on whose paths a command was run.
pub(crate) fn survived<'a>(
    summary: &'a Summary,
    section: &Section,
) -> Vec<(&'a TreatmentSummary, &'a SurviveSummary)> {
    section.with(&summary.treatments, |one| one.survive.as_ref())
}

/// The same for scripts.
pub(crate) fn json(of: &SurviveSummary) -> impl Serialize + use<> {
    object! {
        repetitions: of.repetitions,
        command_ns: Spread(of.command),
        well_again_ns: Spread(of.well_again),
        unwell: of.unwell,
        flows: of.flows.iter().map(flow).collect::<Vec<_>>(),
        forbidden: of.forbidden.as_ref().map(forbidden),
        worst: noted(&of.worst),
    }
}

fn flow(of: &FlowSummary) -> impl Serialize + use<> {
    let [after_10ms, after_100ms, after_1s] = of.late;
    object! {
        kind: of.kind,
        requests: of.requests,
        after_10ms: after_10ms,
        after_100ms: after_100ms,
        after_1s: after_1s,
        connections: of.connections,
        broken: of.broken,
        gap_ns: Spread(of.gap),
        longest_gap_ns: of.longest_ns,
        longest_gap_before_ns: of.before_ns,
    }
}

fn forbidden(of: &ForbiddenSummary) -> impl Serialize + use<> {
    object! {
        connections: of.tried,
        opened: of.opened,
        open_ns: Spread(of.open),
        longest_open_ns: of.longest_ns,
        open_at_end: of.open_at_end,
    }
}

fn noted(of: &NotedRepetition) -> impl Serialize + use<> {
    let seen = &of.seen;
    object! {
        block: of.block,
        command_ns: seen.ended_ns.saturating_sub(seen.begun_ns),
        well_again_ns: seen.well_again_ns(),
    }
}
