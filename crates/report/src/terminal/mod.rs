//! A run for the terminal: tables, a sentence for each network, warnings, and
//! what became of the trials.

mod beside;
mod columns;
mod distribution;
mod mesh;
mod style;
mod table;
mod text;

use plumbline_experiment::TreatmentId;
use plumbline_record::Maximum;

use crate::analysis::{Notice, Section, Summary};
use crate::sentence::{self, Subject};
use crate::{describe, number, warning};

pub use style::Style;

use style::Tint;
use table::Columns;

/// The whole report of one run, ending with a line break.
pub fn render(summary: &Summary, style: Style) -> String {
    let mut out = String::new();
    if summary.is_cut_off() {
        let cut = "Cut off: what follows is what there is of the run.";
        out += &style.paint(Tint::Warning, cut);
        out += "\n\n";
    }
    for section in &summary.sections {
        out += &heading(summary, section, style);
        out += &Columns::new(columns::of(summary, section)).render(style);
        out.push('\n');
        out += &time_spent(summary, section, style);
    }
    if let Some(link) = describe::link(summary) {
        out += &text::wrap(&link, style.width, 0);
        out += "\n\n";
    }
    if !summary.comparisons.is_empty() {
        out += &style.paint(Tint::Faint, &text::wrap(LEGEND, style.width, 0));
        out += "\n\n";
    }
    out += &mesh::render(summary, style);
    if let Some(columns) = columns::set_up(summary) {
        let title = "set-up cost: the cluster up, and its paths ready after that";
        out += &style.paint(Tint::Heading, title);
        out += &format!("\n{}", Columns::new(columns).render(style));
        for line in crate::set_up::failures(summary) {
            out += &style.lines(Tint::Plain, &line);
        }
        out.push('\n');
    }
    out += &distribution::render(summary, style);
    out += &beside::render(summary, style);
    out += &answers(summary, style);
    out += &notices(summary, style);
    for line in maxima(summary) {
        out.push('\n');
        out += &style.lines(Tint::Plain, &line);
    }
    out.push('\n');
    out += &style.lines(Tint::Faint, &account_text(summary));
    out
}

/// One text in lines of the style's width.
pub(crate) fn wrapped(text: &str, style: Style) -> String {
    style.lines(Tint::Plain, text)
}

const LEGEND: &str = "Changes are against the baseline, with their 95\u{a0}% interval in percent. \
    =\u{a0}equivalent, ?\u{a0}no verdict.";

fn heading(summary: &Summary, section: &Section, style: Style) -> String {
    let baseline = &summary.treatments[section.baseline].treatment;
    let text = format!(
        "{}: {}; {}",
        describe::clean(baseline.task.name()),
        describe::task(&baseline.task),
        describe::place(summary, baseline)
    );
    style.lines(Tint::Heading, &text)
}

/// Where the time of a sample of the requests went, if one was stamped (L-17).
fn time_spent(summary: &Summary, section: &Section, style: Style) -> String {
    let Some(columns) = columns::spans(summary, section) else {
        return String::new();
    };
    let title = "where the time goes: means by the kernel's stamps";
    let heading = style.paint(Tint::Heading, title);
    format!("{heading}\n{}\n", Columns::new(columns).render(style))
}

fn answers(summary: &Summary, style: Style) -> String {
    let mut out = String::new();
    for sentence in sentence::sentences(summary) {
        let line = sentence.to_string();
        let tint = match sentence.subject {
            Subject::Baseline | Subject::Unsupported => Tint::Faint,
            Subject::Compared | Subject::Published => Tint::Plain,
            Subject::Run => Tint::Warning,
        };
        out += &style.lines(tint, &line);
    }
    out
}

