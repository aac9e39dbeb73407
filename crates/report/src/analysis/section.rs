//! Which treatments belong in one table, and in which order.

use std::collections::BTreeMap;

use plumbline_experiment::TreatmentId;
use plumbline_stats::verdict::Direction;

use super::comparison::Comparison;
use super::metric::Metric;
use super::registry::leading;
use super::treatment::TreatmentSummary;

/// Treatments of one workload that share a baseline, or are compared each with
/// the baseline of its own cluster: what one table or chart shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The baseline of them all, or the first of several.
    pub baseline: TreatmentId,
    /// The baselines first, then by the section's leading metric, cheapest
    /// first; those without a comparison last, in the order of the plan.
    pub treatments: Vec<TreatmentId>,
    /// The metric that orders the others: a latency where one counts.
    pub leading: &'static Metric,
}

impl Section {
    /// Its treatments, of which `all` has those of every section, that have some part, each
    /// with it.
    pub(crate) fn with<'a, T>(
        &self,
        all: &'a [TreatmentSummary],
        part: impl Fn(&'a TreatmentSummary) -> Option<&'a T>,
    ) -> Vec<(&'a TreatmentSummary, &'a T)> {
        let treatments = self.treatments.iter().map(|&id| &all[id]);
        treatments
            .filter_map(|one| Some((one, part(one)?)))
            .collect()
    }
}

/// Groups treatments by the baseline at the end of their chain of baselines.
pub(super) fn sections(
    treatments: &[TreatmentSummary],
    comparisons: &[Comparison],
) -> Vec<Section> {
    let mut groups: BTreeMap<TreatmentId, Vec<TreatmentId>> = BTreeMap::new();
    for treatment in treatments {
        let root = first_like(treatments, root_of(treatments, treatment.id()));
        groups.entry(root).or_default().push(treatment.id());
    }
    groups
        .into_iter()
        .map(|(baseline, mut members)| {
            let leading = leading(&treatments[baseline].treatment.task);
            let cost = |&id: &TreatmentId| {
                let root = root_of(treatments, id);
                if id == root {
                    return f64::NEG_INFINITY;
                }
                overhead(treatments, comparisons, id, root, leading)
            };
            members.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
            Section {
                baseline,
                treatments: members,
                leading,
            }
        })
        .collect()
}

/// Overhead of a treatment against the section's baseline, over every step
/// from one baseline to the next; larger is worse, infinite when not known.
fn overhead(
    treatments: &[TreatmentSummary],
    comparisons: &[Comparison],
    mut id: TreatmentId,
    root: TreatmentId,
    metric: &Metric,
) -> f64 {
    let mut log_ratio = 0.0;
    while id != root {
        let step = comparisons
            .iter()
            .find(|one| one.treatment == id && one.metric.name() == metric.name());
        let (Some(effect), Some(next)) = (
            step.and_then(|one| one.effect),
            treatments[id].treatment.baseline,
        ) else {
            return f64::INFINITY;
        };
        log_ratio += effect.ratio_minus_one.ln_1p();
        id = next;
    }
    match metric.direction {
        Direction::HigherIsBetter => -log_ratio,
        Direction::LowerIsBetter => log_ratio,
    }
}

/// The first baseline that differs from this one in nothing but the network: a
/// run of several clusters has one in each.
fn first_like(treatments: &[TreatmentSummary], root: TreatmentId) -> TreatmentId {
    let of = &treatments[root].treatment;
    let is_like = |other: &&TreatmentSummary| {
        other.treatment.baseline.is_none() && other.treatment.is_like(of)
    };
    // One of a ring has a baseline, and stands alone.
    let found = treatments
        .iter()
        .find(is_like)
        .filter(|_| of.baseline.is_none());
    found.map_or(root, TreatmentSummary::id)
}

/// The end of a chain of baselines. Files may be written by others, so a chain
/// that is a ring is left after as many steps as there are treatments.
fn root_of(treatments: &[TreatmentSummary], id: TreatmentId) -> TreatmentId {
    let mut root = id;
    for _ in 0..treatments.len() {
        match treatments[root].treatment.baseline {
            Some(next) => root = next,
            None => return root,
        }
    }
    // A ring: every treatment of it stands alone.
    id
}
