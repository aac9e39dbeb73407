//! A run for the terminal: tables, a sentence for each network, warnings, and
//! what became of the trials.

mod bars;
mod chapter;
mod columns;
mod style;
mod table;
mod text;

use plumbline_experiment::TreatmentId;
use plumbline_record::{Maximum, Warning};

use crate::analysis::{Notice, Section, Summary};
use crate::overview::{self, Overview};
use crate::sentence::{self, Sentence, Subject};
use crate::{answer, describe, number, warning};

pub use style::Style;

use style::Tint;
use table::{Cell, Column, Columns};

/// The whole report of one run, ending with a line break.
pub fn render(summary: &Summary, style: Style) -> String {
    let mut out = String::new();
    for finding in unenforced(summary) {
        out += &style.lines(Tint::Warning, &finding);
        out.push('\n');
    }
    if summary.is_cut_off() {
        let cut = "Cut off: what follows is what there is of the run.";
        out += &style.paint(Tint::Warning, cut);
        out += "\n\n";
    }
    if let Some(answer) = answer::answer(summary) {
        out += &style.lines(Tint::Heading, &format!("{answer}."));
        out.push('\n');
    }
    let mut table = table_of_all(summary, style);
    for cluster in &summary.clusters {
        table += &style.lines(Tint::Faint, &describe::cluster(cluster));
    }
    if let Some(aliases) = aliases(summary) {
        table += &style.lines(Tint::Faint, &aliases);
    }
    if !table.is_empty() {
        out += &table;
        out.push('\n');
    }
    if let Some(link) = describe::link(summary) {
        out += &text::wrap(&link, style.width, 0);
        out += "\n\n";
    }
    out += &chapter::render(summary, style);
    let mut end = String::new();
    for line in maxima(summary) {
        end.push('\n');
        end += &style.lines(Tint::Plain, &line);
    }
    end.push('\n');
    end += &style.lines(Tint::Faint, &account_text(summary));
    // One more is empty, before the warnings.
    let rest = out.lines().count() + 1 + end.lines().count();
    let together = match MOST_LINES.saturating_sub(rest) {
        // It is longer anyway.
        ..LEAST_TOGETHER => USUAL_TOGETHER,
        left => left.min(MOST_TOGETHER),
    };
    let most = MOST_SENTENCES.min(together - LEAST_WARNINGS.min(together / 2));
    let sentences = answers(summary, most, style);
    let free = together.saturating_sub(sentences.lines().count());
    out += &sentences;
    for part in [notices(summary, free.min(MOST_WARNINGS), style), end] {
        if part.starts_with('\n') {
            // One empty line is enough, whatever is not there.
            out.truncate(out.trim_end_matches('\n').len());
            out.push('\n');
        }
        out += &part;
    }
    out
}

/// Which policies did not act: that comes before whatever was found.
pub(crate) fn unenforced(summary: &Summary) -> Vec<String> {
    let all = summary.notices.iter();
    let found = all.filter(|one| matches!(one.warning, Warning::NotEnforced { .. }));
    let said = found.map(|one| describe::clean(&warning::text(&one.warning)));
    said.map(|text| format!("No figure without enforcement: {text}."))
        .collect()
}

/// One text in lines of the style's width.
pub(crate) fn wrapped(text: &str, style: Style) -> String {
    style.lines(Tint::Plain, text)
}

/// Lines of a tour, of which sentences and warnings take what is left by the rest of it, but
/// not more than this, each and together; the page has all of them.
const MOST_LINES: usize = 45;
const MOST_SENTENCES: usize = 6;
const MOST_WARNINGS: usize = 5;
const LEAST_WARNINGS: usize = 4;
const MOST_TOGETHER: usize = 10;
const USUAL_TOGETHER: usize = 7;
const LEAST_TOGETHER: usize = 4;
/// Rows of tables for whose sake no interval is left out.
const MOST_ROWS: usize = 24;

