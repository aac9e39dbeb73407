//! Flags and `--set`: what they change, and what they refuse.

use plumbline_experiment::{
    Arrival, Enforcer, Experiment, Family, Flag, Plan, PolicyPosition, Protocol, Scene,
    ServiceProxy, SpecError, Wait, flagged_scene,
};

const FILE: &str = r#"name = "file"
[factors]
network = ["vxlan"]
[[workload]]
kind = "rr"
rate = 1000
connections = 8
duration = "300ms"
[[workload]]
name = "bulk"
kind = "stream"
[design]
blocks = 10
seed = 5
"#;

fn experiment() -> Experiment {
    Experiment::parse(FILE, "file.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn resolve(experiment: Experiment) -> Result<Plan, SpecError> {
    experiment.resolve(99, &|asked| Ok(vec![Scene::of(asked.network.word())]))
}

/// The plan after some assignments.
#[track_caller]
fn with(assignments: &[&str]) -> Plan {
    let mut experiment = experiment();
    for assignment in assignments {
        experiment.set(assignment).unwrap_or_else(|e| panic!("{e}"));
    }
    resolve(experiment).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn with_flag(flag: &str, value: &str) -> Plan {
    let mut experiment = experiment();
    experiment
        .set_flag(flag, value)
        .unwrap_or_else(|e| panic!("{e}"));
    resolve(experiment).unwrap_or_else(|e| panic!("{e}"))
}

/// The first error of some assignments, at once or when resolved.
fn refused(assignments: &[&str]) -> SpecError {
    let mut experiment = experiment();
    for assignment in assignments {
        if let Err(error) = experiment.set(assignment) {
            return error;
        }
    }
    resolve(experiment).expect_err("this was accepted")
}

fn names(plan: &Plan) -> Vec<&str> {
    let mut names: Vec<&str> = plan.treatments.iter().map(|t| t.task.name()).collect();
    names.dedup();
    names
}

fn networks(plan: &Plan) -> Vec<&str> {
    let first = &plan.treatments[0].task.name();
    let of_first = plan.treatments.iter().filter(|t| t.task.name() == *first);
    of_first.map(|t| t.label.as_str()).collect()
}

#[test]
fn network_replaces_the_networks() {
    assert_eq!(
        networks(&with_flag("network", "host-gw, macvlan")),
        ["host", "host-gw", "macvlan"]
    );
    assert_eq!(
        networks(&with_flag("network", "host-gw,host-gw")),
        ["host-gw", "host-gw#2"]
    );
    assert_eq!(
        networks(&with(&["factors.network=[\"a\", \"b\"]", "baseline=b"])),
        ["a", "b"]
    );
}

#[test]
fn rate_concerns_the_workloads_that_have_one() {
    let plan = with_flag("rate", "2500");
    assert_eq!(
        plan.treatments[0].task.load().unwrap().arrival,
        Arrival::Poisson { rate: 2500.0 }
    );
    let bulk = plan
        .treatments
        .iter()
        .find(|t| t.task.name() == "bulk")
        .unwrap();
    assert_eq!(bulk.task.load().unwrap().arrival, Arrival::Closed);
}

#[test]
fn a_list_makes_a_factor() {
    let plan = with_flag("connections", "1,16");
    assert_eq!(
        names(&plan),
        [
            "rr connections=1",
            "rr connections=16",
            "bulk connections=1",
            "bulk connections=16"
        ]
    );
    let plan = with(&["workload.rate=1000,2000", "workload.rate=3000"]);
    assert_eq!(names(&plan), ["rr", "bulk"], "the last one counts");
}

#[test]
fn a_name_chooses_one_workload() {
    let plan = with(&["workload.bulk.connections=4", "workload.rr.wait=spin"]);
    let find = |name| {
        plan.treatments
            .iter()
            .find(|t| t.task.name() == name)
            .unwrap()
    };
    assert_eq!(
        (
            find("bulk").task.load().unwrap().connections,
            find("rr").task.load().unwrap().connections
        ),
        (4, 8)
    );
    assert_eq!(find("rr").task.load().unwrap().wait, Wait::Spin);
}

#[test]
fn a_duration_counts_for_all_workloads() {
    let plan = with_flag("duration", "2s");
    assert!(
        plan.treatments
            .iter()
            .all(|t| t.timing.measure_ns == 2_000_000_000)
    );
    let plan = with(&["design.duration=2s", "workload.bulk.duration=100ms"]);
    let lengths: Vec<u64> = plan
        .treatments
        .iter()
        .map(|t| t.timing.measure_ns)
        .collect();
    assert_eq!(
        lengths,
        [2_000_000_000, 2_000_000_000, 100_000_000, 100_000_000]
    );
}

#[test]
fn a_closed_loop_and_a_rate_replace_each_other() {
    let closed = with(&["workload.arrival=closed"]);
    assert_eq!(
        closed.treatments[0].task.load().unwrap().arrival,
        Arrival::Closed
    );
    let text = FILE.replace("rate = 1000", "arrival = \"closed\"");
    let mut experiment = Experiment::parse(&text, "closed.toml").unwrap();
    experiment.set_flag("rate", "100").unwrap();
    let plan = resolve(experiment).unwrap();
    assert_eq!(
        plan.treatments[0].task.load().unwrap().arrival,
        Arrival::Poisson { rate: 100.0 }
    );
    let both = refused(&["workload.arrival=closed", "workload.rate=100"]);
    assert!(
        both.problem().contains("closed loop has no `rate`"),
        "{both}"
    );
}

#[test]
fn workloads_are_chosen_by_name_and_kind_or_made() {
    assert_eq!(names(&with_flag("workload", "stream")), ["bulk"]);
    let plan = with_flag("workload", "rr,http");
    assert_eq!(names(&plan), ["rr", "http"]);
    assert_eq!(
        plan.treatments[0].task.load().unwrap().connections,
        8,
        "the file's own rr"
    );
    for kind in ["rr", "crr", "stream", "datagram", "http"] {
        assert_eq!(
            with_flag("workload", kind).treatments[0]
                .task
                .load()
                .unwrap()
                .kind
                .as_str(),
            kind
        );
    }
}

#[test]
fn a_chosen_workload_drops_factors_that_it_does_not_know() {
    let text = "name = \"t\"\n[factors]\nrate = [1000, 2000]\n[[workload]]\nkind = \"rr\"\n";
    let mut experiment = Experiment::parse(text, "t.toml").unwrap();
    experiment.set_flag("workload", "stream").unwrap();
    assert_eq!(names(&resolve(experiment).unwrap()), ["stream"]);
    let mut experiment = Experiment::parse(text, "t.toml").unwrap();
    experiment.set_flag("workload", "http").unwrap();
    assert_eq!(
        names(&resolve(experiment).unwrap()),
        ["http rate=1000", "http rate=2000"]
    );
}

#[test]
fn everything_else_has_a_flag() {
    assert_eq!(with_flag("blocks", "12").blocks.len(), 12);
    assert_eq!(with_flag("seed", "6").seed, 6);
    assert_eq!(networks(&with_flag("family", "4,6"))[1], "vxlan ipv4");
    assert_eq!(
        networks(&with_flag("placement", "same-node,cross-node"))[1],
        "vxlan same-node"
    );
    assert_eq!(
        with_flag("request-size", "128").treatments[0]
            .task
            .load()
            .unwrap()
            .request_size,
        128
    );
    assert_eq!(
        with_flag("response-size", "256").treatments[0]
            .task
            .load()
            .unwrap()
            .response_size,
        256
    );
    assert_eq!(
        with(&["workload.protocol=udp"]).treatments[0]
            .task
            .load()
            .unwrap()
            .protocol,
        Protocol::Udp
    );
    assert_eq!(with(&["limits.p50=12.5%"]).limits["p50"], 0.125);
    assert_eq!(with(&["question=What, then?"]).question, "What, then?");
}

#[test]
fn the_seed_of_the_file_counts_before_the_callers() {
    assert_eq!(with(&[]).seed, 5);
    let unseeded = Experiment::parse(&FILE.replace("seed = 5", ""), "file.toml").unwrap();
    assert_eq!(resolve(unseeded).unwrap().seed, 99);
}

#[test]
fn a_faulty_flag_is_shown_as_typed() {
    let mut experiment = experiment();
    experiment.set_flag("rate", "0").unwrap();
    assert_eq!(
        experiment.check().unwrap_err().to_string(),
        "command line: `rate` is 0, which is not possible\n   \
            |\n   \
            | --rate 0\n   \
            |        ^\n   \
            = help: use requests per second above 0, up to 5000000"
    );
}

#[test]
fn faulty_assignments_are_refused_with_a_remedy() {
    for (assignment, problem, remedy) in [
        ("rate", "no `=`", "key=value"),
        (
            "rate=5",
            "`rate` is not a key",
            "did you mean `workload.rate`?",
        ),
        (
            "blocks=5",
            "`blocks` is not a key",
            "did you mean `design.blocks`?",
        ),
        (
            "network=a",
            "`network` is not a key",
            "did you mean `factors.network`?",
        ),
        (
            "workload.rats=5",
            "not a key",
            "did you mean `workload.rate`?",
        ),
        ("workload.rr.rats=5", "not a key", "workload.rate"),
        ("workload.web.rate=5", "named `web`", "`name`"),
        (
            "workload.keep_alive=true",
            "has a `keep_alive`",
            "--workload",
        ),
        ("workload=web", "no workload `web`", "known here"),
        ("workload=rr,rr", "two workloads are named `rr`", "name"),
        ("workload.rate=", "no value", "leave the flag out"),
        ("factors.network=a,,b", "no value", "leave the flag out"),
        (
            "workload.rate=fast",
            "takes a number, not text",
            "without quotes",
        ),
        (
            "workload.rr.rate=1,2",
            "takes a number, not a list",
            "without quotes",
        ),
        ("factors.network=[\"a\"", "not TOML", "[ ]"),
        ("design.blocks=1000000", "not possible", "to 1000"),
    ] {
        let error = refused(&[assignment]);
        let shown = error.to_string();
        assert!(error.problem().contains(problem), "{assignment}: {shown}");
        assert!(error.remedy().contains(remedy), "{assignment}: {shown}");
        assert_eq!(error.line(), None);
        assert!(shown.contains(&format!("| --set {assignment}")), "{shown}");
    }
}

#[test]
fn flags_are_listed_in_the_order_of_application() {
    let mut names: Vec<&str> = Flag::all().map(|flag| flag.name).collect();
    let at = |name| names.iter().position(|it| *it == name).unwrap();
    assert!(at("workload") < at("rate"));
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn flags_alone_describe_a_scene() {
    let scene = |typed: &[(&'static str, &str)]| {
        let typed = typed
            .iter()
            .map(|(flag, value)| (*flag, (*value).to_owned()));
        flagged_scene("vxlan", &typed.collect::<Vec<_>>())
    };
    assert_eq!(scene(&[]).unwrap(), Scene::of("vxlan"));
    let all = [
        ("family", "6"),
        ("services", "100"),
        ("proxy", "nftables"),
        ("policies", "10"),
        ("enforcer", "romana"),
        ("policy-position", "first"),
    ];
    let all = scene(&all).unwrap();
    assert_eq!((all.name(), all.family), ("vxlan".into(), Family::V6));
    assert_eq!((all.services.count, all.policies.count), (100, 10));
    assert_eq!(all.services.proxy, ServiceProxy::Nftables);
    assert_eq!(all.policies.enforcer, Enforcer::Romana);
    assert_eq!(all.policies.position, PolicyPosition::First);
    let refused = |typed: &[(&'static str, &str)], says: &str| {
        let error = scene(typed).expect_err("refused").to_string();
        assert!(error.contains(says), "{error}");
    };
    refused(&[("services", "10,20")], "whole number");
    refused(&[("services", "[10, 20]")], "several scenes");
    refused(&[("services", "100001")], "100000");
    refused(&[("proxy", "nftables")], "no services");
    let too_many = [("services", "100000"), ("endpoints", "6")];
    refused(&too_many, "500000 endpoints");
}

/// Their names have dashes, and keys of other sections do not.
#[test]
fn the_flags_of_a_scene_are_keys() {
    for flag in Flag::of_scene() {
        let set = experiment().set_flag(flag.name, "1");
        assert!(set.is_ok(), "{}: {set:?}", flag.name);
    }
    let plan = with_flag("request-size", "77");
    assert_eq!(plan.treatments[0].task.load().unwrap().request_size, 77);
}
