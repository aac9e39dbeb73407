//! Commands that ran while traffic went on, and what became of that.

use plumbline_experiment::{Survive, Task};
use plumbline_record::{
    FlowKind, FlowSeries, GateFailure, Histogram, LaunchObservation, LaunchStep, PodLaunch,
    ProbeOutcome, ProbeSeries, ProbeSpell, READY, RequestOutcome, RequestSpell, Run,
    SurviveObservation, Trial, TrialStatus, What,
};
use plumbline_report::compare::LimitOutcome;
use plumbline_report::gap_limit::GapLimit;
use plumbline_report::terminal::{self, Style};
use plumbline_report::{Summary, csv, html, json, markdown};

use crate::documented;
use crate::fake::{self, Fake, Network};

const MS: u64 = 1_000_000;

/// A request in each ms: in time, then so many that fared in some way from 1,010 ms on, then
/// in time until 4 s.
fn flow(kind: FlowKind, outcome: RequestOutcome, late: u64, broken: u64) -> FlowSeries {
    let spell = |outcome, from: u64, requests: u64| RequestSpell {
        outcome,
        requests,
        first_ns: from * MS,
        last_ns: (from + requests - 1) * MS,
    };
    FlowSeries {
        kind,
        gap_ns: MS,
        connections: if kind == FlowKind::Standing { 100 } else { 0 },
        broken,
        lag: Histogram::new(),
        sent_late: Vec::new(),
        latency: Histogram::new(),
        spells: vec![
            spell(RequestOutcome::InTime, 0, 1_010),
            spell(outcome, 1_010, late),
            spell(RequestOutcome::InTime, 1_010 + late, 4_000 - 1_010 - late),
        ],
    }
}

/// A connection in each ms that a policy forbids: from 1,010 ms on they get through for so
/// long, of 4 s.
fn forbidden(open: u64) -> ProbeSeries {
    let spell = |outcome, from: u64, probes: u64| ProbeSpell {
        outcome,
        probes,
        first_ns: from * MS,
        last_ns: (from + probes - 1) * MS,
    };
    let (closed, opened) = (ProbeOutcome::Unanswered, ProbeOutcome::Opened);
    let mut spells = vec![spell(closed, 0, 1_010)];
    spells.extend((open > 0).then(|| spell(opened, 1_010, open)));
    spells.push(spell(closed, 1_010 + open, 2_990 - open));
    ProbeSeries {
        sent: 4_000,
        spells,
        ..ProbeSeries::default()
    }
}

/// A command from 1 s on that takes 300 ms. On the first network standing connections are
/// late for 200 ms, others for as long and longer by some ms in each block; on the second for
/// twice as long, five connections break, and what a policy forbids gets through for 30 ms
/// and longer.
fn run() -> (Run, Vec<Trial>) {
    run_of(&["host", "vxlan"])
}

