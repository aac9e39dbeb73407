use plumbline_experiment::Arrival;
use plumbline_record::{GateFailure, Trial, TrialStatus, Warning};
use plumbline_report::{Summary, number, sentence};

use crate::fake::{Fake, Network};

fn sentences(summary: &Summary) -> Vec<String> {
    let all = sentence::sentences(summary);
    all.iter()
        .map(|one| number::plain(&one.to_string()))
        .collect()
}

fn of(fake: &Fake) -> Vec<String> {
    let (run, trials) = fake.run();
    sentences(&Summary::new(&run, &trials))
}

fn network(label: &'static str, latency: f64, cpu: f64, throughput: f64) -> Network {
    Network {
        label,
        latency,
        tail: 1.0,
        cpu,
        throughput,
    }
}

#[test]
fn a_cost_is_said_with_its_interval() {
    let found = of(&Fake::new(&[
        Network::same("host"),
        network("vxlan", 1.31, 1.22, 0.82),
    ]));
    assert!(
        found[0].starts_with("host is the baseline: p50 "),
        "{}",
        found[0]
    );
    let vxlan = &found[1];
    // The fake is deterministic; its effects are 31 %, 22 % and −18 %.
    assert_eq!(
        vxlan,
        "vxlan costs +8.6 µs at p50 (+30 %, 95 % interval 29 to 32 %), +21 % CPU per request, \
         +22 % CPU per byte; throughput −19 %"
    );
}

#[test]
fn what_does_not_differ_is_said_beside_what_does() {
    let found = of(&Fake::new(&[
        Network::same("host"),
        network("slow", 1.31, 1.0, 1.0),
    ]));
    let text = &found[1];
    assert!(text.starts_with("slow costs +8."), "{text}");
    let same = "; the same within 3.0 % in CPU per request (";
    assert!(text.contains(same), "{text}");
    assert_eq!(text.matches("would have been seen").count(), 1, "{text}");
}

#[test]
fn a_difference_that_does_not_matter_is_not_called_none() {
    let mut fake = Fake::new(&[Network::same("host"), network("near", 1.0, 1.015, 1.0)]);
    fake.noise = 0.0005;
    fake.workloads.truncate(1);
    let found = of(&fake);
    let (small, same) = found[1]
        .split_once("; the same within 3.0 % in p50")
        .unwrap();
    assert!(
        small.starts_with("near: +1.5 % CPU per request (1.4 to 1."),
        "{small}"
    );
    assert!(
        small.ends_with("within the 3.0 % that does not matter"),
        "{small}"
    );
    assert!(same.ends_with(" would have been seen)"), "{same}");
}

#[test]
fn an_overhead_may_be_negative() {
    let found = of(&Fake::new(&[
        Network::same("host"),
        network("fast", 0.8, 0.9, 1.2),
    ]));
    assert!(found[1].contains("costs −"), "{}", found[1]);
    assert!(
        found[1].contains("(−20 %, 95 % interval −2"),
        "{}",
        found[1]
    );
    assert!(found[1].contains("throughput +19 %"), "{}", found[1]);
}

#[test]
fn the_same_network_twice_shows_no_difference_and_what_would_have_been_seen() {
    let found = of(&Fake::new(&[
        Network::same("host-gw"),
        Network::same("host-gw#2"),
    ]));
    let text = &found[1];
    assert!(text.starts_with("host-gw#2: "), "{text}");
    assert!(text.contains("would have been seen"), "{text}");
    assert!(!text.contains("costs"), "{text}");
}

#[test]
fn one_comparison_alone_needs_no_names() {
    let mut fake = Fake::new(&[Network::same("host"), Network::same("host#2")]);
    fake.workloads.truncate(1);
    let (run, mut trials) = fake.run();
    for trial in &mut trials {
        trial.observation.as_mut().unwrap().common.idle.capacity_ns = 0;
    }
    let found = sentences(&Summary::new(&run, &trials));
    let end = found[1]
        .strip_prefix("host#2: the same within 3.0 % in p50 (")
        .unwrap();
    assert!(end.ends_with(" would have been seen)"), "{end}");
}

#[test]
fn too_few_blocks_say_how_many_it_takes() {
    let mut fake = Fake::new(&[Network::same("host"), network("vxlan", 1.31, 1.22, 0.82)]);
    fake.blocks = 3;
    let found = of(&fake);
    assert!(
        found[1].starts_with("vxlan: too few blocks to judge (3); at least 6 needed; so far +3"),
        "{}",
        found[1]
    );
    fake.blocks = 6;
    assert!(!of(&fake)[1].contains("too few"), "{}", of(&fake)[1]);
}

