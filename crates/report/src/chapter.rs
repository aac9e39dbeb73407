//! What a report shows below its first table: chapters, made once, which each
//! format shows in its own way.

use plumbline_experiment::Placement;

use crate::analysis::{Beside, BesideTable, Distribution, Law, Mesh, MeshMap, Section, Summary};
use crate::figures::{self, Table};
use crate::{beside, describe, launch, law, mesh, set_up, spans, survive};

/// A part of the report. Its texts hold names from outside as they are: renderers
/// must escape them.
pub(crate) struct Chapter<'a> {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) pictured: Pictured<'a>,
    pub(crate) pieces: Vec<Piece<'a>>,
}

/// What the page draws of a chapter.
#[derive(Clone, Copy)]
pub(crate) enum Pictured<'a> {
    Nothing,
    Pairs(&'a Mesh, &'a MeshMap),
    Section(&'a Section, Option<&'a Distribution>),
    Laws(&'a [Law]),
}

/// A part of a chapter.
pub(crate) enum Piece<'a> {
    /// A paragraph, which the terminal leaves out.
    Text(String),
    /// Sentences, what matters most first, and how many of them the terminal shows.
    List(Vec<String>, usize),
    Table {
        title: String,
        /// Left out by the terminal.
        about: String,
        table: Table,
    },
    /// A map of letters with its legend, where nothing can be drawn.
    Letters(Vec<String>),
    /// How many latencies are in each bin, where nothing can be drawn.
    Bins(&'a Distribution),
    /// Folded on the page, left out by the terminal.
    Details {
        title: String,
        is_open: bool,
        pieces: Vec<Piece<'a>>,
    },
}

impl Piece<'_> {
    fn table(about: &str, table: Table) -> Self {
        Self::Table {
            title: String::new(),
            about: about.to_owned(),
            table,
        }
    }
}

/// Nodes beyond which a page would hold more cells than a browser draws; the
/// findings name what matters.
pub(crate) const MOST_NODES: usize = 150;

/// Metrics of which the terminal tells the laws, under how many workloads.
const MOST_LAWS: usize = 2;

/// Slowest pods of which the terminal tells, under each workload.
const MOST_TAILS: usize = 3;

/// Networks of which the terminal tells when traffic was well again, under each workload.
const MOST_SURVIVED: usize = 5;

/// All chapters in reading order; none of a workload without a result.
pub(crate) fn chapters(summary: &Summary) -> Vec<Chapter<'_>> {
    let meshes = summary.mesh.iter();
    let meshes = meshes.flat_map(|of| of.maps.iter().map(|map| pairs(summary, of, map)));
    let sections = summary.sections.iter().zip(&summary.distributions);
    let has_data = |(one, _): &(&Section, _)| {
        let mut treatments = one.treatments.iter();
        treatments.any(|&id| summary.treatments[id].has_data())
    };
    let sections = sections
        .filter(has_data)
        .map(|(one, spread)| section(summary, one, spread.as_ref()));
    let published = summary.beside.iter().map(|one| published(summary, one));
    let laws = summary.laws.chunk_by(Law::is_beside);
    let laws = laws.enumerate().map(|(at, of_factor)| {
        let told = if at < MOST_LAWS { MOST_LAWS } else { 0 };
        grown(summary, of_factor, told)
    });
    let last = brought_up(summary).into_iter().chain(published);
    meshes.chain(laws).chain(sections).chain(last).collect()
}

/// What a treatment showed on all pairs of nodes.
fn pairs<'a>(summary: &Summary, of: &'a Mesh, map: &'a MeshMap) -> Chapter<'a> {
    let mut pieces = vec![Piece::List(mesh::findings(of, map), usize::MAX)];
    pieces.extend(mesh::letters(of, map).map(Piece::Letters));
    if of.nodes.len() > MOST_NODES {
        let text = "The map is left out: it has more cells than a page can hold.";
        pieces.push(Piece::Text(text.to_owned()));
    }
    pieces.push(match mesh::table(of, map) {
        Some(table) => Piece::table("", table),
        None => Piece::Text(mesh::RULE.to_owned()),
    });
    Chapter {
        title: mesh::title(summary, map),
        about: format!("{}.", mesh::about(of, map)),
        pictured: Pictured::Pairs(of, map),
        pieces,
    }
}

/// What each further one of a factor costs under one workload, of which the terminal tells
/// some sentences.
fn grown<'a>(summary: &Summary, laws: &'a [Law], told: usize) -> Chapter<'a> {
    let title = law::title(laws);
    let mut sentences = law::sentences(&summary.laws, laws);
    sentences.extend(law::published(summary.beside.as_ref(), laws));
    Chapter {
        about: law::about(laws),
        pictured: Pictured::Laws(laws),
        pieces: vec![
            Piece::List(sentences, told),
            Piece::Details {
                title: "All lines".to_owned(),
                is_open: false,
                pieces: vec![Piece::table("", law::table(laws))],
            },
        ],
        title,
    }
}

