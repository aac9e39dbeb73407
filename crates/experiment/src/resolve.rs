//! From an experiment to a plan: networks by name, treatments, baselines, order.

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::budget;
use crate::ceiling::MAX_TRIALS;
use crate::load::Share;
use crate::spec::{Spec, Word};
use crate::{Draft, Family, Placement, Plan, SpecError, Treatment, TreatmentId, reference};

/// Gives the target's names of a network as written.
type Expand<'a> = &'a dyn Fn(&str) -> Result<Vec<String>, String>;

/// One level of the factor `network`.
struct Level {
    network: String,
    /// `host-gw`, or `host-gw#2` for its second copy.
    label: String,
    /// Which level it is compared with; `None` for the baseline.
    baseline: Option<usize>,
}

/// Expands a spec. `seed` counts where the spec sets none.
pub(crate) fn draft(spec: Spec, seed: u64, expand: Expand<'_>) -> Result<Draft, SpecError> {
    let levels = levels(&spec, expand)?;
    let (mut treatments, shares) = treatments(&spec, &levels);
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
    let window_share = budget::shorten(&mut treatments, spec.blocks, spec.budget);
    let seed = spec.seed.unwrap_or(seed);
    let plan = Plan {
        experiment: spec.name,
        question: spec.question,
        study: spec.study,
        seed,
        blocks: blocks(treatments.len(), spec.blocks, seed),
        treatments,
        retries: spec.retries,
        limits: spec.limits,
        link: spec.link,
        distribution: spec.distribution,
    };
    Ok(Draft::new(plan, shares, window_share))
}

/// Each block holds every treatment once, in an order of its own (C-1).
pub(crate) fn blocks(treatments: usize, blocks: u32, seed: u64) -> Vec<Vec<TreatmentId>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..blocks)
        .map(|_| {
            let mut block: Vec<TreatmentId> = (0..treatments).collect();
            block.shuffle(&mut random);
            block
        })
        .collect()
}

/// As [`blocks`], but for treatments of one group, which stay together: the
/// groups of a block are in an order of its own, and the treatments of each
/// group too. `groups` gives the group of each treatment.
pub(crate) fn nested_blocks(groups: &[usize], blocks: u32, seed: u64) -> Vec<Vec<TreatmentId>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let count = groups.iter().max().map_or(0, |last| last + 1);
    (0..blocks)
        .map(|_| {
            let mut order: Vec<usize> = (0..count).collect();
            order.shuffle(&mut random);
            let mut block = Vec::with_capacity(groups.len());
            for group in order {
                let of_it = |id: &TreatmentId| groups[*id] == group;
                let mut members: Vec<TreatmentId> = (0..groups.len()).filter(of_it).collect();
                members.shuffle(&mut random);
                block.extend(members);
            }
            block
        })
        .collect()
}

/// The words of the factor `network`, each with each of the factor `path`.
fn words(spec: &Spec) -> Vec<Word> {
    if spec.paths.is_empty() {
        return spec.networks.clone();
    }
    let each = |network: &Word| -> Vec<Word> {
        let paths = spec.paths.iter();
        paths
            .map(|path| Word {
                text: format!("{}/{}", network.text, path.text),
                place: path.place.clone(),
            })
            .collect()
    };
    spec.networks.iter().flat_map(each).collect()
}

