//! One try of every path before anything is measured.

use plumbline_experiment::Draft;
use plumbline_harness::{Target, unreached};
use plumbline_record::Warning;
use plumbline_report::warning;

use crate::{RunOptions, SessionError};

/// Leaves out of a draft what carries nothing, and notes that; refuses where that is a part of
/// what a gate is to judge. Clusters that are made for the run stand one at a time: each tries
/// its own paths when it comes up.
pub(crate) fn leave_out(
    draft: Draft,
    target: &dyn Target,
    options: &RunOptions<'_>,
    said: &mut Vec<Warning>,
) -> Result<Draft, SessionError> {
    if target.keeps_sites_together() {
        return Ok(draft);
    }
    let plan = &draft.plan;
    let pairs = match options.pairing(target) {
        None => vec![[0, 1]],
        Some(pairing) => {
            let first = pairing.schedule(plan.seed, 0).next();
            first.map_or(Vec::new(), |(_, pairs)| pairs.collect())
        }
    };
    let dead = unreached(&plan.treatments, &pairs, target, options.interrupted);
    if dead.is_empty() {
        return Ok(draft);
    }
    let mut warnings: Vec<Warning> = Vec::new();
    for (id, reason) in &dead {
        let one = Warning::CarriesNothing {
            network: plan.treatments[*id].label.clone(),
            reason: reason.clone(),
        };
        if !warnings.contains(&one) {
            warnings.push(one);
        }
    }
    let gone: Vec<usize> = dead.iter().map(|(id, _)| *id).collect();
    // A gate that left out what a change broke would judge the rest, and let it pass.
    let is_judged = |id: &usize| plan.treatments[*id].baseline.is_some();
    let is_needed = plan.sequential.is_some() && gone.iter().any(is_judged);
    let left = (!is_needed).then(|| draft.without(&gone)).flatten();
    let Some(draft) = left else {
        let sentences = warnings.iter().map(warning::text);
        return Err(SessionError::CarriesNothing(sentences.collect()));
    };
    said.extend(warnings);
    Ok(draft)
}
