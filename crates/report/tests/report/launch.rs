//! Pods that were launched, and how long until each had its network.

use plumbline_experiment::{Launch, Task};
use plumbline_record::{
    GateFailure, LaunchObservation, LaunchStep, PodLaunch, PodRelease, READY, Run, SANDBOX, Trial,
    TrialStatus, What,
};
use plumbline_report::terminal::{self, Style};
use plumbline_report::{Summary, csv, html, json, markdown};

use crate::documented;
use crate::fake::{self, Fake, Network};

const MS: u64 = 1_000_000;

/// Pods of a launch.
const PODS: u64 = 100;

fn step(step: &str, ended_ns: u64) -> LaunchStep {
    LaunchStep {
        step: step.to_owned(),
        ended_ns,
    }
}

/// A pod whose network takes so long to attach it; all else takes 1 ms each.
fn pod(attach_ns: u64) -> PodLaunch {
    let attached_ns = 2 * MS + attach_ns;
    PodLaunch {
        node: "node1".to_owned(),
        begun_ns: MS,
        namespace_ns: Some(2 * MS),
        steps: vec![
            step("ptp", 2 * MS + attach_ns / 2),
            step("tuning", attached_ns),
        ],
        probed_ns: Some(attached_ns + MS),
        first_out_ns: Some(attached_ns + 2 * MS),
        first_in_ns: Some(attached_ns + 3 * MS),
        release: Some(PodRelease {
            begun_ns: MS,
            steps: vec![step("tuning", 2 * MS), step("ptp", 3 * MS)],
            ended_ns: Some(3 * MS),
        }),
        ..PodLaunch::default()
    }
}

/// Of each hundred pods the first is attached within 1 ms, each further one within 1 ms more,
/// and the second network takes twice as long. In each block it takes 1 ms longer than in
/// the one before.
fn run() -> (Run, Vec<Trial>) {
    run_of(&["routed", "cni:ptp"])
}

