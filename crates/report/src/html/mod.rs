//! A run as one page that needs no network and no script to be read.

mod axis;
mod chart;
mod environment;
mod heat;
mod method;
mod svg;
mod trials;

use askama::Template;
use plumbline_record::{Run, Trial};
use plumbline_stats::verdict::Verdict;

use crate::analysis::{BesideTable, Distribution, MeshMap, Section, Summary};
use crate::figures::{self, Table};
use crate::overview::{self, Overview, OverviewCell, OverviewRow};
use crate::sentence::{self, Subject};
use crate::{beside, describe, mesh, number, set_up, spans, terminal};

/// The page. All that comes from outside is escaped by the template or by
/// `svg` (S-8); the policy in its head forbids scripts and anything remote.
pub fn render(summary: &Summary, run: &Run, trials: &[Trial]) -> String {
    let page = Page {
        question: describe::clean(&summary.question),
        experiment: describe::clean(&summary.experiment),
        byline: byline(summary, run),
        is_cut_off: summary.is_cut_off(),
        answer: overview::answer(summary),
        overview: overview_table(summary),
        legend: overview::LEGEND,
        answers: answers(summary),
        sections: sections(summary),
        meshes: meshes(summary),
        set_up: set_up::table(summary),
        set_up_about: set_up::ABOUT,
        set_up_failures: set_up::failures(summary),
        published: published(summary),
        method: method::paragraphs(summary, run),
        account: terminal::account_text(summary),
        notices: notices(summary),
        outliers: terminal::outliers(summary),
        environment: environment::table(run),
        devices: environment::devices(run),
        trials: trials::table(summary, trials),
        version: describe::clean(&run.provenance.version),
    };
    page.render()
        .expect("the page is text, and writing text to memory does not fail")
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    question: String,
    experiment: String,
    byline: String,
    is_cut_off: bool,
    answer: Option<String>,
    overview: OverviewTable,
    legend: &'static str,
    answers: Vec<AnswerLine>,
    sections: Vec<Chapter>,
    meshes: Vec<MeshChapter>,
    set_up: Option<Table>,
    set_up_about: &'static str,
    set_up_failures: Vec<String>,
    published: Option<Published>,
    method: Vec<String>,
    account: String,
    notices: Vec<String>,
    outliers: Vec<String>,
    environment: Table,
    devices: Table,
    trials: Table,
    version: String,
}

/// A treatment on all pairs of nodes. The picture is markup.
struct MeshChapter {
    title: String,
    about: String,
    picture: Option<String>,
    is_too_large: bool,
    pairs: Option<Table>,
    findings: Vec<String>,
    rule: &'static str,
}

/// A published study beside the run.
struct Published {
    name: String,
    about: String,
    findings: Vec<String>,
    tables: Vec<PublishedTable>,
}

struct PublishedTable {
    title: String,
    about: String,
    load: Option<String>,
    figures: Table,
    orders: Vec<String>,
}

/// The table of all networks: workloads with how many columns each has, titles,
/// and rows.
struct OverviewTable {
    groups: Vec<(String, usize)>,
    titles: Vec<&'static str>,
    rows: Vec<(String, Vec<OverviewBar>)>,
}

/// A cell with a bar to scale, as a `share` of the longest in its column.
struct OverviewBar {
    class: &'static str,
    text: String,
    share: f64,
}

struct AnswerLine {
    class: String,
    label: String,
    rest: String,
    is_compared: bool,
}

/// A section of the run in pictures and tables. The pictures are markup.
struct Chapter {
    title: String,
    about: String,
    percentiles: Option<String>,
    overhead: Option<String>,
    throughput: Option<String>,
    histogram: Option<String>,
    distribution: Option<Table>,
    context: Option<String>,
    is_bulk: bool,
    is_same_node: bool,
    spans: Option<Table>,
    spans_about: &'static str,
    figures: Table,
    percentile_table: Option<Table>,
    comparisons: Table,
}

fn byline(summary: &Summary, run: &Run) -> String {
    let fingerprint = &run.fingerprint;
    format!(
        "{} · {} · Linux {} · {} · {} CPU{}",
        describe::time(&summary.started),
        describe::clean(&summary.target),
        describe::clean(&fingerprint.kernel),
        describe::clean(&fingerprint.cpu_model),
        fingerprint.cpus,
        if fingerprint.cpus == 1 { "" } else { "s" }
    )
}

