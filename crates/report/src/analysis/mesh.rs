//! What each pair of nodes showed, and which are unlike the rest.

use std::collections::{BTreeMap, HashMap};

use plumbline_experiment::{Ends, Layout, Plan, TreatmentId};
use plumbline_stats::mesh::{OfPair, blocks_to_name, named};
use plumbline_stats::verdict::Direction;

use super::ledger::Ledger;
use super::metric::Metric;
use super::registry::leading;
use super::treatment::TreatmentSummary;

/// A run on several pairs of nodes.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// Their names, in the order of the plan.
    pub nodes: Vec<String>,
    /// How pairs were made of them.
    pub layout: Layout,
    /// One for each treatment.
    pub maps: Vec<MeshMap>,
}

/// What one treatment showed on each pair.
#[derive(Clone, Debug)]
pub struct MeshMap {
    /// Which.
    pub treatment: TreatmentId,
    /// In which metric: the one that leads its workload.
    pub metric: &'static Metric,
    /// Pairs with a finished trial, by sender, then receiver.
    pub pairs: Vec<PairValue>,
    /// The median over pairs, in the metric's unit; `None` without a value.
    pub typical: Option<f64>,
    /// What is unlike the rest; `None` when the nodes are too few to tell.
    pub unlike: Option<Vec<MeshOutlier>>,
    /// Blocks that it takes to name anything, where there were fewer.
    pub blocks_needed: Option<usize>,
    /// Nodes, and pairs of others, without a single valid trial.
    pub dead: Vec<Dead>,
}

/// What a pair showed in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairValue {
    /// Sender and receiver.
    pub ends: Ends,
    /// The median over its valid trials, in the metric's unit; `None` when none
    /// of its trials counts.
    pub value: Option<f64>,
    /// How many count.
    pub trials: usize,
}

/// Something that is unlike the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeshOutlier {
    /// The pair; twice the same for a node.
    pub ends: Ends,
    /// How many times as much of the metric as elsewhere: of a node, over its
    /// pairs; of a pair, beyond what its nodes show.
    pub ratio: f64,
    /// Whether that is the worse direction.
    pub is_worse: bool,
}

/// What gave no valid trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Dead {
    /// The pair; twice the same for a node.
    pub ends: Ends,
    /// Pairs that it stands for.
    pub pairs: usize,
}

impl MeshOutlier {
    /// Whether it is a node.
    pub fn is_node(&self) -> bool {
        self.ends[0] == self.ends[1]
    }
}

impl Mesh {
    /// `None` for a run of one pair.
    pub(super) fn new(
        plan: &Plan,
        treatments: &[TreatmentSummary],
        ledger: &Ledger<'_>,
    ) -> Option<Self> {
        let pairing = plan.pairing.as_ref()?;
        let names = pairing.nodes.iter().enumerate();
        let positions: HashMap<&str, usize> = names.map(|(at, name)| (&**name, at)).collect();
        let map = |one: &TreatmentSummary| MeshMap::new(one, ledger, &positions);
        Some(Self {
            maps: treatments.iter().map(map).collect(),
            nodes: pairing.nodes.clone(),
            layout: pairing.layout,
        })
    }
}