/// The same of the first of them, or both.
fn run_of(networks: &[&'static str]) -> (Run, Vec<Trial>) {
    let networks: Vec<Network> = networks.iter().copied().map(Network::same).collect();
    let fake = Fake {
        workloads: vec![fake::rr()],
        ..Fake::new(&networks)
    };
    let (mut run, mut trials) = fake.run();
    for treatment in &mut run.plan.treatments {
        treatment.task = Task::Survive(Survive {
            during: "ip link set eth0 <down>".to_owned(),
            policy: true,
            ..Survive::default()
        });
    }
    for trial in &mut trials {
        let factor = 1 + trial.treatment as u64;
        let late = factor * (200 + u64::from(trial.block));
        let seen = SurviveObservation {
            begun_ns: 1_000 * MS,
            ended_ns: 1_300 * MS,
            clock_error_ns: 0,
            flows: vec![
                flow(
                    FlowKind::Standing,
                    RequestOutcome::After100Ms,
                    200 * factor,
                    5 * (factor - 1),
                ),
                flow(FlowKind::New, RequestOutcome::After1S, late, 0),
                flow(FlowKind::Datagram, RequestOutcome::Unanswered, late, 0),
            ],
            forbidden: Some(forbidden((factor - 1) * (30 + u64::from(trial.block)))),
            launched: None,
        };
        if let Some(observation) = &mut trial.observation {
            observation.what = What::Survive(Box::new(seen));
        }
    }
    (run, trials)
}

fn summary() -> (Summary, Run, Vec<Trial>) {
    let (run, trials) = run();
    (Summary::new(&run, &trials), run, trials)
}

#[test]
fn networks_are_compared_on_their_gaps() {
    let (summary, ..) = summary();
    for (metric, is_primary) in [
        ("gap_standing", true),
        ("gap_new", true),
        ("gap_datagram", true),
        ("well_again", false),
    ] {
        let found = summary.comparison(1, metric).expect(metric);
        assert_eq!(found.is_primary, is_primary, "{metric}");
        let ratio = found.effect.unwrap().ratio_minus_one;
        assert!((0.9..1.01).contains(&ratio), "{metric}: {ratio}");
    }
    assert!(summary.comparison(1, "p50").is_none());
}

#[test]
fn a_trial_without_a_gap_counts_as_what_it_can_tell() {
    let (run, mut trials) = run();
    for trial in trials.iter_mut().filter(|it| it.treatment == 0) {
        let observation = trial.observation.as_mut().unwrap();
        if let What::Survive(seen) = &mut observation.what {
            seen.flows[1].spells[1].outcome = RequestOutcome::InTime;
        }
    }
    let summary = Summary::new(&run, &trials);
    let gaps = summary.treatments[0].values_of("gap_new");
    assert!(gaps.iter().all(|it| it.value == 0.0), "{gaps:?}");
    let survive = summary.treatments[0].survive.as_ref().unwrap();
    assert_eq!(survive.flows[1].longest_ns, 0);
    // Of 400 to 418 ms to the 1 ms between two requests.
    let ratio = summary.comparison(1, "gap_new").unwrap().effect.unwrap();
    assert!((399.0..417.0).contains(&ratio.ratio_minus_one), "{ratio:?}");
}

/// Answers all requests of a trial in time.
fn undisturbed(trial: &mut Trial) {
    let observation = trial.observation.as_mut().unwrap();
    if let What::Survive(seen) = &mut observation.what {
        let all = seen.flows.iter_mut().flat_map(|it| &mut it.spells);
        all.for_each(|it| it.outcome = RequestOutcome::InTime);
    }
}

#[test]
fn no_gap_is_none_in_every_figure() {
    let (run, mut trials) = run();
    let of_first = trials.iter_mut().filter(|it| it.treatment == 0);
    of_first.for_each(undisturbed);
    let summary = Summary::new(&run, &trials);
    let wide = Style {
        colour: false,
        width: 160,
    };
    let terminal = terminal::render(&summary, wide);
    let row = terminal.lines().find(|it| it.starts_with("host "));
    let cells: Vec<&str> = row.unwrap().split_whitespace().skip(1).collect();
    assert_eq!(cells, ["0", "0", "0"], "{terminal}");
    let csv = csv::render(&summary);
    for metric in ["gap_standing", "gap_new", "gap_datagram", "well_again"] {
        let none = format!(",{metric}_ns,0,0,0,");
        assert_eq!(csv.matches(&none).count(), 1, "{metric}: {csv}");
    }
    let report = documented::read(&json::render(&summary));
    assert_eq!(
        report["answers"][0],
        "host is the baseline: longest gap of standing connections 0"
    );
    for text in [&terminal, &markdown::render(&summary)] {
        assert!(!text.contains("1.00 ms"), "{text}");
    }
}

#[test]
fn what_is_seldom_unwell_is_told_by_how_often() {
    let (run, mut trials) = run();
    for trial in &mut trials {
        let observation = trial.observation.as_mut().unwrap();
        match (trial.treatment, trial.block) {
            (0, 3) | (1, 3 | 4) => (),
            (1, 5) => {
                if let What::Survive(seen) = &mut observation.what {
                    seen.flows[2].spells.truncate(2);
                }
            }
            _ => undisturbed(trial),
        }
    }
    let page = html::render(&Summary::new(&run, &trials), &run, &trials);
    let page = page.replace('\u{a0}', " ");
    for said in [
        "host: the command took 300 ms (300 ms to 300 ms), and in 9 of 10 repetitions no gap was \
         longer than those before it had begun, in 1 traffic was well again within 213 ms of its \
         beginning;",
        "and in 7 of 10 repetitions no gap was longer than those before it had begun, in 2 traffic \
         was well again within 418 ms of its beginning, in 1 traffic was not well at the end;",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
}

/// Neither does it say that traffic was well again after no time.
#[test]
fn a_command_that_does_nothing_is_told_as_that() {
    let (run, mut trials) = run();
    trials.iter_mut().for_each(undisturbed);
    let page = html::render(&Summary::new(&run, &trials), &run, &trials);
    assert!(page.contains("no gap was longer than those before it had begun"));
}

#[test]
fn what_one_path_survived_leads_and_is_said_once() {
    let (run, trials) = run_of(&["host"]);
    let summary = Summary::new(&run, &trials);
    let said = "host: the command took 300 ms (300 ms to 300 ms), and traffic was well again 21";
    let report = documented::read(&json::render(&summary));
    let answer = report["answer"].as_str().unwrap();
    assert!(answer.starts_with(said), "{answer}");
    let wide = Style {
        colour: false,
        width: 400,
    };
    let terminal = terminal::render(&summary, wide);
    assert!(terminal.starts_with(said), "{terminal}");
    assert_eq!(terminal.matches(said).count(), 1, "{terminal}");
    assert!(!terminal.contains("\n\n\n"), "{terminal}");
    let markdown = markdown::render(&summary);
    let (_, text) = markdown.split_once("\n\n").unwrap();
    assert!(text.starts_with(said), "{markdown}");
    let page = html::render(&summary, &run, &trials);
    let page = page.replace('\u{a0}', " ");
    assert!(
        page.contains(&format!(r#"<p class="lead">{said}"#)),
        "{page}"
    );
}

#[test]
fn few_repetitions_of_a_command_are_a_warning() {
    for (blocks, is_said) in [(10, false), (9, true), (3, true)] {
        let (mut run, mut trials) = run();
        run.plan.blocks.truncate(blocks);
        trials.retain(|it| (it.block as usize) < blocks);
        let text = markdown::render(&Summary::new(&run, &trials));
        let said = format!("fewer than 10 repetitions of the command ({blocks})");
        assert_eq!(text.contains(&said), is_said, "{blocks}: {text}");
        assert!(!text.contains("too few for an interval"), "{text}");
    }
}

#[test]
fn scripts_get_gaps_with_intervals_and_counts() {
    let (summary, ..) = summary();
    let report = documented::read(&json::render(&summary));
    let second = &report["treatments"][1];
    assert_eq!(second["factors"]["during"], "ip link set eth0 <down>");
    assert_eq!(second["factors"]["rate_per_second"], 1_000.0);
    assert_eq!(second["factors"]["policy"], true);
    let survive = &second["survive"];
    assert_eq!(
        (&survive["repetitions"], &survive["unwell"]),
        (&10.into(), &0.into())
    );
    assert_eq!(survive["command_ns"]["median"], 300e6);
    let [standing, new, datagram] = &survive["flows"].as_array().unwrap()[..] else {
        panic!("{survive}");
    };
    assert_eq!(standing["kind"], "standing");
    assert_eq!(
        (&standing["broken"], &standing["connections"]),
        (&50.into(), &1_000.into())
    );
    assert_eq!(standing["gap_ns"]["median"], 400e6);
    let late = ["after_10ms", "after_100ms", "after_1s"];
    let late_of = |flow: &serde_json::Value| late.map(|it| flow[it].as_u64().unwrap());
    assert_eq!(late_of(standing), [4_000, 4_000, 0]);
    assert_eq!(late_of(new), [4_090; 3]);
    assert_eq!(late_of(datagram), [4_090; 3]);
    assert_eq!(new["gap_ns"]["median"], 409e6);
    assert!(new["gap_ns"]["low"].as_f64().unwrap() < 409e6);
    assert_eq!(new["longest_gap_ns"], 418 * MS);
    assert_eq!(new["longest_gap_before_ns"], 0);
    let forbidden = &survive["forbidden"];
    // 30 to 39 in ten blocks.
    let counts = ["connections", "opened", "open_at_end"].map(|it| &forbidden[it]);
    assert_eq!(counts, [40_000, 345, 0]);
    assert_eq!(forbidden["open_ns"]["median"], 34.5e6);
    assert_eq!(forbidden["longest_open_ns"], 39 * MS);
    let first = &report["treatments"][0]["survive"]["forbidden"];
    assert_eq!(
        (&first["opened"], &first["longest_open_ns"]),
        (&0.into(), &0.into())
    );
    assert_eq!(survive["worst"]["block"], 9);
    assert_eq!(survive["worst"]["well_again_ns"], 428 * MS);
}

#[test]
fn every_format_tells_what_broke() {
    let (summary, run, trials) = summary();
    let csv = csv::render(&summary);
    assert_eq!(
        csv.lines().filter(|it| it.contains(",gap_new_ns,")).count(),
        2
    );
    let page = html::render(&summary, &run, &trials);
    for text in [
        "Around the command",
        "after 1 s, or never",
        "class=\"k3\"",
        ">forbidden<",
        "class=\"k1\"",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<down>"), "a command is text");
    let wide = Style {
        colour: false,
        width: 160,
    };
    let terminal = terminal::render(&summary, wide);
    for text in [&page, &markdown::render(&summary), &terminal] {
        assert!(text.contains("100 standing connections"), "{text}");
        assert!(text.contains("50 of 1000"), "{text}");
        assert!(text.contains("traffic was well again"), "{text}");
        // The terminal breaks lines.
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        for said in [
            "of 40000 connections that the policy forbids none got through",
            "of 40000 connections that the policy forbids 345 got through, for 34.5 ms",
        ] {
            assert!(text.contains(said), "{text}");
        }
    }
}

/// Ten pods, of which the last is never ready on the first network, and has no network either
/// on the second.
#[test]
fn pods_that_begin_meanwhile_are_told() {
    let (mut run, mut trials) = run();
    for treatment in &mut run.plan.treatments {
        if let Task::Survive(survive) = &mut treatment.task {
            survive.pods = Some(10);
        }
    }
    for trial in &mut trials {
        let pod = |at: u64| {
            let ready = LaunchStep {
                step: READY.to_owned(),
                ended_ns: (1_000 + at) * MS,
            };
            PodLaunch {
                node: "n0".to_owned(),
                first_out_ns: Some((300 + at) * MS),
                first_in_ns: (at < 9 || trial.treatment == 0).then_some((301 + at) * MS),
                shown: Vec::from_iter((at < 9).then_some(ready)),
                ..PodLaunch::default()
            }
        };
        let launched = LaunchObservation {
            pods: (0..10).map(pod).collect(),
            ..LaunchObservation::default()
        };
        let observation = trial.observation.as_mut().unwrap();
        if let What::Survive(seen) = &mut observation.what {
            seen.launched = Some(launched);
        }
    }
    let summary = Summary::new(&run, &trials);
    let report = documented::read(&json::render(&summary));
    for (treatment, up) in report["treatments"]
        .as_array()
        .unwrap()
        .iter()
        .zip([100, 90])
    {
        assert_eq!(treatment["factors"]["pods"], 10);
        let launch = &treatment["launch"];
        let counts = ["pods", "up", "ready"].map(|it| &launch[it]);
        assert_eq!(counts, [100, up, 90]);
        assert_eq!(treatment["survive"]["repetitions"], 10);
    }
    let page = html::render(&summary, &run, &trials);
    let wide = Style {
        colour: false,
        width: 160,
    };
    let terminal = terminal::render(&summary, wide);
    for text in [&page, &markdown::render(&summary), &terminal] {
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        for said in [
            "a command runs and 10 pods are launched",
            "of 100 pods that began since, 100 had their network, the slowest after 310 ms, and \
             90 were ready, the slowest after 1.01 s",
            "of 100 pods that began since, 90 had their network, the slowest after 309 ms",
            "up p50",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}

#[test]
fn what_was_never_well_again_is_told() {
    let (run, mut trials) = run();
    for trial in trials
        .iter_mut()
        .filter(|it| it.treatment == 1 && it.block < 4)
    {
        let observation = trial.observation.as_mut().unwrap();
        if let What::Survive(seen) = &mut observation.what {
            seen.flows[2].spells.truncate(2);
            if let Some(forbidden) = &mut seen.forbidden {
                forbidden.spells.truncate(2);
            }
        }
    }
    let summary = Summary::new(&run, &trials);
    let survive = summary.treatments[1].survive.as_ref().unwrap();
    assert_eq!((survive.unwell, survive.repetitions), (4, 10));
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains("in 6 of 10 repetitions"));
    assert!(page.contains("and in 4 of 10 still at the end"));
}

#[test]
fn a_limit_is_broken_by_the_longest_gap_of_any_repetition() {
    let (mut summary, ..) = summary();
    let limit = |text: &str, summary: &Summary| text.parse::<GapLimit>().unwrap().judge(summary);
    assert_eq!(
        limit("gap=418ms", &summary),
        (LimitOutcome::Held, Vec::new())
    );
    let (outcome, broken) = limit("gap=417ms", &summary);
    assert_eq!(outcome, LimitOutcome::Broken);
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert!(
        broken[0].contains("vxlan: the longest gap of new connections"),
        "{broken:?}"
    );
    assert_eq!(limit("gap=150ms", &summary).1.len(), 6);

    // What one repetition would have shown nobody knows.
    summary.blocks += 1;
    let (outcome, said) = limit("gap=418ms", &summary);
    assert_eq!(outcome, LimitOutcome::Undecided);
    let whole = "10 of 11 repetitions count";
    assert!(said.iter().all(|it| it.contains(whole)), "{said:?}");
    summary.treatments[1].survive = None;
    let (outcome, said) = limit("gap=418ms", &summary);
    assert_eq!(outcome, LimitOutcome::Undecided);
    assert!(said[1].contains("0 of 11 repetitions count"), "{said:?}");
    assert_eq!(limit("gap=1ms", &summary).0, LimitOutcome::Broken);
}

#[test]
fn a_path_that_was_not_well_before_is_told() {
    let (run, mut trials) = run();
    for trial in trials.iter_mut().filter(|it| it.treatment == 1) {
        let gates = vec![GateFailure::Unwell {
            detail: "3 of about 1000 datagrams were answered within 10 ms".to_owned(),
        }];
        trial.status = TrialStatus::Invalid { gates };
    }
    let summary = Summary::new(&run, &trials);
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains("not well before the command: 3 of about 1000 datagrams"));
    let failures = &summary.account.failures;
    assert!(
        failures
            .iter()
            .any(|it| it.reason == "not well before the command")
    );
}
