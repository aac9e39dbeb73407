//! All networks by all metrics that count, in one table, and the sentence that
//! sums it up.

mod answer;

use plumbline_experiment::Scene;
use plumbline_experiment::metric::Role;
use plumbline_stats::Interval;
use plumbline_stats::verdict::Verdict;

pub(crate) use answer::answer;

use crate::analysis::{Comparison, Effect, Metric, Summary, TreatmentSummary, metrics_of};
use crate::figures::Table;
use crate::{describe, number};

/// Networks by rising cost under the first workload, a column for each primary metric of each workload.
pub(crate) struct Overview<'a> {
    pub(crate) columns: Vec<OverviewColumn<'a>>,
    pub(crate) rows: Vec<OverviewRow<'a>>,
}

/// One primary metric of one workload.
pub(crate) struct OverviewColumn<'a> {
    pub(crate) workload: &'a str,
    pub(crate) metric: &'static Metric,
    /// The largest change in it, as a fraction: the length of a full bar.
    pub(crate) extent: f64,
}

/// One network.
pub(crate) struct OverviewRow<'a> {
    pub(crate) label: String,
    pub(crate) treatments: Vec<&'a TreatmentSummary>,
    pub(crate) cells: Vec<OverviewCell>,
}

/// What a network shows in one metric.
pub(crate) enum OverviewCell {
    Missing,
    /// A baseline's own figure.
    Figure(String),
    Change(Effect),
    /// An undecided change that may be anything.
    Unknown,
}

impl OverviewCell {
    /// How much of a full bar its change is, in a column of this extent; 0 where it has none.
    pub(crate) fn share(&self, extent: f64) -> f64 {
        match self {
            Self::Change(effect) => effect.change().abs() / extent.max(f64::MIN_POSITIVE),
            Self::Missing | Self::Figure(_) | Self::Unknown => 0.0,
        }
    }
}

impl<'a> Overview<'a> {
    pub(crate) fn new(summary: &'a Summary) -> Self {
        let mut columns: Vec<OverviewColumn<'a>> = Vec::new();
        for section in &summary.sections {
            let task = &summary.treatments[section.baseline].treatment.task;
            let primary = metrics_of(task).filter(|(_, role)| *role == Role::Primary);
            for (metric, _) in primary.filter(|(metric, _)| summary.records(metric)) {
                let is_there =
                    |one: &OverviewColumn<'_>| one.workload == task.name() && one.metric == metric;
                if !columns.iter().any(is_there) {
                    let extent = 0.0;
                    columns.push(OverviewColumn {
                        workload: task.name(),
                        metric,
                        extent,
                    });
                }
            }
        }
        let mut rows = rows(summary);
        for row in &mut rows {
            for column in &mut columns {
                let cell = cell(summary, &row.treatments, column);
                if let OverviewCell::Change(effect) = &cell {
                    column.extent = column.extent.max(effect.change().abs());
                }
                row.cells.push(cell);
            }
        }
        Self { columns, rows }
    }
}

/// A row for each label at each place, in the order of the first section that has it:
/// by rising cost under the first workload.
fn rows(summary: &Summary) -> Vec<OverviewRow<'_>> {
    let mut rows: Vec<(&str, OverviewRow<'_>)> = Vec::new();
    let scenes = summary.treatments.iter().map(|one| &one.treatment.scene);
    let places: Vec<String> = scenes.map(|scene| place(summary, scene)).collect();
    let is_one_place = places.windows(2).all(|two| two[0] == two[1]);
    for section in &summary.sections {
        for &id in &section.treatments {
            let treatment = &summary.treatments[id];
            let label = describe::clean(&treatment.treatment.label);
            let baseline = treatment.treatment.baseline;
            let own = baseline.filter(|it| !is_like(summary, *it, section.baseline));
            let against = own.map(|id| &summary.treatments[id].treatment.label);
            let against = against.map(|label| format!(" against {}", describe::clean(label)));
            let place = if is_one_place { "" } else { &places[id] };
            let gap = if is_one_place { "" } else { ", " };
            let label = format!("{label}{}{gap}{place}", against.unwrap_or_default());
            match rows.iter_mut().find(|(_, row)| row.label == label) {
                Some((_, row)) => row.treatments.push(treatment),
                None => rows.push((
                    place,
                    OverviewRow {
                        label,
                        treatments: vec![treatment],
                        cells: Vec::new(),
                    },
                )),
            }
        }
    }
    rows.sort_by(|a, b| a.0.cmp(b.0));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Where a scene is; where scenes differ in what is laid on paths, labels say that.
fn place(summary: &Summary, scene: &Scene) -> String {
    match describe::are_dressed_alike(summary) {
        true => describe::scene(scene),
        false => describe::scene(&scene.undressed()),
    }
}

/// Whether two baselines differ in nothing but the cluster.
fn is_like(summary: &Summary, one: usize, other: usize) -> bool {
    let of = |id: usize| &summary.treatments[id].treatment;
    one == other || of(one).baseline.is_none() && of(one).is_like(of(other))
}

fn cell(summary: &Summary, of: &[&TreatmentSummary], column: &OverviewColumn<'_>) -> OverviewCell {
    let under = |one: &&&TreatmentSummary| one.treatment.task.name() == column.workload;
    let Some(treatment) = of.iter().find(under) else {
        return OverviewCell::Missing;
    };
    if treatment.treatment.baseline.is_none() {
        let runs = treatment.over_trials(column.metric.name());
        return runs.map_or(OverviewCell::Missing, |runs| {
            OverviewCell::Figure(describe::value(column.metric, runs.median))
        });
    }
    let comparison = summary.comparison(treatment.id(), column.metric.name());
    let effect = comparison.and_then(|one| one.effect);
    match effect {
        None => OverviewCell::Missing,
        Some(effect) if is_anything(&effect) => OverviewCell::Unknown,
        Some(effect) => OverviewCell::Change(effect),
    }
}

/// Whether not even the order of magnitude of what was measured is known.
fn is_anything(effect: &Effect) -> bool {
    let is_wide = |it: &Interval| 1.0 + it.high > MOST_SPAN * (1.0 + it.low);
    effect.verdict == Some(Verdict::Undecided) && effect.interval.as_ref().is_some_and(is_wide)
}

/// `+12 % ±2`, with `=` where it is equivalent and `?` where it is undecided.
pub(crate) fn change(effect: &Effect) -> String {
    format!("{}{}", describe::change(effect), doubt(effect))
}

/// What follows the figure: ` ±2`, and the mark of its verdict.
pub(crate) fn doubt(effect: &Effect) -> String {
    let ends = effect.ends();
    let half = ends.map(|ends| number::half_width(effect.change(), ends));
    format!("{}{}", half.unwrap_or_default(), mark(effect))
}

/// What a verdict adds to a figure.
pub(crate) fn mark(effect: &Effect) -> &'static str {
    match effect.verdict {
        Some(Verdict::Better | Verdict::Worse) => "",
        Some(Verdict::Equivalent) => " =",
        Some(Verdict::Undecided) | None => " ?",
    }
}

