//! CPU and packets: what is counted, over which time, and how finely.

use plumbline_record::{RotationRecord, Run, Trial};
use plumbline_report::compare::{LimitOutcome, check_limits, compare, render};
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, html, markdown, terminal};
use plumbline_stats::verdict::Verdict;

use crate::analysis::{summary, two};
use crate::fake::{Fake, Network};

#[test]
fn idle_cpu_is_no_cost_and_contexts_add_up() {
    let fake = Fake {
        noise: 0.0,
        ..two()
    };
    let summary = summary(&fake);
    let cost = summary.treatments[0].cost.as_ref().unwrap();
    assert!(
        (cost.total.median / 11_400.0 - 1.0).abs() < 1e-3,
        "{cost:?}"
    );
    let split = cost.by_context.unwrap();
    let sum = split.user + split.system + split.softirq + split.irq;
    assert!((sum / cost.total.median - 1.0).abs() < 1e-9);
    assert!((split.softirq / cost.total.median - 0.28).abs() < 1e-3);
}

#[test]
fn the_receivers_cpu_and_packets_are_those_of_the_window() {
    let fake = Fake {
        noise: 0.0,
        ..two()
    };
    // The receiver and the devices saw the warm-up too: 9/7 of the window.
    let summary = summary(&fake);
    let near = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 2e-3, "{found}");
    let cost = |id: usize| summary.treatments[id].cost.as_ref().unwrap();
    let per_second = |id: usize| summary.treatments[id].packets.per_second.unwrap();
    near(cost(0).server_process.unwrap(), 0.3 * 11_400.0);
    near(cost(0).client_process.unwrap(), 0.35 * 11_400.0);
    near(per_second(0), 2.0 * 1_750.0 / 0.35);
    near(cost(2).server_process.unwrap(), 0.3 * 0.55);
    near(per_second(2), 4.2e8 / 40_000.0 * 1.125 / 0.35);
    let mut fake = fake;
    fake.workloads = vec![crate::fake::datagram()];
    let datagrams = crate::analysis::summary(&fake);
    let packets = datagrams.treatments[0].packets.per_second.unwrap();
    near(packets, 4.2e8 / 40_000.0 * 1.125 / 0.35);
}

#[test]
fn the_busiest_cpu_is_one_of_the_machines_whatever_the_process_may_use() {
    let (mut run, trials) = two().run();
    let share = |run: &Run| {
        let summary = Summary::new(run, &trials);
        let cost = summary.treatments[2].cost.as_ref().unwrap();
        cost.busiest_cpu_softirq_share.unwrap()
    };
    // 4.2e8 bytes at 0.55 ns, 28 % in softirq, 70 % of that on one CPU of four.
    let planted = 4.2e8 * 0.55 * 0.28 * 0.7 / 350e6;
    assert!(
        (share(&run) / planted - 1.0).abs() < 0.05,
        "{}",
        share(&run)
    );
    run.fingerprint.cpus = 1;
    assert!(
        (share(&run) / planted - 1.0).abs() < 0.05,
        "{}",
        share(&run)
    );
}

/// Figures in steps of 10 ms, as kernels show them, with their rounding.
fn in_ticks(trials: &mut [Trial]) {
    const TICK_NS: u64 = 10_000_000;
    for trial in trials {
        let machine = &mut trial.observation.as_mut().unwrap().common.machines[0];
        for part in [
            &mut machine.user_ns,
            &mut machine.system_ns,
            &mut machine.irq_ns,
            &mut machine.softirq_ns,
            &mut machine.idle_ns,
        ] {
            *part -= *part % TICK_NS;
        }
        machine.busy_ns = machine.capacity_ns - machine.idle_ns;
    }
}

#[test]
fn readings_that_agree_only_for_their_coarseness_show_no_equivalence() {
    let (run, mut trials) = Fake {
        noise: 0.0,
        ..Fake::new(&[Network::same("host"), Network::same("host#2")])
    }
    .run();
    in_ticks(&mut trials);
    let summary = Summary::new(&run, &trials);
    let cpu = summary.comparison(1, "cpu_per_request").unwrap();
    assert_eq!(
        cpu.effect.unwrap().ratio_minus_one,
        0.0,
        "all rounded alike"
    );
    let rounding = summary.treatments[0].cost.as_ref().unwrap().rounding;
    // 10 ms · √(4/6) of some 20 ms of CPU in each trial.
    assert!((0.3..0.6).contains(&rounding), "{rounding}");
    let expected = 2.0 * (2.0 * rounding.powi(2) / 10.0).sqrt();
    assert!((cpu.resolution / expected - 1.0).abs() < 1e-9, "{cpu:?}");
    assert_eq!(cpu.effect.unwrap().verdict, Some(Verdict::Undecided));
    assert_eq!(
        summary
            .comparison(1, "p50")
            .unwrap()
            .effect
            .unwrap()
            .verdict,
        Some(Verdict::Equivalent)
    );
}

