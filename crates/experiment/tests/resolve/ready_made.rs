//! The experiments that come with the program.

use std::time::Duration;

use plumbline_experiment::study::Study;
use plumbline_experiment::{Asked, Scene, Wanted};
use plumbline_experiment::{Experiment, HttpServer, Plan, Treatment, ready_made};

use crate::{expand, resolve};

#[test]
fn every_ready_made_experiment_has_enough_blocks_for_a_verdict() {
    for (name, text) in ready_made() {
        let plan = resolve(text);
        assert_eq!(plan.experiment, *name);
        assert!(!plan.question.is_empty(), "{name} asks nothing");
        let mut studies = Study::names().into_iter();
        let published = studies.find(|study| name.starts_with(study));
        let study = plan.study.as_deref();
        assert_eq!(study, published, "{name} repeats what was published");
        plan.validate().unwrap_or_else(|e| panic!("{name}: {e}"));
        let blocks = plan.blocks.len();
        assert!(blocks >= 6, "{name} has {blocks} blocks and needs 6 (C-7)");
    }
}

#[test]
fn the_tour_takes_less_than_80_seconds() {
    let (_, text) = ready_made()[0];
    let plan = resolve(text);
    let estimate = plan.duration_estimate(Duration::from_millis(30));
    assert!(estimate < Duration::from_secs(80), "{estimate:?}");
}

/// The text of a ready-made experiment.
fn text(wanted: &str) -> &'static str {
    let mut all = ready_made().iter();
    all.find(|(name, _)| *name == wanted).unwrap().1
}

/// Its plan.
fn plan(wanted: &str) -> Plan {
    resolve(text(wanted))
}

#[test]
fn what_is_asked_of_one_network_takes_four_minutes_at_most() {
    for name in ["interference", "tuning", "encryption"] {
        let estimate = plan(name).duration_estimate(Duration::from_millis(35));
        assert!(estimate <= Duration::from_secs(240), "{name}: {estimate:?}");
    }
}

/// With windows as long as they ask for.
#[test]
fn services_and_policies_take_five_minutes_at_most() {
    for name in ["services", "policies"] {
        let draft = Experiment::parse(text(name), name).unwrap();
        let draft = draft.draft(1, &expand).unwrap();
        assert!(
            (draft.window_share - 1.0).abs() < 1e-9,
            "{name}: {}",
            draft.window_share
        );
        let estimate = draft.plan.duration_estimate(Duration::from_millis(35));
        assert!(estimate <= Duration::from_secs(300), "{name}: {estimate:?}");
    }
}

#[test]
fn encryption_is_priced_by_both_kinds_against_none() {
    let plan = plan("encryption");
    for task in ["rr", "stream"] {
        let of_task = plan.treatments.iter().filter(|it| it.task.name() == task);
        let first = of_task.clone().next().unwrap().id;
        let shown: Vec<_> = of_task.map(|it| (it.label.as_str(), it.baseline)).collect();
        let against = Some(first);
        let expected = [
            ("routed", None),
            ("routed+esp", against),
            ("routed+wireguard", against),
            ("routed#2", against),
        ];
        assert_eq!(shown, expected);
    }
}

#[test]
fn every_published_row_that_names_levels_stands_beside_one_treatment() {
    for name in ["pani-2016", "kube-proxy-2025"] {
        let plan = plan(name);
        for table in Study::find(name).unwrap().tables {
            let workload = table.workload.as_deref();
            for row in table.rows.iter().filter(|row| !row.levels.is_empty()) {
                let is_beside = |one: &&Treatment| {
                    Some(one.task.name()) == workload && one.copy == 1 && row.is_of(&one.scene)
                };
                let beside = plan.treatments.iter().filter(is_beside).count();
                assert_eq!(beside, 1, "{name}: {}: {}", table.about, row.label);
            }
        }
    }
}

