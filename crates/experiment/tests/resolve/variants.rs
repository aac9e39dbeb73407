//! Networks of which something is set differently.

use plumbline_experiment::{Asked, Experiment, Plan, Qdisc, Scene, Tuning};

use super::{expand, resolve};

fn file(top: &str, factors: &str, sections: &str) -> String {
    format!(
        "name = \"t\"\n{top}\n[factors]\n{factors}\n{sections}\n\
         [[workload]]\nkind = \"rr\"\nrate = 100\n"
    )
}

/// Each treatment, and what it is compared with.
fn compared(plan: &Plan) -> Vec<(&str, Option<&str>)> {
    let label = |id: usize| &*plan.treatments[id].label;
    let treatments = plan.treatments.iter();
    treatments
        .map(|it| (&*it.label, it.baseline.map(label)))
        .collect()
}

fn refusal(text: &str) -> String {
    let experiment = match Experiment::parse(text, "test.toml") {
        Ok(experiment) => experiment,
        Err(error) => return error.to_string(),
    };
    experiment.draft(1, &expand).unwrap_err().to_string()
}

const NO_GRO: &str = "[network.vxlan-no-gro]\nof = \"vxlan\"\ngro = false\n";
const OF_EACH: &str = "[network.no-gro]\ngro = false\n[network.jumbo]\nmtu = 9000\n";

#[test]
fn a_variant_is_a_level_and_compared_with_its_own_network() {
    let listed = "network = [\"host-gw\", \"vxlan\", \"vxlan-no-gro\"]";
    let plan = resolve(&file("", listed, NO_GRO));
    let expected = [
        ("host", None),
        ("host-gw", Some("host")),
        ("vxlan", Some("host")),
        ("vxlan-no-gro", Some("vxlan")),
    ];
    assert_eq!(compared(&plan), expected);
    let scene = &plan.treatments[3].scene;
    assert_eq!(scene.network, "vxlan");
    let variant = scene.variant.as_ref().unwrap();
    let tuning = Tuning {
        gro: Some(false),
        ..Tuning::default()
    };
    assert_eq!(variant.tuning, tuning);
    assert_eq!(variant.tuning.to_string(), "GRO off");
    plan.validate().unwrap();

    let alone = resolve(&file("", "network = \"vxlan-no-gro\"", NO_GRO));
    assert_eq!(compared(&alone)[1], ("vxlan-no-gro", Some("host")));
    let baseline = resolve(&file(
        "baseline = \"vxlan-no-gro\"",
        "network = \"vxlan\"",
        NO_GRO,
    ));
    let expected = [("vxlan-no-gro", None), ("vxlan", Some("vxlan-no-gro"))];
    assert_eq!(compared(&baseline), expected);
}

#[test]
fn settings_of_no_network_are_tried_on_each_that_is_listed() {
    let plan = resolve(&file("", "network = \"vxlan\"", OF_EACH));
    let expected = [
        ("vxlan", None),
        ("vxlan+jumbo", Some("vxlan")),
        ("vxlan+no-gro", Some("vxlan")),
    ];
    assert_eq!(compared(&plan), expected);

    let two = "network = [\"host-gw\", \"flannel-vxlan\"]";
    let plan = resolve(&file("baseline = \"host\"", two, OF_EACH));
    let expected = [
        ("host", None),
        ("host-gw", Some("host")),
        ("host-gw+jumbo", Some("host-gw")),
        ("host-gw+no-gro", Some("host-gw")),
        ("vxlan", Some("host")),
        ("vxlan+jumbo", Some("vxlan")),
        ("vxlan+no-gro", Some("vxlan")),
    ];
    assert_eq!(compared(&plan), expected);

    let chosen = "network = [\"vxlan\", \"vxlan+jumbo\"]";
    let plan = resolve(&file("", chosen, OF_EACH));
    assert_eq!(compared(&plan)[1..], [("vxlan+jumbo", Some("vxlan"))]);
}

#[test]
fn what_is_not_listed_by_name_may_be_left_out() {
    let lacks = |asked: &Asked<'_>| match asked.variant {
        Some(variant) if variant.is_optional => Ok(Vec::new()),
        Some(_) => Err("this kernel lacks it".to_owned()),
        None => expand(asked),
    };
    let draft = |factors| {
        let text = file("", factors, OF_EACH);
        let experiment = Experiment::parse(&text, "test.toml").unwrap();
        experiment.draft(1, &lacks)
    };
    let plan = draft("network = \"vxlan\"").unwrap().plan;
    assert_eq!(compared(&plan), [("vxlan", None)]);
    let refused = draft("network = \"vxlan+jumbo\"").unwrap_err().to_string();
    assert!(refused.contains("this kernel lacks it"), "{refused}");
}