/// The same on any networks, of which the n-th takes n times as long.
fn run_of(networks: &[&'static str]) -> (Run, Vec<Trial>) {
    let networks: Vec<Network> = networks.iter().copied().map(Network::same).collect();
    let fake = Fake {
        workloads: vec![fake::rr()],
        ..Fake::new(&networks)
    };
    let (mut run, mut trials) = fake.run();
    for treatment in &mut run.plan.treatments {
        treatment.task = Task::Launch(Launch {
            name: "hundred".to_owned(),
            pods: PODS as u32,
            rate: Some(50.0),
        });
    }
    for trial in &mut trials {
        let (factor, block) = (1 + trial.treatment as u64, u64::from(trial.block));
        let pods = (1..=PODS).map(|at| pod(factor * (at + block) * MS));
        let seen = LaunchObservation {
            limit_ns: 20_000 * MS,
            pods: pods.collect(),
            ..LaunchObservation::default()
        };
        if let Some(observation) = &mut trial.observation {
            observation.what = What::Launch(Box::new(seen));
        }
    }
    (run, trials)
}

fn summary() -> (Summary, Run, Vec<Trial>) {
    let (run, trials) = run();
    (Summary::new(&run, &trials), run, trials)
}

#[test]
fn launches_are_compared_on_when_the_network_is_up() {
    let (summary, ..) = summary();
    let found = |metric: &str| {
        let found = summary.comparison(1, metric).expect(metric);
        (found.is_primary, found.effect.unwrap().ratio_minus_one)
    };
    let (is_primary, ratio) = found("network_up");
    // 5 ms of it are the same.
    assert!(is_primary && (0.85..0.95).contains(&ratio), "{ratio}");
    let (is_primary, ratio) = found("attach");
    assert!(!is_primary && (ratio - 1.0).abs() < 1e-9, "{ratio}");
    for same in ["first_packets", "release"] {
        assert!(found(same).1.abs() < 1e-9, "{same}");
    }
    assert!(found("slowest_up").1 > 0.9);
    let none = ["p50", "cpu_per_request", "first_right"];
    assert!(none.iter().all(|it| summary.comparison(1, it).is_none()));
}

#[test]
fn scripts_get_quantiles_over_pods_and_over_trials() {
    let (summary, ..) = summary();
    let report = documented::read(&json::render(&summary));
    let first = &report["treatments"][0];
    assert_eq!(first["factors"]["pods"], 100);
    assert_eq!(first["factors"]["pods_per_second"], 50.0);
    let launch = &first["launch"];
    let counts = ["pods", "up", "ready", "whole"].map(|it| &launch[it]);
    assert_eq!(counts, [1000, 1000, 0, 1000]);
    let time = |name: &str| {
        let times = launch["times"].as_array().unwrap();
        times.iter().find(|it| it["name"] == name).unwrap()
    };
    let attach = &time("attach")["quantiles"][0];
    assert_eq!(
        (&attach["share"], &attach["ns"]),
        (&0.5.into(), &55_000_000.0.into())
    );
    let low = attach["low_ns"].as_f64().unwrap();
    assert!((45e6..55e6).contains(&low), "{low}");
    assert_eq!(attach["over_trials_ns"]["median"], 54_500_000.0);
    assert_eq!(time("attach")["longest_ns"], 109_000_000.0);
    assert_eq!(time("program")["longest_ns"], 1_000_000.0);
    assert_eq!(launch["steps"][1]["name"], "tuning");
    for (at, name) in ["tuning", "ptp"].into_iter().enumerate() {
        let step = &launch["release_steps"][at];
        assert_eq!(step["name"], name);
        assert_eq!(step["longest_ns"], 1e6);
        assert_eq!(step["quantiles"][0]["over_trials_ns"]["median"], 1e6);
    }
    let slowest = &launch["slowest"];
    assert_eq!(
        (&slowest["block"], &slowest["position"]),
        (&9.into(), &99.into())
    );
    assert_eq!(slowest["network_up_ns"], 114 * MS);
    assert_eq!(slowest["parts"].as_array().unwrap().len(), 7);
}

/// Which is when it has its network, or when the cluster shows it as ready, later.
#[test]
fn pods_of_a_cluster_are_told_with_what_that_did() {
    let (run, mut trials) = run();
    for trial in &mut trials {
        let observation = trial.observation.as_mut().unwrap();
        if let What::Launch(seen) = &mut observation.what {
            for pod in &mut seen.pods {
                pod.placed = vec![step("accepted", 1_200_000), step("scheduled", 1_500_000)];
                pod.shown = vec![step(READY, pod.up_ns().unwrap() + 70 * MS)];
                pod.watches_apart_ns = pod.attach_ns().map(|ns| ns / 1_000);
            }
            seen.pods[0].shown.clear();
        }
    }
    let summary = Summary::new(&run, &trials);
    let report = documented::read(&json::render(&summary));
    let launch = &report["treatments"][0]["launch"];
    let counts = ["pods", "up", "ready", "whole"].map(|it| &launch[it]);
    assert_eq!(counts, [1000, 1000, 990, 990]);
    let steps = launch["steps"].as_array().unwrap();
    let of = |name: &str| steps.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(of("accepted")["longest_ns"], 200_000.0);
    assert_eq!(of("scheduled")["longest_ns"], 300_000.0);
    assert_eq!(of(READY)["longest_ns"], 70_000_000.0);
    let times = launch["times"].as_array().unwrap();
    let namespace = times.iter().find(|it| it["name"] == "namespace").unwrap();
    assert_eq!(namespace["longest_ns"], 500_000.0);
    assert_eq!(launch["slowest"]["network_up_ns"], 114 * MS);
    assert_eq!(launch["slowest"]["parts"].as_array().unwrap().len(), 10);
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains("ready 70.0"), "the title of a bar");
    // Its longest stretch is among those before it has its network.
    let text = markdown::render(&summary);
    assert!(text.contains("had its network after 114"), "{text}");
    let apart = "for 99 of 100 pods two watches of the cluster dated all they saw within 105 µs";
    assert!(text.contains(apart), "{text}");
    assert!(!text.contains("of it ready"), "{text}");
}