impl MeshMap {
    fn new(
        treatment: &TreatmentSummary,
        ledger: &Ledger<'_>,
        positions: &HashMap<&str, usize>,
    ) -> Self {
        let task = &treatment.treatment.task;
        let metric = leading(task);
        let mut values: BTreeMap<Ends, Vec<f64>> = BTreeMap::new();
        let mut blocks: BTreeMap<u32, Vec<(Ends, f64)>> = BTreeMap::new();
        for (_, cell) in ledger.slots_of(treatment.id()) {
            let pair = cell.trials.first().and_then(|trial| trial.pair.as_ref());
            let ends = pair.and_then(|pair| {
                Some([
                    *positions.get(&*pair.client)?,
                    *positions.get(&*pair.server)?,
                ])
            });
            let Some(ends) = ends else { continue };
            let values = values.entry(ends).or_default();
            let Some((trial, seen)) = cell.kept() else {
                continue;
            };
            if let Some(value) = metric.of_trial(task, seen) {
                values.push(value);
                // Every other block turns all pairs round, so two show both directions.
                blocks
                    .entry(trial.block / 2)
                    .or_default()
                    .push((ends, value));
            }
        }
        let pairs = values.into_iter().map(|(ends, values)| PairValue {
            ends,
            trials: values.len(),
            value: median(values),
        });
        let pairs: Vec<PairValue> = pairs.collect();
        let is_worse = |ratio: f64| match metric.direction {
            Direction::HigherIsBetter => ratio < 1.0,
            Direction::LowerIsBetter => ratio > 1.0,
        };
        let known = pairs.iter().filter_map(|one| Some((one.ends, one.value?)));
        let both = both_ways(known, is_worse);
        let blocks: Vec<_> = blocks
            .into_values()
            .map(|block| both_ways(block.into_iter(), is_worse))
            .collect();
        let needed = blocks_to_name(positions.len());
        let found = named(positions.len(), &blocks).map(|found| {
            let nodes = found.nodes.into_iter().map(|(node, r)| ([node, node], r));
            let all = nodes.chain(found.pairs);
            all.map(|(ends, ratio)| MeshOutlier {
                ends,
                ratio,
                is_worse: is_worse(ratio),
            })
            .collect()
        });
        Self {
            treatment: treatment.id(),
            metric,
            typical: median(both.iter().map(|one| one.value).collect()),
            unlike: found,
            blocks_needed: (blocks.len() < needed).then_some(2 * needed),
            dead: dead(&pairs, positions.len()),
            pairs,
        }
    }

    /// How many times as bad as typical a value is: above 1 when it is worse.
    pub fn badness(&self, value: f64) -> Option<f64> {
        let typical = self.typical.filter(|typical| *typical > 0.0)?;
        Some(match self.metric.direction {
            Direction::LowerIsBetter => value / typical,
            Direction::HigherIsBetter => typical / value,
        })
    }

    /// What a pair showed with this sender and receiver, or else the other way
    /// round.
    pub fn cell(&self, ends: Ends) -> Option<&PairValue> {
        let found = |ends: Ends| {
            let at = self.pairs.binary_search_by_key(&ends, |one| one.ends);
            at.ok().map(|at| &self.pairs[at])
        };
        found(ends).or_else(|| found([ends[1], ends[0]]))
    }
}

/// One value for each pair: that of its worse direction, so that a fault of one
/// direction is not averaged away.
fn both_ways(
    pairs: impl Iterator<Item = (Ends, f64)>,
    is_worse: impl Fn(f64) -> bool,
) -> Vec<OfPair> {
    let mut worst: BTreeMap<Ends, f64> = BTreeMap::new();
    for ([a, b], value) in pairs {
        let known = worst.entry([a.min(b), a.max(b)]).or_insert(value);
        if is_worse(value / *known) {
            *known = value;
        }
    }
    let value = |(ends, value)| OfPair { ends, value };
    worst.into_iter().map(value).collect()
}

/// Nodes of which no pair works, and other pairs that do not.
fn dead(pairs: &[PairValue], nodes: usize) -> Vec<Dead> {
    let mut tried: BTreeMap<Ends, bool> = BTreeMap::new();
    for one in pairs {
        let [a, b] = one.ends;
        *tried.entry([a.min(b), a.max(b)]).or_insert(false) |= one.value.is_some();
    }
    let mut of_node = vec![(0, 0); nodes];
    for (ends, works) in &tried {
        for &end in ends {
            of_node[end].0 += 1;
            of_node[end].1 += usize::from(*works);
        }
    }
    // Of one pair, neither end is to be accused.
    let is_dead = |node: usize| of_node[node].0 > 1 && of_node[node].1 == 0;
    let nodes = (0..nodes).filter(|&node| is_dead(node)).map(|node| Dead {
        ends: [node, node],
        pairs: of_node[node].0,
    });
    let others = tried
        .iter()
        .filter(|(ends, works)| !**works && !ends.iter().any(|&end| is_dead(end)))
        .map(|(ends, _)| Dead {
            ends: *ends,
            pairs: 1,
        });
    nodes.chain(others).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}
