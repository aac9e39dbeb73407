//! A run of several clusters: each compared with its own nodes, in one table.

use plumbline_record::{Common, Observation, SetUp, Trial, What};
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, html, json, markdown, terminal};

use crate::fake::{Fake, Network};

fn network(label: &'static str, latency: f64) -> Network {
    Network {
        latency,
        ..Network::same(label)
    }
}

/// Puts a set-up before a trial.
fn set_up(trials: &mut Vec<Trial>, before: usize, network: &str, seconds: u64, came_up: bool) {
    let set_up = SetUp {
        network: network.to_owned(),
        took_ns: seconds * 1_000_000_000,
        paths_ns: came_up.then_some(2_000_000_000),
        came_up,
        log: format!("provision/{network}.log"),
        fingerprint: None,
    };
    let line = Trial {
        observation: Some(Observation {
            common: Common::default(),
            what: What::SetUp(Box::new(set_up)),
        }),
        ..trials[before].clone()
    };
    trials.insert(before, line);
}

#[test]
fn each_cluster_is_compared_with_its_own_nodes_and_its_set_up_is_told() {
    let (mut run, mut trials) = Fake::new(&[
        network("a/host", 1.0),
        network("a/pod", 1.2),
        network("b/host", 2.0),
        network("b/pod", 3.0),
    ])
    .run();
    run.plan.compare_with("host").unwrap();
    let alone = Summary::new(&run, &trials);
    set_up(&mut trials, 10, "b", 90, false);
    set_up(&mut trials, 8, "a", 16, true);
    set_up(&mut trials, 2, "b", 9, true);
    set_up(&mut trials, 0, "a", 14, true);
    let summary = Summary::new(&run, &trials);
    assert_eq!(summary.account, alone.account, "no trials of the plan");
    let page = html::render(&summary, &run, &trials);
    assert_eq!(page.matches("<td>kept</td>").count(), trials.len() - 4);

    // One table for each workload, the baselines before what is compared.
    assert_eq!(summary.sections.len(), 2);
    let labels: Vec<&str> = summary.sections[0]
        .treatments
        .iter()
        .map(|&id| summary.treatments[id].treatment.label.as_str())
        .collect();
    assert_eq!(labels, ["a/host", "b/host", "a/pod", "b/pod"]);
    let effect = |label: &str| {
        let of = |one: &&plumbline_report::analysis::TreatmentSummary| one.treatment.label == label;
        let id = summary.treatments.iter().find(of).unwrap().id();
        let found = summary.comparison(id, "p50").unwrap();
        found.effect.unwrap().ratio_minus_one
    };
    assert!((effect("a/pod") - 0.2).abs() < 0.05, "{}", effect("a/pod"));
    assert!((effect("b/pod") - 0.5).abs() < 0.05, "{}", effect("b/pod"));

    let costs = &summary.set_ups;
    assert_eq!(
        (costs[0].network.as_str(), costs[0].came_up, costs[0].tried),
        ("b", 1, 2)
    );
    assert_eq!(costs[1].took_ns.unwrap().median, 15e9);
    let markdown = markdown::render(&summary);
    assert!(markdown.contains("**b/pod** against b/host"), "{markdown}");
    for text in [
        markdown,
        html::render(&summary, &run, &trials),
        terminal::render(&summary, Style::default()),
    ] {
        let text = text.replace('\u{a0}', " ").to_lowercase();
        for part in ["set-up cost", "15.0 s", "1 of 2", "provision/b.log"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let json: serde_json::Value = serde_json::from_str(&json::render(&summary)).unwrap();
    assert_eq!(json["set_ups"][1]["up_ns"]["median"], 15e9);
}