fn overview_table(summary: &Summary) -> OverviewTable {
    let overview = Overview::new(summary);
    let mut groups: Vec<(String, usize)> = Vec::new();
    for column in &overview.columns {
        let workload = describe::clean(column.workload);
        match groups.last_mut().filter(|(name, _)| *name == workload) {
            Some((_, columns)) => *columns += 1,
            None => groups.push((workload, 1)),
        }
    }
    let row = |row: &OverviewRow<'_>| {
        let cells = row.cells.iter().zip(&overview.columns);
        let cells = cells.map(|(cell, column)| bar(cell, column.extent));
        (row.label.clone(), cells.collect())
    };
    let titles = overview.columns.iter().map(|one| one.metric.title);
    OverviewTable {
        groups,
        titles: titles.collect(),
        rows: overview.rows.iter().map(row).collect(),
    }
}

fn bar(cell: &OverviewCell, extent: f64) -> OverviewBar {
    let (class, text, share) = match cell {
        OverviewCell::Missing => ("undecided", number::NONE.to_owned(), 0.0),
        OverviewCell::Figure(text) => ("figure", text.clone(), 0.0),
        OverviewCell::Change(effect) => {
            let class = match effect.verdict {
                Some(Verdict::Worse) => "worse",
                Some(Verdict::Better) => "better",
                Some(Verdict::Equivalent) => "same",
                Some(Verdict::Undecided) | None => "undecided",
            };
            let share = effect.ratio_minus_one.abs() / extent.max(f64::MIN_POSITIVE);
            (
                class,
                overview::change(effect),
                (share * 100.0).round() / 100.0,
            )
        }
    };
    OverviewBar { class, text, share }
}

fn answers(summary: &Summary) -> Vec<AnswerLine> {
    let class = |label: &str| {
        let found = summary
            .treatments
            .iter()
            .find(|one| describe::clean(&one.treatment.label) == label);
        found.map_or_else(|| "c0".to_owned(), |one| chart::colour(summary, one))
    };
    let answer = |sentence: sentence::Sentence| AnswerLine {
        class: class(&sentence.label),
        is_compared: matches!(
            sentence.subject,
            Subject::Compared | Subject::Published | Subject::Run
        ),
        label: sentence.label,
        rest: sentence.rest,
    };
    sentence::sentences(summary)
        .into_iter()
        .map(answer)
        .collect()
}

fn sections(summary: &Summary) -> Vec<Chapter> {
    let chapter = |(section, spread): (&Section, &Option<Distribution>)| {
        let treatment = &summary.treatments[section.baseline];
        let baseline = &treatment.treatment;
        let place = describe::place(summary, baseline);
        Chapter {
            title: describe::clean(baseline.task.name()),
            about: format!("{}; {place}", describe::task(&baseline.task)),
            percentiles: chart::percentiles(summary, section),
            overhead: chart::overhead(summary, section),
            throughput: chart::throughput(summary, section),
            histogram: spread
                .as_ref()
                .and_then(|one| chart::histogram(summary, one)),
            distribution: spread
                .as_ref()
                .map(|one| figures::distribution(summary, one, section.baseline)),
            context: chart::context(summary, section),
            is_bulk: treatment.is_bulk(),
            is_same_node: baseline.scene.placement == plumbline_experiment::Placement::SameNode,
            spans: spans::table(summary, section),
            spans_about: spans::ABOUT,
            figures: figures::figures(summary, section),
            percentile_table: figures::percentiles(summary, section),
            comparisons: figures::comparisons(summary, section),
        }
    };
    let sections = summary.sections.iter().zip(&summary.distributions);
    sections.map(chapter).collect()
}

fn meshes(summary: &Summary) -> Vec<MeshChapter> {
    let Some(mesh) = &summary.mesh else {
        return Vec::new();
    };
    let chapter = |map: &MeshMap| MeshChapter {
        title: mesh::title(summary, map),
        about: mesh::about(mesh, map),
        picture: heat::map(summary, mesh, map),
        is_too_large: mesh.nodes.len() > heat::MOST_NODES,
        pairs: mesh::table(mesh, map),
        findings: mesh::findings(mesh, map),
        rule: mesh::RULE,
    };
    mesh.maps.iter().map(chapter).collect()
}

fn published(summary: &Summary) -> Option<Published> {
    let study = summary.beside.as_ref()?;
    let table = |one: &BesideTable| {
        let (title, about) = beside::title(study, one);
        PublishedTable {
            title,
            about,
            load: beside::load(summary, one),
            figures: beside::table(study, one),
            orders: beside::orders(study, one),
        }
    };
    Some(Published {
        name: beside::name(study),
        about: beside::about(study),
        findings: study.study.findings.clone(),
        tables: study.tables.iter().map(table).collect(),
    })
}

fn notices(summary: &Summary) -> Vec<String> {
    let notices = summary.notices.iter();
    notices
        .map(|notice| terminal::notice_text(summary, notice))
        .collect()
}
