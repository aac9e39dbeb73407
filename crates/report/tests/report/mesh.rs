//! Runs on many pairs of nodes, with faults that are known.

use plumbline_experiment::{Layout, Pairing, Workload};
use plumbline_record::{NodePair, Run, Trial, TrialStatus};
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, html, json, markdown, terminal};

use crate::documented;
use crate::fake::{Fake, Network, observed, rr, stream};

/// A mesh of `nodes` nodes, whose latency and throughput from one to another are
/// a multiple of the usual ones; infinite where nothing arrives.
fn mesh(
    layout: Layout,
    nodes: usize,
    workload: Workload,
    factor: impl Fn([usize; 2]) -> f64,
) -> (Run, Vec<Trial>) {
    let fake = Fake {
        workloads: vec![workload],
        blocks: 10,
        ..Fake::new(&[Network::same("pod")])
    };
    let (mut run, trials) = fake.run();
    let pairing = Pairing {
        layout,
        nodes: (1..=nodes).map(|node| format!("worker-{node}")).collect(),
    };
    let mut paired = Vec::new();
    for trial in trials {
        let rounds = pairing.schedule(run.plan.seed, trial.block as usize);
        for ends in rounds.flat_map(|(_, round)| round.collect::<Vec<_>>()) {
            let [client, server] = ends.map(|end| pairing.nodes[end].clone());
            let factor = factor(ends);
            let spread = (ends[0] * 31 + ends[1] * 17 + trial.block as usize * 7) % 10;
            let wobble = 1.0 + 0.02 * spread as f64 / 10.0;
            let network = Network {
                latency: factor * wobble,
                throughput: 1.0 / (factor * wobble),
                ..Network::same("pod")
            };
            let workload = run.plan.treatments[0].task.load().unwrap();
            let seen = observed::observation(&fake, &network, workload, [1.0; 4]);
            let works = factor.is_finite();
            paired.push(Trial {
                pair: Some(NodePair { client, server }),
                status: if works {
                    TrialStatus::Valid
                } else {
                    let error = "the agent on it ended".to_owned();
                    TrialStatus::Failed { error }
                },
                observation: works.then_some(seen),
                ..trial.clone()
            });
        }
    }
    run.plan.pairing = Some(pairing);
    (run, paired)
}

struct Shown {
    terminal: String,
    markdown: String,
    html: String,
    json: serde_json::Value,
}

fn shown((run, trials): &(Run, Vec<Trial>)) -> Shown {
    let summary = Summary::new(run, trials);
    Shown {
        terminal: terminal::render(&summary, Style::default()),
        markdown: markdown::render(&summary),
        html: html::render(&summary, run, trials),
        json: documented::read(&json::render(&summary)),
    }
}

#[track_caller]
fn everywhere(shown: &Shown, words: &str) {
    let unwrapped = shown
        .terminal
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(unwrapped.contains(words), "{words}: {}", shown.terminal);
    let plain = shown.markdown.replace('\\', "");
    assert!(plain.contains(words), "{words}: {}", shown.markdown);
    assert!(shown.html.replace('\u{a0}', " ").contains(words), "{words}");
}

