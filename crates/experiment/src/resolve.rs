//! From an experiment to a plan: networks by name, treatments, baselines, order.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget;
use crate::ceiling::{MAX_BLOCKS, MAX_SETTINGS, MAX_TRIALS};
use crate::draft::Sharing;
use crate::load::TimedTask;
use crate::order::blocks;
use crate::refusal::Spelling;
use crate::requested::{Expand, RequestedNetwork, check_variants, requests};
use crate::spec::{Setting, Spec};
use crate::{
    Draft, Enforcer, FACTORS, Factor, Plan, Precision, ProgrammedObject, Scene, SpecError, Task,
    Treatment, looks, reference,
};

/// One level of the factor `network`, with its path.
struct Level {
    scene: Scene,
    /// Which copy of the scene this is, from 1.
    copy: u32,
    /// Which level it is compared with; `None` for the baseline.
    baseline: Option<usize>,
}

impl Level {
    /// `host-gw`, or `host-gw#2` for its second copy.
    fn label(&self) -> String {
        match self.copy {
            1 => self.scene.name().into_owned(),
            copy => format!("{}#{copy}", self.scene.name()),
        }
    }
}

/// How many times as many blocks there may be where they are added for precision.
const MOST_ADDED: u32 = 20;

/// Networks or dressings beside a baseline from which on it is worth a control that nobody asked for:
/// it takes the time of one more.
const WORTH_A_CONTROL: usize = 2;

/// Expands a spec. `seed` counts where the spec sets none. `control` says whether
/// baselines get controls where the spec does not.
pub(crate) fn draft(
    spec: Spec,
    seed: u64,
    control: bool,
    expand: Expand<'_>,
) -> Result<Draft, SpecError> {
    let levels = levels(&spec, expand)?;
    // Before any of them is made.
    refuse_too_many(treatments_of(&spec, &levels), spec.blocks)?;
    refuse_own_twice(&spec, &levels)?;
    let (mut treatments, mut shares) = treatments(&spec, &levels);
    treatments.iter().try_for_each(check_planted)?;
    let compared = treatments.len();
    let others = levels.iter().filter(|level| level.baseline.is_some());
    let settings: Vec<&Setting> = spec.settings.iter().collect();
    let dressed = settings.iter().filter(|it| bare(&settings, it).is_some());
    let is_worth = others.clone().count() + dressed.count() >= WORTH_A_CONTROL
        && others.clone().all(|it| it.copy == 1);
    if spec.control.unwrap_or(control && is_worth) {
        add_controls(&mut treatments, &mut shares);
    }
    refuse_too_many(treatments.len(), spec.blocks)?;
    let seed = spec.seed.unwrap_or(seed);
    let precision = spec.precision.map(|half_width| Precision {
        half_width,
        first_blocks: spec.blocks as usize,
        // At most a week.
        budget_ns: spec.budget.map(|budget| budget.as_nanos() as u64),
    });
    // Fewer than a u32 holds.
    let room = (MAX_TRIALS / treatments.len().max(1)) as u32;
    let most = match precision {
        Some(_) => (spec.blocks * MOST_ADDED).min(room).min(MAX_BLOCKS),
        // The budget bounds them.
        None if spec.sequential => room,
        None => spec.blocks,
    };
    let most = most.max(spec.blocks);
    let mut plan = Plan {
        seed,
        blocks: blocks(treatments.len(), most, seed),
        precision,
        controls: treatments.len() - compared,
        treatments,
        ..spec.outline
    };
    let window_share = budget::shorten(&mut plan, spec.blocks, spec.budget);
    if spec.sequential {
        looks::set_looks(&mut plan, spec.blocks as usize, spec.budget);
    }
    Ok(Draft::new(plan, shares, window_share))
}

/// How many treatments there will be, controls aside; as many as the scenes at least, from
/// which they are made.
fn treatments_of(spec: &Spec, levels: &[Level]) -> usize {
    let of_load = |load: &TimedTask| settings_of(&load.task, &spec.settings).len();
    let settings: usize = spec.loads.iter().map(of_load).sum();
    settings.max(spec.settings.len()) * levels.len()
}

fn refuse_too_many(treatments: usize, blocks: u32) -> Result<(), SpecError> {
    let trials = treatments.saturating_mul(blocks as usize);
    if trials <= MAX_TRIALS {
        return Ok(());
    }
    let problem = format!(
        "{treatments} treatments in {blocks} blocks are {trials} trials; at most {MAX_TRIALS} are \
         allowed"
    );
    Err(SpecError::nowhere(problem, "use fewer levels or blocks"))
}

