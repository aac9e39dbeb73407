//! The maxima that an experiment's loads are shares of, measured before its
//! first block on the baseline's path.

use std::sync::atomic::AtomicBool;

use plumbline_experiment::{Draft, ceiling};
use plumbline_harness::{SearchFailure, SearchPlan, Settings, Target, maximum, search_path};
use plumbline_record::{Maximum, Pseudonyms, RunDirectory, SearchRecord, SearchTrial, Warning};

use crate::{News, RunOptions, SessionError, Watch};

/// The name of an experiment whose own stays out of what is kept.
const ANONYMOUS: &str = "experiment";

#[derive(Default)]
pub(crate) struct Maxima {
    /// In the order in which the draft asks.
    pub(crate) found: Vec<Maximum>,
    pub(crate) searches: Vec<SearchRecord>,
}

impl Maxima {
    /// Per second, in the order in which the draft asks.
    pub(crate) fn rates(&self) -> Vec<f64> {
        self.found.iter().map(|one| one.rate).collect()
    }

    /// Those that say nothing about the network.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> {
        let of_the_generator = self.found.iter().filter(|one| one.generator_limited);
        of_the_generator.map(|one| Warning::MaximumOfTheGenerator {
            workload: one.workload.clone(),
        })
    }
}

/// Searches all that the draft asks for. Where no maximum is found,
/// and so there is no run, every trial of the searches is left in a file in `out`.
pub(crate) fn measure(
    draft: &Draft,
    target: &mut dyn Target,
    settings: &Settings,
    options: &RunOptions<'_>,
    watch: &mut dyn Watch,
) -> Result<Maxima, SessionError> {
    let mut maxima = Maxima::default();
    let stop = options.interrupted;
    let searched = search_all(draft, target, settings, stop, watch, &mut maxima);
    let Err(failure) = searched else {
        return Ok(maxima);
    };
    let Maxima { mut searches, .. } = maxima;
    let mut experiment = draft.plan.experiment.clone();
    if options.anonymise {
        experiment = ANONYMOUS.to_owned();
        let mut names = Pseudonyms::default();
        for search in &mut searches {
            *search = names.search(search)?;
        }
    }
    let has_trials = searches.iter().any(|one| !one.trials.is_empty());
    let keep = || RunDirectory::keep_searches(options.out, &experiment, &searches);
    let kept = has_trials.then(keep).map(Box::new);
    Err(SessionError::Search { failure, kept })
}

fn search_all(
    draft: &Draft,
    target: &mut dyn Target,
    settings: &Settings,
    interrupted: &AtomicBool,
    watch: &mut dyn Watch,
    maxima: &mut Maxima,
) -> Result<(), SearchFailure> {
    for (at, sought) in draft.sought.iter().enumerate() {
        watch.hears(&News::Searching(sought));
        let plan = SearchPlan::for_shares(sought, ceiling::MAX_RATE);
        let mut seen = |trial: &SearchTrial| {
            let limit = sought.limit;
            watch.hears(&News::Tried { limit, trial });
        };
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
        let maximum = found?;
        watch.hears(&News::Found {
            sought,
            maximum: &maximum,
        });
        maxima.found.push(maximum);
    }
    Ok(())
}
