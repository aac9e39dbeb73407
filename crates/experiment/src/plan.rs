//! The expanded schedule: blocks of treatments in random order.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::DURING;
use crate::rotation::SLICE_NS;
use crate::{
    Link, Pairing, Precision, Rotation, Scene, Sequential, Treatment, TreatmentId, reference,
    survive,
};

/// Everything that a harness needs to run, fully resolved and reproducible
/// from its seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Name of the experiment.
    pub experiment: String,
    /// The question it answers, in a sentence.
    pub question: String,
    /// Name of the published study that the result is put beside
    /// ([`Study`](crate::study::Study)); null for none.
    #[serde(default)]
    pub study: Option<String>,
    /// Seed of every random choice: block order and Poisson arrivals.
    pub seed: u64,
    /// All treatments; `treatments[i].id == i`.
    pub treatments: Vec<Treatment>,
    /// How many of the treatments, the last ones, are controls: copies of baselines that
    /// show what the machine shows where nothing differs (D11). 0 in runs made before
    /// there were any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub controls: usize,
    /// For each block, every treatment once, in random order (D7, C-1). With a
    /// `precision`, or where the plan is `sequential`, these are all that there may be, and
    /// a run ends when it is reached, or the limits are decided.
    pub blocks: Vec<Vec<TreatmentId>>,
    /// How narrow intervals are to be, where blocks are added for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// When the limits are looked at, where they may end the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<Sequential>,
    /// Whether treatments of one workload take turns in slices of a block, where the
    /// target allows that ([`Plan::turns`]); false in runs made before they could.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rotate: bool,
    /// How long a slice is at most, nanoseconds. Runs made before it could be chosen had
    /// slices of 25 ms, and of 50 ms for bulk.
    #[serde(default = "slice_ns")]
    pub slice_ns: u64,
    /// How often a trial that fails a validity gate is repeated (C-14).
    pub retries: u32,
    /// The pairs of nodes that every trial is run on; null where there are two
    /// endpoints and no choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairing: Option<Pairing>,
    /// Limits that `compare` enforces with exit code 1: metric name to the
    /// largest allowed overhead as a fraction, such as `{"p50": 0.10}`.
    pub limits: BTreeMap<String, f64>,
    /// The link between the nodes, where the target makes it.
    #[serde(default, skip_serializing_if = "Link::is_default")]
    pub link: Link,
    /// Whether the report shows every latency as a histogram, with mean and
    /// deviation, beside its figures.
    #[serde(default)]
    pub distribution: bool,
}

fn slice_ns() -> u64 {
    SLICE_NS
}

fn is_zero(controls: &usize) -> bool {
    *controls == 0
}

impl Plan {
    /// The plan of a run of which `begun` blocks have trials: of those that may be added
    /// for precision or to decide limits, the rest is left out.
    #[must_use]
    pub fn as_begun(mut self, begun: usize) -> Self {
        let first = match (self.precision, &self.sequential) {
            (Some(precision), _) => precision.first_blocks,
            // It tells how many more there is time for.
            (None, Some(_)) => 1,
            (None, None) => return self,
        };
        self.blocks.truncate(begun.max(first));
        self
    }

    /// The commands that its trials run on this machine and that do not come with the
    /// program, each once, with its key.
    pub fn foreign_commands(&self) -> Vec<(&'static str, String)> {
        let mut commands: Vec<(&str, String)> = Vec::new();
        for survive in self.treatments.iter().filter_map(|it| it.task.survive()) {
            let command = (DURING, survive.during.clone());
            if !survive::is_ready_made(&command.1) && !commands.contains(&command) {
                commands.push(command);
            }
        }
        commands
    }

    /// The plan without its controls.
    #[must_use]
    pub fn without_controls(mut self) -> Self {
        let compared = self.compared();
        self.treatments.truncate(compared);
        for block in &mut self.blocks {
            block.retain(|id| *id < compared);
        }
        self.controls = 0;
        self
    }

    /// How many treatments are no controls.
    pub(crate) fn compared(&self) -> usize {
        self.treatments.len().saturating_sub(self.controls)
    }

    /// Trials without repetitions.
    pub fn trials(&self) -> usize {
        let of_a_pair: usize = self.blocks.iter().map(Vec::len).sum();
        of_a_pair * self.pairs()
    }

