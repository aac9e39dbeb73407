//! The sentence that leads a report.

use plumbline_experiment::{FACTORS, Factor};
use plumbline_stats::verdict::Verdict;

use crate::analysis::{Law, LawShape, Quantity, Summary};
use crate::sentence::{self, Subject, join};
use crate::{describe, launch, law, number, overview, survive};

/// Laws that are told one by one, the dearest first; the chapters tell all.
const MOST_LAWS: usize = 3;
/// The same of lines that cross.
const MOST_CROSSINGS: usize = 2;

/// What a run found: what each further one of a factor costs, where that is all that was
/// varied, or else all networks against their baseline, or where nothing is compared what was
/// seen. `None` without a result.
pub(crate) fn answer(summary: &Summary) -> Option<String> {
    of_laws(summary)
        .or_else(|| overview::answer(summary))
        .or_else(|| seen(summary))
}

/// What the first network showed where nothing is compared, and of how many more there is
/// something to read: what its traffic survived, or else its figures, and of pods the slowest.
fn seen(summary: &Summary) -> Option<String> {
    if !summary.comparisons.is_empty() || !summary.has_results() {
        return None;
    }
    let mut told = Vec::new();
    for section in &summary.sections {
        let task = summary.treatments[section.baseline].treatment.task.name();
        let under = match summary.sections.len() {
            1 => String::new(),
            _ => format!("Under {}, ", describe::clean(task)),
        };
        let survived = survive::sentences(summary, section).into_iter();
        told.extend(survived.map(|it| format!("{under}{it}")));
    }
    if told.is_empty() {
        let sentences = sentence::sentences(summary).into_iter();
        let baselines = sentences.filter(|it| it.subject == Subject::Baseline);
        told.extend(baselines.map(|it| it.to_string()));
        let mut tails = summary
            .sections
            .iter()
            .flat_map(|section| launch::tails(summary, section));
        let slowest = tails.next().map(|it| format!("; {it}"));
        if let Some(first) = told.first_mut() {
            *first += &slowest.unwrap_or_default();
        }
    }
    let (first, others) = told.split_first()?;
    Some(match others.len() {
        0 => first.clone(),
        more => format!("{first}; {more} more below"),
    })
}

/// One workload, and when it is that its requests pay.
struct Moment<'a> {
    laws: &'a [Law],
    /// ` on a new connection`; empty where nothing has to be said.
    when: String,
}

/// What the treatments of one label cost at each moment that they have a law of.
type LawsOfLabel<'a> = Vec<(&'a Law, &'a str)>;

/// `iptables: +11 ns for each service on a new connection (95 % 10 to 12), nothing once it
/// stands (same within 3.0 %); nftables: flat (at most 0.1 ns); they cross at services = 60
/// (95 % 50 to 72)`.
fn of_laws(summary: &Summary) -> Option<String> {
    let moments = moments(summary, varied(summary)?);
    let first = moments.first()?;
    if first.laws.iter().all(|law| law.interval.is_none()) {
        return Some(format!(
            "The blocks are too few to say what each {} costs",
            first.laws[0].one
        ));
    }
    let all = first.laws.iter().map(|law| told(&moments, &law.label));
    let (flat, mut dear): (Vec<LawsOfLabel<'_>>, Vec<LawsOfLabel<'_>>) =
        all.partition(|one| is_flat(one));
    let slope = |one: &[(&Law, &str)]| one[0].0.line.per_level.mean;
    dear.sort_by(|a, b| slope(b).total_cmp(&slope(a)));
    let mut parts: Vec<String> = Vec::new();
    for one in dear.iter().take(MOST_LAWS) {
        parts.push(cost(one, parts.is_empty()));
    }
    if let Some(more) = dear.len().checked_sub(MOST_LAWS).filter(|more| *more > 0) {
        parts.push(format!("{more} more below"));
    }
    parts.extend(flat_ones(&flat, parts.is_empty()));
    parts.extend(crossings(summary, first.laws));
    Some(parts.join("; "))
}

/// The factor by which all that is compared departs from what it is compared with, if
/// costs were fitted to it.
fn varied(summary: &Summary) -> Option<&'static str> {
    let has_law = |factor: &&Factor| summary.laws.iter().any(|law| law.factor == factor.name);
    let departs = |factor: &&Factor| {
        let treatments = summary.treatments.iter().map(|one| &one.treatment);
        let mut compared = treatments.filter(|one| one.baseline.is_some());
        compared.all(|one| factor.departs(&one.scene).is_some())
    };
    let found = FACTORS.iter().find(|it| has_law(it) && departs(it))?;
    Some(found.name)
}

