//! All networks by all metrics that count, in one table, and the sentence that
//! sums it up.

use std::collections::BTreeSet;

use plumbline_stats::Interval;
use plumbline_stats::verdict::{Direction, Verdict};

use crate::analysis::{Comparison, Effect, Metric, Section, Summary, TreatmentSummary, metrics_of};
use crate::figures::Table;
use crate::sentence::{in_reading_order, join};
use crate::{describe, number};
use plumbline_experiment::Scene;
use plumbline_experiment::metric::Role;

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
    let places: Vec<String> = summary
        .treatments
        .iter()
        .map(|one| match describe::are_dressed_alike(summary) {
            true => describe::scene(&one.treatment.scene),
            // Labels say what is laid on each path.
            false => describe::scene(&one.treatment.scene.undressed()),
        })
        .collect();
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

/// More networks than this in one sentence are given by their number or range.
const MOST_NAMED: usize = 10;
/// The same under a further workload.
const MOST_NAMED_FURTHER: usize = 2;
/// Further workloads that are told.
const MOST_FURTHER: usize = 2;

/// One sentence that answers for all networks, by the metric that leads: `Against
/// host the median request takes 7.0 % longer with routed and 12 % with bridge;
/// macvlan is the same within 3.0 %`; and what is sure of further workloads that are led by
/// other metrics. `None` when nothing is compared.
pub(crate) fn answer(summary: &Summary) -> Option<String> {
    let mut sections = in_reading_order(summary)
        .into_iter()
        .map(|section| Led::new(summary, section))
        .filter(|led| !led.found.is_empty());
    let first = sections.next()?;
    let mut parts = first.differences(MOST_NAMED);
    parts.extend(first.others());
    let baseline = &summary.treatments[first.section.baseline].treatment;
    let workload = match summary.sections.len() {
        1 => String::new(),
        _ => format!(", under {},", describe::clean(baseline.task.name())),
    };
    let found = &mut first.found.iter();
    let label = match found.all(|it| it.1.baseline == first.section.baseline) {
        true => describe::clean(&baseline.label),
        false => in_its_cluster(&describe::clean(&baseline.label)),
    };
    let mut told = vec![first.section.leading];
    for led in sections {
        let of = &summary.treatments[led.section.baseline].treatment;
        let differences = led.differences(MOST_NAMED_FURTHER);
        let is_new = of.label == baseline.label && !told.contains(&led.section.leading);
        if is_new && !differences.is_empty() && told.len() <= MOST_FURTHER {
            told.push(led.section.leading);
            let task = describe::clean(of.task.name());
            parts.push(format!("under {task} {}", join(&differences, " and ")));
        }
    }
    Some(format!("Against {label}{workload} {}", parts.join("; ")))
}

/// A section, and what its networks show in the metric that leads it.
struct Led<'a> {
    section: &'a Section,
    found: Vec<(String, &'a Comparison, Effect)>,
    /// What is said of networks that are not named.
    many: &'static str,
}

impl<'a> Led<'a> {
    fn new(summary: &'a Summary, section: &'a Section) -> Self {
        let found = section.treatments.iter();
        let found = found.filter_map(|&id| led(summary, section, id));
        // What is laid on a path, or another path, makes no other network of it.
        let scenes = section.treatments.iter();
        let scenes = scenes.map(|id| &summary.treatments[*id].treatment.scene);
        let networks: BTreeSet<&str> = scenes.clone().map(|it| &*it.network).collect();
        let are_networks = networks.len() == section.treatments.len();
        Self {
            section,
            found: found.collect(),
            many: match are_networks && !scenes.clone().any(Scene::is_dressed) {
                true => "with {} networks",
                false => "in {} rows of the table",
            },
        }
    }

    fn of(&self, wanted: Option<Verdict>) -> impl Iterator<Item = &(String, &Comparison, Effect)> {
        let found = self.found.iter();
        found.filter(move |(_, _, effect)| effect.verdict == wanted)
    }

    fn labels(&self, wanted: Option<Verdict>) -> Vec<String> {
        self.of(wanted).map(|(label, _, _)| label.clone()).collect()
    }

    /// What is more than the baseline and what is less, of few networks one by one.
    fn differences(&self, most_named: usize) -> Vec<String> {
        let metric = self.section.leading;
        let (up, down) = match metric.direction {
            Direction::LowerIsBetter => (Verdict::Worse, Verdict::Better),
            Direction::HigherIsBetter => (Verdict::Better, Verdict::Worse),
        };
        let by = |effect: &Effect| number::hundredths(effect.change().abs(), effect.unit());
        let part = |(verdict, phrase)| {
            let different = self.of(Some(verdict));
            let different = different.map(|(label, _, effect)| (label.as_str(), by(effect)));
            let different: Vec<(&str, String)> = different.collect();
            by_how_much(phrase, &different, (most_named, self.many))
        };
        let both = [(up, metric.more), (down, metric.less)];
        both.into_iter().filter_map(part).collect()
    }

    /// What is the same, undecided, or had too few blocks.
    fn others(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let several = |labels: &[String]| if labels.len() == 1 { "is" } else { "are" };
        let same = self.labels(Some(Verdict::Equivalent));
        if let Some((_, comparison, effect)) = self.of(Some(Verdict::Equivalent)).next() {
            let margin = describe::margin(effect, comparison.margin);
            parts.push(format!(
                "{} {} the same within {margin}",
                named(&same),
                several(&same)
            ));
        }
        let undecided = self.labels(Some(Verdict::Undecided));
        if !undecided.is_empty() {
            let names = named(&undecided);
            parts.push(format!("{names} {} undecided", several(&undecided)));
        }
        let too_few = self.labels(None);
        if !too_few.is_empty() {
            let names = named(&too_few);
            parts.push(format!("the blocks are too few to judge {names}"));
        }
        parts
    }
}

/// Some labels, or how many there are.
fn named(labels: &[String]) -> String {
    match labels.len() {
        few if few <= MOST_NAMED => join(labels, " and "),
        many => format!("{many} rows"),
    }
}

/// What the networks of several clusters are compared with: in each its own.
fn in_its_cluster(label: &str) -> String {
    let path = label.split_once('/').map_or(label, |(_, path)| path);
    format!("{path} of the same cluster")
}

/// A network's label, and its effect on the metric that leads the section.
fn led<'a>(
    summary: &'a Summary,
    section: &Section,
    id: usize,
) -> Option<(String, &'a Comparison, Effect)> {
    let comparison = summary.comparison(id, section.leading.name())?;
    let is_common = is_like(summary, comparison.baseline, section.baseline);
    let label = describe::clean(&summary.treatments[id].treatment.label);
    Some((label, comparison, comparison.effect.filter(|_| is_common)?))
}

/// `the median request takes 7.0 % longer with routed and 12 % with bridge`. `many` is said
/// of more than are named.
fn by_how_much(
    phrase: &str,
    different: &[(&str, String)],
    (most_named, many): (usize, &str),
) -> Option<String> {
    let ((first, least), rest) = different.split_first()?;
    if let Some((last, most)) = rest.last().filter(|_| different.len() > most_named) {
        let range = format!("{least} ({first}) to {most} ({last})");
        let all = many.replace("{}", &different.len().to_string());
        return Some(format!("{} {all}", phrase.replace("{}", &range)));
    }
    let mut texts = vec![format!("{} with {first}", phrase.replace("{}", least))];
    let rest = rest.iter();
    texts.extend(rest.map(|(label, by)| format!("{by} with {label}")));
    Some(join(&texts, " and "))
}
