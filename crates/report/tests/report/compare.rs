use plumbline_record::{Fingerprint, Run, Trial};
use plumbline_report::Summary;
use plumbline_report::compare::{
    CompareError, Compared, LimitOutcome, compare, json, parse_limits, render,
};
use plumbline_report::terminal::Style;
use plumbline_stats::verdict::Verdict;

use crate::documented;
use crate::fake::{self, Fake, Network, rr};

/// The text as one line, so that it does not matter where it was broken.
fn shown(compared: &Compared) -> String {
    let text = render(compared, Style::default());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn vxlan(latency: f64) -> Network {
    Network {
        latency,
        ..Network::same("vxlan")
    }
}

fn run_with(latency: f64) -> (Run, Vec<Trial>) {
    Fake::new(&[Network::same("host"), vxlan(latency)]).run()
}

#[test]
fn a_change_between_runs_is_found_where_it_is() {
    let compared = compare(&[run_with(1.1), run_with(1.3)], false).unwrap();
    let of = |label: &str, metric| {
        let found = compared
            .changes
            .iter()
            .find(|one| one.label == label && one.metric.name() == metric);
        found.unwrap()
    };
    let changed = of("vxlan", "p50");
    assert_eq!(changed.effect.unwrap().verdict, Some(Verdict::Worse));
    let interval = changed.effect.unwrap().interval.unwrap();
    assert!(interval.contains(1.3 / 1.1 - 1.0), "{interval:?}");
    assert_eq!(changed.against.as_deref(), Some("host"));
    let host = of("host", "p50");
    assert_eq!(
        (host.against.as_deref(), host.effect.unwrap().verdict),
        (None, None)
    );
    assert!(host.effect.unwrap().interval.is_some());
    let text = shown(&compared);
    assert!(
        text.contains("run 2, vxlan (rr): p50 against host +18 %"),
        "{text}"
    );
}

#[test]
fn different_environments_are_refused_unless_asked_for() {
    let mut other = run_with(1.1);
    other.0.fingerprint.kernel = "7.0.0".to_owned();
    other
        .0
        .fingerprint
        .sysctls
        .insert("net.ipv4.tcp_rmem".to_owned(), "1".to_owned());
    other.0.fingerprint.clock_read_ns += 1;
    let runs = [run_with(1.1), other];
    let refused = compare(&runs, false).unwrap_err();
    let CompareError::DifferentEnvironments(differences) = &refused else {
        panic!("{refused}");
    };
    let facts: Vec<&str> = differences.iter().map(|one| one.fact.as_str()).collect();
    assert_eq!(facts, ["kernel", "sysctls.net.ipv4.tcp_rmem"]);
    let text = refused.to_string();
    assert!(
        text.contains("run 2: kernel is 7.0.0, was 6.12.0-synthetic"),
        "{text}"
    );
    assert!(text.contains("--across-environments"), "{text}");
    let compared = compare(&runs, true).unwrap();
    assert_eq!(compared.differences.len(), 2);
    assert!(shown(&compared).contains("warning: run 2: kernel"));
}

#[test]
fn runs_on_other_machines_are_refused_unless_asked_for() {
    let on = |machine: &str, kernel: &str, clock_read_ns| {
        let mut run = run_with(1.1);
        let fingerprint = &mut run.0.fingerprint;
        fingerprint.machine = Some(machine.to_owned());
        let server = Fingerprint {
            kernel: kernel.to_owned(),
            clock_read_ns,
            ..fingerprint.clone()
        };
        fingerprint.others.insert("server".to_owned(), server);
        run
    };
    let same = [on("a", "6.12.0", 20), on("a", "6.12.0", 31)];
    assert!(compare(&same, false).is_ok(), "a clock is never read alike");
    let refused = compare(&[on("a", "6.12.0", 20), on("b", "7.0.0", 20)], false);
    let Err(CompareError::DifferentEnvironments(differences)) = &refused else {
        panic!("{refused:?}");
    };
    let facts: Vec<&str> = differences.iter().map(|one| one.fact.as_str()).collect();
    assert_eq!(
        facts,
        ["machine", "others.server.kernel", "others.server.machine"]
    );
    let across = compare(&[on("a", "6.12.0", 20), on("b", "7.0.0", 20)], true).unwrap();
    assert_eq!(across.differences.len(), 3);
}

#[test]
fn other_networks_are_no_other_environment() {
    let mut other = run_with(1.1);
    let vxlan = other.0.fingerprint.devices.remove("vxlan").unwrap();
    other
        .0
        .fingerprint
        .devices
        .insert("macvlan".to_owned(), vxlan);
    assert!(compare(&[run_with(1.1), other], false).is_ok());
}

#[test]
fn another_plugin_or_list_is_another_environment() {
    use plumbline_record::{CniList, CniPlugin};
    let with = |text: &str, sha256: &str| {
        let mut run = run_with(1.1);
        let plugin = CniPlugin {
            kind: "ptp".to_owned(),
            version: Some("v1.4.1".to_owned()),
            sha256: sha256.to_owned(),
        };
        let list = CniList {
            text: text.to_owned(),
            plugins: vec![plugin],
        };
        let network = "cni:a.conflist".to_owned();
        run.0.fingerprint.cni.insert(network, list);
        run
    };
    let list = "{\n  \"mtu\": 1500\n}";
    assert!(compare(&[with(list, "aa"), with(list, "aa")], false).is_ok());
    assert!(compare(&[run_with(1.1), with(list, "aa")], false).is_ok());
    let changed = with("{\n  \"mtu\": 1400\n}", "bb");
    let refused = compare(&[with(list, "aa"), changed], false).unwrap_err();
    let text = refused.to_string();
    for line in [
        "  run 2: cni.cni:a.conflist, line 2 is \"mtu\": 1400, was \"mtu\": 1500\n",
        "  run 2: cni.cni:a.conflist.ptp is v1.4.1, SHA-256 bb, was v1.4.1, SHA-256 aa\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_device_that_changed_is_named_with_what_changed() {
    let mut other = run_with(1.1);
    let devices = other.0.fingerprint.devices.get_mut("vxlan").unwrap();
    devices[0].mtu = 1_500;
    devices[0].offloads.push("rx-gro".to_owned());
    devices.push(plumbline_record::DeviceFingerprint {
        namespace: "node2".to_owned(),
        device: "cni0".to_owned(),
        driver: "bridge".to_owned(),
        ..Default::default()
    });
    let refused = compare(&[run_with(1.1), other], false).unwrap_err();
    let text = refused.to_string();
    for line in [
        "  run 2: devices.vxlan.node1/flannel.1.mtu is 1500, was 1450\n",
        "  run 2: devices.vxlan.node1/flannel.1.rx-gro is on, was off\n",
        "  run 2: devices.vxlan.node2/cni0 is bridge, was absent\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(text.matches("run 2:").count(), 3, "{text}");
}

#[test]
fn a_limit_that_cannot_be_judged_says_why() {
    let reasons = |prepare: &dyn Fn(&mut Run, &mut Vec<Trial>)| -> String {
        let (mut run, mut trials) = run_with(1.3);
        run.plan.limits.insert("cpu_per_request".to_owned(), 0.1);
        prepare(&mut run, &mut trials);
        let compared = compare(&[(run, trials)], false).unwrap();
        assert!(compared.has_undecided());
        shown(&compared)
    };
    let unmeasured = reasons(&|_, trials| {
        for trial in trials {
            trial.observation.as_mut().unwrap().common.idle.capacity_ns = 0;
        }
    });
    assert!(
        unmeasured.contains("CPU per request was not measured in any trial of vxlan"),
        "{unmeasured}"
    );
    let failed = reasons(&|_, trials| {
        for trial in trials.iter_mut().filter(|one| one.treatment == 1) {
            trial.status = plumbline_record::TrialStatus::Invalid {
                gates: vec![plumbline_record::GateFailure::Errors {
                    failed: 9,
                    planned: 10,
                }],
            };
        }
    });
    assert!(
        failed.contains("vxlan has no valid trial (errors or lost answers; lower the rate"),
        "{failed}"
    );
    let alone = reasons(&|run, _| {
        for treatment in &mut run.plan.treatments {
            treatment.baseline = None;
        }
    });
    assert!(
        alone.contains("nothing in this run is compared on that metric"),
        "{alone}"
    );
    let unknown = reasons(&|run, _| {
        run.plan.limits.insert("p95".to_owned(), 0.1);
        run.plan.limits.remove("cpu_per_request");
    });
    assert!(
        unknown.contains("p95 overhead not known, allowed 10 %: no workload of this run has that"),
        "{unknown}"
    );
}

#[test]
fn a_workload_of_the_same_name_but_other_values_is_another_treatment() {
    let mut other = run_with(1.1);
    for treatment in &mut other.0.plan.treatments {
        treatment.task.load_mut().unwrap().request_size += 1;
    }
    let refused = compare(&[run_with(1.1), other], false).unwrap_err();
    assert!(
        matches!(refused, CompareError::NothingInCommon(2)),
        "{refused}"
    );
    assert!(matches!(compare(&[], false), Err(CompareError::NoRuns)));
}

#[test]
fn limits_that_cannot_be_meant_are_refused_by_what_is_wrong_with_them() {
    let read = |texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(|it| (*it).to_owned()).collect();
        parse_limits(&texts)
    };
    let read_one = |text: &str, share: f64| {
        assert_eq!(
            read(&[text]).unwrap(),
            [("p50".to_owned(), share)],
            "{text}"
        );
    };
    read_one("p50=7%", 0.07);
    read_one("p50 = 0.07", 0.07);
    read_one("p50=29%", 0.29);
    read_one("p50=300%", 3.0);
    for (texts, why) in [
        (&["p50"][..], "METRIC=SHARE"),
        (&["p50=soon"], "METRIC=SHARE"),
        (&["p55=3%"], "the metric is one of "),
        (&["p50=-3%"], "from 0 to 100000%"),
        (&["p50=nan"], "from 0 to 100000%"),
        (&["p50=inf"], "from 0 to 100000%"),
        (&["p50=3"], "write p50=3%, or p50=300%"),
        (&["p50=3%", "p99=9%", "p50=5%"], "p50 has a limit already"),
    ] {
        let error = read(texts).unwrap_err().to_string();
        assert!(error.contains(why), "{texts:?}: {error}");
    }
}

#[test]
fn limits_are_held_broken_or_undecided() {
    let (mut run, trials) = run_with(1.3);
    let limits = [
        ("p50", 0.1),
        ("cpu_per_request", 0.1),
        ("cpu_per_byte", 0.0),
        ("p95", 0.1),
    ];
    run.plan.limits = limits
        .map(|(metric, limit)| (metric.to_owned(), limit))
        .into();
    let compared = compare(&[(run, trials)], false).unwrap();
    let outcome = |metric: &str| {
        let found = compared.limits.iter().find(|one| one.metric == metric);
        found.unwrap().outcome
    };
    assert_eq!(outcome("p50"), LimitOutcome::Broken);
    assert_eq!(outcome("cpu_per_request"), LimitOutcome::Held);
    assert_eq!(
        outcome("cpu_per_byte"),
        LimitOutcome::Undecided,
        "zero lies in the interval"
    );
    assert_eq!(
        outcome("p95"),
        LimitOutcome::Undecided,
        "nothing is compared on it"
    );
    assert!(compared.is_broken());
    let text = shown(&compared);
    assert!(
        text.contains("limit broken: run 1, vxlan (rr): p50 overhead +29 %"),
        "{text}"
    );
    let object: serde_json::Value = documented::read_compared(&json(&compared));
    assert_eq!(object["broken"], true);
}

#[test]
fn a_loss_of_throughput_is_an_overhead() {
    let slow = Network {
        throughput: 0.8,
        ..Network::same("slow")
    };
    let (mut run, trials) = Fake::new(&[Network::same("host"), slow]).run();
    run.plan.limits.insert("throughput".to_owned(), 0.1);
    let compared = compare(&[(run, trials)], false).unwrap();
    assert_eq!(compared.limits[0].outcome, LimitOutcome::Broken);
    assert!((compared.limits[0].overhead.unwrap() - 0.2).abs() < 0.02);
}

#[test]
fn too_few_blocks_leave_a_limit_undecided() {
    let mut fake = Fake::new(&[Network::same("host"), vxlan(2.0)]);
    fake.blocks = 3;
    let (mut run, trials) = fake.run();
    run.plan.limits.insert("p50".to_owned(), 0.1);
    let compared = compare(&[(run, trials)], false).unwrap();
    assert_eq!(compared.limits[0].outcome, LimitOutcome::Undecided);
    assert!(!compared.is_broken());
    let text = shown(&compared);
    assert!(
        text.contains("3 blocks give no interval; it takes at least 6"),
        "{text}"
    );
}

#[test]
fn blocks_that_one_run_lost_do_not_keep_the_others_from_being_compared() {
    let (first, mut early) = run_with(1.1);
    let (later, mut late) = run_with(1.3);
    early.retain(|trial| trial.block < 7);
    late.retain(|trial| trial.block >= 4);
    let compared = compare(&[(first, early), (later, late)], false).unwrap();
    let found = compared.changes.iter();
    let mut found = found.filter(|one| one.label == "vxlan" && one.metric.name() == "p50");
    let effect = found.next().unwrap().effect.unwrap();
    assert_eq!(effect.blocks, 6);
    assert_eq!(effect.verdict, Some(Verdict::Worse), "{effect:?}");
}

/// What slows all networks alike, such as a warm day, is no change of any of them.
#[test]
fn a_slower_day_is_no_change_against_the_baseline() {
    let day = |factor: f64| {
        let host = Network {
            latency: factor,
            ..Network::same("host")
        };
        Fake::new(&[host, vxlan(1.1 * factor)]).run()
    };
    let mut slower = day(1.4);
    // Noise comes in another order.
    for trial in &mut slower.1 {
        trial.block = (trial.block + 3) % 10;
    }
    let compared = compare(&[day(1.0), slower], false).unwrap();
    let effect = |label: &str| {
        let mut changes = compared.changes.iter();
        let found = changes.find(|one| one.label == label && one.metric.name() == "p50");
        found.unwrap().effect.unwrap()
    };
    let interval = effect("vxlan").interval.unwrap();
    assert!(interval.contains(0.0), "{interval:?}");
    let host = effect("host");
    assert!((host.ratio_minus_one - 0.4).abs() < 0.01, "{host:?}");
    assert_eq!(host.verdict, None);
}

#[test]
fn a_limit_that_only_a_single_interval_would_hold_is_undecided() {
    let twelve = Fake {
        workloads: vec![rr()],
        ..Fake::new(&fake::wide().networks[..13])
    };
    let (mut run, trials) = twelve.run();
    let summary = Summary::new(&run, &trials);
    let effect = summary.comparison(12, "p50").unwrap().effect.unwrap();
    let [alone, joint] = [effect.alone, effect.interval].map(|it| it.unwrap());
    let limit = f64::midpoint(alone.high, joint.high);
    assert!(alone.high < limit && limit < joint.high, "{effect:?}");
    run.plan.limits.insert("p50".to_owned(), limit);
    let compared = compare(&[(run, trials)], false).unwrap();
    let check = compared.limits.iter().find(|one| one.label == "vxlan");
    assert_eq!(check.unwrap().outcome, LimitOutcome::Undecided);
}

#[test]
fn a_limit_on_a_percentile_is_decided_only_where_it_is_shown() {
    for (samples, outcome) in [
        (300, LimitOutcome::Undecided),
        (1_750, LimitOutcome::Broken),
    ] {
        let mut fake = Fake::new(&[Network::same("host"), vxlan(2.0)]);
        fake.samples = samples;
        let (mut run, trials) = fake.run();
        run.plan.limits.insert("p99".to_owned(), 0.1);
        let compared = compare(&[(run, trials)], false).unwrap();
        let found: Vec<_> = compared.limits.iter().map(|one| one.outcome).collect();
        assert_eq!(found, [outcome]);
        let said = "the samples of vxlan do not carry p99; use longer trials or more blocks";
        let text = shown(&compared);
        let is_withheld = outcome == LimitOutcome::Undecided;
        assert_eq!(text.contains(said), is_withheld, "{text}");
    }
}
