//! The sentence that sums up the table.

use std::collections::BTreeSet;

use plumbline_experiment::Scene;
use plumbline_stats::verdict::{Direction, Verdict};

use super::{is_like, place};
use crate::analysis::{Comparison, Effect, Section, Summary};
use crate::sentence::{in_reading_order, join};
use crate::{describe, number};

/// More networks than this in one sentence are given by their number or range.
const MOST_NAMED: usize = 10;
/// The same under a further workload.
const MOST_NAMED_FURTHER: usize = 2;
/// Further workloads that are told.
const MOST_FURTHER: usize = 3;

/// One sentence that answers for all networks, by the metric that leads: `Against
/// host the median request takes 7.0 % longer with routed and 12 % with bridge;
/// macvlan is the same within 3.0 %`; and in short the same of some further workloads, first of
/// all those that are led by other metrics. `None` when nothing is compared.
pub(crate) fn answer(summary: &Summary) -> Option<String> {
    let mut sections = in_reading_order(summary)
        .into_iter()
        .map(|section| Led::new(summary, section))
        .filter(|led| !led.found.is_empty());
    let first = sections.next()?;
    let mut parts = first.differences(MOST_NAMED);
    parts.extend(first.others());
    let workload = match summary.sections.len() {
        1 => String::new(),
        _ => format!(", under {},", workload(summary, first.section)),
    };
    let baseline = first.baseline(summary);
    let further = sections.filter(|led| led.is_judged() && led.baseline(summary) == baseline);
    parts.extend(of_further(summary, &first, further));
    Some(format!("Against {baseline}{workload} {}", parts.join("; ")))
}

/// What some further workloads show, in reading order, and how many there are beyond them.
fn of_further<'a>(
    summary: &Summary,
    first: &Led<'_>,
    further: impl Iterator<Item = Led<'a>>,
) -> Vec<String> {
    let mut leading = vec![first.section.leading];
    let (others, like): (Vec<_>, Vec<_>) = further.enumerate().partition(|(_, led)| {
        let is_other = !leading.contains(&led.section.leading);
        leading.push(led.section.leading);
        is_other
    });
    let more = (others.len() + like.len()).saturating_sub(MOST_FURTHER);
    let mut told: Vec<(usize, Led<'_>)> = others.into_iter().chain(like).collect();
    told.truncate(MOST_FURTHER);
    told.sort_by_key(|(place, _)| *place);
    let under = |(_, led): &(usize, Led<'_>)| {
        format!(
            "under {} {}",
            workload(summary, led.section),
            led.in_short()
        )
    };
    let mut parts: Vec<String> = told.iter().map(under).collect();
    if more > 0 {
        let more = number::counted(more as u64, "more workload");
        parts.push(format!("{more} below"));
    }
    parts
}

/// The name of a section's workload, and where several have it, the place.
fn workload(summary: &Summary, section: &Section) -> String {
    let of = |one: &Section| &summary.treatments[one.baseline].treatment;
    let treatment = of(section);
    let name = describe::clean(treatment.task.name());
    let mut sections = summary.sections.iter();
    let has_name = |one: &Section| of(one).task.name() == treatment.task.name();
    match sections.any(|one| one != section && has_name(one)) {
        true => format!("{name} ({})", place(summary, &treatment.scene)),
        false => name,
    }
}

/// A section, and what its networks show in the metric that leads it.
struct Led<'a> {
    section: &'a Section,
    found: Vec<(String, &'a Comparison, Effect)>,
    /// How many networks are not named, where they are not all.
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

    /// What its networks are compared with.
    fn baseline(&self, summary: &Summary) -> String {
        let baseline = self.section.baseline;
        let label = describe::clean(&summary.treatments[baseline].treatment.label);
        let mut found = self.found.iter();
        match found.all(|it| it.1.baseline == baseline) {
            true => label,
            false => in_its_cluster(&label),
        }
    }

    /// Whether the blocks were enough for anything.
    fn is_judged(&self) -> bool {
        let mut found = self.found.iter();
        found.any(|(_, _, effect)| effect.verdict.is_some())
    }

    /// What differs, as a range where that is much, and how many do not.
    fn in_short(&self) -> String {
        let differences = join(&self.differences(MOST_NAMED_FURTHER), " and ");
        let mut parts = Vec::from_iter((!differences.is_empty()).then_some(differences));
        if self.found.len() == 1 {
            parts.extend(self.others());
            return parts.join(", ");
        }
        for (verdict, words) in [
            (Some(Verdict::Equivalent), "the same"),
            (Some(Verdict::Undecided), "undecided"),
            (None, "with too few blocks"),
        ] {
            match self.of(verdict).count() {
                0 => (),
                count => parts.push(format!("{count} {words}")),
            }
        }
        parts.join(", ")
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
            let many = match different.len() == self.found.len() {
                true => String::new(),
                false => format!(" {}", self.many.replace("{}", &different.len().to_string())),
            };
            by_how_much(phrase, &different, (most_named, &many))
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

/// `the median request takes 7.0 % longer with routed and 12 % with bridge`. `many` says how
/// many these are where they are too many to be named.
fn by_how_much(
    phrase: &str,
    different: &[(&str, String)],
    (most_named, many): (usize, &str),
) -> Option<String> {
    let ((first, least), rest) = different.split_first()?;
    if let Some((last, most)) = rest.last().filter(|_| different.len() > most_named) {
        let range = format!("{least} ({first}) to {most} ({last})");
        return Some(phrase.replace("{}", &range) + many);
    }
    let mut texts = vec![format!("{} with {first}", phrase.replace("{}", least))];
    let rest = rest.iter();
    texts.extend(rest.map(|(label, by)| format!("{by} with {label}")));
    Some(join(&texts, " and "))
}
