use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use plumbline_experiment::{Asked, Family, Pairing, Scene};
use plumbline_record::{CpuTime, Fingerprint, IdleSample, Warning};

use super::*;
use crate::error::TargetError;
use crate::path::{Path, Site};
use crate::planted::{Act, PlantedTarget, healthy, plan};
use crate::proof::{Least, Leg};
use crate::snapshot::PathSnapshot;
use crate::target::Demand;

/// Nodes that are not there: a stage for every trial, and a list of what ran at
/// the same time.
struct Simulated {
    nodes: usize,
    one_kernel: bool,
    /// A node that does not answer.
    dead: Option<usize>,
    /// What the sender of a pair does, the first time.
    acts: Mutex<BTreeMap<Ends, Act>>,
    busy: std::sync::Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    busy: BTreeSet<usize>,
    /// Nodes that were asked to take part in two trials at once.
    twice: Vec<usize>,
    most: usize,
    trials: Vec<Ends>,
    rests: usize,
    /// How often the dead node was asked to be ready, and to rest.
    asked: [usize; 2],
}

impl Simulated {
    fn new(nodes: usize) -> Self {
        Self {
            nodes,
            one_kernel: false,
            dead: None,
            acts: Mutex::default(),
            busy: Default::default(),
        }
    }

    fn acts(self, acts: impl IntoIterator<Item = (Ends, Act)>) -> Self {
        self.acts.lock().unwrap().extend(acts);
        self
    }

    fn seen<T>(&self, of: impl FnOnce(&Seen) -> T) -> T {
        of(&self.busy.lock().unwrap())
    }
}

impl Target for Simulated {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn scenes(
        &mut self,
        asked: &Asked<'_>,
        _: &[Family],
        _: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String> {
        Ok(vec![Scene::of(asked.network.word())])
    }

    fn prepare(&mut self, _: &Demand<'_>) -> Result<(), TargetError> {
        Ok(())
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        Ok(Fingerprint::default())
    }

    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        Vec::new()
    }

    fn shares_kernel(&self, _: &Treatment, _: Ends) -> bool {
        self.one_kernel
    }

    fn nodes(&self) -> Vec<String> {
        (0..self.nodes).map(|node| format!("n{node}")).collect()
    }

    fn is_one_kernel(&self) -> bool {
        self.one_kernel
    }

    fn stage(&self, _: &Treatment, ends: Ends) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        let mut seen = self.busy.lock().unwrap();
        for end in ends {
            if !seen.busy.insert(end) {
                seen.twice.push(end);
            }
        }
        seen.most = seen.most.max(seen.busy.len() / 2);
        seen.trials.push(ends);
        let act = self.acts.lock().unwrap().remove(&ends);
        if let Some(Act::Fail("no path")) = act {
            seen.busy.retain(|end| !ends.contains(end));
            return Err(TargetError::Failed("no path".to_owned()));
        }
        Ok(Box::new(Between {
            target: PlantedTarget::new(act),
            ends,
            busy: self.busy.clone(),
        }))
    }

    fn ready(&mut self, _: &Treatment, nodes: &[usize]) -> Result<(), TargetError> {
        let of_dead = nodes.iter().any(|node| self.dead == Some(*node));
        self.busy.lock().unwrap().asked[0] += usize::from(of_dead);
        Ok(())
    }

    fn idle_sample(
        &self,
        _: &Treatment,
        node: usize,
        _: Duration,
    ) -> Result<IdleSample, TargetError> {
        if self.dead == Some(node) {
            self.busy.lock().unwrap().asked[1] += 1;
            return Err(TargetError::Failed("it is gone".to_owned()));
        }
        self.busy.lock().unwrap().rests += 1;
        Ok(healthy().common.idle)
    }
}

struct Between {
    target: PlantedTarget,
    ends: Ends,
    busy: std::sync::Arc<Mutex<Seen>>,
}

impl Drop for Between {
    fn drop(&mut self) {
        let mut seen = self.busy.lock().unwrap();
        seen.busy.retain(|end| !self.ends.contains(end));
    }
}

impl Path for Between {
    fn server(&self) -> &dyn Site {
        self.target.server()
    }

    fn client(&self) -> &dyn Site {
        self.target.client()
    }

    fn snapshot(&self) -> Result<PathSnapshot, TargetError> {
        self.target.snapshot()
    }

    fn legs(&self) -> Vec<Leg> {
        Vec::new()
    }

    fn check_path(&self, _: &PathSnapshot, _: &PathSnapshot, _: Least) -> Option<String> {
        None
    }
}

struct Quiet;

