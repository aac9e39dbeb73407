//! The machines of a round without load, and what is known of those that do not
//! answer.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use plumbline_experiment::{Ends, Treatment};
use plumbline_record::IdleSample;

use crate::error::TargetError;
use crate::gate;
use crate::settings::Settings;
use crate::target::Target;
use crate::together::joined;

/// How often in a row a node may fail to answer: to ask a pod that does not start
/// again in every round would take a minute of each.
const SILENCES: usize = 2;

/// A node of one of the target's sites.
type SiteNode = (String, usize);

/// What is known of the machines in a block.
#[derive(Default)]
pub(super) struct Rest {
    /// Idle samples of this round.
    samples: BTreeMap<SiteNode, IdleSample>,
    /// How often in a row a machine has not answered, and why.
    silent: BTreeMap<SiteNode, (usize, String)>,
}

impl Rest {
    /// Before another round.
    pub(super) fn forget_samples(&mut self) {
        self.samples.clear();
    }

    /// Why a node is not asked any more in this block.
    pub(super) fn given_up(&self, site: &str, node: usize) -> Option<String> {
        let (times, fault) = self.silent.get(&(site.to_owned(), node))?;
        (*times >= SILENCES).then(|| format!("{fault}; it is not asked again in this block"))
    }

    /// Measures the machines under a treatment, all of them at once. A sample that
    /// caught somebody else's load is taken again before the next trial, so that a
    /// short disturbance costs one trial and not the round. Gives what is wrong
    /// with nodes that could not be measured.
    pub(super) fn measure(
        &mut self,
        target: &dyn Target,
        treatment: &Treatment,
        nodes: &BTreeSet<usize>,
        settings: &Settings,
    ) -> BTreeMap<usize, String> {
        let limits = &settings.thresholds;
        let is_usable = |sample: &IdleSample| gate::idle_load(sample, limits).is_none();
        let site = target.site_of(treatment);
        let is_wanted = |node: &usize| {
            let sample = self.samples.get(&(site.clone(), *node));
            !sample.is_some_and(is_usable)
        };
        let wanted: Vec<usize> = nodes.iter().copied().filter(is_wanted).collect();
        let samples: Vec<Result<IdleSample, TargetError>> = thread::scope(|scope| {
            let sample =
                |&node| scope.spawn(move || target.idle_sample(treatment, node, settings.idle));
            let threads: Vec<_> = wanted.iter().map(sample).collect();
            threads.into_iter().map(joined).collect()
        });
        let mut faults = BTreeMap::new();
        for (node, sample) in wanted.into_iter().zip(samples) {
            let machine = (site.clone(), node);
            match sample {
                Ok(sample) => {
                    self.samples.insert(machine.clone(), sample);
                    self.silent.remove(&machine);
                }
                Err(error) => {
                    let name = target.nodes().get(node).cloned().unwrap_or_default();
                    let fault = format!("{name} could not be measured without load: {error}");
                    let (times, said) = self.silent.entry(machine).or_default();
                    *times += 1;
                    said.clone_from(&fault);
                    faults.insert(node, fault);
                }
            }
        }
        faults
    }

    /// The sample of the machines of a pair: of both, or of the only one.
    pub(super) fn of(&self, target: &dyn Target, treatment: &Treatment, ends: Ends) -> IdleSample {
        let machines = if target.shares_kernel(treatment, ends) {
            &ends[..1]
        } else {
            &ends[..]
        };
        let site = target.site_of(treatment);
        let samples = machines
            .iter()
            .filter_map(|node| self.samples.get(&(site.clone(), *node)));
        samples.fold(IdleSample::default(), |sum, one| IdleSample {
            busy_ns: sum.busy_ns + one.busy_ns,
            capacity_ns: sum.capacity_ns + one.capacity_ns,
        })
    }
}
