//! Experiments over several networks that each have several paths.

use std::collections::BTreeSet;
use std::time::Duration;

use plumbline_experiment::{Asked, Experiment, Plan, Scene, SpecError, Treatment, ready_made};

const PATHS: [&str; 3] = ["host", "pod", "cluster-ip"];

/// As a target of several clusters answers: a cluster, a path, or both.
fn expand(asked: &Asked<'_>) -> Result<Vec<Scene>, String> {
    let word = asked.network.word();
    Ok(match asked.path {
        Some(path) => vec![Scene::of(word).by(path.word())],
        None if PATHS.contains(&word) => ["a", "b"].map(|it| Scene::of(it).by(word)).to_vec(),
        None => PATHS.map(|path| Scene::of(word).by(path)).to_vec(),
    })
}

fn plan(top: &str) -> Result<Plan, SpecError> {
    let text = format!("name = \"x\"\n{top}\n[[workload]]\nkind = \"rr\"\nrate = 100\n");
    Experiment::parse(&text, "x.toml")?.resolve(1, &expand)
}

fn compared(plan: &Plan) -> Vec<String> {
    let network = |id: usize| plan.treatments[id].scene.name();
    let each = plan.treatments.iter();
    each.map(|it| match it.baseline {
        Some(id) => format!("{} with {}", it.scene.name(), network(id)),
        None => it.scene.name().into_owned(),
    })
    .collect()
}

#[test]
fn each_network_is_compared_with_its_own_host_networking() {
    let plan = plan("factors.network = [\"a\", \"b\"]\nfactors.path = \"pod\"").unwrap();
    let expected = ["a/host", "b/host", "a/pod with a/host", "b/pod with b/host"];
    assert_eq!(compared(&plan), expected);
    plan.validate().unwrap();
}

#[test]
fn a_network_as_the_baseline_is_one_for_each_path() {
    let top = "baseline = \"a\"\nfactors.network = [\"a\", \"b\"]\nfactors.path = [\"pod\", \"cluster-ip\"]";
    let expected = [
        "a/pod",
        "a/cluster-ip",
        "b/pod with a/pod",
        "b/cluster-ip with a/cluster-ip",
    ];
    assert_eq!(compared(&plan(top).unwrap()), expected);
}

#[test]
fn the_baseline_of_a_report_can_be_a_path_or_a_network() {
    let top = "factors.network = [\"a\", \"b\"]\nfactors.path = \"pod\"";
    let mut plan = plan(top).unwrap();
    plan.compare_with("b").unwrap();
    let expected = ["a/host with b/host", "b/host", "a/pod with b/pod", "b/pod"];
    assert_eq!(compared(&plan), expected);
    plan.compare_with("host").unwrap();
    assert_eq!(compared(&plan)[2], "a/pod with a/host");
    plan.compare_with("a/pod").unwrap();
    assert_eq!(compared(&plan)[3], "b/pod with a/pod");
    plan.validate().unwrap();
    assert!(plan.compare_with("c").is_err());
}

#[test]
fn what_costs_much_to_change_stays_together_in_random_order() {
    let text = "name = \"x\"\ndesign.blocks = 40\nfactors.network = [\"a\", \"b\", \"c\"]\n\
                [[workload]]\nkind = \"rr\"\nrate = 100\n";
    let experiment = Experiment::parse(text, "x.toml").unwrap();
    let network = |it: &Treatment| it.scene.network.clone();
    let one = |asked: &Asked<'_>| match asked.network.word() {
        "host" => Ok(["a", "b", "c"].map(|it| Scene::of(it).by("host")).to_vec()),
        _ => expand(asked),
    };
    let draft = experiment.draft(7, &one).unwrap().keep_together(&network);
    let plan = draft.settle(&[]).unwrap();
    plan.validate().unwrap();
    let mut orders = BTreeSet::new();
    let mut within = BTreeSet::new();
    for block in &plan.blocks {
        let names: Vec<String> = block
            .iter()
            .map(|id| network(&plan.treatments[*id]))
            .collect();
        let mut runs = names.clone();
        runs.dedup();
        assert_eq!(runs.len(), 3, "{names:?}");
        orders.insert(runs);
        within.insert(block[..3].to_vec());
    }
    assert_eq!(orders.len(), 6, "every order of three comes in 40 blocks");
    assert!(within.len() > 6, "the order within is random too");
}

#[test]
fn commands_for_clusters_are_read() {
    let top = "[target.kubernetes]\nup = \"make {network}\"\ndown = \"make clean\"\nlimit = \"5m\"";
    let text = format!("name = \"x\"\n{top}\n[[workload]]\nkind = \"rr\"\nrate = 100\n");
    let experiment = Experiment::parse(&text, "x.toml").unwrap();
    assert_eq!(experiment.target(), "kubernetes");
    let commands = experiment.provision().unwrap();
    assert_eq!(commands.up.as_deref(), Some("make {network}"));
    assert_eq!(commands.down.as_deref(), Some("make clean"));
    assert_eq!(commands.limit, Some(Duration::from_secs(300)));
    for (wrong, says) in [
        ("[target.lab]\nup = \"x\"", "`lab` is not a key of [target]"),
        ("[target.kubernetes]\nupp = \"x\"", "did you mean `up`"),
        ("[target.kubernetes]\nup = \" \"", "empty command"),
        ("[target.kubernetes]\nlimit = \"0s\"", "not possible"),
        ("target = \"cloud\"", "`target` cannot be \"cloud\""),
    ] {
        let error = plan(wrong).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn the_comparison_of_networks_asks_for_clusters() {
    let (name, text) = ready_made()
        .iter()
        .find(|(name, _)| *name == "cni-comparison")
        .unwrap();
    let experiment = Experiment::parse(text, name).unwrap();
    assert_eq!(experiment.target(), "kubernetes");
    assert_eq!(experiment.networks().unwrap().len(), 5);
    assert_eq!(experiment.paths().unwrap(), ["pod", "cluster-ip"]);
}