impl Progress for Quiet {
    fn starts(&mut self, _: &Step<'_>) {}
    fn ended(&mut self, _: &Step<'_>, _: &Trial) {}
}

fn paired(layout: Layout, fleet: &Simulated, blocks: usize, retries: u32) -> Plan {
    Plan {
        pairing: Some(Pairing {
            layout,
            nodes: fleet.nodes(),
        }),
        ..plan(blocks, retries)
    }
}

fn conducted(plan: &Plan, target: &mut Simulated, done: &[Trial]) -> (Ending, Vec<Trial>) {
    let mut kept = Vec::new();
    let settings = Settings {
        idle: Duration::from_millis(1),
        now: || "2026-11-21T00:00:00Z".to_owned(),
        ..Settings::anywhere()
    };
    let mut keep = |trial: &Trial| {
        kept.push(trial.clone());
        Ok(())
    };
    let never = AtomicBool::new(false);
    let ending = conduct(plan, done, target, &mut keep, &mut Quiet, &settings, &never);
    (ending.unwrap(), kept)
}

#[test]
fn a_mesh_runs_every_treatment_on_every_pair_and_no_node_twice_at_once() {
    let mut fleet = Simulated::new(5);
    let plan = paired(Layout::Mesh, &fleet, 2, 0);
    let (ending, trials) = conducted(&plan, &mut fleet, &[]);
    // 10 pairs, 2 treatments, 2 blocks.
    assert_eq!((ending.finished, trials.len()), (40, 40));
    assert_eq!(plan.trials(), 40);
    let cells: BTreeSet<(u32, usize, BTreeSet<&str>)> = trials
        .iter()
        .map(|trial| {
            let pair = trial.pair.as_ref().unwrap();
            let ends = [&*pair.client, &*pair.server].into();
            (trial.block, trial.treatment, ends)
        })
        .collect();
    assert_eq!(cells.len(), 40);
    assert!(
        trials
            .iter()
            .all(|trial| trial.status == TrialStatus::Valid)
    );
    fleet.seen(|seen| {
        assert_eq!(seen.twice, Vec::<usize>::new());
        assert_eq!(seen.most, 2, "both pairs of a round run at the same time");
        // Four of five nodes in each of five rounds of each block.
        assert_eq!(seen.rests, 40);
    });
}

#[test]
fn each_round_of_whole_windows_has_an_order_of_its_own() {
    let mut fleet = Simulated::new(5);
    let plan = paired(Layout::Mesh, &fleet, 4, 0);
    let (_, trials) = conducted(&plan, &mut fleet, &[]);
    // In each of five rounds two pairs, first under one treatment and then the other.
    let rounds: Vec<&[Trial]> = trials.chunks(4).collect();
    let is_as_planned = |round: &[Trial]| round[0].position == 0;
    for block in rounds.chunks(5) {
        assert!(is_as_planned(block[0]));
    }
    let later = rounds.chunks(5).flat_map(|block| &block[1..]);
    let as_planned = later.filter(|round| is_as_planned(round)).count();
    assert!((4..=12).contains(&as_planned), "{as_planned} of 16");
}

#[test]
fn pairs_run_at_the_same_time_and_send_at_moments_of_their_own() {
    let mut fleet = Simulated::new(6);
    let (_, trials) = conducted(&paired(Layout::Pairs, &fleet, 1, 0), &mut fleet, &[]);
    assert_eq!(trials.len(), 6);
    assert_eq!(fleet.seen(|seen| seen.most), 3);
    assert_eq!(trials[0].pair.as_ref().unwrap().client, "n0");
    assert_eq!(trials[0].pair.as_ref().unwrap().server, "n1");
}

#[test]
fn what_fails_on_one_pair_is_repeated_in_the_company_that_it_had() {
    let mut fleet = Simulated::new(6).acts([([2, 3], Act::Fail("no"))]);
    let mut plan = paired(Layout::Pairs, &fleet, 1, 1);
    plan.blocks = vec![vec![0]];
    let (ending, trials) = conducted(&plan, &mut fleet, &[]);
    assert_eq!(ending.finished, 3);
    let of = |pair: &str| -> Vec<(u32, bool)> {
        let pair = |one: &&Trial| one.pair.as_ref().unwrap().client == pair;
        let told = |one: &Trial| (one.attempt, one.status == TrialStatus::Valid);
        trials.iter().filter(pair).map(told).collect()
    };
    assert_eq!(of("n2"), [(0, false), (1, true)]);
    assert_eq!((of("n0"), of("n4")), (vec![(0, true)], vec![(0, true)]));
    assert_eq!(
        fleet.seen(|seen| seen.trials.len()),
        6,
        "all three ran again"
    );
}

#[test]
fn a_pair_without_a_path_holds_no_other_back() {
    let mut fleet = Simulated::new(4).acts([([0, 1], Act::Fail("no path"))]);
    let mut plan = paired(Layout::Pairs, &fleet, 1, 0);
    plan.blocks = vec![vec![0]];
    let (_, trials) = conducted(&plan, &mut fleet, &[]);
    assert!(matches!(&trials[0].status, TrialStatus::Failed { error } if error == "no path"));
    assert_eq!(trials[1].status, TrialStatus::Valid);
}

#[test]
fn a_node_that_does_not_answer_costs_its_own_pairs_only() {
    let mut fleet = Simulated {
        dead: Some(2),
        ..Simulated::new(6)
    };
    let mut plan = paired(Layout::Mesh, &fleet, 1, 0);
    plan.blocks = vec![vec![0]];
    let (_, trials) = conducted(&plan, &mut fleet, &[]);
    assert_eq!(trials.len(), 15);
    for trial in &trials {
        let pair = trial.pair.as_ref().unwrap();
        let is_of_dead = [&pair.client, &pair.server]
            .iter()
            .any(|name| **name == "n2");
        match &trial.status {
            TrialStatus::Failed { error } if is_of_dead => {
                assert!(error.starts_with("n2 could not be measured"), "{error}");
            }
            other => assert_eq!((other, is_of_dead), (&TrialStatus::Valid, false)),
        }
    }
    assert_eq!(fleet.seen(|seen| seen.asked), [2, 2], "of five rounds");

    // Another block asks again, for the node may be back.
    let mut fleet = Simulated {
        dead: Some(2),
        ..Simulated::new(6)
    };
    plan.blocks = vec![vec![0], vec![0]];
    let (_, trials) = conducted(&plan, &mut fleet, &[]);
    assert_eq!(trials.len(), 30);
    assert_eq!(fleet.seen(|seen| seen.asked), [4, 4]);
}

#[test]
fn on_one_kernel_a_mesh_has_one_trial_at_a_time_and_pairs_know_their_companions() {
    let mut fleet = Simulated {
        one_kernel: true,
        ..Simulated::new(4)
    };
    let (_, trials) = conducted(&paired(Layout::Mesh, &fleet, 1, 0), &mut fleet, &[]);
    assert_eq!(trials.len(), 12);
    assert_eq!(fleet.seen(|seen| seen.most), 1);
    let companions = |trial: &Trial| trial.observation.as_ref().unwrap().common.companions_cpu;
    assert!(trials.iter().all(|trial| companions(trial).is_none()));

    // The machine's user time is that of both pairs. Without its companion's, a
    // trial would be taken for disturbed.
    let mut crowded = healthy();
    let own = crowded.load.load.cpu.user_ns + crowded.load.server_cpu.user_ns;
    crowded.common.machines = vec![CpuTime {
        user_ns: 2 * own,
        capacity_ns: 4 * own,
        ..crowded.common.machines[0]
    }];
    let act = || Act::Measure(Box::new(crowded.clone()));
    let mut fleet = Simulated {
        one_kernel: true,
        ..Simulated::new(4).acts([([0, 1], act()), ([2, 3], act())])
    };
    let mut plan = paired(Layout::Pairs, &fleet, 1, 0);
    plan.blocks = vec![vec![0]];
    let (_, trials) = conducted(&plan, &mut fleet, &[]);
    assert_eq!(fleet.seen(|seen| seen.most), 2);
    for trial in &trials {
        assert_eq!(trial.status, TrialStatus::Valid);
        assert_eq!(companions(trial).user_ns, own);
    }
}

#[test]
fn a_mesh_that_was_cut_off_goes_on_where_it_was() {
    let mut fleet = Simulated::new(4);
    let plan = paired(Layout::Mesh, &fleet, 1, 0);
    let (_, trials) = conducted(&plan, &mut fleet, &[]);
    let mut again = Simulated::new(4);
    let (ending, rest) = conducted(&plan, &mut again, &trials[..7]);
    assert_eq!(ending.finished, 12);
    // The pair that was cut off between its two treatments has both again.
    assert_eq!(rest.len(), 6);
    assert_eq!(
        rest.iter().filter(|it| it.pair == trials[5].pair).count(),
        2
    );
    assert!(rest.iter().all(|trial| trial.session == 1));
    let key = |trial: &Trial| (trial.position, trial.pair.clone());
    let all: BTreeSet<_> = trials[..7].iter().chain(&rest).map(key).collect();
    assert_eq!(all.len(), 12);
}
