//! A plan whose loads may still be shares of a maximum that is not measured yet.

use crate::ceiling::MAX_RATE;
use crate::request::Share;
use crate::{Arrival, Limit, Plan, Scene, SpecError, Treatment, TreatmentId, Workload, order};

/// What a treatment's load is a share of.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    pub(crate) share: Share,
    /// Name of the workload without the share.
    pub(crate) workload: String,
}

/// A plan that lacks the maxima that its loads are shares of.
/// [`settle`](Self::settle) fills them in.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The plan; rates that are shares of a maximum mean nothing yet.
    pub plan: Plan,
    /// By treatment.
    shares: Vec<Option<Sharing>>,
    /// What has to be measured before the plan is one; empty when nothing is a share.
    pub sought: Vec<Sought>,
    /// What is left of the phases that the experiment asked for, 0 to 1: less than 1
    /// when they were shortened to stay within the budget.
    pub window_share: f64,
}

/// A maximum that has to be measured: of a workload, on the baseline's path.
#[derive(Clone, Debug, PartialEq)]
pub struct Sought {
    /// The baseline's treatment.
    pub treatment: Treatment,
    /// Its workload, under its name without the share. Its rate means nothing.
    pub workload: Workload,
    /// What the maximum has to hold.
    pub limit: Limit,
}

impl Draft {
    pub(crate) fn new(plan: Plan, shares: Vec<Option<Sharing>>, window_share: f64) -> Self {
        let mut sought: Vec<Sought> = Vec::new();
        for (id, share) in shares.iter().enumerate() {
            let Some(one) = share.as_ref().and_then(|share| asked(&plan, id, share)) else {
                continue;
            };
            if !sought.iter().any(|other| is_same(other, &one)) {
                sought.push(one);
            }
        }
        Self {
            plan,
            shares,
            sought,
            window_share,
        }
    }

    /// Keeps treatments together in each block for which `group` says the same,
    /// where changing from one group to the next costs much: the order of the
    /// groups is random in each block, and the order within each group (C-1).
    #[must_use]
    pub fn keep_together(mut self, group: &dyn Fn(&Treatment) -> String) -> Self {
        let names: Vec<String> = self.plan.treatments.iter().map(group).collect();
        let position = |name: &String| names.iter().position(|other| other == name);
        let mut firsts: Vec<usize> = names.iter().filter_map(position).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let groups = names.iter().map(|name| {
            let first = position(name).unwrap_or_default();
            firsts.partition_point(|other| *other < first)
        });
        let groups: Vec<usize> = groups.collect();
        // A plan has at most as many blocks as a u32 holds.
        let blocks = self.plan.blocks.len() as u32;
        self.plan.blocks = order::nested_blocks(&groups, blocks, self.plan.seed);
        self
    }

    /// The draft without some treatments, such as those of a network that carries nothing;
    /// the others get new numbers. `None` when others are compared with one of them, or
    /// nothing that was to be compared is left.
    #[must_use]
    pub fn without(self, gone: &[TreatmentId]) -> Option<Self> {
        let Self {
            mut plan,
            shares,
            window_share,
            ..
        } = self;
        let is_compared = |plan: &Plan| {
            let mut compared = plan.treatments[..plan.compared()].iter();
            compared.any(|it| it.baseline.is_some())
        };
        let was_compared = is_compared(&plan);
        let (before, compared) = (plan.treatments.len(), plan.compared());
        let kept: Vec<TreatmentId> = (0..before).filter(|id| !gone.contains(id)).collect();
        let number = |id: TreatmentId| kept.binary_search(&id).ok();
        let renumbered = |(id, old): (TreatmentId, &TreatmentId)| {
            let treatment = plan.treatments[*old].clone();
            let baseline = match treatment.baseline {
                None => None,
                Some(one) => Some(number(one)?),
            };
            Some(Treatment {
                id,
                baseline,
                ..treatment
            })
        };
        plan.treatments = kept
            .iter()
            .enumerate()
            .map(renumbered)
            .collect::<Option<_>>()?;
        plan.controls = kept.iter().filter(|id| **id >= compared).count();
        for block in &mut plan.blocks {
            *block = block.iter().filter_map(|id| number(*id)).collect();
        }
        let shares = kept.iter().map(|id| shares[*id].clone()).collect();
        let is_of_use = !plan.treatments.is_empty() && is_compared(&plan) == was_compared;
        is_of_use.then(|| Self::new(plan, shares, window_share))
    }

    /// Seed of the search for the maximum at this position of
    /// `sought`. It follows from the plan's seed, so that the
    /// same seed searches with the same arrivals.
    pub fn search_seed(&self, position: usize) -> u64 {
        // Searches count their trials up from here: far apart, they share none.
        self.plan.seed.wrapping_add((position as u64) << 32)
    }

