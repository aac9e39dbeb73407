//! What a plan is made of: blocks, their order and number, and what is refused.

use plumbline_experiment::{Arrival, Experiment, Family, Plan, PlanError, ready_made};
use proptest::prelude::*;

use crate::{NETWORKS, expand, resolve, with_networks};

#[test]
fn a_budget_that_is_large_enough_or_far_too_small_leaves_a_sound_plan() {
    let with_budget = |budget: &str| {
        let text = format!(
            "name = \"t\"\n[factors]\nnetwork = [\"host\", \"vxlan\"]\n[[workload]]\nkind = \"rr\"\nrate = 100\n\
             [design]\nblocks = 10\nduration = \"1s\"\nwarm_up = \"100ms\"\nbudget = \"{budget}\"\n"
        );
        let experiment = Experiment::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
        let draft = experiment
            .draft(1, &expand)
            .unwrap_or_else(|e| panic!("{e}"));
        let share = draft.window_share;
        (share, draft.settle(&[]).unwrap().treatments[1].timing)
    };
    let (share, timing) = with_budget("1m");
    assert_eq!((share, timing.measure_ns), (1.0, 1_000_000_000));
    // Less than a quarter of a window measures nothing: the budget gives way.
    let (share, timing) = with_budget("1s");
    assert_eq!(
        (share, timing.measure_ns, timing.warm_up_ns),
        (0.25, 250_000_000, 25_000_000)
    );
}

proptest! {
    /// C-1: each block holds every treatment once, whatever the seed.
    #[test]
    fn blocks_are_permutations(seed in any::<u64>(), blocks in 1..50u32) {
        let text = format!(
            "name = \"t\"\n[factors]\nnetwork = \"all\"\n[[workload]]\nkind = \"stream\"\n[design]\nblocks = {blocks}\n"
        );
        let plan = |seed| Experiment::parse(&text, "t.toml").unwrap().resolve(seed, &expand).unwrap();
        let first = plan(seed);
        prop_assert_eq!(first.blocks.len(), blocks as usize);
        prop_assert_eq!(first.validate(), Ok(()));
        prop_assert_eq!(&first, &plan(seed));
    }
}

/// Orders of blocks are random: each treatment comes first about equally often.
#[test]
fn every_treatment_has_its_turn_at_every_position() {
    let text = "name = \"t\"\n[factors]\nnetwork = \"all\"\n[[workload]]\nkind = \"stream\"\n[design]\nblocks = 1000\n";
    let plan = resolve(text);
    for position in 0..NETWORKS.len() {
        let mut times = [0u32; NETWORKS.len()];
        for block in &plan.blocks {
            times[block[position]] += 1;
        }
        // 1,000 blocks, 8 treatments: 125 expected, standard deviation 10.5;
        // five of them are not exceeded by chance in this fixed seed.
        assert!(times.iter().all(|n| n.abs_diff(125) < 53), "{times:?}");
    }
}

/// The order is part of what a seed means: it must not change between versions.
#[test]
fn the_order_of_a_seed_stays() {
    let plan = with_networks("[\"host\", \"vxlan\", \"host-gw\", \"macvlan\"]");
    assert_eq!(plan.seed, 1);
    assert_eq!(plan.blocks[..3], [[3, 0, 1, 2], [1, 2, 0, 3], [0, 1, 2, 3]]);
}

#[test]
fn a_plan_comes_back_from_json_as_it_was() {
    for (name, text) in ready_made() {
        let plan = resolve(text);
        let json = serde_json::to_string(&plan).unwrap();
        let back: Plan = serde_json::from_str(&json).unwrap();
        assert_eq!(back, plan, "{name}");
    }
}

#[test]
fn a_plan_that_was_tampered_with_is_refused() {
    let sound = || with_networks("[\"host\", \"vxlan\"]");
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = sound();
        change(&mut plan);
        plan.validate().expect_err("this was accepted")
    };
    assert_eq!(sound().validate(), Ok(()));
    assert_eq!(refused(&|p| p.blocks.clear()), PlanError::Empty);
    assert_eq!(
        refused(&|p| p.blocks[3] = vec![0, 0]),
        PlanError::Block { block: 3 }
    );
    assert_eq!(
        refused(&|p| p.treatments[1].id = 7),
        PlanError::Misplaced { at: 1, id: 7 }
    );
    for change in [
        |p: &mut Plan| p.treatments[1].baseline = Some(9),
        |p: &mut Plan| p.treatments[1].baseline = Some(1),
        |p: &mut Plan| p.treatments[1].scene.family = Family::V6,
        |p: &mut Plan| p.treatments[1].task.load_mut().unwrap().connections = 3,
    ] {
        assert!(matches!(
            refused(&change),
            PlanError::Baseline { id: 1, .. }
        ));
    }
    assert!(matches!(
        refused(&|p| p.treatments[1].label = "host".to_owned()),
        PlanError::SameLabel { .. }
    ));
    for change in [
        |p: &mut Plan| p.retries = 1000,
        |p: &mut Plan| p.blocks = vec![vec![0, 1]; 2_000],
        |p: &mut Plan| p.slice_ns = 0,
        |p: &mut Plan| p.slice_ns = u64::MAX,
        |p: &mut Plan| p.treatments[0].scene.neighbours.further = 32,
        |p: &mut Plan| p.treatments[0].scene.neighbours.further = u32::MAX,
    ] {
        assert!(matches!(refused(&change), PlanError::AboveCeiling { .. }));
    }
    for change in [
        |p: &mut Plan| p.treatments[0].task.load_mut().unwrap().connections = 100_001,
        |p: &mut Plan| {
            p.treatments[0].task.load_mut().unwrap().arrival = Arrival::Constant { rate: 1e9 }
        },
        |p: &mut Plan| {
            p.treatments[0].task.load_mut().unwrap().arrival = Arrival::Poisson { rate: f64::NAN }
        },
        |p: &mut Plan| p.treatments[0].task.load_mut().unwrap().request_size = 0,
        |p: &mut Plan| p.treatments[0].timing.measure_ns = u64::MAX,
        |p: &mut Plan| p.treatments[0].timing.drain_ns = u64::MAX,
        |p: &mut Plan| p.treatments[0].task.load_mut().unwrap().zero_copy = true,
        |p: &mut Plan| p.treatments[0].task.load_mut().unwrap().timestamps = 2.0,
        |p: &mut Plan| p.treatments[0].task.load_mut().unwrap().think_ns = u64::MAX,
    ] {
        assert!(matches!(refused(&change), PlanError::Workload { .. }));
    }
}