#[test]
fn a_window_in_slices_is_rounded_in_each() {
    let (run, mut trials) = Fake {
        noise: 0.0,
        ..two()
    }
    .run();
    in_ticks(&mut trials);
    let rounding = |trials: &[Trial]| {
        let summary = Summary::new(&run, trials);
        summary.treatments[0].cost.as_ref().unwrap().rounding
    };
    let whole = rounding(&trials);
    for trial in &mut trials {
        let common = &mut trial.observation.as_mut().unwrap().common;
        common.rotation = Some(RotationRecord {
            slices: 16,
            ..RotationRecord::default()
        });
    }
    assert!((rounding(&trials) / whole - 4.0).abs() < 1e-9);
}

#[test]
fn long_trials_need_not_fear_ticks() {
    let mut fake = two();
    fake.samples = 50_000;
    let (run, mut trials) = fake.run();
    in_ticks(&mut trials);
    let summary = Summary::new(&run, &trials);
    let cpu = summary.comparison(1, "cpu_per_request").unwrap();
    assert!(cpu.resolution > 0.0 && cpu.resolution < 0.013, "{cpu:?}");
    assert_eq!(cpu.effect.unwrap().verdict, Some(Verdict::Worse));
}

#[test]
fn without_an_idle_sample_there_is_no_cost_rather_than_a_wrong_one() {
    let (run, mut trials) = two().run();
    for trial in &mut trials {
        trial.observation.as_mut().unwrap().common.idle.capacity_ns = 0;
    }
    let summary = Summary::new(&run, &trials);
    assert!(summary.treatments.iter().all(|one| one.cost.is_none()));
    let cpu = summary.comparison(1, "cpu_per_request").unwrap();
    assert!(cpu.effect.is_none() && cpu.difference.is_none());
}

/// As a build records it that reads the CPU clocks of the kernel's threads.
fn with_ksoftirqd(trials: &mut [Trial]) {
    for trial in trials {
        let common = &mut trial.observation.as_mut().unwrap().common;
        common.ksoftirqd_ns = Some(0);
    }
}

#[test]
fn the_processes_are_compared_in_runs_that_recorded_all_of_them() {
    let (run, mut trials) = two().run();
    let before = Summary::new(&run, &trials);
    assert!(before.comparison(1, "process_cpu_per_request").is_none());
    with_ksoftirqd(&mut trials);
    let summary = Summary::new(&run, &trials);
    let cost = summary.treatments[0].cost.as_ref().unwrap();
    let parts = cost.client_process.unwrap() + cost.server_process.unwrap();
    let whole = summary.treatments[0].over_trials("process_cpu_per_request");
    assert!((whole.unwrap().median / parts - 1.0).abs() < 0.02);
    let processes = summary.comparison(1, "process_cpu_per_request").unwrap();
    let machine = summary.comparison(1, "cpu_per_request").unwrap();
    let change = |of: &plumbline_report::analysis::Comparison| of.effect.unwrap().ratio_minus_one;
    assert!((change(processes) - change(machine)).abs() < 0.01);
    assert_eq!(processes.resolution, 0.0);
    // Of requests, and of bytes.
    assert_eq!(summary.comparisons.len(), before.comparisons.len() + 2);
}