/// Only a receiver of ours that answers can compute before it does.
fn check_planted(treatment: &Treatment) -> Result<(), SpecError> {
    if treatment.scene.planted_ns == 0 {
        return Ok(());
    }
    treatment.performed().check().map_err(|refusal| {
        let (label, task) = (&treatment.label, treatment.task.name());
        let why = refusal.problem(Spelling::File);
        SpecError::nowhere(
            format!("nothing can be planted in `{label}` under `{task}`: {why}"),
            "use workloads whose requests Plumbline's own server answers: rr, crr, http",
        )
    })
}

/// `own` may stand for a proxy, or an enforcer, that is a level as well.
fn refuse_own_twice(spec: &Spec, levels: &[Level]) -> Result<(), SpecError> {
    for level in levels {
        let mut seen = BTreeMap::new();
        for setting in &spec.settings {
            let scene = setting.of(&level.scene);
            let Some(before) = seen.insert(scene.clone(), setting) else {
                continue;
            };
            let (factor, own) = if before.scene.services == setting.scene.services {
                ("enforcer", scene.policies.enforcer.as_str())
            } else {
                ("proxy", scene.services.proxy.as_str())
            };
            let name = scene.name();
            return Err(SpecError::nowhere(
                format!("`own` is `{own}` on `{name}`, and that is another level"),
                format!("leave one of them out of `{factor}`"),
            ));
        }
    }
    Ok(())
}

fn levels(spec: &Spec, expand: Expand<'_>) -> Result<Vec<Level>, SpecError> {
    let mut scenes: Vec<Scene> = Vec::new();
    let asked = spec.networks.len() * (spec.variants.len() + 1) * spec.paths.len().max(1);
    if asked > MAX_SETTINGS {
        let problem = format!("{asked} networks, variants and paths; at most {MAX_SETTINGS}");
        return Err(SpecError::nowhere(problem, "use fewer"));
    }
    let requests = requests(spec);
    for (at, request) in requests.iter().enumerate() {
        let expanded = request.expand(expand)?;
        // The same word again means a repetition, as in A/A. A group such as
        // `all`, or two systems that program one path, repeat nothing.
        let again = requests[..at].iter().any(|it| it.is_same(request));
        let repeats = again && expanded.len() == 1;
        for scene in expanded {
            if repeats || !scenes.contains(&scene) {
                scenes.push(scene);
            }
        }
    }
    let baseline = RequestedNetwork::new(&spec.baseline, &spec.variants);
    let baselines = baseline.expand(expand)?;
    // After the target has refused what it cannot have at all.
    check_variants(spec, expand)?;
    let against_itself = scenes.len() > 1 && scenes.iter().all(|scene| *scene == scenes[0]);
    if against_itself {
        let references = vec![scenes[0].clone(); scenes.len()];
        return Ok(with_baselines(&scenes, &references));
    }
    let wanted = references(&baseline, &scenes, &baselines)?;
    for baseline in baselines.iter().rev() {
        // A word may stand for paths that nothing is compared with.
        if wanted.contains(baseline) && !scenes.contains(baseline) {
            scenes.insert(0, baseline.clone());
        }
    }
    let references = references(&baseline, &scenes, &baselines)?;
    Ok(with_baselines(&scenes, &references))
}

/// What each level is compared with; a baseline with itself.
fn references(
    baseline: &RequestedNetwork<'_>,
    scenes: &[Scene],
    baselines: &[Scene],
) -> Result<Vec<Scene>, SpecError> {
    let Some(found) = reference::references(scenes, baselines) else {
        let problem = format!("`{}` is more than one network", baseline.word());
        let remedy = "name the one network that the others are compared with";
        return Err(baseline.refused(problem, remedy));
    };
    let pairs = scenes.iter().zip(found);
    let of = |(scene, reference): (&Scene, Option<usize>)| {
        let Some(at) = reference else {
            return scene.clone();
        };
        let plain = plain(scene).filter(|it| scenes.contains(it));
        plain.unwrap_or_else(|| baselines[at].clone())
    };
    Ok(pairs.map(of).collect())
}

/// The network as it is, of a variant.
fn plain(scene: &Scene) -> Option<Scene> {
    scene.variant.as_ref()?;
    Some(Scene {
        variant: None,
        ..scene.clone()
    })
}

/// Numbers the copies, and gives each level what it is compared with: a copy
/// its first occurrence, the rest the reference at the same position.
fn with_baselines(scenes: &[Scene], references: &[Scene]) -> Vec<Level> {
    let position = |scene: &Scene| scenes.iter().position(|other| other == scene);
    let level = |(at, scene): (usize, &Scene)| {
        let before = scenes[..at].iter().filter(|other| *other == scene).count();
        let reference = if before > 0 { scene } else { &references[at] };
        Level {
            scene: scene.clone(),
            // A plan has far fewer levels than a u32 holds.
            copy: before as u32 + 1,
            baseline: position(reference).filter(|reference| *reference != at),
        }
    };
    scenes.iter().enumerate().map(level).collect()
}

