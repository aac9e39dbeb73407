//! A run as one page that needs no network and no script to be read.

mod axis;
mod chart;
mod environment;
mod heat;
mod method;
mod svg;
mod trials;

use std::path::{Path, PathBuf};

use askama::Template;
use plumbline_record::{Run, Trial, WriteError, write_atomically};
use plumbline_stats::verdict::Verdict;

use crate::analysis::{Distribution, Law, Mesh, MeshMap, Section, Summary};
use crate::chapter::{Chapter, Pictured, Piece, chapters};
use crate::figures::Table;
use crate::overview::{self, Overview, OverviewCell, OverviewRow};
use crate::sentence::{self, Sentence, Subject};
use crate::{answer, describe, mesh, number, terminal};

/// How pages look: a style sheet, for a `style` element.
pub const STYLE: &str = include_str!("../../templates/report.css");

/// The picture of hops that `run --xray` keeps beside the page of a run.
pub const HOPS: &str = "hops.html";

/// The page. All that comes from outside is escaped by the template or by
/// `svg` (S-8); the policy in its head forbids scripts and anything remote.
pub fn render(summary: &Summary, run: &Run, trials: &[Trial]) -> String {
    page(summary, run, trials, None)
}

/// The same for a file in this directory, with a link to the picture of hops where that is
/// there too.
pub fn render_in(
    directory: Option<&Path>,
    summary: &Summary,
    run: &Run,
    trials: &[Trial],
) -> String {
    let has_hops = directory.is_some_and(|it| it.join(HOPS).exists());
    page(summary, run, trials, has_hops.then_some(HOPS))
}

/// Writes the page into the directory of a run; gives its path.
///
/// # Errors
///
/// A file that cannot be written.
pub fn write_page(
    directory: &Path,
    summary: &Summary,
    run: &Run,
    trials: &[Trial],
) -> Result<PathBuf, WriteError> {
    let file = directory.join("report.html");
    let text = render_in(Some(directory), summary, run, trials);
    write_atomically(&file, text.as_bytes())?;
    Ok(file)
}