    /// The positions of a block in sets: the treatments of one set take turns, because
    /// they have the same load and phases. On a link with distance or a rate, what is
    /// under way at the end of a slice would arrive in the next one, so there every
    /// treatment is a set of its own, as it is without a rotation, or where its pods are
    /// limited to a rate.
    pub fn turns(&self, block: usize) -> Vec<Vec<usize>> {
        let order = &self.blocks[block];
        let link = self.link;
        let together = self.rotate
            && self.pairing.is_none()
            && !link.has_distance()
            && link.rate_bits.is_none();
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for (position, &id) in order.iter().enumerate() {
            let one = &self.treatments[id];
            let is_like = |set: &&mut Vec<usize>| {
                let other = &self.treatments[order[set[0]]];
                let holds_packets = [one, other].iter().any(|it| it.scene.holds_packets());
                !holds_packets
                    && one.task.load().is_some()
                    && other.task == one.task
                    && other.timing == one.timing
            };
            match sets.iter_mut().find(is_like).filter(|_| together) {
                Some(set) => set.push(position),
                None => sets.push(vec![position]),
            }
        }
        sets
    }

    /// Pairs of nodes that every treatment of a block is run on.
    pub fn pairs(&self) -> usize {
        self.pairing.as_ref().map_or(1, Pairing::pairs)
    }

    /// Compares every treatment with the one of network `baseline` that is equal
    /// in all else, instead of with the baseline that was planned. In a plan of
    /// several networks with several paths, `baseline` may be a path that each
    /// network has, or a network that has each path. Any network of a plan can be
    /// the reference, because a block holds every treatment (D7); looking for the
    /// reference that gives the wanted answer is another matter (C-10). Copies of a
    /// network stay compared with the first, and what is laid on a path with that path.
    ///
    /// # Errors
    ///
    /// The networks that the plan has, when `baseline` is none of them; then
    /// nothing has changed.
    pub fn compare_with(&mut self, baseline: &str) -> Result<(), Vec<String>> {
        let is_first = |treatment: &Treatment| treatment.copy == 1;
        let network = |treatment: &Treatment| Scene::default().with_network_of(&treatment.scene);
        let mut known: Vec<Scene> = self.treatments.iter().map(network).collect();
        known.sort_unstable();
        known.dedup();
        let meant: Vec<Scene> = reference::meant(baseline, &known)
            .into_iter()
            .cloned()
            .collect();
        let references = match &meant[..] {
            [] => None,
            meant => reference::references(&known, meant),
        };
        let Some(references) = references else {
            return Err(known.iter().map(|one| one.name().into_owned()).collect());
        };
        let reference_of = |treatment: &Treatment| {
            let at = known.binary_search(&network(treatment)).ok()?;
            Some(&meant[references[at]?])
        };
        let before = self.treatments.clone();
        let is_of_its_own_path = |treatment: &Treatment| {
            let baseline = treatment.baseline.and_then(|id| before.get(id));
            baseline.is_some_and(|bare| treatment.is_dressed_like(bare))
        };
        let of_networks = |one: &&mut Treatment| is_first(one) && !is_of_its_own_path(one);
        for treatment in self.treatments.iter_mut().filter(of_networks) {
            let reference = reference_of(treatment).and_then(|wanted| {
                let of_wanted = |one: &&Treatment| is_first(one) && network(one) == *wanted;
                let mut like = before.iter().filter(of_wanted);
                let mut of_own = like.clone();
                let like = like.find(|one| one.is_like(treatment));
                like.or_else(|| of_own.find(|one| one.is_like_of_own(treatment)))
            });
            treatment.baseline = reference.map(|one| one.id).filter(|id| *id != treatment.id);
        }
        Ok(())
    }

    /// How long the plan takes on one pair when nothing is repeated, given what a trial
    /// costs beside its phases (agents started, counters read).
    pub fn duration_estimate(&self, per_trial: Duration) -> Duration {
        let of_block = |(number, block): (usize, &Vec<TreatmentId>)| {
            self.phases_of(number) + per_trial * block.len() as u32
        };
        self.blocks.iter().enumerate().map(of_block).sum()
    }

    /// The phases of all trials of a block. Where treatments take turns, nobody sends for
    /// as long as one of them does.
    pub(crate) fn phases_of(&self, block: usize) -> Duration {
        let order = &self.blocks[block];
        let of_set = |set: Vec<usize>| {
            let timing = self.treatments[order[set[0]]].timing;
            match set.len() {
                1 => timing.expected(),
                members => Rotation::duration(members + 1, self.slice_ns, timing),
            }
        };
        self.turns(block).into_iter().map(of_set).sum()
    }
}
