//! Commands that run while traffic goes on, as files and flags name them.

use plumbline_experiment::{Asked, Experiment, Plan, Scene, SpecError, Survive, ready_made};

const FILE: &str = "name = \"x\"\n[[workload]]\nkind = \"survive\"\nduring = \"reboot, now\"\n\
                    limit = \"5s\"\nconnections = 7\n";

fn parse(text: &str) -> Result<Experiment, SpecError> {
    Experiment::parse(text, "x.toml")
}

fn plan(experiment: Experiment) -> Plan {
    let scenes = |asked: &Asked<'_>| Ok(vec![Scene::of(asked.network.word())]);
    experiment.resolve(1, &scenes).unwrap()
}

fn survive(plan: &Plan) -> &Survive {
    plan.treatments[0].task.survive().unwrap()
}

/// The ready-made one with a flag.
fn ready(flags: &[(&str, &str)]) -> Experiment {
    let (name, text) = ready_made().iter().find(|it| it.0 == "survive").unwrap();
    let mut experiment = Experiment::parse(text, name).unwrap();
    for (flag, value) in flags {
        experiment.set_flag(flag, value).unwrap();
    }
    experiment.compare_survivors().unwrap();
    experiment.check().unwrap();
    experiment
}

#[test]
fn a_file_says_all_of_it() {
    let plan = plan(parse(FILE).unwrap());
    let of = survive(&plan);
    assert_eq!(of.during, "reboot, now");
    assert_eq!(
        (of.limit_ns, of.connections, of.rate, of.policy),
        (5_000_000_000, 7, 1_000.0, false)
    );
    for (line, said) in [
        ("during = \"x\"\nrate = 10\n", "from 1000 to 5000"),
        (
            "during = \"x\"\nobject = \"policy\"\n",
            "has no meaning for survive",
        ),
        ("during = \"x\"\npods = 101\n", "pods"),
        ("during = \"x\"\npolicy = 3\n", "true or false"),
        ("during = \"x\"\nlimit = \"p99<1ms\"\n", "length of time"),
        ("during = \" \"\n", "a command for the shell"),
        ("", "no `during`"),
    ] {
        let text = format!("name = \"x\"\n[[workload]]\nkind = \"survive\"\n{line}");
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_policy_is_asked_for_by_a_file_or_a_factor() {
    let of = |text: &str| survive(&plan(parse(text).unwrap())).policy;
    assert!(of(&format!("{FILE}policy = true\n")));
    let factor = FILE.replacen("[[workload]]", "[factors]\npolicy = true\n[[workload]]", 1);
    assert!(of(&factor));
    assert!(!of(FILE));
}

#[test]
fn a_typed_command_is_taken_as_it_is() {
    for typed in ["true", "echo a, b; \"c\" && [ 1 = 1 ]", "7"] {
        let plan = plan(ready(&[("during", typed)]));
        assert_eq!(survive(&plan).during, typed);
    }
}

#[test]
fn only_what_somebody_else_chose_has_to_be_shown() {
    assert_eq!(ready(&[]).foreign_commands(), []);
    assert_eq!(ready(&[("during", "reboot")]).foreign_commands(), []);
    let foreign = [("during", "reboot, now".to_owned())];
    let mut file = parse(FILE).unwrap();
    assert_eq!(file.foreign_commands(), foreign);
    file.set_flag("during", "reboot").unwrap();
    assert_eq!(file.foreign_commands(), []);
    // A run that was handed over may have been typed by anybody.
    assert_eq!(plan(parse(FILE).unwrap()).foreign_commands(), foreign);
    assert_eq!(plan(ready(&[])).foreign_commands(), []);
}

#[test]
fn the_first_network_that_was_typed_is_the_baseline() {
    let networks = |flags: &[(&str, &str)]| {
        let plan = plan(ready(flags));
        let named = |it: &plumbline_experiment::Treatment| (it.label.clone(), it.baseline);
        plan.treatments.iter().map(named).collect::<Vec<_>>()
    };
    let of = |label: &str, baseline| (label.to_owned(), baseline);
    assert_eq!(
        networks(&[("network", "a,b")]),
        [of("a", None), of("b", Some(0))]
    );
    let named = [("network", "a,b"), ("baseline", "b")];
    assert_eq!(networks(&named), [of("a", Some(1)), of("b", None)]);
    assert_eq!(networks(&[("network", "a")]), [of("a", None)]);
}