#[test]
fn a_network_that_always_failed_says_why() {
    let (run, mut trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    let fail = |trial: &mut Trial| {
        trial.observation = None;
        trial.status = TrialStatus::Failed {
            error: "the agent ended\nwith a stack trace".to_owned(),
        };
    };
    let of_vxlan = |trial: &&mut Trial| trial.treatment % 2 == 1;
    trials.iter_mut().filter(of_vxlan).for_each(fail);
    let found = sentences(&Summary::new(&run, &trials));
    assert!(
        found[1].starts_with("vxlan: no valid trial in 10 blocks (failed: the agent ended)"),
        "{}",
        found[1]
    );

    trials
        .iter_mut()
        .for_each(|trial| trial.status = TrialStatus::Valid);
    let found = sentences(&Summary::new(&run, &trials));
    assert!(found[1].contains("nothing observed"), "{}", found[1]);
}

#[test]
fn a_run_without_a_valid_trial_begins_with_the_reason_and_its_remedy() {
    let (run, mut trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    for (place, trial) in trials.iter_mut().enumerate() {
        let late = GateFailure::SendLag {
            quantile: 0.5,
            lag_ns: 9_000,
            limit_ns: 5_000,
        };
        let few = GateFailure::AchievedRate {
            planned: 100,
            achieved: 50,
        };
        let gates = if place < 30 { vec![late] } else { vec![few] };
        trial.status = TrialStatus::Invalid { gates };
    }
    let summary = Summary::new(&run, &trials);
    assert!(!summary.has_results());
    assert_eq!(
        sentences(&summary)[0],
        "No result: none of the 40 trials that were run can be used; the main reason, in \
         30 trials, is “sent too late”. Remedy: set wait = \"spin\", lower the rate, or use a \
         machine with more CPUs"
    );
    let nothing = Summary::new(&run, &[]);
    assert!(sentences(&nothing)[0].contains("cut off before a trial had finished"));
}

#[test]
fn a_baseline_that_always_failed_is_named() {
    let (run, mut trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    trials.retain(|trial| trial.treatment % 2 == 1);
    let found = sentences(&Summary::new(&run, &trials));
    let vxlan = found.iter().find(|one| one.starts_with("vxlan")).unwrap();
    assert!(
        vxlan.contains("its baseline host has no valid trial"),
        "{vxlan}"
    );
}

#[test]
fn what_could_not_be_built_is_said_last() {
    let (mut run, trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    run.warnings.push(Warning::Unsupported {
        network: "ipvlan-l2".to_owned(),
        needs: "the kernel module ipvlan".to_owned(),
    });
    run.warnings.push(Warning::CarriesNothing {
        network: "macvlan".to_owned(),
        reason: "no request was answered".to_owned(),
    });
    let found = sentences(&Summary::new(&run, &trials));
    assert_eq!(
        found[2..],
        [
            "ipvlan-l2 was left out: the kernel module ipvlan",
            "macvlan could not carry a packet: no request was answered"
        ]
    );
}

#[test]
fn several_workloads_of_a_kind_are_told_apart() {
    let mut fake = Fake::new(&[Network::same("host"), network("vxlan", 1.31, 1.22, 0.82)]);
    let mut slow = fake.workloads[0].clone();
    slow.name = "rr-slow".to_owned();
    fake.workloads.push(slow);
    let found = of(&fake);
    assert!(found[1].contains(" under rr costs +"), "{}", found[1]);
    assert!(found[1].contains(" under rr-slow costs +"), "{}", found[1]);
}

#[test]
fn reserves_of_several_workloads_are_said_once() {
    let workloads = |fake: &mut Fake| {
        let mut slow = fake.workloads[0].clone();
        slow.name = "rr-slow".to_owned();
        fake.workloads.truncate(1);
        fake.workloads.push(slow);
    };
    let mut fake = Fake::new(&[Network::same("host"), Network::same("host#2")]);
    workloads(&mut fake);
    let text = &of(&fake)[1];
    assert_eq!(text.matches("would have been seen").count(), 1, "{text}");
    assert!(text.contains(", p50 under rr-slow ("), "{text}");

    let mut fake = Fake::new(&[Network::same("host"), network("vxlan", 1.31, 1.22, 0.82)]);
    workloads(&mut fake);
    fake.blocks = 5;
    let text = &of(&fake)[1];
    let begins = "vxlan: too few blocks to judge (5); at least 6 needed; so far +3";
    assert!(text.starts_with(begins), "{text}");
    assert!(text.contains(" CPU per request under rr-slow"), "{text}");
    assert_eq!(text.matches("too few").count(), 1, "{text}");
}

#[test]
fn a_repetition_is_compared_with_what_it_repeats() {
    let mut fake = Fake::new(&[
        Network::same("host"),
        network("vxlan", 1.31, 1.22, 0.82),
        network("vxlan#2", 1.31, 1.22, 0.82),
    ]);
    fake.workloads.truncate(1);
    let (mut run, trials) = fake.run();
    run.plan.treatments[2].baseline = Some(1);
    let summary = Summary::new(&run, &trials);
    assert_eq!(summary.sections.len(), 1, "one table for the whole chain");
    let found = sentences(&summary);
    let repeated = found.iter().find(|one| one.starts_with("vxlan#2"));
    let repeated = repeated.unwrap();
    assert!(
        repeated.starts_with("vxlan#2 against vxlan: "),
        "{repeated}"
    );
    assert!(!repeated.contains("costs"), "{repeated}");
}

#[test]
fn a_section_led_by_any_metric_has_its_sentences() {
    let mut fake = Fake::new(&[Network::same("host"), network("vxlan", 1.31, 1.22, 0.82)]);
    fake.workloads.truncate(1);
    let (run, trials) = fake.run();
    let mut summary = Summary::new(&run, &trials);
    let usual = sentences(&summary);
    let cost = summary.comparison(1, "cpu_per_request").unwrap().metric;
    summary.sections[0].leading = cost;
    let found = sentences(&summary);
    assert_eq!(found.len(), 2, "{found:?}");
    let (start, end) = usual[0].split_once("p50 ").unwrap();
    let (_, cpu) = end.split_once(", ").unwrap();
    assert!(cpu.ends_with(" µs CPU per request"), "{cpu}");
    assert_eq!(found[0], format!("{start}{cpu}"));
    // Nothing but the cost of a request counts where nothing else was declared.
    summary.comparisons.retain(|one| one.metric == cost);
    assert_eq!(sentences(&summary)[1], "vxlan costs +21 % CPU per request");
}

#[test]
fn a_closed_loop_is_labelled_so() {
    let mut fake = Fake::new(&[Network::same("host"), network("vxlan", 1.31, 1.22, 0.82)]);
    fake.workloads.truncate(1);
    fake.workloads[0].arrival = Arrival::Closed;
    let (run, trials) = fake.run();
    let summary = Summary::new(&run, &trials);
    let closed = Warning::ClosedLoop { outstanding: 16 };
    assert!(summary.notices.iter().any(|one| one.warning == closed));
    let text = plumbline_report::terminal::render(&summary, Default::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("closed loop, 16 outstanding"), "{text}");
    assert!(
        text.contains("warning: set a rate for an open loop: "),
        "{text}"
    );
}

#[test]
fn a_rotation_that_does_not_count_is_one_line() {
    let fake = Fake::new(&[
        network("host", 1.0, 1.0, 1.0),
        network("vxlan", 1.0, 1.0, 1.0),
    ]);
    let (run, mut trials) = fake.run();
    let treatments = &run.plan.treatments[..2];
    let line = |trials: &[Trial]| {
        let members: Vec<_> = treatments.iter().zip(trials).collect();
        plumbline_report::progress::turns(&members)
    };
    trials[1].block = trials[0].block;
    assert_eq!(line(&trials[..2]), None);
    let stolen = || GateFailure::Disturbed {
        by: "steal".to_owned(),
        amount: 0.02,
        limit: 0.005,
    };
    let unanswered = GateFailure::Errors {
        failed: 3,
        planned: 100,
    };
    trials[0].status = TrialStatus::Invalid {
        gates: vec![stolen()],
    };
    trials[1].status = TrialStatus::Invalid {
        gates: vec![unanswered, stolen()],
    };
    let said = line(&trials[..2]).unwrap();
    assert_eq!(said.matches("steal").count(), 1, "{said}");
    assert!(
        said.contains("block 1: not counted, disturbed by steal"),
        "{said}"
    );
    let own = format!("{}: 3 of 100 requests failed", treatments[1].label);
    assert!(said.contains(&own), "{said}");
    // What all failed with by different figures is said once, without them.
    let late = |lag_ns| GateFailure::SendLag {
        quantile: 0.5,
        lag_ns,
        limit_ns: 1000,
    };
    for (trial, lag_ns) in trials.iter_mut().zip([2000, 3000]) {
        trial.status = TrialStatus::Invalid {
            gates: vec![late(lag_ns)],
        };
    }
    let said = line(&trials[..2]).unwrap();
    assert!(
        said.ends_with("block 1: not counted, sent too late"),
        "{said}"
    );
}