/// The overview where there are neither colours nor bars.
pub(crate) fn table(summary: &Summary) -> Table {
    let overview = Overview::new(summary);
    let title = |one: &OverviewColumn<'_>| {
        format!("{} {}", describe::clean(one.workload), one.metric.title)
    };
    let text = |cell: &OverviewCell| match cell {
        OverviewCell::Missing => number::NONE.to_owned(),
        OverviewCell::Figure(text) => text.clone(),
        OverviewCell::Unknown => UNKNOWN.to_owned(),
        OverviewCell::Change(effect) => change(effect),
    };
    let row = |row: &OverviewRow<'_>| {
        let cells = row.cells.iter().map(text);
        [row.label.clone()].into_iter().chain(cells).collect()
    };
    let mut head = vec!["network".to_owned()];
    head.extend(overview.columns.iter().map(title));
    Table {
        head,
        rows: overview.rows.iter().map(row).collect(),
    }
}

/// What the signs of the table mean where it has some, a title that does not say it itself, and
/// what variants of networks are.
pub(crate) fn legend(summary: &Summary) -> String {
    let signs = (!summary.comparisons.is_empty()).then(|| signs(summary, true));
    let variants = describe::variants(summary).map(|it| format!("{it}."));
    let both: Vec<String> = [signs, variants].into_iter().flatten().collect();
    both.join(" ")
}

/// What the signs of the table mean, and a title that does not say it itself.
pub(crate) fn signs(summary: &Summary, has_bars: bool) -> String {
    let of_processes = |one: &Comparison| one.metric.words.starts_with("processes'");
    let is_unbounded = |one: &Comparison| one.effect.is_some_and(|it| it.interval.is_none());
    let doubts = |one: &Comparison| Some(doubt(&one.effect.filter(|it| !is_anything(it))?));
    let is_in_points = |one: &Comparison| one.effect.is_some_and(|it| it.delivered.is_some());
    // The table has no others.
    let mut primary = summary.comparisons.iter().filter(|one| one.is_primary);
    let mut signs = LEGEND.to_owned();
    if has_bars {
        signs += " Bars are to scale within a column.";
    }
    let shown: String = primary.clone().filter_map(doubts).collect();
    if shown.contains('[') {
        signs += " In brackets the ends of an uneven interval.";
    }
    if shown.contains(">0") || shown.contains("<0") {
        signs += " >0,\u{a0}<0: just above, just below\u{a0}0.";
    }
    if primary.clone().any(is_unbounded) {
        signs += " Without\u{a0}±: too few blocks.";
    }
    if primary.clone().any(is_in_points) {
        signs += " pp: percentage points of all datagrams.";
    }
    signs += match primary.any(of_processes) {
        true if summary.target == "lab" => {
            " procs: the CPU time of the processes that do the work."
        }
        true => {
            " procs: the CPU time of sender, receiver and the kernel's threads; what the network's \
             own processes used is not seen, so no network is better or the same in it."
        }
        false => "",
    };
    signs
}

const LEGEND: &str = "Change against the baseline ± half of its 95\u{a0}% interval; \
    all intervals hold together. =\u{a0}the same within the margin, ?\u{a0}undecided.";

/// An undecided change within a wider span than this says nothing, and its figure would.
const MOST_SPAN: f64 = 10.0;

/// What stands in its place.
pub(crate) const UNKNOWN: &str = "?";
