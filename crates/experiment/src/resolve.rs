//! From an experiment to a plan: networks by name, treatments, baselines, order.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::asked::Word;
use crate::budget;
use crate::ceiling::{MAX_ALL_ENDPOINTS, MAX_BLOCKS, MAX_TRIALS};
use crate::draft::Sharing;
use crate::order::blocks;
use crate::refusal::Spelling;
use crate::spec::{Setting, Spec};
use crate::{Asked, Draft, Plan, Precision, Scene, SpecError, Treatment, Wanted, reference};

/// Gives the networks that the target knows by a word: scenes of which only
/// the network counts.
pub(crate) type Expand<'a> = &'a dyn Fn(&Asked<'_>) -> Result<Vec<Scene>, String>;

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
    let (mut treatments, mut shares) = treatments(&spec, &levels);
    treatments.iter().try_for_each(check_planted)?;
    treatments.iter().try_for_each(check_services)?;
    let compared = treatments.len();
    let others = levels.iter().filter(|level| level.baseline.is_some());
    let dressed = spec.settings.iter().filter(|it| bare(&spec, it).is_some());
    let is_worth = others.clone().count() + dressed.count() >= WORTH_A_CONTROL
        && others.clone().all(|it| it.copy == 1);
    if spec.control.unwrap_or(control && is_worth) {
        add_controls(&mut treatments, &mut shares);
    }
    let trials = treatments.len().saturating_mul(spec.blocks as usize);
    if trials > MAX_TRIALS {
        return Err(SpecError::nowhere(
            format!(
                "{} treatments in {} blocks are {trials} trials; at most {MAX_TRIALS} are allowed",
                treatments.len(),
                spec.blocks
            ),
            "use fewer levels or blocks",
        ));
    }
    let seed = spec.seed.unwrap_or(seed);
    let precision = spec.precision.map(|half_width| Precision {
        half_width,
        first_blocks: spec.blocks as usize,
        // At most a week.
        budget_ns: spec.budget.map(|budget| budget.as_nanos() as u64),
    });
    let most = match precision {
        // Fewer than a u32 holds.
        Some(_) => (spec.blocks * MOST_ADDED)
            .min((MAX_TRIALS / treatments.len().max(1)) as u32)
            .clamp(spec.blocks, MAX_BLOCKS),
        None => spec.blocks,
    };
    let mut plan = Plan {
        seed,
        blocks: blocks(treatments.len(), most, seed),
        precision,
        controls: treatments.len() - compared,
        treatments,
        ..spec.outline
    };
    let window_share = budget::shorten(&mut plan, spec.blocks, spec.budget);
    Ok(Draft::new(plan, shares, window_share))
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

/// Each is allowed by itself, and their product may be too much.
fn check_services(treatment: &Treatment) -> Result<(), SpecError> {
    let services = treatment.scene.services;
    if !services.are_too_many() {
        return Ok(());
    }
    Err(SpecError::nowhere(
        format!(
            "{} services of {} endpoints each are more than {MAX_ALL_ENDPOINTS} endpoints",
            services.count, services.endpoints
        ),
        "use fewer services, or fewer endpoints",
    ))
}

/// A network with a path as the experiment asks for them, and where.
struct RequestedNetwork<'a> {
    network: &'a Word,
    path: Option<&'a Word>,
}

impl RequestedNetwork<'_> {
    /// The network, and what is planted beside it in nanoseconds: `host+2us`.
    fn planted(&self) -> (&str, u64) {
        let word = &*self.network.text;
        let parts = word.rsplit_once('+').and_then(|(network, time)| {
            let time: SignedDuration = time.parse().ok()?;
            Some((network, u64::try_from(time.as_nanos()).ok()?))
        });
        parts.unwrap_or((word, 0))
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            network: Wanted::new(self.planted().0),
            path: self.path.map(|path| Wanted::new(&path.text)),
        }
    }

    /// Points at the path where there is one.
    fn refused(&self, problem: String, remedy: &str) -> SpecError {
        match &self.path.unwrap_or(self.network).place {
            Some(place) => SpecError::at(place, problem, remedy),
            None => SpecError::nowhere(problem, remedy),
        }
    }

    fn expand(&self, expand: Expand<'_>) -> Result<Vec<Scene>, SpecError> {
        let problem = match expand(&self.asked()) {
            Ok(scenes) if !scenes.is_empty() => {
                let (_, planted_ns) = self.planted();
                let plant = |scene| Scene {
                    planted_ns,
                    ..scene
                };
                return Ok(scenes.into_iter().map(plant).collect());
            }
            Ok(_) => format!("`{}` stands for no network here", self.network.text),
            Err(problem) => problem,
        };
        let remedy = "`plumbline list networks` shows which there are, and what each needs";
        Err(self.refused(problem, remedy))
    }
}

fn requests(spec: &Spec) -> Vec<RequestedNetwork<'_>> {
    let with_paths = |network| -> Vec<RequestedNetwork<'_>> {
        if spec.paths.is_empty() {
            return vec![RequestedNetwork {
                network,
                path: None,
            }];
        }
        let paths = spec.paths.iter().map(Some);
        paths
            .map(|path| RequestedNetwork { network, path })
            .collect()
    };
    spec.networks.iter().flat_map(with_paths).collect()
}

fn levels(spec: &Spec, expand: Expand<'_>) -> Result<Vec<Level>, SpecError> {
    let mut scenes: Vec<Scene> = Vec::new();
    let requests = requests(spec);
    for (at, request) in requests.iter().enumerate() {
        let expanded = request.expand(expand)?;
        // The same word again means a repetition, as in A/A. A group such as
        // `all`, or two systems that program one path, repeat nothing.
        let again = requests[..at]
            .iter()
            .any(|it| (it.asked(), it.planted()) == (request.asked(), request.planted()));
        let repeats = again && expanded.len() == 1;
        for scene in expanded {
            if repeats || !scenes.contains(&scene) {
                scenes.push(scene);
            }
        }
    }
    let baseline = RequestedNetwork {
        network: &spec.baseline,
        path: None,
    };
    let baselines = baseline.expand(expand)?;
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
        let problem = format!("`{}` is more than one network", baseline.network.text);
        let remedy = "name the one network that the others are compared with";
        return Err(baseline.refused(problem, remedy));
    };
    let pairs = scenes.iter().zip(found);
    Ok(pairs
        .map(|(scene, reference)| reference.map_or(scene, |at| &baselines[at]).clone())
        .collect())
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
fn bare(spec: &Spec, of: &Setting) -> Option<usize> {
    let mut barer = of.scene.barer().into_iter();
    barer.find_map(|bare| spec.settings.iter().position(|it| it.scene == bare))
}

/// The full cross product. The network varies fastest, so that the baseline
/// of a treatment is found at a fixed distance: in its own setting, or in the one
/// without what is laid on the path, where the plan has it.
fn treatments(spec: &Spec, levels: &[Level]) -> (Vec<Treatment>, Vec<Option<Sharing>>) {
    let mut treatments = Vec::new();
    let mut shares = Vec::new();
    for load in &spec.loads {
        let first_of_load = treatments.len();
        for setting in &spec.settings {
            let first = treatments.len();
            let bare = bare(spec, setting).map(|it| first_of_load + it * levels.len());
            for (at, level) in levels.iter().enumerate() {
                let of_network = level.baseline.map(|reference| first + reference);
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
                    label: level.label() + &setting.suffix,
                    scene: setting.scene.with_network_of(&level.scene),
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
