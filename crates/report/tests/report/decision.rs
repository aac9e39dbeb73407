//! What a gate says, and in which forms, of runs whose effects are known.

use plumbline_experiment::{Scene, Sequential};
use plumbline_record::{Run, Trial, Warning};
use plumbline_report::Summary;
use plumbline_report::compare::{LimitOutcome, check_limits};
use plumbline_report::decision::{Decision, HeadVerdict, json, junit, markdown, sentence};
use serde_json::Value;

use crate::documented;
use crate::fake::{Fake, Network, rr};

const HOSTILE: &str = "pr\u{1b}[31m\u{ffff}<script>\"&'|*\n";

fn head(latency: f64) -> Network {
    Network {
        latency,
        ..Network::same("pr")
    }
}

/// A run of a gate with these limits, in percent.
fn gate(head: Network, limits: &[(&str, f64)]) -> (Run, Vec<Trial>) {
    let fake = Fake {
        workloads: vec![rr()],
        ..Fake::new(&[Network::same("main"), head])
    };
    let (mut run, trials) = fake.run();
    let limits = limits.iter();
    run.plan.limits = limits
        .map(|(metric, percent)| ((*metric).to_owned(), percent / 100.0))
        .collect();
    run.plan.sequential = Some(Sequential {
        looks: vec![8, 12],
        budget_ns: None,
    });
    (run, trials)
}

fn decided(head: Network, limits: &[(&str, f64)]) -> Decision {
    let (run, trials) = gate(head, limits);
    Decision::new(&run, &trials, false)
}

/// Failures, errors and the text of each test, by a parser of XML.
fn read(xml: &str) -> (usize, usize, Vec<String>) {
    let document = roxmltree::Document::parse(xml).unwrap_or_else(|e| panic!("{e}: {xml}"));
    let all = document.root_element();
    let suite = all.first_element_child().unwrap();
    assert_eq!(
        (all.tag_name().name(), suite.tag_name().name()),
        ("testsuites", "testsuite")
    );
    let cases = suite.children().filter(|it| it.has_tag_name("testcase"));
    let cases: Vec<_> = cases.collect();
    for of in [&all, &suite] {
        assert_eq!(of.attribute("tests"), Some(&*cases.len().to_string()));
    }
    let inside = |tag: &str| {
        let found = cases.iter().flat_map(|it| it.children());
        let found = found.filter(|it| it.has_tag_name(tag)).count();
        let named = if tag == "error" { "errors" } else { "failures" };
        assert_eq!(suite.attribute(named), Some(&*found.to_string()));
        found
    };
    let names = cases
        .iter()
        .map(|it| it.attribute("name").unwrap().to_owned());
    (inside("failure"), inside("error"), names.collect())
}

fn parsed(decision: &Decision) -> Value {
    let value = serde_json::from_str(&json(decision)).unwrap();
    documented::check("gate", &value);
    value
}

#[test]
fn a_head_that_is_within_all_limits_is_not_worse() {
    let decision = decided(head(1.0), &[("p50", 30.0), ("cpu_per_request", 40.0)]);
    assert_eq!(decision.verdict, HeadVerdict::NotWorse, "{decision:?}");
    let text = sentence(&decision);
    assert!(
        text.starts_with("pr is not worse than main: CPU per request "),
        "{text}"
    );
    assert!(
        text.contains(", p50 ") && text.contains("where 30 % is allowed"),
        "{text}"
    );
    assert_eq!(text.matches(". ").count(), 0, "one sentence: {text}");
    let (failures, errors, names) = read(&junit(&decision));
    assert_eq!((failures, errors), (0, 0));
    assert_eq!(names.len(), 2);
    assert!(names.contains(&"p50".to_owned()), "{names:?}");
    let object = parsed(&decision);
    assert_eq!(object["verdict"], "not-worse");
    assert_eq!(object["limits"][1]["outcome"], "held");
    assert!(object["more_ns"].is_null());
}

#[test]
fn a_head_beyond_one_limit_is_worse() {
    let decision = decided(head(1.5), &[("p50", 3.0), ("cpu_per_request", 40.0)]);
    assert_eq!(decision.verdict, HeadVerdict::Worse, "{decision:?}");
    let text = sentence(&decision);
    assert!(text.starts_with("pr is worse than main: p50 +"), "{text}");
    assert!(!text.contains("CPU"), "what holds is in the table: {text}");
    let (failures, errors, _) = read(&junit(&decision));
    assert_eq!((failures, errors), (1, 0));
    let table = markdown(&decision);
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    assert_eq!(rows.len(), 4, "a head, a rule and two limits: {table}");
    let row = rows.iter().find(|row| row.starts_with("| p50 |")).unwrap();
    assert!(row.contains("| 3 % | worse |"), "{table}");
    assert_eq!(parsed(&decision)["verdict"], "worse");
}

