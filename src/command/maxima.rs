//! The maxima that an experiment's loads are shares of, measured before its
//! first block on the baseline's path.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plumbline_experiment::{Draft, Limit, ceiling};
use plumbline_harness::{SearchPlan, Settings, Target, maximum, search_path};
use plumbline_record::{Maximum, RunDirectory, SearchRecord, SearchTrial, Warning};
use plumbline_report::number;

use crate::progress;

/// What was searched and what was found.
#[derive(Default)]
pub(super) struct Maxima {
    /// In the order in which the draft asks.
    pub(super) found: Vec<Maximum>,
    pub(super) searches: Vec<SearchRecord>,
}

impl Maxima {
    /// Per second, in the order in which the draft asks.
    pub(super) fn rates(&self) -> Vec<f64> {
        self.found.iter().map(|one| one.rate).collect()
    }

    /// Those that say nothing of the network.
    pub(super) fn warnings(&self) -> impl Iterator<Item = Warning> {
        let of_the_generator = self.found.iter().filter(|one| one.generator_limited);
        of_the_generator.map(|one| Warning::MaximumOfTheGenerator {
            workload: one.workload.clone(),
        })
    }
}

/// Searches all that the draft asks for. Where there is no maximum to be had,
/// and so no run, every trial of the searches is left in a file in `out`.
pub(super) fn measure(
    draft: &Draft,
    target: &mut dyn Target,
    settings: &Settings,
    interrupted: &AtomicBool,
    (out, experiment): (&Path, &str),
) -> anyhow::Result<Maxima> {
    let mut maxima = Maxima::default();
    let searched = search_all(draft, target, settings, interrupted, &mut maxima);
    let Err(error) = searched else {
        return Ok(maxima);
    };
    if maxima.searches.iter().all(|one| one.trials.is_empty()) {
        return Err(error);
    }
    let kept = RunDirectory::keep_searches(out, experiment, &maxima.searches);
    Err(match kept {
        Ok(path) => anyhow::anyhow!("{error:#}; its trials are in {}", path.display()),
        Err(unkept) => anyhow::anyhow!("{error:#}; its trials could not be kept: {unkept}"),
    })
}

fn search_all(
    draft: &Draft,
    target: &mut dyn Target,
    settings: &Settings,
    interrupted: &AtomicBool,
    maxima: &mut Maxima,
) -> anyhow::Result<()> {
    for (at, sought) in draft.sought().iter().enumerate() {
        let what = format!(
            "maximum of {} with {} on {}",
            sought.treatment.workload.name,
            sought.limit,
            sought.treatment.scene.name()
        );
        progress::say(&format!("{what}: searching, about a minute"));
        let plan = SearchPlan::for_shares(sought, ceiling::MAX_RATE);
        let mut seen = |trial: &SearchTrial| progress::say(&line(sought.limit, trial));
        let record = search_path(
            sought,
            &plan,
            target,
            draft.search_seed(at),
            settings,
            interrupted,
            &mut seen,
        )?;
        let found = maximum(&record);
        maxima.searches.push(record);
        let found = found?;
        progress::say(&format!("{what}: {}", number::rate(found.rate.round())));
        maxima.found.push(found);
    }
    Ok(())
}

/// `  1,667/s missed: p99 12.3 ms, 0.4 % not answered in time`, so that who
/// waits sees what a low maximum comes from.
fn line(limit: Limit, trial: &SearchTrial) -> String {
    let verdict = if trial.held { "held" } else { "missed" };
    let disturbed = if trial.disturbed.is_empty() {
        ""
    } else {
        ", disturbed"
    };
    let latency = match limit {
        Limit::Latency { quantile, .. } => format!(
            ": {} {}",
            number::percentile_name(quantile),
            number::duration(trial.load.latency.value_at(quantile) as f64)
        ),
        Limit::Loss { .. } => String::new(),
    };
    let lost = if trial.loss_ratio > 0.0 {
        format!(
            ", {} not answered in time",
            number::percent(trial.loss_ratio)
        )
    } else {
        String::new()
    };
    format!(
        "  {} {verdict}{disturbed}{latency}{lost}",
        number::rate(trial.rate.round())
    )
}