/// All networks by all metrics that count, in as many tables as the width asks for;
/// what the signs mean, and what the workloads are.
fn table_of_all(summary: &Summary, style: Style) -> String {
    if !summary.has_results() {
        return String::new();
    }
    let overview = Overview::new(summary);
    let labels = overview
        .rows
        .iter()
        .map(|row| Cell::plain(row.label.clone()));
    let labels = Column::left("network", labels.collect());
    let groups = columns::overview(&overview);
    let mut tables = side_by_side(&labels, &groups, style.width, Columns::width);
    if tables.len() * overview.rows.len() > MOST_ROWS {
        tables = side_by_side(&labels, &groups, style.width, Columns::least_width);
    }
    let tables = tables.into_iter().map(|table| table.render(style));
    let mut out = tables.collect::<Vec<_>>().join("\n");
    if !summary.comparisons.is_empty() {
        out += &style.lines(
            Tint::Faint,
            &overview::signs(summary, out.contains(bars::FULL)),
        );
    }
    if let Some(variants) = describe::variants(summary) {
        out += &style.lines(Tint::Faint, &variants);
    }
    for section in &summary.sections {
        out += &style.lines(Tint::Faint, &heading(summary, section));
    }
    for sentence in sentence::of_machine(summary) {
        if sentence.subject != Subject::Doubt {
            out += &style.lines(Tint::Faint, &sentence.to_string());
        }
    }
    out
}

/// Groups of columns beside each other behind the labels, a new table wherever one
/// would be wider than `most`.
fn side_by_side(
    labels: &Column,
    groups: &[Vec<Column>],
    most: usize,
    width: fn(&Columns) -> usize,
) -> Vec<Columns> {
    let mut tables: Vec<Vec<Column>> = Vec::new();
    for group in groups {
        let with = |table: &[Column]| [table, group].concat();
        match tables.last_mut() {
            Some(table) if width(&Columns::new(with(table))) <= most => *table = with(table),
            _ => tables.push(with(std::slice::from_ref(labels))),
        }
    }
    tables.into_iter().map(Columns::new).collect()
}

/// What the rows are that were asked for by another name.
fn aliases(summary: &Summary) -> Option<String> {
    let alias = |one: &Notice| match &one.warning {
        Warning::StandsFor { alias, network } => {
            Some(describe::clean(&warning::measured_as(alias, network)))
        }
        _ => None,
    };
    let all: Vec<String> = summary.notices.iter().filter_map(alias).collect();
    (!all.is_empty()).then(|| format!("{}: {}", all.join("; "), warning::MODELLED))
}

fn heading(summary: &Summary, section: &Section) -> String {
    let baseline = &summary.treatments[section.baseline].treatment;
    format!(
        "{}: {}; {}",
        describe::clean(baseline.task.name()),
        describe::task(&baseline.task),
        describe::place(summary, baseline)
    )
}

/// What the table does not say comes first.
fn answers(summary: &Summary, most: usize, style: Style) -> String {
    let mut sentences = sentence::sentences(summary);
    // Said below the table.
    sentences.retain(|one| !one.subject.is_of_machine());
    if answer::answer(summary).is_some() {
        sentences.retain(|one| one.subject != Subject::Baseline);
    }
    sentences.sort_by_key(|one| one.subject == Subject::Compared);
    let tint = |subject| match subject {
        Subject::Unsupported => Tint::Faint,
        Subject::Run => Tint::Warning,
        _ => Tint::Plain,
    };
    let text = |one: &Sentence| (tint(one.subject), one.to_string());
    let all = sentences.iter().map(text).collect();
    at_most(all, most, "sentence", style)
}

/// As many whole texts as fit into some lines, and how many more there are; of the first
/// in any case the beginning.
fn at_most(mut all: Vec<(Tint, String)>, most: usize, what: &str, style: Style) -> String {
    let height = |text: &str| text.lines().count();
    for (_, text) in &mut all {
        *text = text::wrap(text, style.width, 2);
    }
    let has_room = all.iter().map(|(_, text)| height(text)).sum::<usize>() <= most;
    let mut free = if has_room { most } else { most - 1 };
    if let Some((_, first)) = all.first_mut() {
        *first = text::beginning(first, free, style.width);
    }
    let mut out = String::new();
    let mut more = all.len();
    for (tint, text) in &all {
        if height(text) > free {
            break;
        }
        free -= height(text);
        more -= 1;
        out += &format!("{}\n", style.paint(*tint, text));
    }
    let rest = match more {
        _ if has_room => return out,
        0 => "the rest is in the page".to_owned(),
        1 => format!("1 more {what} in the page"),
        more => format!("{more} more {what}s in the page"),
    };
    out + &style.lines(Tint::Faint, &rest)
}