#[test]
fn what_is_undecided_says_how_much_more_time_it_takes() {
    let decision = decided(head(1.03), &[("p50", 4.0)]);
    assert_eq!(decision.verdict, HeadVerdict::Undecided, "{decision:?}");
    let text = sentence(&decision);
    let begins = "Whether pr is worse than main is undecided after 10 blocks";
    assert!(text.starts_with(begins), "{text}");
    assert!(text.contains("more would decide it (--budget "), "{text}");
    let (failures, errors, _) = read(&junit(&decision));
    assert_eq!((failures, errors), (0, 1));
    let object = parsed(&decision);
    assert!(object["more_ns"].as_u64() > object["took_ns"].as_u64());

    let found = 100.0 * decision.limits[0].check.overhead.unwrap();
    let at_the_limit = decided(head(1.03), &[("p50", found)]);
    assert_eq!(at_the_limit.more(), None);
    let text = sentence(&at_the_limit);
    assert!(text.contains("about as much as is allowed"), "{text}");
}

/// Blocks of these runs begin a minute apart, of which their trials take a second: the budget
/// is spent by the clock.
#[test]
fn time_is_that_of_the_clock_and_not_of_the_trials() {
    let decision = decided(head(1.03), &[("p50", 4.0)]);
    assert_eq!(decision.took.as_secs(), 541);
    let text = sentence(&decision);
    assert!(text.contains("after 10 blocks in 10 min"), "{text}");
    let (_, budget) = text.split_once("--budget ").unwrap();
    let minutes: u64 = budget.split('m').next().unwrap().parse().unwrap();
    let needed = (decision.took + decision.more().unwrap()).as_secs();
    assert_eq!(minutes, needed.div_ceil(60), "{text}");
}