#[test]
fn every_kind_of_setting_is_read_and_said() {
    let section = "[network.all]\nof = \"vxlan\"\n".replace(".all", ".v")
        + "mtu = 9000\nrps = true\nqdisc = \"fq\"\nbandwidth = \"2Gbit\"\n\
           tcp_congestion_control = \"cubic\"\n";
    let plan = resolve(&file("", "network = \"v\"", &section));
    let variant = plan.treatments[1].scene.variant.clone().unwrap();
    assert_eq!(variant.tuning.qdisc, Some(Qdisc::Fq));
    assert_eq!(variant.tuning.bandwidth, Some(2_000_000_000));
    let said = "MTU 9000, RPS on, qdisc fq, pods limited to 2 Gbit/s, congestion control cubic";
    assert_eq!(variant.tuning.to_string(), said);
    // A queue would be full of another's packets at the end of a turn.
    assert_eq!(plan.turns(0).len(), 2);

    let text = serde_json::to_string(&plan).unwrap();
    let read: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(read, plan);
    read.validate().unwrap();
    let mut changed = plan;
    let scene = &mut changed.treatments[1].scene;
    scene.variant.as_mut().unwrap().tuning.mtu = Some(7);
    assert!(changed.validate().is_err());
}

#[test]
fn flags_set_what_a_section_has() {
    let text = file("", "network = \"vxlan\"", OF_EACH);
    let mut experiment = Experiment::parse(&text, "test.toml").unwrap();
    experiment.set("network.jumbo.mtu=4000").unwrap();
    let unknown = experiment.set("network.giant.mtu=4000").unwrap_err();
    assert!(unknown.to_string().contains("[network.giant]"), "{unknown}");
    let plan = experiment.draft(1, &expand).unwrap().plan;
    let jumbo = plan.treatments[1].scene.variant.as_ref().unwrap();
    assert_eq!(jumbo.tuning.mtu, Some(4000));
}

#[test]
fn what_no_variant_can_be_is_refused() {
    let vxlan = "network = [\"vxlan\", \"v\"]";
    let cases = [
        (
            "[network.v]\nof = \"vxlan\"\ngros = true\n",
            "did you mean `gro`?",
        ),
        (
            "[network.v]\nof = \"vxlan\"\ngro = 1\n",
            "write true or false",
        ),
        (
            "[network.v]\nof = \"vxlan\"\nmtu = 20\n",
            "from 576 to 65535",
        ),
        (
            "[network.v]\nof = \"vxlan\"\nqdisc = \"fqq\"\n",
            "did you mean `fq`?",
        ),
        (
            "[network.v]\nof = \"vxlan\"\nbandwidth = 5\n",
            "double quotes",
        ),
        ("[network.v]\nof = \"vxlan\"\n", "sets nothing"),
        (
            "[network.v]\nof = \"all\"\ngro = true\n",
            "no single network",
        ),
        (
            "[network.v]\nof = \"vxlann\"\ngro = true\n",
            "no network `vxlann`",
        ),
        ("[network.\"a+b\"]\ngro = true\n", "cannot name a variant"),
        ("[network]\nv = 3\n", "[network.NAME]"),
    ];
    for (section, expected) in cases {
        let said = refusal(&file("", vxlan, section));
        assert!(said.contains(expected), "{section}: {said}");
        assert!(said.contains("help:"), "{said}");
    }
    let taken = "[network.host-gw]\nof = \"vxlan\"\ngro = true\n";
    let said = refusal(&file("", "network = \"host-gw\"", taken));
    assert!(said.contains("a network `host-gw` already"), "{said}");
}

#[test]
fn a_report_may_compare_a_variant_with_any_network() {
    let listed = "network = [\"vxlan\", \"vxlan-no-gro\"]";
    let mut plan = resolve(&file("", listed, NO_GRO));
    plan.compare_with("vxlan-no-gro").unwrap();
    let expected = [
        ("host", Some("vxlan-no-gro")),
        ("vxlan", Some("vxlan-no-gro")),
        ("vxlan-no-gro", None),
    ];
    assert_eq!(compared(&plan), expected);
    let plain = Scene::of("vxlan");
    assert_eq!(plan.treatments[1].scene.name(), plain.name());
}
