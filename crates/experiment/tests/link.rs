//! The link between the nodes, from file and flags to the plan.

use plumbline_experiment::{Asked, Experiment, Link, Plan, PlanError, Scene};

fn experiment(link: &str) -> Result<Experiment, String> {
    let text = format!("name = \"t\"\n{link}\n[[workload]]\nkind = \"rr\"\nrate = 100\n");
    Experiment::parse(&text, "test.toml").map_err(|error| error.to_string())
}

fn plan(experiment: Experiment) -> Plan {
    let expand = |_: &Asked<'_>| Ok(vec![Scene::of("host")]);
    let plan = experiment.resolve(1, &expand);
    plan.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_link_is_read() {
    let link = "link = { rate = \"10Gbit\", delay = \"50us\", loss = \"0.1%\", mtu = 9000 }";
    let plan = plan(experiment(link).expect("valid"));
    let expected = Link {
        rate_bits: Some(10_000_000_000),
        delay_ns: 50_000,
        loss: 0.001,
        mtu: 9000,
    };
    assert_eq!(plan.link, expected);
    assert_eq!(
        plan.link.to_string(),
        "10 Gbit/s, 50 µs each way, 0.1 % lost each way, MTU 9000"
    );
    let json = serde_json::to_string(&plan).expect("JSON");
    let back: Plan = serde_json::from_str(&json).expect("read back");
    assert_eq!(back, plan);
}

#[test]
fn without_a_link_nothing_is_asked_for_and_nothing_written() {
    let plan = plan(experiment("").expect("valid"));
    assert!(plan.link.is_default());
    let json = serde_json::to_value(&plan).expect("JSON");
    assert_eq!(json.get("link"), None, "as before there were links");
}

#[test]
fn flags_set_single_keys() {
    let mut experiment = experiment("[link]\nrate = \"1Gbit\"\nmtu = 9000").expect("valid");
    experiment.set("link.rate=100Mbit").expect("a key");
    experiment.set("link.delay=2ms").expect("a key");
    let link = plan(experiment).link;
    let set = (link.rate_bits, link.delay_ns, link.mtu);
    assert_eq!(set, (Some(100_000_000), 2_000_000, 9000));
}

#[test]
fn what_no_link_can_have_shows_its_line() {
    for (link, problem) in [
        ("link = { rate = \"10\" }", "not a rate"),
        ("link = { rate = \"10bit\" }", "not possible"),
        ("link = { rate = 10 }", "takes text"),
        ("link = { loss = \"100%\" }", "not a share of packets"),
        ("link = { delay = \"11s\" }", "not possible"),
        ("link = { mtu = 100 }", "not possible"),
        ("link = { speed = \"10Gbit\" }", "not a key of [link]"),
        ("link = \"10Gbit\"", "a section"),
    ] {
        let error = experiment(link).expect_err("refused");
        assert!(error.contains(problem), "{link}: {error}");
        assert!(error.contains("test.toml:2"), "{link}: {error}");
    }
}

#[test]
fn a_plan_with_an_impossible_link_is_refused() {
    let mut plan = plan(experiment("").expect("valid"));
    for link in [
        Link {
            loss: 1.5,
            ..Link::default()
        },
        Link {
            loss: f64::NAN,
            ..Link::default()
        },
        Link {
            delay_ns: u64::MAX,
            ..Link::default()
        },
        Link {
            rate_bits: Some(0),
            ..Link::default()
        },
    ] {
        plan.link = link;
        let refused = plan.validate();
        assert!(
            matches!(refused, Err(PlanError::AboveCeiling { .. })),
            "{link:?}: {refused:?}"
        );
    }
}
