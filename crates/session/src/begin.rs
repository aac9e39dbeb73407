//! From an experiment to a run directory, before the first trial.

use std::cell::RefCell;

use plumbline_experiment::{Asked, Draft, Experiment, Link, Plan, Scene, Treatment, TreatmentId};
use plumbline_harness::{Demand, Target, prepare, refuse};
use plumbline_record::{FORMAT_VERSION, Provenance, Run, RunDirectory, Warning, without_secrets};

use crate::anonymous::Anonymous;
use crate::prepared::Prepared;
use crate::{News, RunOptions, SessionError, Watch, conditions, maxima, tried};

/// From so many services on it is said that they are made, because that takes longer than a
/// user waits without a word.
const MANY_SERVICES: u32 = 5_000;

/// Resolves the plan, has the target make everything that it needs, and only
/// then makes the run directory.
pub(crate) fn begin(
    experiment: Experiment,
    target: &mut dyn Target,
    options: &RunOptions<'_>,
    watch: &mut dyn Watch,
) -> Result<Prepared, SessionError> {
    let text = experiment.text().to_owned();
    let experiment = match target.has_controls() {
        true => experiment.with_control(),
        false => experiment,
    };
    let (draft, mut said) = draft(experiment, target)?;
    let first = draft.plan.blocks.first().cloned().unwrap_or_default();
    let services = draft
        .plan
        .treatments
        .iter()
        .map(|it| it.scene.services.count);
    if let Some(most) = services.max().filter(|most| *most >= MANY_SERVICES) {
        watch.hears(&News::Services(most));
    }
    make(target, draft.plan.link, &draft.plan.treatments, &first)?;
    let draft = tried::leave_out(draft, target, options, &mut said)?;
    let settings = conditions::settings(target);
    let floor = target.floor(settings.cpus.clone(), options.interrupted)?;
    let maxima = maxima::measure(&draft, target, &settings, options, watch)?;
    let share = draft.window_share;
    let mut plan = draft.settle(&maxima.rates())?;
    plan.pairing = options.pairing(target);
    let mut warnings = target.warnings();
    warnings.extend(said);
    warnings.extend(maxima.warnings());
    warnings.extend((share < 1.0).then_some(Warning::ShorterWindows { share }));
    let run = Run {
        damaged_lines: 0,
        format: FORMAT_VERSION,
        provenance: Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: Some(plumbline_build::build().map_err(SessionError::Build)?),
            command: without_secrets(&options.command),
            started: conditions::now(),
            target: target.name().to_owned(),
            anonymised: false,
            floor,
        },
        fingerprint: target.fingerprint()?,
        experiment_text: Some(text),
        maxima: maxima.found,
        conditions: Some(conditions::recorded(&settings)),
        warnings,
        plan,
    };
    let mut searches = maxima.searches;
    let anonymous = match options.anonymise {
        true => Some(Anonymous::begin(&run, &mut searches)?),
        false => None,
    };
    let shown = anonymous.as_ref().map_or(&run, |it| &it.run);
    let directory = RunDirectory::create(options.out, &shown.plan.experiment, shown, &searches)?;
    Ok(Prepared {
        directory,
        anonymous,
        run,
        trials: Vec::new(),
        build: None,
        settings,
    })
}

/// The plan as far as it is known without measuring, and what the target said
/// of the networks that it was asked for.
pub(crate) fn draft(
    experiment: Experiment,
    target: &mut dyn Target,
) -> Result<(Draft, Vec<Warning>), SessionError> {
    let families = experiment.families()?;
    let settings = experiment.settings()?;
    let said = RefCell::new(Vec::new());
    let asked = RefCell::new(&mut *target);
    let scenes = |one: &Asked<'_>| {
        let mut target = asked.borrow_mut();
        let mut said = said.borrow_mut();
        let found = target.scenes(one, &families, &mut said)?;
        possible(found, one, &settings, &mut **target, &mut said)
    };
    let mut draft = experiment.draft(random_seed(), &scenes)?;
    if let Some(why) = compares_nothing(&draft.plan, &said.borrow()) {
        return Err(SessionError::Usage(why));
    }
    if target.keeps_sites_together() {
        if !draft.sought.is_empty() {
            return Err(SessionError::Usage(
                "a load that is a share of the maximum needs networks that stand before the \
                 first trial; where clusters are made for the run, give a --rate"
                    .to_owned(),
            ));
        }
        draft = draft.keep_together(&|treatment| target.site_of(treatment));
    }
    Ok((draft, said.into_inner()))
}

