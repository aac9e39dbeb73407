//! Loads as shares of a maximum: what is asked for, and what comes of it.

use plumbline_experiment::{Arrival, Draft, Experiment, Placement, Scene};

const FILE: &str = r#"
name = "t"
[factors]
network = ["host", "vxlan"]
load = ["30%", "50%"]
[[workload]]
kind = "rr"
limit = "p99<1ms"
"#;

fn experiment(text: &str) -> Experiment {
    Experiment::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn draft(experiment: Experiment) -> Draft {
    experiment
        .draft(1, &|asked| Ok(vec![Scene::of(asked.network.word())]))
        .unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn refused(text: &str, says: &str) {
    let error = Experiment::parse(text, "test.toml")
        .unwrap_err()
        .to_string();
    assert!(error.contains(says), "{error}");
}

#[test]
fn all_networks_carry_shares_of_the_baselines_maximum() {
    let draft = draft(experiment(FILE));
    let [sought] = &draft.sought[..] else {
        panic!("{:?}", draft.sought);
    };
    assert_eq!(sought.limit.to_string(), "p99<1ms");
    assert_eq!(sought.treatment.scene.network, "host");
    assert_eq!(sought.workload.name, "rr");
    let plan = draft.settle(&[80_000.0]).unwrap();
    let rates: Vec<(&str, &str, Option<f64>)> = plan
        .treatments
        .iter()
        .map(|t| {
            (
                t.label.as_str(),
                t.task.name(),
                t.task.load().unwrap().arrival.rate(),
            )
        })
        .collect();
    assert_eq!(
        rates,
        [
            ("host", "rr load=30%", Some(24_000.0)),
            ("vxlan", "rr load=30%", Some(24_000.0)),
            ("host", "rr load=50%", Some(40_000.0)),
            ("vxlan", "rr load=50%", Some(40_000.0)),
        ]
    );
    plan.validate().unwrap();
}

#[test]
fn each_place_and_each_workload_has_a_maximum_of_its_own() {
    let text = FILE.replace(
        "[[workload]]",
        "placement = [\"cross-node\", \"same-node\"]\nconnections = [1, 16]\n[[workload]]",
    );
    let draft = draft(experiment(&text));
    let sought: Vec<(u32, Placement)> = draft
        .sought
        .iter()
        .map(|s| {
            (
                s.treatment.task.load().unwrap().connections,
                s.treatment.scene.placement,
            )
        })
        .collect();
    use Placement::{CrossNode, SameNode};
    assert_eq!(
        sought,
        [
            (1, CrossNode),
            (1, SameNode),
            (16, CrossNode),
            (16, SameNode)
        ]
    );
    let plan = draft.settle(&[1e3, 2e3, 3e3, 4e3]).unwrap();
    let of = |connections, placement| {
        let one = plan.treatments.iter().find(|t| {
            t.task.load().unwrap().connections == connections
                && t.scene.placement == placement
                && t.task.name().ends_with("50%")
        });
        one.unwrap().task.load().unwrap().arrival.rate()
    };
    assert_eq!(of(1, SameNode), Some(1_000.0));
    assert_eq!(of(16, CrossNode), Some(1_500.0));
}

#[test]
fn a_network_against_itself_is_searched_itself() {
    let text = FILE.replace("\"host\", \"vxlan\"", "\"vxlan\", \"vxlan\"");
    let draft = draft(experiment(&text));
    assert_eq!(draft.sought.len(), 1);
    assert_eq!(draft.sought[0].treatment.scene.network, "vxlan");
}

/// The search is a random choice like any other: `--seed` decides it.
#[test]
fn the_seed_of_the_experiment_is_the_seed_of_the_search() {
    let seeds = |given: &str, clock| {
        let text = FILE.replace("[[workload]]", "connections = [1, 16]\n[[workload]]");
        let mut experiment = experiment(&text);
        if !given.is_empty() {
            experiment.set_flag("seed", given).unwrap();
        }
        let draft = experiment.draft(clock, &|asked| Ok(vec![Scene::of(asked.network.word())]));
        let draft = draft.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(draft.sought.len(), 2);
        [draft.search_seed(0), draft.search_seed(1)]
    };
    assert_eq!(seeds("42", 1), seeds("42", 2));
    assert_eq!(seeds("42", 1)[0], 42);
    assert_ne!(seeds("42", 1)[0], seeds("42", 1)[1]);
    assert_ne!(seeds("", 1), seeds("", 2), "otherwise the caller's");
}

#[test]
fn gaps_stay_as_asked_for() {
    let text = FILE.replace("limit =", "arrival = \"constant\"\nlimit =");
    let plan = draft(experiment(&text)).settle(&[1e4]).unwrap();
    let arrival = plan.treatments[0].task.load().unwrap().arrival;
    assert_eq!(arrival, Arrival::Constant { rate: 3_000.0 });
}

#[test]
fn a_flag_for_the_rate_ends_the_shares() {
    let mut with_rate = experiment(FILE);
    with_rate.set_flag("rate", "500").unwrap();
    let draft_with_rate = draft(with_rate);
    assert_eq!(draft_with_rate.sought, []);
    let plan = draft_with_rate.settle(&[]).unwrap();
    assert_eq!(plan.treatments.len(), 2);
    assert_eq!(
        plan.treatments[0].task.load().unwrap().arrival.rate(),
        Some(500.0)
    );

    let rates = FILE
        .replace("load = [\"30%\", \"50%\"]", "rate = [1, 2]")
        .replace("limit = \"p99<1ms\"", "");
    let mut with_load = experiment(&rates);
    for assignment in ["workload.load=20%", "workload.limit=loss=0"] {
        with_load.set(assignment).unwrap_or_else(|e| panic!("{e}"));
    }
    assert_eq!(draft(with_load).sought.len(), 1);
}

#[test]
fn without_the_maximum_there_is_no_plan() {
    let error = experiment(FILE)
        .resolve(1, &|asked| Ok(vec![Scene::of(asked.network.word())]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("has not been measured"), "{error}");
    for maximum in [0.0, 1e9, f64::NAN] {
        let error = draft(experiment(FILE)).settle(&[maximum]).unwrap_err();
        assert!(
            error.to_string().contains("is not a possible rate"),
            "{error}"
        );
    }
}

#[test]
fn what_contradicts_a_share_is_refused() {
    refused(&FILE.replace("limit = \"p99<1ms\"", ""), "add limit");
    refused(&FILE.replace("load = [\"30%\", \"50%\"]", ""), "add load");
    refused(&FILE.replace("30%", "30"), "write a percentage");
    refused(&FILE.replace("30%", "130%"), "write a percentage");
    refused(&FILE.replace("30%", "0%"), "write a percentage");
    refused(&FILE.replace("p99<1ms", "p99"), "is not a limit");
    refused(&format!("{FILE}rate = 5\n"), "which says the rate too");
    refused(
        &format!("{FILE}arrival = \"closed\"\n"),
        "closed loop has no `load`",
    );
    refused(&FILE.replace("\"rr\"", "\"datagram\""), "loss=0");
    refused(&FILE.replace("\"rr\"", "\"stream\""), "stream");
}
