//! Which metric a treatment's sentences begin with.

use crate::analysis::{self, Metric, Summary, TreatmentSummary};

/// The metric of the section in which a treatment stands.
pub(super) fn leading(summary: &Summary, treatment: &TreatmentSummary) -> &'static Metric {
    let mut sections = summary.sections.iter();
    let own = sections.find(|one| one.treatments.contains(&treatment.id()));
    own.map_or_else(
        || analysis::leading(&treatment.treatment.task),
        |one| one.leading,
    )
}

/// Whether no two of the treatments are led by metrics of the same name, so that
/// each figure tells which workload it comes from.
pub(super) fn has_one_of_each(summary: &Summary, treatments: &[&TreatmentSummary]) -> bool {
    let mut names: Vec<&str> = treatments
        .iter()
        .map(|one| leading(summary, one).name())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.len() == treatments.len()
}
