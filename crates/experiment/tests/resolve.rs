//! From ready-made experiments and small files to plans.

use std::time::Duration;

use plumbline_experiment::study::Study;
use plumbline_experiment::{
    Arrival, Experiment, Family, Placement, Plan, PlanError, Server, Treatment, ready_made,
};
use proptest::prelude::*;

const NETWORKS: [&str; 8] = [
    "host",
    "host-gw",
    "vxlan",
    "macvlan",
    "routed",
    "aws-vpc",
    "calico-vxlan",
    "ipvlan-l2",
];

/// Stands for a target that knows the networks above, and some more by name.
fn expand(word: &str) -> Result<Vec<String>, String> {
    match word {
        "all" | "usual" => Ok(NETWORKS.map(String::from).to_vec()),
        "flannel-vxlan" => Ok(vec!["vxlan".to_owned()]),
        "calico" => Ok(vec!["routed".to_owned()]),
        "weave-fastdp" | "cilium-vxlan" | "kube-router" | "aws-cni" | "kopeio-vxlan" | "romana" => {
            Ok(vec![word.to_owned()])
        }
        // Pairs of hosts that somebody gave these names.
        "bare-metal" | "vm" => Ok(vec![word.to_owned()]),
        // Paths of clusters.
        path if path.ends_with("/pod") || path.ends_with("/cluster-ip") => {
            Ok(vec![path.to_owned()])
        }
        name if NETWORKS.contains(&name) => Ok(vec![name.to_owned()]),
        other => Err(format!("there is no network `{other}`")),
    }
}

/// Every maximum that loads are shares of is taken for 60,000/s.
fn resolve(text: &str) -> Plan {
    let experiment = Experiment::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let draft = experiment
        .draft(1, &expand)
        .unwrap_or_else(|e| panic!("{e}"));
    let maxima = vec![60_000.0; draft.sought().len()];
    draft.settle(&maxima).unwrap_or_else(|e| panic!("{e}"))
}

fn with_networks(networks: &str) -> Plan {
    resolve(&format!(
        "name = \"t\"\n[factors]\nnetwork = {networks}\n[[workload]]\nkind = \"rr\"\nrate = 100\n"
    ))
}

/// Labels with the label of what each is compared with.
fn pairs(plan: &Plan) -> Vec<(String, Option<String>)> {
    plan.treatments
        .iter()
        .map(|t| {
            let baseline = t.baseline.map(|id| plan.treatments[id].label.clone());
            (t.label.clone(), baseline)
        })
        .collect()
}

fn pair(label: &str, baseline: &str) -> (String, Option<String>) {
    let baseline = (!baseline.is_empty()).then(|| baseline.to_owned());
    (label.to_owned(), baseline)
}

#[test]
fn every_ready_made_experiment_has_enough_blocks_for_a_verdict() {
    for (name, text) in ready_made() {
        let plan = resolve(text);
        assert_eq!(plan.experiment, *name);
        assert!(!plan.question.is_empty(), "{name} asks nothing");
        let published = Study::find(name).map(|study| study.name);
        assert_eq!(plan.study, published, "{name} repeats what was published");
        plan.validate().unwrap_or_else(|e| panic!("{name}: {e}"));
        let needed = plan.minimum_blocks(0.05);
        assert!(
            plan.blocks.len() >= needed as usize,
            "{name} has {} blocks and needs {needed} (C-7)",
            plan.blocks.len()
        );
    }
}

#[test]
fn the_tour_takes_less_than_85_seconds() {
    let (_, text) = ready_made()[0];
    let plan = resolve(text);
    let estimate = plan.duration_estimate(Duration::from_millis(30));
    assert!(estimate < Duration::from_secs(85), "{estimate:?}");
}