/// A run in clusters, whose networks cost these times as much CPU as the first.
fn in_clusters(networks: &[(&'static str, f64)]) -> (Run, Vec<Trial>) {
    let network = |&(label, cpu): &(&'static str, f64)| Network {
        cpu,
        ..Network::same(label)
    };
    let networks: Vec<Network> = networks.iter().map(network).collect();
    let (mut run, mut trials) = Fake::new(&networks).run();
    with_ksoftirqd(&mut trials);
    run.provenance.target = "kubernetes".to_owned();
    (run, trials)
}

#[test]
fn no_network_is_better_or_the_same_for_processes_that_are_not_seen() {
    let (mut run, trials) = in_clusters(&[
        ("a/host", 1.0),
        ("a/pod", 0.8),
        ("b/pod", 1.0),
        ("c/pod", 1.3),
        ("d/host", 0.8),
    ]);
    let verdict = |summary: &Summary, id, metric| {
        let effect = summary.comparison(id, metric).unwrap().effect;
        effect.unwrap().verdict.unwrap()
    };
    let summary = Summary::new(&run, &trials);
    let found = [1, 2, 3, 4].map(|id| verdict(&summary, id, "process_cpu_per_request"));
    use Verdict::{Better, Equivalent, Undecided, Worse};
    assert_eq!(found, [Undecided, Undecided, Worse, Better]);
    let found = [1, 2, 3, 4].map(|id| verdict(&summary, id, "cpu_per_request"));
    assert_eq!(found, [Better, Equivalent, Worse, Better]);
    let text = markdown::render(&summary);
    let row = "undecided: what the network’s own processes use is not seen here";
    assert_eq!(
        text.matches(row).count(),
        4,
        "of requests and bytes: {text}"
    );
    assert!(
        text.contains(", without the network’s own processes"),
        "{text}"
    );
    assert!(
        text.contains("no network is better or the same in it"),
        "{text}"
    );

    // A limit is not held by what is not seen.
    run.plan.limits = [("process_cpu_per_request".to_owned(), 0.1)].into();
    let outcomes = check_limits(0, &run.plan, &summary);
    let outcomes: Vec<LimitOutcome> = outcomes.iter().map(|one| one.outcome).collect();
    let (held, broken, open) = (
        LimitOutcome::Held,
        LimitOutcome::Broken,
        LimitOutcome::Undecided,
    );
    assert_eq!(outcomes, [open, open, broken, held]);

    // In a lab all are seen.
    run.provenance.target = "lab".to_owned();
    let summary = Summary::new(&run, &trials);
    let found = [1, 2].map(|id| verdict(&summary, id, "process_cpu_per_request"));
    assert_eq!(found, [Better, Equivalent]);
}

#[test]
fn nothing_is_worse_than_a_baseline_that_may_hide_processes() {
    let networks = [
        ("a/pod", 1.0),
        ("b/host", 1.3),
        ("b/pod", 1.3),
        ("a/pod:2", 1.3),
    ];
    let (run, trials) = in_clusters(&networks);
    let summary = Summary::new(&run, &trials);
    let verdict = |id| {
        let processes = summary.comparison(id, "process_cpu_per_request");
        processes.unwrap().effect.unwrap().verdict.unwrap()
    };
    // The last is another path through the same network.
    use Verdict::{Undecided, Worse};
    assert_eq!([1, 2, 3].map(verdict), [Undecided, Undecided, Worse]);
}

/// What is not seen of a network may be what an upgrade of its daemon changed.
#[test]
fn between_runs_nothing_is_decided_by_processes_of_which_some_are_not_seen() {
    let run_with = |cpu: f64, target: &str| {
        let mut run = in_clusters(&[("a/host", 1.0), ("a/pod", cpu), ("b/host", cpu)]);
        run.0.provenance.target = target.to_owned();
        run
    };
    let verdicts = |cpu: f64, target: &str| {
        let runs = [run_with(1.2, target), run_with(cpu, target)];
        let compared = compare(&runs, false).unwrap();
        let text = render(&compared, Style::default());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let verdict = |label: &str, metric: &str| {
            let mut changes = compared.changes.iter();
            let found = changes.find(|it| it.label == label && it.metric.name() == metric);
            found.unwrap().effect.unwrap().verdict.unwrap()
        };
        let processes = "process_cpu_per_request";
        let found = [
            verdict("a/pod", processes),
            verdict("b/host", processes),
            verdict("a/pod", "cpu_per_request"),
        ];
        let said = "undecided: what the network’s own processes use is not seen here run 2";
        (found, text.contains(said))
    };
    use Verdict::{Better, Equivalent, Undecided, Worse};
    for (cpu, seen) in [(0.9, Better), (1.2, Equivalent), (1.5, Worse)] {
        let (found, is_said) = verdicts(cpu, "kubernetes");
        assert_eq!((found, is_said), ([Undecided, seen, seen], true), "{cpu}");
        let (found, is_said) = verdicts(cpu, "lab");
        assert_eq!((found, is_said), ([seen; 3], false), "{cpu}");
    }
}

#[test]
fn idle_time_in_microseconds_is_not_rounded_to_ticks() {
    let (run, mut trials) = two().run();
    in_ticks(&mut trials);
    for trial in &mut trials {
        let common = &mut trial.observation.as_mut().unwrap().common;
        common.machines[0].idle_ns += 1_234_000;
    }
    let summary = Summary::new(&run, &trials);
    let rounding = summary.treatments[0].cost.as_ref().unwrap().rounding;
    assert!(rounding < 1e-3, "{rounding}");
}

#[test]
fn a_page_describes_how_its_trials_were_repeated_and_their_idle_time_read() {
    let (run, mut trials) = two().run();
    let page = |trials: &[Trial]| html::render(&Summary::new(&run, trials), &run, trials);
    let of_windows = [
        "its last valid attempt counts",
        "no interval is narrower than these steps allow",
    ];
    let of_turns = [
        "that with the most valid trials, of equals the last",
        "is in the spread over blocks alone",
    ];
    let whole = page(&trials);
    for trial in &mut trials {
        let common = &mut trial.observation.as_mut().unwrap().common;
        common.rotation = Some(RotationRecord::default());
    }
    let in_turns = page(&trials);
    for said in of_windows {
        assert!(whole.contains(said) && !in_turns.contains(said), "{said}");
    }
    for said in of_turns {
        assert!(in_turns.contains(said) && !whole.contains(said), "{said}");
    }
}

#[test]
fn that_treatments_took_turns_is_said_in_a_few_words() {
    let (run, mut trials) = two().run();
    let said = |trials: &[Trial]| {
        let text = terminal::render(&Summary::new(&run, trials), Style::default());
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains("took turns in slices of 25 to 49 ms")
    };
    assert!(!said(&trials));
    // As they are cut to make a window of 285 ms, and one of 185 ms of bulk.
    let lengths = [24_923_077, 49_250_000].into_iter().cycle();
    for (trial, slice_ns) in trials.iter_mut().zip(lengths) {
        let common = &mut trial.observation.as_mut().unwrap().common;
        common.rotation = Some(RotationRecord {
            slice_ns,
            ..RotationRecord::default()
        });
    }
    assert!(said(&trials));
}