/// The first workload that opens connections, and the first that keeps them.
fn moments<'a>(summary: &'a Summary, factor: &str) -> Vec<Moment<'a>> {
    let of_factor = summary.laws.chunk_by(Law::is_beside);
    let of_factor = of_factor.filter(|laws| laws[0].factor == factor);
    let leading = of_factor.filter_map(|laws| {
        let mut of_metric = laws.chunk_by(Law::is_comparable);
        of_metric.find(|laws| laws[0].is_told())
    });
    let connects = |laws: &&[Law]| {
        let treatment = laws[0].points[0].treatment;
        summary.treatments[treatment].treatment.task.connects()
    };
    let (opening, keeping): (Vec<&[Law]>, Vec<&[Law]>) = leading.partition(connects);
    let moment = |of: &[&'a [Law]], when: &str| {
        let laws = *of.first()?;
        let metric = laws[0].metric;
        let mut when = when.to_owned();
        if metric.quantity != Quantity::Latency {
            when += &format!(" in {}", metric.words);
        }
        if of.len() > 1 {
            when += &format!(" under {}", describe::clean(&laws[0].workload));
        }
        Some(Moment { laws, when })
    };
    let kept = match opening.is_empty() {
        true => "",
        false => " once it stands",
    };
    let both = [
        moment(&opening, " on a new connection"),
        moment(&keeping, kept),
    ];
    both.into_iter().flatten().collect()
}

fn told<'a>(moments: &'a [Moment<'a>], label: &str) -> LawsOfLabel<'a> {
    let of_label = moments.iter().filter_map(|moment| {
        let law = moment.laws.iter().find(|it| it.label == label)?;
        Some((law, moment.when.as_str()))
    });
    of_label.collect()
}

fn is_flat(told: &[(&Law, &str)]) -> bool {
    let mut laws = told.iter();
    laws.all(|(law, _)| law.verdict == Some(Verdict::Equivalent))
}

/// What one label costs at each moment. The first says what a level is.
fn cost(told: &[(&Law, &str)], is_first: bool) -> String {
    let part = |(at, (law, when)): (usize, &(&Law, &str))| {
        if at > 0 && law.verdict == Some(Verdict::Equivalent) {
            return format!(
                "nothing{when} (same within {})",
                number::percent(law.margin)
            );
        }
        let each = match at {
            0 if is_first => format!(" for each {}{when}", law.one),
            0 => String::new(),
            _ => (*when).to_owned(),
        };
        let bend = law.bend.as_ref().map(|bend| bend.shape);
        let bent = match bend {
            Some(LawShape::Bent) => ", not evenly",
            _ => "",
        };
        format!("{}{bent}", law::slope(law, &each))
    };
    let parts: Vec<String> = told.iter().enumerate().map(part).collect();
    let label = describe::clean(&told[0].0.label);
    format!("{label}: {}", parts.join(", "))
}

/// Labels that cost nothing at any moment, with the highest limit of all.
fn flat_ones(all: &[LawsOfLabel<'_>], is_first: bool) -> Option<String> {
    let high = |law: &Law| law.interval.map_or(f64::INFINITY, |it| it.high);
    let of_all = all.iter().flatten();
    let (law, when) = of_all.max_by(|a, b| high(a.0).total_cmp(&high(b.0)))?;
    // Of several moments the limit holds for all.
    let when = match all.iter().any(|one| one.len() > 1) {
        true => "",
        false => *when,
    };
    let each = match is_first {
        true => format!(" for each {}{when}", law.one),
        false => String::new(),
    };
    let labels = all.iter().map(|one| describe::clean(&one[0].0.label));
    let mut labels: Vec<String> = labels.collect();
    if labels.len() > MOST_LAWS {
        let more = labels.split_off(MOST_LAWS - 1).len();
        labels.push(format!("{more} more"));
    }
    let labels = join(&labels, " and ");
    Some(format!("{labels}: {}", law::slope(law, &each)))
}

/// Where lines cross, unless there are many.
fn crossings(summary: &Summary, laws: &[Law]) -> Vec<String> {
    let mut found = Vec::new();
    let of_metric = summary.laws.iter().enumerate();
    for (at, law) in of_metric.filter(|(_, law)| law.is_comparable(&laws[0])) {
        for one in law.crossings.iter().filter(|one| one.with > at) {
            let labels = [law, &summary.laws[one.with]].map(|it| describe::clean(&it.label));
            let who = match laws.len() {
                2 => "they".to_owned(),
                _ => labels.join(" and "),
            };
            found.push(law::crossing(&who, law, one));
        }
    }
    if found.len() > MOST_CROSSINGS {
        found.clear();
    }
    found
}