/// `--network all` on a kernel that has every network of the studies.
#[test]
fn a_tour_of_thirty_networks_keeps_its_blocks_and_its_budget() {
    let (name, text) = ready_made()[0];
    let mut experiment = Experiment::parse(text, name).unwrap();
    experiment.set("factors.network=all").unwrap();
    let many = |_: &str| Ok((0..30).map(|n| format!("n{n}")).collect::<Vec<_>>());
    let expand = |word: &str| {
        if word == "all" {
            many(word)
        } else {
            Ok(vec!["host".to_owned()])
        }
    };
    let draft = experiment.draft(1, &expand).unwrap();
    let left = draft.window_share();
    assert!((0.25..0.6).contains(&left), "{left}");
    let plan = draft.settle(&[]).unwrap();
    assert_eq!(plan.blocks.len(), 12);
    assert_eq!(plan.treatments.len(), 62);
    let rr = &plan.treatments[0];
    assert_eq!(rr.timing.measure_ns, (350e6 * left) as u64);
    let estimate = plan.duration_estimate(Duration::from_millis(35));
    assert!(estimate < Duration::from_secs(140), "{estimate:?}");
}

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
        let share = draft.window_share();
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

#[test]
fn the_study_of_machinezone_asks_for_two_maxima_of_nginx() {
    let text = ready_made()
        .iter()
        .find(|(name, _)| *name == "machinezone-2016")
        .unwrap()
        .1;
    let draft = Experiment::parse(text, "machinezone-2016")
        .unwrap()
        .draft(1, &expand)
        .unwrap();
    let sought: Vec<_> = draft
        .sought()
        .iter()
        .map(|s| s.treatment.workload.response_size)
        .collect();
    assert_eq!(
        sought,
        [100, 4096],
        "one maximum for each size, whatever the shares are"
    );
    let plan = draft.settle(&[60_000.0, 40_000.0]).unwrap();
    let study = Study::find(plan.study.as_deref().unwrap()).unwrap();
    for table in &study.tables {
        let name = table.workload.as_deref().unwrap();
        let of_table = |t: &&Treatment| t.workload.name == name;
        let ours: Vec<&Treatment> = plan.treatments.iter().filter(of_table).collect();
        assert_eq!(ours.len(), table.rows.len(), "{name}");
        let maximum = if ours[0].workload.response_size == 100 {
            60_000.0
        } else {
            40_000.0
        };
        let rate = ours[0].workload.arrival.rate().unwrap();
        assert!(
            (rate / maximum - table.share_of_maximum.unwrap()).abs() < 1e-9,
            "{name}"
        );
        for row in &table.rows {
            let network = row.network.as_deref().unwrap();
            assert!(
                ours.iter().any(|t| t.network == network),
                "{name}: {network}"
            );
        }
        assert!(ours.iter().all(|t| t.workload.server == Server::Nginx));
    }
}

#[test]
fn the_baseline_is_added_where_it_is_not_listed() {
    let plan = with_networks("[\"flannel-vxlan\", \"host-gw\"]");
    assert_eq!(
        pairs(&plan),
        [
            pair("host", ""),
            pair("vxlan", "host"),
            pair("host-gw", "host")
        ]
    );
}

#[test]
fn one_network_twice_is_compared_with_itself_alone() {
    let plan = with_networks("[\"host-gw\", \"host-gw\"]");
    assert_eq!(
        pairs(&plan),
        [pair("host-gw", ""), pair("host-gw#2", "host-gw")]
    );
}

#[test]
fn a_repetition_beside_others_is_compared_with_its_first_occurrence() {
    let plan = with_networks("[\"vxlan\", \"host\", \"vxlan\", \"host\", \"vxlan\"]");
    assert_eq!(
        pairs(&plan),
        [
            pair("vxlan", "host"),
            pair("host", ""),
            pair("vxlan#2", "vxlan"),
            pair("host#2", "host"),
            pair("vxlan#3", "vxlan"),
        ]
    );
}

#[test]
fn a_group_does_not_repeat_what_is_listed() {
    let plan = with_networks("[\"vxlan\", \"all\"]");
    assert_eq!(plan.treatments.len(), NETWORKS.len());
}

#[test]
fn two_names_of_one_network_repeat_nothing() {
    assert_eq!(
        pairs(&with_networks("[\"flannel-vxlan\", \"vxlan\"]")),
        [pair("host", ""), pair("vxlan", "host")]
    );
    assert_eq!(
        pairs(&with_networks("[\"flannel-vxlan\", \"flannel-vxlan\"]")),
        [pair("vxlan", ""), pair("vxlan#2", "vxlan")]
    );
}