#[test]
fn what_pani_and_gojek_sent_to_each_number_of_policies_takes_six_minutes() {
    for name in ["pani-2016", "gojek-kubecon-2018-policies"] {
        let plan = plan(name);
        for one in plan.treatments.iter().filter(|one| one.task.connects()) {
            let rate = one.task.load().unwrap().arrival.rate().unwrap();
            let seconds = one.timing.measure_ns as f64 / 1e9 * plan.blocks.len() as f64;
            assert!(
                (rate * seconds - 2_000.0).abs() < 1.0,
                "{name}: {}",
                one.label
            );
        }
        let estimate = plan.duration_estimate(Duration::from_millis(35));
        assert!(estimate < Duration::from_secs(300), "{name}: {estimate:?}");
    }
}

/// `--network all` on a kernel that has every network of the studies.
#[test]
fn a_tour_of_thirty_networks_keeps_its_blocks_and_its_budget() {
    let (name, text) = ready_made()[0];
    let mut experiment = Experiment::parse(text, name).unwrap();
    experiment.set("factors.network=all").unwrap();
    let expand = |asked: &Asked<'_>| {
        Ok(match asked.network {
            Wanted::All => (0..30).map(|n| Scene::of(format!("n{n}"))).collect(),
            _ => vec![Scene::of("host")],
        })
    };
    let draft = experiment.draft(1, &expand).unwrap();
    let left = draft.window_share;
    assert!((0.25..0.6).contains(&left), "{left}");
    let plan = draft.settle(&[]).unwrap();
    assert_eq!(plan.blocks.len(), 14);
    assert_eq!(plan.treatments.len(), 62);
    let rr = &plan.treatments[0];
    assert_eq!(rr.timing.measure_ns, (220e6 * left) as u64);
    let estimate = plan.duration_estimate(Duration::from_millis(35));
    assert!(estimate < Duration::from_secs(140), "{estimate:?}");
}

/// A Service among services and a policy among policies, not each among both.
#[test]
fn a_change_is_made_among_none_and_among_a_thousand_of_its_kind() {
    let text = ready_made().iter().find(|(name, _)| *name == "programming");
    let plan = resolve(text.unwrap().1);
    let shown: Vec<_> = plan
        .treatments
        .iter()
        .map(|it| (it.label.as_str(), it.task.name(), it.baseline))
        .collect();
    let expected = [
        ("pod", "service-added", None),
        ("pod 1000 services", "service-added", Some(0)),
        ("pod", "service-removed", None),
        ("pod 1000 services", "service-removed", Some(2)),
        ("pod", "policy-added", None),
        ("pod 1000 policies", "policy-added", Some(4)),
        ("pod", "policy-removed", None),
        ("pod 1000 policies", "policy-removed", Some(6)),
    ];
    assert_eq!(shown, expected);
    let alone =
        (0..plan.blocks.len()).all(|block| plan.turns(block).iter().all(|it| it.len() == 1));
    assert!(alone, "a change takes no turns");
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
        .sought
        .iter()
        .map(|s| s.treatment.task.load().unwrap().response_size)
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
        let of_table = |t: &&Treatment| t.task.name() == name;
        let ours: Vec<&Treatment> = plan.treatments.iter().filter(of_table).collect();
        assert_eq!(ours.len(), table.rows.len(), "{name}");
        let maximum = if ours[0].task.load().unwrap().response_size == 100 {
            60_000.0
        } else {
            40_000.0
        };
        let rate = ours[0].task.load().unwrap().arrival.rate().unwrap();
        assert!(
            (rate / maximum - table.share_of_maximum.unwrap()).abs() < 1e-9,
            "{name}"
        );
        for row in &table.rows {
            let network = row.network.as_deref().unwrap();
            assert!(
                ours.iter().any(|t| t.scene.network == network),
                "{name}: {network}"
            );
        }
        assert!(
            ours.iter()
                .all(|t| t.task.load().unwrap().server == HttpServer::Nginx)
        );
    }
}