#[test]
fn every_format_tells_of_pods() {
    let (summary, run, trials) = summary();
    let csv = csv::render(&summary);
    assert_eq!(
        csv.lines()
            .filter(|it| it.contains(",network_up_ns,"))
            .count(),
        2
    );
    let page = html::render(&summary, &run, &trials);
    for text in [
        "Start of the slowest pod",
        "first out 1.00",
        "steps of the network",
        "Steps of ending a pod",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let wide = Style {
        colour: false,
        width: 160,
    };
    let terminal = terminal::render(&summary, wide);
    let markdown = markdown::render(&summary);
    assert!(markdown.contains("How pods ended"), "{markdown}");
    for text in [&page, &markdown, &terminal] {
        assert!(text.contains("100 pods are launched"), "{text}");
        assert!(text.contains("up p50"), "{text}");
        assert!(text.contains("number 100 in block 10"), "{text}");
    }
}

/// A terminal has room for few, and the dearest are what a reader looks for.
#[test]
fn the_dearest_networks_are_not_left_out() {
    let (run, trials) = run_of(&["routed", "bridge", "host-gw", "vxlan", "cni:ptp"]);
    let summary = Summary::new(&run, &trials);
    let text = terminal::render(&summary, Style::default());
    let (_, told) = text.split_once("Until the network is up").expect("a table");
    let slowest = told.lines().filter(|it| it.contains(": the slowest pod"));
    let labels = slowest.map(|it| it.split(": ").next().unwrap());
    let labels: Vec<&str> = labels.collect();
    assert_eq!(labels, ["cni:ptp", "vxlan", "host-gw"], "{text}");
    assert!(told.contains("\n2 more in the page\n"), "{text}");
    let page = markdown::render(&summary);
    assert_eq!(page.matches(": the slowest pod").count(), 5, "{page}");
    assert!(!page.contains("more in the page"), "{page}");
}

#[test]
fn one_network_leads_with_its_figure_and_its_slowest_pod() {
    let (run, trials) = run_of(&["routed"]);
    let text = terminal::render(&Summary::new(&run, &trials), Style::default());
    assert!(text.starts_with("routed: network up after "), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let slowest = "; routed: the slowest pod, number 100 in block 10, had its network after 114 ms";
    assert!(words.contains(slowest), "{text}");
    assert_eq!(
        words.matches("the slowest pod, number").count(),
        1,
        "{text}"
    );
}

#[test]
fn pods_without_network_are_told() {
    let (run, mut trials) = run();
    for trial in trials.iter_mut().filter(|it| it.treatment == 1) {
        let gates = vec![GateFailure::NoNetwork {
            pods: 7,
            launched: 100,
            detail: "no address".to_owned(),
        }];
        trial.status = TrialStatus::Invalid { gates };
    }
    let summary = Summary::new(&run, &trials);
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains("7 of 100 pods without network: no address"));
    let failures = &summary.account.failures;
    assert!(
        failures
            .iter()
            .any(|it| it.reason == "pods without network")
    );
}

#[test]
fn a_pod_that_never_had_its_network_is_the_slowest() {
    let (run, mut trials) = run();
    for trial in trials.iter_mut().filter(|it| it.treatment == 0) {
        let observation = trial.observation.as_mut().unwrap();
        if let What::Launch(seen) = &mut observation.what {
            seen.pods[3].first_in_ns = None;
            seen.pods[4].release = None;
        }
    }
    let summary = Summary::new(&run, &trials);
    let slowest = summary.treatments[0].values_of("slowest_up");
    assert!(slowest.iter().all(|it| it.value == 20e9));
    let launch = summary.treatments[0].launch.as_ref().unwrap();
    assert_eq!((launch.pods, launch.up, launch.whole), (1_000, 990, 980));
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains("10 without network, 10 without some other phase"));
}

/// What no pod was seen to have, the run could not see.
#[test]
fn a_pod_without_a_phase_that_others_have_is_not_whole() {
    type Change = fn(usize, &mut PodLaunch);
    let whole = |change: Change| {
        let (run, mut trials) = run();
        for trial in &mut trials {
            let observation = trial.observation.as_mut().unwrap();
            if let What::Launch(seen) = &mut observation.what {
                for (at, pod) in seen.pods.iter_mut().enumerate() {
                    pod.placed = vec![step("accepted", 1_200_000), step("scheduled", 1_500_000)];
                    pod.steps.push(step(SANDBOX, pod.steps[1].ended_ns));
                    let ready = pod.up_ns().unwrap() + 70 * MS;
                    pod.shown = vec![step("running", ready), step(READY, ready)];
                    change(at, pod);
                }
            }
        }
        let summary = Summary::new(&run, &trials);
        summary.treatments[0].launch.as_ref().unwrap().whole
    };
    let cases: [(Change, usize); 7] = [
        (|_, _| (), 1_000),
        (|at, pod| pod.placed.truncate(1 + at.min(1)), 990),
        (
            |at, pod| pod.namespace_ns = pod.namespace_ns.filter(|_| at > 0),
            990,
        ),
        (|at, pod| pod.steps.truncate(2 + at.min(1)), 990),
        (
            |at, pod| pod.shown.retain(|it| at > 0 || it.step == READY),
            990,
        ),
        (|_, pod| pod.namespace_ns = None, 1_000),
        (|_, pod| pod.shown.retain(|it| it.step == READY), 1_000),
    ];
    for (at, (change, expected)) in cases.into_iter().enumerate() {
        assert_eq!(whole(change), expected, "{at}");
    }
}