/// The networks that the target found, without those of which it cannot have the variant
/// that was asked for.
fn possible(
    found: Vec<Scene>,
    asked: &Asked<'_>,
    settings: &[Scene],
    target: &mut dyn Target,
    said: &mut Vec<Warning>,
) -> Result<Vec<Scene>, String> {
    let Some(variant) = asked.variant else {
        return Ok(found);
    };
    let mut possible = Vec::new();
    for scene in found {
        let varied = variant.of(scene.clone());
        let mut lacks = None;
        for setting in settings {
            lacks = lacks.or(target.lacks(&setting.with_network_of(&varied))?);
        }
        match lacks {
            None => possible.push(scene),
            Some(needs) if variant.is_optional => said.push(Warning::Unsupported {
                network: varied.name().into_owned(),
                needs,
            }),
            Some(needs) => return Err(format!("{} cannot be had here: {needs}", varied.name())),
        }
    }
    Ok(possible)
}

/// Why there is nothing to compare, where all variants of the only scene were left out.
fn compares_nothing(plan: &Plan, said: &[Warning]) -> Option<String> {
    let only = &plan.treatments.first()?.scene;
    let is_it = |one: &Treatment| one.scene == *only && only.variant.is_none();
    if !plan.treatments.iter().all(is_it) {
        return None;
    }
    let lacking = |warning: &Warning| match warning {
        Warning::Unsupported { network, needs } => {
            let section = network.strip_prefix(&*only.network)?;
            let is_variant = section.starts_with('+');
            is_variant.then(|| format!("{network}: {needs}"))
        }
        _ => None,
    };
    let left_out: Vec<String> = said.iter().filter_map(lacking).collect();
    (!left_out.is_empty()).then(|| {
        format!(
            "no variant of {} can be had here, so there is nothing to compare it with: {}",
            only.network,
            left_out.join("; ")
        )
    })
}

/// Has the target make everything that these treatments need; `first` are those
/// of the first trials.
pub(crate) fn make(
    target: &mut dyn Target,
    link: Link,
    treatments: &[Treatment],
    first: &[TreatmentId],
) -> Result<(), SessionError> {
    let demand = Demand {
        treatments,
        first,
        link,
    };
    // What a target can never have was asked for by mistake.
    refuse(target, &demand).map_err(|error| SessionError::Usage(error.to_string()))?;
    Ok(prepare(target, &demand)?)
}

/// From the clock: it only has to differ from run to run, and is recorded.
fn random_seed() -> u64 {
    jiff::Timestamp::now().as_nanosecond() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plan of a network with two variants, one of them left out at least.
    fn plan(can_be_had: &str) -> Plan {
        let text = "name = \"t\"\ntarget = \"lab\"\n[factors]\nnetwork = \"routed\"\n\
                    [network.esp]\nencryption = \"esp\"\n[network.rps]\nrps = true\n\
                    [[workload]]\nkind = \"stream\"\n[design]\ncontrol = \"on\"\n";
        let scenes = |asked: &Asked<'_>| {
            let routed = Scene::of("routed");
            let wanted = asked.variant.map(|it| it.of(routed.clone()));
            let is_here = wanted.is_none_or(|it| it.name() == can_be_had);
            Ok(is_here.then_some(routed).into_iter().collect())
        };
        let experiment = Experiment::parse(text, "t.toml").unwrap();
        experiment.draft(1, &scenes).unwrap().plan
    }

    #[test]
    fn a_network_without_its_variants_is_compared_with_nothing() {
        let lacks = |network: &str| Warning::Unsupported {
            network: network.to_owned(),
            needs: "another kernel".to_owned(),
        };
        let [esp, rps] = ["routed+esp", "routed+rps"].map(lacks);
        let why = compares_nothing(&plan("none"), &[esp.clone(), rps]).unwrap();
        assert!(why.contains("routed+rps: another kernel"), "{why}");
        assert_eq!(compares_nothing(&plan("routed+rps"), &[esp]), None);
        // It was asked for without any.
        assert_eq!(compares_nothing(&plan("none"), &[lacks("vxlan")]), None);
    }
}
