//! What a run found, one sentence for each network.
//!
//! A sentence never says more than the comparison behind it: a difference only
//! when it is beyond doubt, otherwise what would have been seen (C-8, D10). An
//! overhead may be negative (N-15).

mod finding;
mod leading;
mod machine;

use std::fmt;

use plumbline_experiment::TreatmentId;
use plumbline_record::Warning;

use leading::{has_one_of_each, leading};

pub(crate) use finding::join;

use crate::analysis::{Metric, Quantity, Section, Summary, TreatmentSummary};
use crate::{beside, describe};

/// What a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The whole run, when it has no result or lost most of its trials.
    Run,
    /// What the others are compared with.
    Baseline,
    /// A network against its baseline.
    Compared,
    /// The run beside a published study.
    Published,
    /// How exactly the machine measured.
    Machine,
    /// That the machine showed a difference where there is none.
    Doubt,
    /// A network that could not be built.
    Unsupported,
}

impl Subject {
    /// Whether it is said below the first table where that is shown.
    pub(crate) fn is_of_machine(self) -> bool {
        matches!(self, Self::Machine | Self::Doubt)
    }
}

/// One sentence. [`Display`](fmt::Display) gives the whole of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// What it is about.
    pub subject: Subject,
    /// The treatments' common label, or the network's name.
    pub label: String,
    /// What follows the label, with no-break spaces between numbers and units.
    pub rest: String,
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.label, self.rest)
    }
}

/// The sentences of a run: why it has few results or none, if so; then
/// baselines, the cheapest network, dearer ones, a published study beside them, how
/// exactly the machine measured, at last those that could not be built.
pub fn sentences(summary: &Summary) -> Vec<Sentence> {
    let mut sentences: Vec<Sentence> = Vec::new();
    for section in in_reading_order(summary) {
        for &id in &section.treatments {
            let label = describe::clean(&summary.treatments[id].treatment.label);
            if sentences.iter().all(|sentence| sentence.label != label) {
                sentences.push(about(summary, section, id, label));
            }
        }
    }
    // A run with several sections has several baselines; they lead together.
    sentences.sort_by_key(|sentence| sentence.subject != Subject::Baseline);
    if !summary.has_results() || summary.account.failed > summary.account.kept {
        sentences.insert(0, few_results(summary));
    }
    if let Some(study) = &summary.beside {
        sentences.push(Sentence {
            subject: Subject::Published,
            label: describe::clean(&beside::name(study)),
            rest: beside::answer(study),
        });
    }
    sentences.extend(of_machine(summary));
    sentences.extend(summary.notices.iter().filter_map(unsupported));
    sentences
}

/// How exactly the machine measured, one or two sentences for the controls and one for the
/// precision that was asked for; and of which levels it is not told what one more costs.
pub(crate) fn of_machine(summary: &Summary) -> Vec<Sentence> {
    use Subject::{Doubt, Machine};
    let said = [
        (Machine, "Where nothing differs", machine::controls(summary)),
        (Doubt, "Warning", machine::doubt(summary)),
        (Machine, "Precision", machine::precision(summary)),
    ];
    let said = said.map(|(subject, label, rest)| (subject, label.to_owned(), rest));
    let without = summary.without_a_line.iter();
    let without = without.map(|factor| {
        let why = ": what it costs is not told, for a line takes three levels that differ in \
                   nothing else";
        (
            Machine,
            format!("One more of `{factor}`"),
            Some(why.to_owned()),
        )
    });
    let sentence = |(subject, label, rest): (Subject, String, Option<String>)| {
        Some(Sentence {
            subject,
            label,
            rest: rest?,
        })
    };
    said.into_iter()
        .chain(without)
        .filter_map(sentence)
        .collect()
}