fn notices(summary: &Summary, most: usize, style: Style) -> String {
    // What has been said already, at the top, in sentences and below the table.
    let is_new = |one: &&Notice| {
        use Warning::{CarriesNothing, NotEnforced, StandsFor, Unsupported};
        !matches!(
            one.warning,
            NotEnforced { .. } | Unsupported { .. } | CarriesNothing { .. } | StandsFor { .. }
        )
    };
    let text = |one: &Notice| {
        let text = format!("warning: {}", notice_text(summary, one));
        (Tint::Warning, text)
    };
    let mut all: Vec<(Tint, String)> = sentence::of_machine(summary)
        .iter()
        .filter(|one| one.subject == Subject::Doubt)
        .map(|one| (Tint::Warning, format!("warning{}", one.rest)))
        .collect();
    all.extend(summary.notices.iter().filter(is_new).map(text));
    all.extend(
        outliers(summary)
            .into_iter()
            .map(|text| (Tint::Faint, text)),
    );
    if all.is_empty() {
        return String::new();
    }
    format!("\n{}", at_most(all, most, "warning", style))
}

/// A notice, what to do first: `use more blocks: 7 trials of host, vxlan: …`.
pub(crate) fn notice_text(summary: &Summary, notice: &Notice) -> String {
    let warning = describe::clean(&warning::text(&notice.warning));
    let (reason, remedy) = warning::parts(&warning);
    let remedy = remedy.map_or(String::new(), |it| format!("{it}: "));
    if notice.treatments.is_empty() {
        return format!("{remedy}{reason}");
    }
    let whom = whom(summary, &notice.treatments);
    let trials = match notice.trials {
        0 => String::new(),
        1 => "1 trial of ".to_owned(),
        trials => format!("{trials} trials of "),
    };
    let worst = if notice.is_worst { ", the worst" } else { "" };
    format!("{remedy}{trials}{whom}{worst}: {reason}")
}

/// `all treatments`, `all networks under rr`, their labels, or the first of these and how
/// many others there are: each treatment has its warnings in JSON.
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
    let labels: Vec<String> = labels.collect();
    describe::some(labels.iter().map(String::as_str).collect())
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
        "Trials: {} of {} kept in {}, {} repeated, {} failed",
        account.kept,
        account.planned,
        number::counted(summary.blocks as u64, "block"),
        account.repeated,
        account.failed
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
    if let Some(most) = account.failures.first().filter(|_| account.failed > 0) {
        text += &format!("; {}", most.remedy);
    }
    let left_out: usize = summary
        .comparisons
        .iter()
        .map(|one| one.pairs_left_out)
        .sum();
    if left_out > 0 {
        let pairs = if left_out == 1 { "pair" } else { "pairs" };
        text += &format!("; {left_out} {pairs} left out of comparisons, having no ratio");
    }
    if let Some((least, most)) = summary.slices_ns {
        let [least, most] = [least, most].map(nominal_ms);
        let length = match least == most {
            true => format!("{least}"),
            false => format!("{least} to {most}"),
        };
        text += &format!(". Within a block treatments took turns in slices of {length} ms");
    }
    if let Some(floor) = summary.floor {
        text += &format!(
            ". The generator itself takes {} for a round trip (p50, over loopback)",
            number::duration(floor.p50_ns as f64)
        );
    }
    text
}

/// Whole milliseconds: slices are cut a little shorter or longer than asked, so that a
/// whole number of them makes the window.
fn nominal_ms(ns: u64) -> u64 {
    (ns + 500_000) / 1_000_000
}