/// Every path of a cluster is compared with the same one of the other.
#[test]
fn networks_with_several_paths_are_called_by_their_own_names() {
    let networks = ["main/host", "main/pod", "pr/host", "pr/pod"].map(Network::same);
    let fake = Fake {
        workloads: vec![rr()],
        ..Fake::new(&networks)
    };
    let (mut run, trials) = fake.run();
    run.plan.limits = [("p50".to_owned(), 0.3)].into();
    for treatment in &mut run.plan.treatments {
        let (network, path) = treatment.label.split_once('/').unwrap();
        treatment.scene = Scene::of(network).by(path);
        treatment.baseline = treatment.id.checked_sub(2);
    }
    let decision = Decision::new(&run, &trials, false);
    assert_eq!((&*decision.base, &*decision.head), ("main", "pr"));
    let text = sentence(&decision);
    for part in [
        "pr is not worse than main: ",
        "p50 of pr/host ",
        "p50 of pr/pod ",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // Where heads have no name in common, all are named.
    run.plan.treatments[1].baseline = Some(0);
    let decision = Decision::new(&run, &trials, false);
    assert_eq!(decision.base, "main");
    assert_eq!(decision.head, "main/pod, pr/host, pr/pod");
}

#[test]
fn what_was_not_measured_is_undecided() {
    let (run, trials) = gate(head(1.0), &[("p50", 3.0)]);
    let few: Vec<Trial> = trials.iter().filter(|it| it.block < 3).cloned().collect();
    let decision = Decision::new(&run, &few, false);
    assert_eq!(decision.verdict, HeadVerdict::Undecided);
    assert!(
        decision.more().is_some(),
        "blocks for an interval: {decision:?}"
    );
    let text = sentence(&decision);
    assert!(
        text.contains("more would give an interval (--budget "),
        "{text}"
    );
    // Of three blocks one counts: each further one takes three.
    let voided = few.iter().cloned().map(|trial| match trial.block {
        0 => trial,
        _ => Trial {
            observation: None,
            ..trial
        },
    });
    let voided: Vec<Trial> = voided.collect();
    let rarely = Decision::new(&run, &voided, false);
    assert!(rarely.more() > decision.more(), "{rarely:?}");
    let none = Decision::new(&run, &[], false);
    assert_eq!(none.verdict, HeadVerdict::Undecided);
    assert_eq!((none.more(), &*none.head), (None, "pr"));
    assert!(
        sentence(&none).contains("p50 is not known"),
        "{}",
        sentence(&none)
    );
    read(&junit(&none));
    parsed(&none);
}

/// Whoever stops a gate may have seen its trials, and go on with it: a look that nobody counted.
#[test]
fn what_was_interrupted_is_undecided_whatever_it_shows() {
    for latency in [1.0, 1.5] {
        let (run, trials) = gate(head(latency), &[("p50", 3.0)]);
        let decided = Decision::new(&run, &trials, false);
        assert_ne!(decided.verdict, HeadVerdict::Undecided);
        let decision = Decision::new(&run, &trials, true);
        assert_eq!(decision.verdict, HeadVerdict::Undecided);
        let said = sentence(&decision);
        assert!(
            said.contains("interrupted") && said.contains("--resume"),
            "{said}"
        );
        assert_eq!(decision.more(), None);
        assert!(markdown(&decision).contains("| undecided |"));
        let (failures, errors, _) = read(&junit(&decision));
        assert_eq!((failures, errors), (0, 1));
    }
}

/// More blocks than a run may have, or more time than a budget may be, would decide nothing.
#[test]
fn no_more_time_is_asked_for_than_there_may_be() {
    let (run, mut trials) = gate(head(1.015), &[("p50", 3.0)]);
    let decision = Decision::new(&run, &trials, false);
    assert!(decision.more().is_some(), "{}", sentence(&decision));
    for trial in &mut trials {
        trial.took_ns *= 1_000_000;
    }
    let decision = Decision::new(&run, &trials, false);
    assert_eq!(decision.more(), None);
    assert!(sentence(&decision).contains("would hardly decide it"));
}

#[test]
fn what_puts_the_answer_in_doubt_stands_beside_it() {
    let (mut run, trials) = gate(head(1.0), &[("p50", 30.0)]);
    run.warnings.push(Warning::OneKernel);
    assert_eq!(Decision::new(&run, &trials, false).doubts.len(), 0);
    run.warnings.push(Warning::UserModeKernel);
    let decision = Decision::new(&run, &trials, false);
    let [doubt] = &decision.doubts[..] else {
        panic!("{:?}", decision.doubts);
    };
    let answer: Value = serde_json::from_str(&json(&decision)).unwrap();
    assert_eq!(answer["doubts"][0], **doubt);
    let first = &doubt[..20];
    assert!(markdown(&decision).contains(&format!("\n- {first}")));
    assert!(junit(&decision).contains(first));
}

/// No test at all would pass for one that has passed.
#[test]
fn a_run_without_limits_is_one_error_in_junit() {
    let decision = decided(head(1.0), &[]);
    let (failures, errors, _) = read(&junit(&decision));
    assert_eq!((failures, errors), (0, 1));
}

/// What was left out of a run would pass its limits unseen.
#[test]
fn a_network_that_carries_nothing_holds_no_limit() {
    let (mut run, trials) = gate(head(1.0), &[("p50", 30.0)]);
    run.warnings.push(Warning::CarriesNothing {
        network: "dead".to_owned(),
        reason: "no route to host".to_owned(),
    });
    let checks = check_limits(0, &run.plan, &Summary::new(&run, &trials));
    let of: Vec<_> = checks.iter().map(|it| (&*it.label, it.outcome)).collect();
    assert_eq!(
        of,
        [
            ("pr", LimitOutcome::Held),
            ("dead", LimitOutcome::Undecided)
        ]
    );
    let why = checks[1].reason.as_deref().unwrap();
    assert!(why.contains("no route to host"), "{why}");
}

#[test]
fn names_from_outside_break_no_format() {
    let network = Network {
        label: HOSTILE,
        ..head(1.0)
    };
    let decision = decided(network, &[("p50", 30.0)]);
    for text in [sentence(&decision), markdown(&decision), junit(&decision)] {
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{ffff}'),
            "{text}"
        );
    }
    assert!(!markdown(&decision).contains("<script"));
    let document = junit(&decision);
    let document = roxmltree::Document::parse(&document).unwrap();
    let suite = document.root_element().first_element_child().unwrap();
    assert!(suite.attribute("name").unwrap().contains("<script>\"&'|*"));
}

/// Intervals of a run that verdicts may have ended are wider, in every report of it.
#[test]
fn repeated_looks_make_intervals_wider() {
    let (run, trials) = gate(head(1.1), &[("p50", 3.0)]);
    let mut fixed = run.clone();
    fixed.plan.sequential = None;
    let width = |run: &Run| {
        let summary = Summary::new(run, &trials);
        let interval = summary
            .comparison(1, "p50")
            .unwrap()
            .effect
            .unwrap()
            .interval;
        let interval = interval.unwrap();
        interval.high - interval.low
    };
    assert!(width(&run) > 1.02 * width(&fixed));
}

#[test]
fn a_limit_on_processes_that_are_not_seen_asks_for_another_limit_and_not_for_time() {
    let (mut run, mut trials) = gate(head(1.0), &[("process_cpu_per_request", 10.0)]);
    for trial in &mut trials {
        trial.observation.as_mut().unwrap().common.ksoftirqd_ns = Some(0);
    }
    let verdict = |run: &Run| Decision::new(run, &trials, false).verdict;
    assert_eq!(verdict(&run), HeadVerdict::NotWorse);
    run.provenance.target = "kubernetes".to_owned();
    let decision = Decision::new(&run, &trials, false);
    assert_eq!(decision.verdict, HeadVerdict::Undecided);
    assert_eq!(decision.more(), None);
    let said = sentence(&decision);
    assert!(
        said.ends_with(
            "what the network’s own processes use is not seen here; limit the CPU of the machine \
             instead."
        ),
        "{said}"
    );
}