/// Position of the setting that is the same with less laid on its path.
fn bare(settings: &[&Setting], of: &Setting) -> Option<usize> {
    let mut barer = of.scene.barer().into_iter();
    barer.find_map(|bare| settings.iter().position(|it| it.scene == bare))
}

/// The settings in which a task is done: a change of one kind of thing among those of that
/// kind alone, where the plan has such settings.
fn settings_of<'s>(task: &Task, all: &'s [Setting]) -> Vec<&'s Setting> {
    let is_among = |setting: &&Setting| match task.programming().map(|it| it.object) {
        Some(ProgrammedObject::Service) => setting.scene.policies.is_none(),
        Some(ProgrammedObject::Policy) => setting.scene.services.is_none(),
        None => true,
    };
    let among: Vec<&Setting> = all.iter().filter(is_among).collect();
    match among.is_empty() {
        true => all.iter().collect(),
        false => among,
    }
}

/// Factors that may be left to the network, each with all of its levels in the plan: a label
/// names that of the network where there are several.
fn left_to_network(spec: &Spec, levels: &[Level]) -> Vec<(&'static Factor, BTreeSet<String>)> {
    let of = |setting: &Setting| -> Vec<Scene> {
        let networks = levels.iter().map(|level| &level.scene);
        networks.map(|it| setting.of(it)).collect()
    };
    let scenes: Vec<Scene> = spec.settings.iter().flat_map(of).collect();
    let factors = FACTORS
        .iter()
        .filter(|it| ["proxy", "enforcer"].contains(&it.name));
    let with_levels = |factor: &'static Factor| {
        let mut named: BTreeSet<String> = scenes.iter().map(factor.level).collect();
        named.remove("");
        (factor, named)
    };
    factors.map(with_levels).collect()
}

/// The full cross product. The network varies fastest, so that the baseline
/// of a treatment is found at a fixed distance: in its own setting, or in the one
/// without what is laid on the path, where the plan has it.
fn treatments(spec: &Spec, levels: &[Level]) -> (Vec<Treatment>, Vec<Option<Sharing>>) {
    let mut treatments = Vec::new();
    let mut shares = Vec::new();
    let left = left_to_network(spec, levels);
    for load in &spec.loads {
        let first_of_load = treatments.len();
        let settings = settings_of(&load.task, &spec.settings);
        for setting in &settings {
            let first = treatments.len();
            let bare = bare(&settings, setting).map(|it| first_of_load + it * levels.len());
            for (at, level) in levels.iter().enumerate() {
                let of_network = level.baseline.map(|reference| first + reference);
                let scene = setting.of(&level.scene);
                let own = left.iter().filter(|(factor, named)| {
                    named.len() > 1 && (factor.level)(&setting.scene) == Enforcer::Own.as_str()
                });
                let own: String = own
                    .map(|(factor, _)| format!(" {}", (factor.level)(&scene)))
                    .collect();
                let baseline = match bare {
                    // A copy stays compared with what it is a copy of.
                    Some(bare) if level.copy == 1 => Some(bare + at),
                    _ => of_network,
                };
                shares.push(load.share.map(|share| Sharing {
                    share,
                    workload: load.base_name.clone(),
                }));
                treatments.push(Treatment {
                    id: treatments.len(),
                    label: level.label() + &setting.suffix + &own,
                    scene,
                    copy: level.copy,
                    task: load.task.clone(),
                    timing: load.timing,
                    baseline,
                });
            }
        }
    }
    (treatments, shares)
}

/// Adds a copy of every baseline that something is compared with, to be compared with
/// it (D11).
fn add_controls(treatments: &mut Vec<Treatment>, shares: &mut Vec<Option<Sharing>>) {
    let baselines: BTreeSet<usize> = treatments.iter().filter_map(|one| one.baseline).collect();
    for baseline in baselines {
        let of = &treatments[baseline];
        let is_copy = |one: &&Treatment| one.is_like(of) && one.scene == of.scene;
        // A plan has far fewer treatments than a u32 holds.
        let copy = treatments.iter().filter(is_copy).count() as u32 + 1;
        let suffix = of.label.strip_prefix(&*of.scene.name()).unwrap_or_default();
        treatments.push(Treatment {
            id: treatments.len(),
            label: format!("{}#{copy}{suffix}", of.scene.name()),
            copy,
            baseline: Some(baseline),
            ..of.clone()
        });
        shares.push(shares[baseline].clone());
    }
}