fn levels(spec: &Spec, expand: Expand<'_>) -> Result<Vec<Level>, SpecError> {
    let mut names: Vec<String> = Vec::new();
    let words = words(spec);
    for (at, word) in words.iter().enumerate() {
        let expanded = names_of(word, expand)?;
        // The same word again means a repetition, as in A/A. A group such as
        // `all`, or two systems that program one path, repeat nothing.
        let again = words[..at].iter().any(|it| it.text == word.text);
        let repeats = again && expanded.len() == 1;
        for name in expanded {
            if repeats || !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let baselines = names_of(&spec.baseline, expand)?;
    let against_itself = names.len() > 1 && names.iter().all(|name| *name == names[0]);
    if against_itself {
        let references = vec![names[0].clone(); names.len()];
        return Ok(with_baselines(&names, &references));
    }
    let wanted = references(spec, &names, &baselines)?;
    for baseline in baselines.iter().rev() {
        // A word may stand for paths that nothing is compared with.
        if wanted.contains(baseline) && !names.contains(baseline) {
            names.insert(0, baseline.clone());
        }
    }
    let references = references(spec, &names, &baselines)?;
    Ok(with_baselines(&names, &references))
}

/// What each level is compared with; a baseline with itself.
fn references(
    spec: &Spec,
    names: &[String],
    baselines: &[String],
) -> Result<Vec<String>, SpecError> {
    if let [one] = baselines {
        return Ok(vec![one.clone(); names.len()]);
    }
    let Some(found) = reference::references(names, baselines) else {
        let word = &spec.baseline;
        let problem = format!("`{}` is more than one network", word.text);
        let remedy = "name the one network that the others are compared with";
        return Err(match &word.place {
            Some(place) => SpecError::at(place, problem, remedy),
            None => SpecError::nowhere(problem, remedy),
        });
    };
    let pairs = names.iter().zip(found);
    Ok(pairs
        .map(|(name, reference)| reference.map_or(name, |at| &baselines[at]).clone())
        .collect())
}

fn names_of(word: &Word, expand: Expand<'_>) -> Result<Vec<String>, SpecError> {
    let problem = match expand(&word.text) {
        Ok(names) if !names.is_empty() => return Ok(names),
        Ok(_) => format!("`{}` stands for no network here", word.text),
        Err(problem) => problem,
    };
    let remedy = "`plumbline list networks` shows which there are, and what each needs";
    Err(match &word.place {
        Some(place) => SpecError::at(place, problem, remedy),
        None => SpecError::nowhere(problem, remedy),
    })
}

/// Labels the copies, and gives each level what it is compared with: a copy
/// its first occurrence, the rest the reference at the same position.
fn with_baselines(names: &[String], references: &[String]) -> Vec<Level> {
    let position = |name: &str| names.iter().position(|other| other == name);
    names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let copy = names[..at].iter().filter(|other| *other == name).count() + 1;
            let reference = if copy > 1 { name } else { &references[at] };
            Level {
                network: name.clone(),
                label: if copy > 1 {
                    format!("{name}#{copy}")
                } else {
                    name.clone()
                },
                baseline: position(reference).filter(|reference| *reference != at),
            }
        })
        .collect()
}

/// The full cross product. The network varies fastest, so that the baseline
/// of a treatment is found at a fixed distance.
fn treatments(spec: &Spec, levels: &[Level]) -> (Vec<Treatment>, Vec<Option<Share>>) {
    let mut treatments = Vec::new();
    let mut shares = Vec::new();
    for load in &spec.loads {
        for &placement in &spec.placements {
            for &family in &spec.families {
                let first = treatments.len();
                for level in levels {
                    shares.push(load.share);
                    treatments.push(Treatment {
                        id: treatments.len(),
                        label: label(spec, level, placement, family),
                        network: level.network.clone(),
                        placement,
                        family,
                        workload: load.workload.clone(),
                        timing: load.timing,
                        baseline: level.baseline.map(|reference| first + reference),
                    });
                }
            }
        }
    }
    (treatments, shares)
}

/// The network, and whatever else varies besides the workload.
fn label(spec: &Spec, level: &Level, placement: Placement, family: Family) -> String {
    let mut label = level.label.clone();
    if spec.placements.len() > 1 {
        label.push_str(match placement {
            Placement::CrossNode => " cross-node",
            Placement::SameNode => " same-node",
        });
    }
    if spec.families.len() > 1 {
        label.push_str(match family {
            Family::V4 => " ipv4",
            Family::V6 => " ipv6",
        });
    }
    label
}