    /// The plan, given the maximum of each `sought` workload in
    /// requests per second, in that order. Every treatment gets its share of
    /// the *baseline's* maximum, so that all carry an equal load (N-11).
    ///
    /// # Errors
    ///
    /// A maximum that is missing, or whose share is not a possible rate.
    pub fn settle(mut self, maxima: &[f64]) -> Result<Plan, SpecError> {
        for (id, share) in self.shares.iter().enumerate() {
            let Some(sharing) = share else { continue };
            let Some(one) = asked(&self.plan, id, sharing) else {
                continue;
            };
            let share = &sharing.share;
            let at = self.sought.iter().position(|other| is_same(other, &one));
            let Some(&maximum) = at.and_then(|at| maxima.get(at)) else {
                return Err(unmeasured(&one));
            };
            let treatment = &mut self.plan.treatments[id];
            let rate = share.of_maximum * maximum;
            let window = treatment.timing.measure_ns as f64 / 1e9;
            if !(rate > 0.0 && rate <= MAX_RATE && rate * window >= 1.0) {
                return Err(impossible(share, maximum));
            }
            if let Some(load) = treatment.task.load_mut() {
                load.arrival = match load.arrival {
                    Arrival::Constant { .. } => Arrival::Constant { rate },
                    Arrival::Poisson { .. } | Arrival::Closed => Arrival::Poisson { rate },
                };
            }
        }
        Ok(self.plan)
    }
}

/// The maximum that the share of one treatment needs; `None` for what is no load.
fn asked(plan: &Plan, id: TreatmentId, sharing: &Sharing) -> Option<Sought> {
    let mut root = &plan.treatments[id];
    while let Some(baseline) = root.baseline {
        root = &plan.treatments[baseline];
    }
    Some(Sought {
        treatment: root.clone(),
        workload: Workload {
            name: sharing.workload.clone(),
            ..root.task.load()?.clone()
        },
        limit: sharing.share.limit,
    })
}

fn is_same(one: &Sought, other: &Sought) -> bool {
    let key = |sought: &Sought| -> (Workload, Scene) {
        let workload = Workload {
            // A share does not change the maximum.
            arrival: Arrival::Closed,
            // Neither does a name.
            name: String::new(),
            ..sought.workload.clone()
        };
        (workload, sought.treatment.scene.clone())
    };
    one.limit == other.limit && key(one) == key(other)
}

fn unmeasured(sought: &Sought) -> SpecError {
    SpecError::nowhere(
        format!(
            "the load of `{}` is a share of its maximum with {}, which has not been measured",
            sought.workload.name, sought.limit
        ),
        "give a `rate`, or run the experiment where it can be measured",
    )
}

fn impossible(share: &Share, maximum: f64) -> SpecError {
    SpecError::nowhere(
        format!(
            "{}% of the maximum of {maximum:.0} per second is not a possible rate",
            share.of_maximum * 100.0
        ),
        "use another share, or a longer duration",
    )
}

#[cfg(test)]
mod tests {
    use crate::{Draft, Experiment, Scene};

    /// Two workloads on each of three networks, and the control.
    fn draft() -> Draft {
        let text = "name = \"x\"\nfactors.network = [\"host\", \"a\", \"b\"]\n\
                    [[workload]]\nkind = \"rr\"\nrate = 100\n\
                    [[workload]]\nkind = \"crr\"\nrate = 100\n";
        let experiment = Experiment::parse(text, "x.toml").unwrap().with_control();
        let scenes = |asked: &crate::Asked<'_>| Ok(vec![Scene::of(asked.network.word())]);
        experiment.draft(1, &scenes).unwrap()
    }

    fn of(draft: &Draft, network: &str) -> Vec<usize> {
        let all = draft.plan.treatments.iter();
        let own = all.filter(|it| it.scene.network == network && it.copy == 1);
        own.map(|it| it.id).collect()
    }

    #[test]
    fn a_network_can_be_left_out() {
        let whole = draft();
        let gone = of(&whole, "a");
        assert_eq!(gone.len(), 2);
        let (controls, blocks) = (whole.plan.controls, whole.plan.blocks.len());
        assert!(controls > 0);
        let rest = whole.without(&gone).unwrap();
        assert_eq!(
            (rest.plan.controls, rest.plan.blocks.len()),
            (controls, blocks)
        );
        assert!(of(&rest, "a").is_empty());
        assert_eq!((of(&rest, "host").len(), of(&rest, "b").len()), (2, 2));
        rest.plan.validate().unwrap();
        for id in of(&rest, "b") {
            let baseline = rest.plan.treatments[id].baseline.unwrap();
            assert_eq!(rest.plan.treatments[baseline].scene.network, "host");
            assert!(rest.plan.treatments[baseline].is_like(&rest.plan.treatments[id]));
        }
    }

    #[test]
    fn the_baseline_and_all_that_is_compared_cannot() {
        let baselines = of(&draft(), "host");
        assert!(draft().without(&baselines).is_none());
        assert!(draft().without(&baselines[..1]).is_none());
        let compared: Vec<usize> = [of(&draft(), "a"), of(&draft(), "b")].concat();
        assert!(draft().without(&compared).is_none());
        assert!(draft().without(&compared[1..]).is_some());
    }
}