fn notices(summary: &Summary, style: Style) -> String {
    let mut out = String::new();
    for notice in &summary.notices {
        // Its sentence has said it already.
        if matches!(
            notice.warning,
            plumbline_record::Warning::Unsupported { .. }
        ) {
            continue;
        }
        let line = format!("warning: {}", notice_text(summary, notice));
        out.push('\n');
        out += &style.paint(Tint::Warning, &text::wrap(&line, style.width, 2));
    }
    for line in outliers(summary) {
        out.push('\n');
        out += &style.paint(Tint::Faint, &text::wrap(&line, style.width, 2));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// A notice with what it concerns: `in 7 trials of host, vxlan: …`.
pub(crate) fn notice_text(summary: &Summary, notice: &Notice) -> String {
    let warning = describe::clean(&warning::text(&notice.warning));
    if notice.treatments.is_empty() {
        return warning;
    }
    let whom = whom(summary, &notice.treatments);
    match notice.trials {
        0 => format!("{whom}: {warning}"),
        1 => format!("1 trial of {whom}: {warning}"),
        trials => format!("{trials} trials of {whom}: {warning}"),
    }
}

/// `all treatments`, `all networks under rr`, or their labels.
fn whom(summary: &Summary, treatments: &[TreatmentId]) -> String {
    if treatments.len() == summary.treatments.len() {
        return "all treatments".to_owned();
    }
    let task = |id: TreatmentId| &summary.treatments[id].treatment.task;
    let of_first = |id: &TreatmentId| task(*id) == task(treatments[0]);
    let of_workload = (0..summary.treatments.len()).filter(of_first).count();
    if treatments.len() > 1 && treatments.len() == of_workload && treatments.iter().all(of_first) {
        let name = describe::clean(task(treatments[0]).name());
        return format!("all networks under {name}");
    }
    let labels = treatments
        .iter()
        .map(|&id| describe::full_label(summary, &summary.treatments[id]));
    labels.collect::<Vec<_>>().join(", ")
}

/// A line for each treatment with outliers (C-12).
pub(crate) fn outliers(summary: &Summary) -> Vec<String> {
    let with_outliers = summary
        .treatments
        .iter()
        .filter(|one| !one.outliers.is_empty());
    with_outliers
        .map(|treatment| {
            let listed: Vec<String> = treatment
                .outliers
                .iter()
                .map(|outlier| {
                    let value = describe::value(outlier.metric, outlier.value);
                    let words = outlier.metric.words;
                    format!("{words} {value} in block {}", u64::from(outlier.block) + 1)
                })
                .collect();
            let label = describe::full_label(summary, treatment);
            format!("outliers of {label}, kept: {}", listed.join(", "))
        })
        .collect()
}

/// What loads are shares of, one line each: `maximum of rr with p99<1ms on
/// host, cross-node, IPv4: 31,000/s (30,800 held, 31,900 did not; 24 trials)`.
pub(crate) fn maxima(summary: &Summary) -> Vec<String> {
    let rate = |value: f64| number::rate(value.round());
    let line = |one: &Maximum| {
        let upper = one.upper_bound.map_or_else(
            || "more was not offered".to_owned(),
            |upper| format!("{} did not", rate(upper)),
        );
        format!(
            "maximum of {} with {} on {}, {}: {} ({} held, {upper}; {} trials)",
            describe::clean(&one.workload),
            one.limit,
            describe::clean(&one.scene.name()),
            describe::scene(&one.scene),
            rate(one.rate),
            rate(one.lower_bound),
            one.trials
        )
    };
    summary.maxima.iter().map(line).collect()
}

/// What became of the trials:
/// `Trials: 140 of 140 kept, 3 repeated, 0 failed (disturbed by steal 2, …)`.
pub(crate) fn account_text(summary: &Summary) -> String {
    let account = &summary.account;
    let mut text = format!(
        "Trials: {} of {} kept in {} blocks, {} repeated, {} failed",
        account.kept, account.planned, summary.blocks, account.repeated, account.failed
    );
    if account.missing > 0 {
        text += &format!(", {} not run", account.missing);
    }
    let reasons: Vec<String> = account
        .failures
        .iter()
        .map(|failure| format!("{} {}×", failure.reason, failure.trials))
        .collect();
    if !reasons.is_empty() {
        text += &format!(" ({})", reasons.join(", "));
    }
    let left_out: usize = summary
        .comparisons
        .iter()
        .map(|one| one.pairs_left_out)
        .sum();
    if left_out > 0 {
        text += &format!("; {left_out} pairs left out of comparisons, having no ratio");
    }
    if let Some(floor) = summary.floor {
        text += &format!(
            ". The generator itself takes {} for a round trip (p50, over loopback)",
            number::duration(floor.p50_ns as f64)
        );
    }
    text
}