#[test]
fn the_baseline_alone_compares_nothing() {
    let plan = with_networks("\"host\"");
    assert_eq!(pairs(&plan), [pair("host", "")]);
    assert_eq!((plan.comparisons(), plan.minimum_blocks(0.05)), (0, 0));
}

#[test]
fn baselines_match_all_other_levels() {
    let plan = resolve(
        "name = \"t\"\n[factors]\nnetwork = [\"vxlan\"]\nplacement = [\"cross-node\", \"same-node\"]\n\
         family = [4, 6]\nconnections = [1, 16]\n[[workload]]\nkind = \"rr\"\nrate = 100\n",
    );
    assert_eq!(plan.treatments.len(), 2 * 2 * 2 * 2);
    let last = plan.treatments.last().unwrap();
    assert_eq!(last.label, "vxlan same-node ipv6");
    assert_eq!(last.workload.name, "rr connections=16");
    assert_eq!(
        (last.placement, last.family),
        (Placement::SameNode, Family::V6)
    );
    for treatment in &plan.treatments {
        match treatment.baseline {
            None => assert_eq!(treatment.network, "host"),
            Some(id) => {
                let baseline = &plan.treatments[id];
                assert_eq!(baseline.network, "host");
                assert_eq!(baseline.workload, treatment.workload);
                assert_eq!(baseline.placement, treatment.placement);
                assert_eq!(baseline.family, treatment.family);
            }
        }
    }
    plan.validate().unwrap();
}

#[test]
fn minimum_blocks_are_those_of_the_formula() {
    // C-7: 8 comparisons need 9 pairs, 20 need 10, 50 need 11.
    for (networks, comparisons, blocks) in [(5, 8, 9), (8, 14, 10)] {
        let plan = with_networks(&format!("{:?}", &NETWORKS[..networks]));
        assert_eq!(plan.comparisons(), comparisons);
        assert_eq!(plan.minimum_blocks(0.05), blocks);
    }
}

#[test]
fn a_network_that_is_unknown_shows_its_line() {
    let text = "name = \"t\"\n[factors]\nnetwork = [\"host\", \"vxlam\"]\n[[workload]]\nkind = \"rr\"\nrate = 1000\n";
    let error = Experiment::parse(text, "t.toml")
        .unwrap()
        .resolve(1, &expand)
        .unwrap_err();
    assert_eq!(error.line(), Some(3));
    assert!(error.to_string().contains("vxlam"), "{error}");
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
        |p: &mut Plan| p.treatments[1].family = Family::V6,
        |p: &mut Plan| p.treatments[1].workload.connections = 3,
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
        |p: &mut Plan| p.treatments[0].workload.connections = 10_001,
        |p: &mut Plan| p.treatments[0].workload.arrival = Arrival::Constant { rate: 1e9 },
        |p: &mut Plan| p.treatments[0].workload.arrival = Arrival::Poisson { rate: f64::NAN },
        |p: &mut Plan| p.treatments[0].workload.request_size = 0,
        |p: &mut Plan| p.treatments[0].timing.measure_ns = u64::MAX,
        |p: &mut Plan| p.treatments[0].timing.drain_ns = u64::MAX,
        |p: &mut Plan| p.blocks = vec![vec![0, 1]; 2_000],
    ] {
        assert!(matches!(refused(&change), PlanError::AboveCeiling { .. }));
    }
}

#[test]
fn any_network_of_a_plan_can_be_what_the_others_are_compared_with() {
    let mut plan = with_networks("[\"host\", \"routed\", \"host-gw\", \"host-gw\"]");
    plan.compare_with("routed").unwrap();
    plan.validate().unwrap();
    assert_eq!(
        pairs(&plan),
        [
            pair("host", "routed"),
            pair("routed", ""),
            pair("host-gw", "routed"),
            pair("host-gw#2", "host-gw"),
        ]
    );
    let before = plan.clone();
    let known = plan.compare_with("vxlan").unwrap_err();
    assert_eq!(known, ["host", "host-gw", "routed"]);
    assert_eq!(plan, before);
}