/// The figures of one workload.
fn section<'a>(
    summary: &Summary,
    section: &'a Section,
    spread: Option<&'a Distribution>,
) -> Chapter<'a> {
    let baseline = &summary.treatments[section.baseline].treatment;
    let title = describe::clean(baseline.task.name());
    let mut pieces = Vec::new();
    if let Some(spread) = spread {
        pieces.push(Piece::Table {
            title: "Every latency".to_owned(),
            about: "Mean and deviation are for display: no verdict rests on them.".to_owned(),
            table: figures::distribution(summary, spread, section.baseline),
        });
        pieces.push(Piece::Bins(spread));
    }
    pieces.extend(spans::table(summary, section).map(|table| Piece::Table {
        title: "Where the time goes".to_owned(),
        about: spans::ABOUT.to_owned(),
        table,
    }));
    let beside = figures::beside_neighbours(summary, section);
    if !beside.is_empty() {
        let sentence = format!("Meanwhile the neighbours did: {}.", beside.join("; "));
        pieces.push(Piece::List(vec![sentence], 1));
    }
    let beyond = figures::beyond_cpu(summary, section);
    if !beyond.is_empty() {
        let sentence = format!(
            "Against the same beside cpu, which takes what one CPU gives on the receiver’s node \
             and sends nothing: {}.",
            beyond.join("; ")
        );
        pieces.push(Piece::List(vec![sentence], 1));
    }
    if let Some(table) = survive::gaps(summary, section) {
        pieces.push(Piece::Table {
            title: "What the traffic survived".to_owned(),
            about: survive::ABOUT.to_owned(),
            table,
        });
        let late = survive::late(summary, section);
        pieces.extend(late.map(|table| Piece::Table {
            title: "Requests that were late".to_owned(),
            about:
                "Of all repetitions; what was never answered counts as later than all.".to_owned(),
            table,
        }));
        let sentences = survive::sentences(summary, section);
        pieces.push(Piece::List(sentences, MOST_SURVIVED));
    }
    if let Some(table) = launch::table(summary, section) {
        pieces.push(Piece::Table {
            title: "Until the network is up".to_owned(),
            about: launch::ABOUT.to_owned(),
            table,
        });
        pieces.push(Piece::List(launch::tails(summary, section), MOST_TAILS));
    }
    let begun = launch::steps(summary, section, |it| &it.steps);
    let ended = launch::steps(summary, section, |it| &it.release_steps);
    for (title, about, table) in [
        ("Steps of launching a pod", "", begun),
        ("Steps of ending a pod", launch::ENDED, ended),
    ] {
        pieces.extend(table.map(|table| Piece::Details {
            title: title.to_owned(),
            is_open: true,
            pieces: vec![Piece::table(about, table)],
        }));
    }
    pieces.push(Piece::Details {
        title: format!("All figures of {title}"),
        is_open: false,
        pieces: details(summary, section),
    });
    let task = describe::task(&baseline.task);
    let on_one_node = match baseline.scene.placement {
        Placement::SameNode => {
            " Both ends are on one node: throughput is memory copies and stack, not a link."
        }
        Placement::CrossNode => "",
    };
    Chapter {
        about: format!(
            "{task}; {}.{on_one_node}",
            describe::place(summary, baseline)
        ),
        title,
        pictured: Pictured::Section(section, spread),
        pieces,
    }
}

fn details<'a>(summary: &Summary, section: &Section) -> Vec<Piece<'a>> {
    const POOLED: &str = "Percentiles of all trials together. In brackets, where each lies by these \
        samples at 95 %: within this run, while another run may differ by more.";
    let mut pieces = vec![Piece::table("", figures::figures(summary, section))];
    let percentiles = figures::percentiles(summary, section);
    pieces.extend(percentiles.map(|table| Piece::table(POOLED, table)));
    let comparisons = figures::comparisons(summary, section);
    if !comparisons.rows.is_empty() {
        pieces.push(Piece::table("", comparisons));
    }
    pieces
}

/// What it took to bring up each network, where that was done for the run.
fn brought_up<'a>(summary: &Summary) -> Option<Chapter<'a>> {
    Some(Chapter {
        title: "Set-up cost".to_owned(),
        about: set_up::ABOUT.to_owned(),
        pictured: Pictured::Nothing,
        pieces: vec![
            Piece::table("", set_up::table(summary)?),
            Piece::List(set_up::failures(summary), usize::MAX),
        ],
    })
}

/// The run beside a published study.
fn published<'a>(summary: &Summary, study: &Beside) -> Chapter<'a> {
    let table = |one: &BesideTable| {
        let here = beside::load(summary, one).map(|load| format!("Here: {load}. "));
        let table = Piece::Table {
            title: beside::title(study, one),
            about: here.unwrap_or_default() + "In brackets, how many times the baseline’s.",
            table: beside::table(study, one),
        };
        [table, Piece::List(beside::orders(study, one), 1)]
    };
    let mut pieces: Vec<_> = study.tables.iter().flat_map(table).collect();
    pieces.push(Piece::Details {
        title: "What the authors found".to_owned(),
        is_open: study.tables.is_empty(),
        pieces: vec![Piece::List(study.study.findings.clone(), 0)],
    });
    Chapter {
        title: format!("Beside {}", beside::name(study)),
        about: beside::about(study),
        pictured: Pictured::Nothing,
        pieces,
    }
}