fn page(summary: &Summary, run: &Run, trials: &[Trial], hops: Option<&'static str>) -> String {
    let page = Page {
        hops,
        question: describe::clean(&summary.question),
        experiment: describe::clean(&summary.experiment),
        byline: byline(summary, run),
        clusters: summary.clusters.iter().map(describe::cluster).collect(),
        unenforced: terminal::unenforced(summary),
        is_cut_off: summary.is_cut_off(),
        has_results: summary.has_results(),
        answer: answer::answer(summary),
        overview: overview_table(summary),
        legend: overview::legend(summary),
        machine: sentence::of_machine(summary),
        answers: answers(summary),
        chapters: drawn(summary),
        method: method::paragraphs(summary, run),
        account: terminal::account_text(summary),
        warnings: summary.notices.len(),
        distrust: distrust(summary),
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
struct Page<'a> {
    hops: Option<&'static str>,
    question: String,
    experiment: String,
    byline: String,
    clusters: Vec<String>,
    unenforced: Vec<String>,
    is_cut_off: bool,
    has_results: bool,
    answer: Option<String>,
    overview: OverviewTable,
    legend: String,
    machine: Vec<Sentence>,
    answers: Vec<AnswerLine>,
    chapters: Vec<(Chapter<'a>, Vec<Picture>)>,
    method: Vec<String>,
    account: String,
    warnings: usize,
    distrust: (Vec<String>, Vec<String>),
    environment: Table,
    devices: Table,
    trials: Table,
    version: String,
}

/// A drawing, which is markup.
struct Picture {
    title: String,
    caption: &'static str,
    svg: String,
}

/// The table of all networks: workloads with how many columns each has, titles,
/// and rows.
struct OverviewTable {
    groups: Vec<(String, usize)>,
    titles: Vec<&'static str>,
    rows: Vec<(String, Vec<OverviewBar>)>,
}

impl OverviewTable {
    /// Whether letters have to be small for all columns to fit on a screen.
    fn is_dense(&self) -> bool {
        self.titles.len() > MOST_AT_EASE
    }
}

/// Columns that fit on a screen at the usual size.
const MOST_AT_EASE: usize = 10;

/// A cell with a bar to scale, as a `share` of the longest in its column.
struct OverviewBar {
    class: &'static str,
    text: String,
    /// How sure it is, in smaller letters.
    doubt: String,
    share: f64,
}

struct AnswerLine {
    class: String,
    label: String,
    rest: String,
    is_compared: bool,
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
    let plain = |class, text| OverviewBar {
        class,
        text,
        doubt: String::new(),
        share: 0.0,
    };
    let effect = match cell {
        OverviewCell::Missing => return plain("undecided", number::NONE.to_owned()),
        OverviewCell::Figure(text) => return plain("figure", text.clone()),
        OverviewCell::Unknown => return plain("undecided", overview::UNKNOWN.to_owned()),
        OverviewCell::Change(effect) => effect,
    };
    let class = match effect.verdict {
        Some(Verdict::Worse) => "worse",
        Some(Verdict::Better) => "better",
        Some(Verdict::Equivalent) => "same",
        Some(Verdict::Undecided) | None => "undecided",
    };
    let share = cell.share(extent);
    OverviewBar {
        class,
        text: describe::change(effect),
        doubt: overview::doubt(effect),
        share: (share * 100.0).round() / 100.0,
    }
}

fn answers(summary: &Summary) -> Vec<AnswerLine> {
    let class = |label: &str| {
        let found = summary
            .treatments
            .iter()
            .find(|one| describe::clean(&one.treatment.label) == label);
        found.map_or_else(|| "c0".to_owned(), |one| chart::colour(summary, one))
    };
    let answer = |sentence: Sentence| AnswerLine {
        class: class(&sentence.label),
        is_compared: matches!(
            sentence.subject,
            Subject::Compared | Subject::Published | Subject::Run
        ),
        label: sentence.label,
        rest: sentence.rest,
    };
    let sentences = sentence::sentences(summary).into_iter();
    // The others are said below the table.
    let of_networks = sentences.filter(|one| !one.subject.is_of_machine());
    of_networks.map(answer).collect()
}

/// The chapters, each with its drawings.
fn drawn(summary: &Summary) -> Vec<(Chapter<'_>, Vec<Picture>)> {
    let pictures = |of: Pictured<'_>| match of {
        Pictured::Nothing => Vec::new(),
        Pictured::Pairs(mesh, map) => heat_map(summary, mesh, map).into_iter().collect(),
        Pictured::Laws(laws) => lines(summary, laws),
        Pictured::Section(section, spread) => charts(summary, section, spread),
    };
    let mut drawn = Vec::new();
    for chapter in chapters(summary) {
        let pictures = pictures(chapter.pictured);
        drawn.push((chapter, pictures));
    }
    drawn
}

fn heat_map(summary: &Summary, mesh: &Mesh, map: &MeshMap) -> Option<Picture> {
    Some(Picture {
        title: mesh::title(summary, map),
        caption: "Rows send, columns receive; a direction that was not measured shows the other \
                  one. The colour is how far a pair is from the median pair.",
        svg: heat::map(summary, mesh, map)?,
    })
}

/// A chart for each metric that is worth a sentence.
fn lines(summary: &Summary, laws: &[Law]) -> Vec<Picture> {
    let of_metric = laws.chunk_by(Law::is_comparable);
    let told = of_metric.filter(|laws| laws[0].is_told());
    let published = |law: &Law| {
        let study = summary.beside.as_ref();
        study.map_or_else(Vec::new, |study| study.published_of(law))
    };
    let picture = |laws: &[Law]| {
        let published: Vec<_> = laws.iter().map(published).collect();
        Picture {
            title: format!("{} by {}", laws[0].metric.heading, laws[0].factor),
            caption: match published.iter().all(Vec::is_empty) {
                true => {
                    "Dots are medians over trials with their 95 % intervals, lines what was fitted \
                     to all levels."
                }
                false => {
                    "Dots are medians over trials with their 95 % intervals, lines what was fitted \
                     to all levels; crosses are what was published, on other machines."
                }
            },
            svg: chart::law(laws, &published),
        }
    };
    told.map(picture).collect()
}

fn charts(summary: &Summary, section: &Section, spread: Option<&Distribution>) -> Vec<Picture> {
    let is_bulk = summary.treatments[section.baseline].is_bulk();
    let charts = [
        (
            "Change against the baseline",
            "Dots are estimates over paired blocks, lines their 95 % intervals, with an arrow where \
             one goes on; a hollow dot has no verdict of better or worse. Inside the shaded band a \
             change does not matter in practice.",
            chart::overhead(summary, section),
        ),
        (
            "Latency by percentile",
            "All trials pooled; each line ends where fewer than 100 independent samples lie beyond \
             it, or where most senders were late themselves.",
            chart::percentiles(summary, section),
        ),
        (
            "Every latency",
            "Shares of each network’s own latencies, in bins of equal ratio; the upright line is \
             the mean.",
            spread.and_then(|one| chart::histogram(summary, one)),
        ),
        (
            "Throughput",
            match is_bulk {
                true => "Bars are medians over trials, dots the trials.",
                false => {
                    "Bars are medians over trials, dots the trials. Closed loop: the load waits \
                     for the answers."
                }
            },
            chart::throughput(summary, section),
        ),
        (
            "Start of the pod in the middle",
            "Of each network the pod that half of all pods were no slower than, from its intended \
             start until packets had passed both ways, which is the figure, and in a cluster on \
             until that shows it as ready, to the right of the upright line. A colour changes \
             where a step ended.",
            chart::waterfall(summary, section, |it| it.middle.as_ref()),
        ),
        (
            "Start of the slowest pod",
            "Of each network the slowest of all pods that had their network.",
            chart::waterfall(summary, section, |it| it.slowest.as_ref()),
        ),
        (
            "Around the command, in the repetition in the middle",
            "Of each network the repetition that half of all were no worse than, by the longest gap: \
             every request at its intended moment, from the beginning of the command on. The upright \
             lines are its beginning and its end.",
            chart::outage(summary, section, |it| &it.middle),
        ),
        (
            "Around the command, in the worst repetition",
            "Of each network the repetition with the longest gap.",
            chart::outage(summary, section, |it| &it.worst),
        ),
        (
            match is_bulk {
                true => "CPU per gigabyte by context",
                false => "CPU per request by context",
            },
            "Of the whole machine, less its idle use and what the sender spun while it waited.",
            chart::context(summary, section),
        ),
    ];
    let picture = |(title, caption, svg): (&str, _, Option<String>)| {
        Some(Picture {
            title: title.to_owned(),
            caption,
            svg: svg?,
        })
    };
    charts.into_iter().filter_map(picture).collect()
}

/// Reasons to distrust that stand open; the rest is folded.
const MOST_OPEN: usize = 5;

/// The first warnings, and then the others with the outliers.
fn distrust(summary: &Summary) -> (Vec<String>, Vec<String>) {
    let notices = summary.notices.iter();
    let mut all: Vec<String> = notices
        .map(|notice| terminal::notice_text(summary, notice))
        .collect();
    all.extend(terminal::outliers(summary));
    let rest = all.split_off(all.len().min(MOST_OPEN));
    (all, rest)
}