#[test]
fn a_slow_node_and_a_slow_pair_are_named_in_every_format() {
    let slow = |ends: [usize; 2]| match ends {
        [1, 4] | [4, 1] => 3.0,
        _ if ends.contains(&6) => 2.0,
        _ => 1.0,
    };
    let shown = shown(&mesh(Layout::Mesh, 9, rr(), slow));
    everywhere(&shown, "node worker-7 is worse than the rest: p50 +");
    everywhere(&shown, "over its 8 pairs");
    everywhere(
        &shown,
        "pair worker-2 – worker-5 is worse than its nodes: p50 +",
    );
    let map = &shown.json["mesh"]["maps"][0];
    assert_eq!(map["unlike_nodes"][0]["node"], "worker-7");
    assert_eq!(map["unlike_nodes"].as_array().unwrap().len(), 1);
    let pairs = map["unlike_pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 1, "the node's pairs are not named: {pairs:?}");
    assert_eq!(pairs[0]["nodes"][1], "worker-5");
    // Both directions of 36 pairs.
    assert_eq!(map["pairs"].as_array().unwrap().len(), 72);
    assert!(shown.html.contains("Rows send, columns receive"));
    assert!(shown.html.contains("worker-2 to worker-5: "));
    assert_eq!(
        shown.html.matches("class=\"h h").count() - 7,
        72,
        "cells and a legend"
    );
    let row = |line: &&str| line.starts_with("worker-7");
    let row = shown.terminal.lines().find(row).unwrap();
    assert_eq!(
        row.matches('#').count() + row.matches('@').count(),
        8,
        "{row}"
    );
}

#[test]
fn a_slow_direction_is_found_in_bulk_too() {
    let slow = |ends: [usize; 2]| if ends == [0, 3] { 4.0 } else { 1.0 };
    let shown = shown(&mesh(Layout::Mesh, 6, stream(), slow));
    everywhere(
        &shown,
        "pair worker-1 – worker-4 is worse than its nodes: throughput",
    );
    let map = &shown.json["mesh"]["maps"][0];
    assert_eq!(map["metric"], "throughput");
    assert_eq!(map["unlike_nodes"].as_array().unwrap().len(), 0);
}

#[test]
fn a_dead_node_is_named_once_and_a_dead_pair_as_a_pair() {
    let dead = |ends: [usize; 2]| match ends {
        [0, 1] | [1, 0] => f64::INFINITY,
        _ if ends.contains(&3) => f64::INFINITY,
        _ => 1.0,
    };
    let shown = shown(&mesh(Layout::Mesh, 6, rr(), dead));
    everywhere(
        &shown,
        "node worker-4: none of its 5 pairs has a valid trial",
    );
    everywhere(&shown, "pair worker-1 – worker-2: no valid trial");
    let map = &shown.json["mesh"]["maps"][0];
    assert_eq!(map["dead_nodes"], serde_json::json!(["worker-4"]));
    assert_eq!(map["dead_pairs"].as_array().unwrap().len(), 1);
}

#[test]
fn an_even_mesh_says_so_and_a_small_one_that_it_cannot_tell() {
    let even = shown(&mesh(Layout::Mesh, 5, rr(), |_| 1.0));
    everywhere(&even, "no node and no pair is unlike the rest");
    let two = shown(&mesh(Layout::Mesh, 2, rr(), |_| 1.0));
    everywhere(&two, "outliers are named from a mesh of 4 nodes on");
    assert!(two.json["mesh"]["maps"][0]["unlike_nodes"].is_null());
}

#[test]
fn pairs_that_ran_at_once_are_listed() {
    let shown = shown(&mesh(Layout::Pairs, 6, rr(), |_| 1.0));
    everywhere(&shown, "pairs that ran at the same time");
    let rows = shown.html.matches("<th scope=\"row\">worker-").count();
    assert_eq!(rows, 6, "three pairs, each way");
    assert!(!shown.html.contains("Rows send"));
    assert!(shown.terminal.contains("receiver"), "{}", shown.terminal);
}

#[test]
fn treatments_are_compared_on_the_same_pair() {
    // One pair is ten times as slow; the networks differ by 30 % on each.
    let fake = Fake {
        workloads: vec![rr()],
        blocks: 2,
        ..Fake::new(&[
            Network::same("host"),
            Network {
                latency: 1.3,
                ..Network::same("pod")
            },
        ])
    };
    let (mut run, trials) = fake.run();
    let pairing = Pairing {
        layout: Layout::Mesh,
        nodes: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
    };
    let mut paired = Vec::new();
    for trial in &trials {
        for ends in (0..3).flat_map(|round| pairing.round(round, trial.block as usize)) {
            let slow = if ends.contains(&0) { 10.0 } else { 1.0 };
            let of = fake.networks[trial.treatment];
            let network = Network {
                latency: of.latency * slow,
                ..of
            };
            let [client, server] = ends.map(|end| pairing.nodes[end].clone());
            paired.push(Trial {
                pair: Some(NodePair { client, server }),
                observation: Some(observed::observation(&fake, &network, &rr(), [1.0; 4])),
                ..trial.clone()
            });
        }
    }
    run.plan.pairing = Some(pairing);
    let summary = Summary::new(&run, &paired);
    assert_eq!(summary.account.planned, 24);
    assert_eq!(summary.account.kept, 24);
    let one = &summary.comparisons[0];
    let effect = one.effect.unwrap();
    assert_eq!(effect.blocks, 2, "six pairs of a block are one replicate");
    assert!((effect.ratio_minus_one - 0.3).abs() < 0.02, "{effect:?}");
}