/// Why there is little or nothing to read, and what to do.
fn few_results(summary: &Summary) -> Sentence {
    let account = &summary.account;
    let counting = match account.kept {
        0 => "none".to_owned(),
        kept => format!("only {kept}"),
    };
    let rest = match account.failures.first() {
        Some(main) => format!(
            ": {counting} of the {} trials that were run can be used; the main reason, in {} \
             trials, is “{}”. Remedy: {}",
            account.attempts(),
            main.trials,
            main.reason,
            main.remedy
        ),
        None => ": the run was cut off before a trial had finished; go on with `plumbline run \
                 --resume`"
            .to_owned(),
    };
    Sentence {
        subject: Subject::Run,
        label: if summary.has_results() {
            "Few results".to_owned()
        } else {
            "No result".to_owned()
        },
        rest,
    }
}

/// Sections led by a latency first, since that decides the order of the networks.
pub(crate) fn in_reading_order(summary: &Summary) -> Vec<&Section> {
    let mut sections: Vec<&Section> = summary.sections.iter().collect();
    sections.sort_by_key(|one| one.leading.quantity != Quantity::Latency);
    sections
}

fn about(summary: &Summary, section: &Section, id: TreatmentId, label: String) -> Sentence {
    let wanted = &summary.treatments[id].treatment.label;
    let namesakes: Vec<_> = summary
        .treatments
        .iter()
        .filter(|one| &one.treatment.label == wanted)
        .collect();
    let baseline = summary.treatments[id].treatment.baseline;
    let (subject, rest) = match baseline {
        None => (Subject::Baseline, baseline_text(summary, &namesakes)),
        Some(baseline) => {
            let mut rest = String::new();
            if baseline != section.baseline {
                let other = &summary.treatments[baseline].treatment.label;
                rest = format!(" against {}", describe::clean(other));
            }
            rest += &finding::text(summary, &namesakes);
            (Subject::Compared, rest)
        }
    };
    Sentence {
        subject,
        label,
        rest,
    }
}

/// ` is the baseline: p50 29.4 µs, CPU 12.1 µs per request`; the figures alone where nothing is
/// compared with it.
fn baseline_text(summary: &Summary, treatments: &[&TreatmentSummary]) -> String {
    let is_alone = has_one_of_each(summary, treatments);
    let figures: Vec<String> = treatments
        .iter()
        .map(|treatment| {
            let figures = figures(summary, treatment);
            if is_alone {
                figures
            } else {
                format!(
                    "{} {figures}",
                    describe::clean(treatment.treatment.task.name())
                )
            }
        })
        .collect();
    let is_compared = !summary.comparisons.is_empty();
    let what = if is_compared { " is the baseline" } else { "" };
    format!("{what}: {}", figures.join("; "))
}

/// The metric that leads, and what the CPUs paid.
fn figures(summary: &Summary, treatment: &TreatmentSummary) -> String {
    let leading = leading(summary, treatment);
    let cost = treatment.metrics.iter().map(|one| one.metric);
    let cost = cost.filter(|metric| metric.quantity == Quantity::Cpu && *metric != leading);
    let figure = |metric: &Metric| {
        let runs = treatment.over_trials(metric.name())?;
        let value = describe::value(metric, runs.median);
        Some(metric.phrase.replace("{}", &value))
    };
    let figures: Vec<String> = [leading]
        .into_iter()
        .chain(cost)
        .filter_map(figure)
        .collect();
    if figures.is_empty() {
        return "no valid trial".to_owned();
    }
    figures.join(", ")
}

fn unsupported(notice: &crate::analysis::Notice) -> Option<Sentence> {
    let (network, why, reason) = match &notice.warning {
        Warning::Unsupported { network, needs } => (network, "was left out", needs),
        Warning::CarriesNothing { network, reason } => {
            (network, "could not carry a packet", reason)
        }
        _ => return None,
    };
    Some(Sentence {
        subject: Subject::Unsupported,
        label: describe::clean(network),
        rest: format!(" {why}: {}", describe::clean(reason)),
    })
}
