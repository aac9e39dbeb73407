//! What is compared with what.

use plumbline_experiment::{Enforcer, Experiment, Family, Placement, Plan};

use crate::{NETWORKS, expand, resolve, with_networks};

/// Labels with the label of what each is compared with.
fn pairs(plan: &Plan) -> Vec<(String, Option<String>)> {
    plan.treatments
        .iter()
        .map(|t| {
            let baseline = t.baseline.map(|id| plan.treatments[id].label.clone());
            (t.label.clone(), baseline)
        })
        .collect()
}

fn pair(label: &str, baseline: &str) -> (String, Option<String>) {
    let baseline = (!baseline.is_empty()).then(|| baseline.to_owned());
    (label.to_owned(), baseline)
}

#[test]
fn the_baseline_is_added_where_it_is_not_listed() {
    let plan = with_networks("[\"flannel-vxlan\", \"host-gw\"]");
    assert_eq!(
        pairs(&plan),
        [
            pair("host", ""),
            pair("vxlan", "host"),
            pair("host-gw", "host")
        ]
    );
}

#[test]
fn one_network_twice_is_compared_with_itself_alone() {
    let plan = with_networks("[\"host-gw\", \"host-gw\"]");
    assert_eq!(
        pairs(&plan),
        [pair("host-gw", ""), pair("host-gw#2", "host-gw")]
    );
}

#[test]
fn a_repetition_beside_others_is_compared_with_its_first_occurrence() {
    let plan = with_networks("[\"vxlan\", \"host\", \"vxlan\", \"host\", \"vxlan\"]");
    assert_eq!(
        pairs(&plan),
        [
            pair("vxlan", "host"),
            pair("host", ""),
            pair("vxlan#2", "vxlan"),
            pair("host#2", "host"),
            pair("vxlan#3", "vxlan"),
        ]
    );
}

#[test]
fn a_group_does_not_repeat_what_is_listed() {
    let plan = with_networks("[\"vxlan\", \"all\"]");
    assert_eq!(plan.treatments.len(), NETWORKS.len());
}

#[test]
fn two_names_of_one_network_repeat_nothing() {
    assert_eq!(
        pairs(&with_networks("[\"flannel-vxlan\", \"vxlan\"]")),
        [pair("host", ""), pair("vxlan", "host")]
    );
    assert_eq!(
        pairs(&with_networks("[\"flannel-vxlan\", \"flannel-vxlan\"]")),
        [pair("vxlan", ""), pair("vxlan#2", "vxlan")]
    );
}

#[test]
fn the_baseline_alone_compares_nothing() {
    let plan = with_networks("\"host\"");
    assert_eq!(pairs(&plan), [pair("host", "")]);
}

#[test]
fn baselines_match_all_other_levels() {
    let plan = resolve(
        "name = \"t\"\n[factors]\nnetwork = [\"vxlan\"]\nplacement = [\"cross-node\", \"same-node\"]\n\
         family = [4, 6]\nconnections = [1, 16]\n[[workload]]\nkind = \"rr\"\nrate = 100\n",
    );
    assert_eq!(plan.treatments.len(), 2 * 2 * 2 * 2);
    let last = plan.treatments.last().unwrap();
    assert_eq!(last.label, "vxlan same-node ipv6");
    assert_eq!(last.task.name(), "rr connections=16");
    assert_eq!(
        (last.scene.placement, last.scene.family),
        (Placement::SameNode, Family::V6)
    );
    for treatment in &plan.treatments {
        match treatment.baseline {
            None => assert_eq!(treatment.scene.network, "host"),
            Some(id) => {
                let baseline = &plan.treatments[id];
                assert_eq!(baseline.scene.network, "host");
                assert_eq!(baseline.task, treatment.task);
                assert_eq!(baseline.scene.placement, treatment.scene.placement);
                assert_eq!(baseline.scene.family, treatment.scene.family);
            }
        }
    }
    plan.validate().unwrap();
}

#[test]
fn a_network_that_is_unknown_shows_its_line() {
    let text = "name = \"t\"\n[factors]\nnetwork = [\"host\", \"vxlam\"]\n[[workload]]\nkind = \"rr\"\nrate = 1000\n";
    let error = Experiment::parse(text, "t.toml")
        .unwrap()
        .resolve(1, &expand)
        .unwrap_err();
    assert_eq!(error.line(), Some(3));
    assert!(error.to_string().contains("vxlam"), "{error}");
}

#[test]
fn any_network_of_a_plan_can_be_what_the_others_are_compared_with() {
    let mut plan = with_networks("[\"host\", \"routed\", \"host-gw\", \"host-gw\"]");
    plan.compare_with("routed").unwrap();
    plan.validate().unwrap();
    assert_eq!(
        pairs(&plan),
        [
            pair("host", "routed"),
            pair("routed", ""),
            pair("host-gw", "routed"),
            pair("host-gw#2", "host-gw"),
        ]
    );
    let before = plan.clone();
    let known = plan.compare_with("vxlan").unwrap_err();
    assert_eq!(known, ["host", "host-gw", "routed"]);
    assert_eq!(plan, before);
}

/// A plan of the lab: whatever it asks for works there.
fn in_lab(networks: &str, design: &str) -> Plan {
    let text = format!(
        "name = \"t\"\n[factors]\nnetwork = {networks}\n[design]\nblocks = 3\n{design}\n\
         [[workload]]\nkind = \"rr\"\nrate = 100\n[[workload]]\nkind = \"stream\"\n"
    );
    let experiment = Experiment::parse(&text, "t.toml").unwrap().with_control();
    let drafted = experiment.draft(1, &expand);
    drafted
        .and_then(|it| it.settle(&[]))
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_lab_measures_each_baseline_against_a_copy_of_it_at_the_end() {
    let networks = "[\"vxlan\", \"macvlan\"]";
    let plan = in_lab(networks, "");
    assert_eq!(plan.controls, 2);
    plan.validate().unwrap();
    assert_eq!(
        pairs(&plan)[6..],
        [pair("host#2", "host"), pair("host#2", "host")]
    );
    for (control, baseline) in [(6, 0), (7, 3)] {
        let (control, baseline) = (&plan.treatments[control], &plan.treatments[baseline]);
        assert_eq!(control.baseline, Some(baseline.id));
        assert!(control.is_like(baseline) && control.scene == baseline.scene);
    }
    assert!(plan.blocks.iter().all(|block| block.len() == 8));
    let compared = plan.without_controls();
    compared.validate().unwrap();
    let without = in_lab(networks, "control = \"off\"");
    assert_eq!(
        (compared.treatments, compared.controls),
        (without.treatments, 0)
    );
}

#[test]
fn a_control_takes_time_and_is_left_out_where_little_is_compared() {
    assert_eq!(in_lab("[\"vxlan\"]", "").controls, 0);
    assert_eq!(in_lab("[\"vxlan\", \"vxlan\"]", "").controls, 0);
    assert_eq!(in_lab("[\"vxlan\"]", "control = \"on\"").controls, 2);
    assert_eq!(
        with_networks("[\"vxlan\", \"macvlan\"]").controls,
        0,
        "not in a lab"
    );
}

#[test]
fn nothing_is_compared_with_a_control() {
    let mut plan = in_lab("[\"vxlan\", \"macvlan\"]", "");
    plan.treatments[1].baseline = Some(6);
    assert!(plan.validate().is_err());
}

#[test]
fn precision_leaves_room_for_more_blocks() {
    let plan = in_lab("[\"vxlan\"]", "precision = \"3%\"\nbudget = \"60s\"");
    let precision = plan.precision.unwrap();
    assert_eq!((precision.half_width, precision.first_blocks), (0.03, 3));
    assert_eq!(precision.budget_ns, Some(60_000_000_000));
    assert_eq!(plan.blocks.len(), 60);
    plan.validate().unwrap();
    assert_eq!(plan.clone().as_begun(0).blocks, plan.blocks[..3]);
    assert_eq!(plan.clone().as_begun(7).blocks, plan.blocks[..7]);
    let few = in_lab("[\"vxlan\"]", "");
    assert_eq!(
        few.blocks,
        plan.blocks[..3],
        "the first blocks are those of any run"
    );
    assert_eq!(few.clone().as_begun(1).blocks.len(), 3);
}

#[test]
fn what_is_no_precision_is_refused() {
    for written in ["3", "\"0%\"", "\"3\"", "\"101%\""] {
        let text = format!(
            "name = \"t\"\n[design]\nprecision = {written}\n[[workload]]\nkind = \"stream\"\n"
        );
        let error = Experiment::parse(&text, "t.toml").unwrap_err();
        assert!(error.remedy().contains("\"3%\""), "{written}: {error}");
    }
}

#[test]
fn a_sequential_run_looks_after_half_as_many_blocks_again() {
    let design = "sequential = \"on\"\nbudget = \"70s\"\nduration = \"900ms\"\n\
                  [limits]\np50 = \"3%\"\n";
    let plan = in_lab("[\"vxlan\"]", design);
    // Two workloads, each on two networks and for as long on none, in turns of a second and
    // what slices do not record: 6.9 s.
    let sequential = plan.sequential.clone().unwrap();
    assert_eq!(sequential.looks, [3, 5, 8, 10]);
    assert_eq!(sequential.budget_ns, Some(70_000_000_000));
    assert_eq!(
        (sequential.next_look(5), sequential.next_look(10)),
        (Some(8), None)
    );
    assert!(sequential.looks_after(8) && !sequential.looks_after(9));
    plan.validate().unwrap();
    assert_eq!(plan.blocks.len(), 10);
    assert_eq!(
        plan.clone().as_begun(0).blocks.len(),
        1,
        "the first block tells the pace"
    );
    assert_eq!(plan.clone().as_begun(7).blocks, plan.blocks[..7]);
    let mut changed = plan;
    changed.sequential.as_mut().unwrap().looks.push(10);
    assert!(changed.validate().is_err(), "looks rise");

    // A budget of hours has room for more blocks than other plans may have.
    let plan = in_lab("[\"vxlan\"]", &design.replace("70s", "3h"));
    plan.validate().unwrap();
    assert!(
        (1_500..1_600).contains(&plan.blocks.len()),
        "{}",
        plan.blocks.len()
    );
    let last = plan.sequential.unwrap().looks.pop();
    assert_eq!(last, Some(plan.blocks.len()));
}

#[test]
fn limits_that_nothing_decides_are_refused() {
    let refused = |more: &str| {
        let text = format!(
            "name = \"t\"\n[[workload]]\nkind = \"stream\"\n[design]\nsequential = \"on\"\n{more}"
        );
        Experiment::parse(&text, "t.toml").unwrap_err().to_string()
    };
    assert!(refused("").contains("add [limits]"));
    let unseen = refused("[limits]\np50 = \"3%\"\n");
    assert!(
        unseen.contains("`p50`") && unseen.contains("throughput"),
        "{unseen}"
    );
    let both = refused("precision = \"3%\"\n[limits]\nthroughput = \"3%\"\n");
    assert!(both.contains("ends by its limits"), "{both}");
}

#[test]
fn a_planted_time_is_a_level_of_its_own_beside_its_network() {
    let plan = with_networks("[\"host\", \"host+2us\", \"calico+1.5ms\"]");
    let seen: Vec<_> = plan
        .treatments
        .iter()
        .map(|one| (&*one.label, &*one.scene.network, one.scene.planted_ns))
        .collect();
    let expected = [
        ("host", "host", 0),
        ("host+2us", "host", 2_000),
        ("routed+1ms500us", "routed", 1_500_000),
    ];
    assert_eq!(seen, expected);
    let baselines: Vec<_> = plan.treatments.iter().map(|one| one.baseline).collect();
    assert_eq!(baselines, [None, Some(0), Some(0)]);
    // The label is a word that stands for the same.
    assert_eq!(
        with_networks("[\"host\", \"host+2us\", \"routed+1ms500us\"]"),
        plan
    );
}

#[test]
fn nothing_is_planted_where_nothing_is_answered() {
    let text = "name = \"t\"\n[factors]\nnetwork = [\"host\", \"host+2us\"]\n[[workload]]\nkind = \"stream\"\n";
    let experiment = Experiment::parse(text, "t.toml").unwrap();
    let error = experiment.draft(1, &expand).unwrap_err().to_string();
    assert!(
        error.contains("nothing can be planted in `host+2us`"),
        "{error}"
    );
}

fn with_factors(factors: &str) -> Plan {
    let text = format!(
        "name = \"t\"\nbaseline = \"host-gw\"\n[factors]\n{factors}\n[[workload]]\nkind = \"rr\"\n\
         rate = 100\n"
    );
    resolve(&text)
}

#[test]
fn services_are_compared_with_the_same_path_without_them() {
    let plan = with_factors(
        "network = [\"host-gw\", \"vxlan\"]\nservices = [0, 5]\n\
         proxy = [\"iptables-legacy\", \"nftables\"]\nposition = \"last\"",
    );
    // No services have no proxy: two of the eight combinations are one.
    assert_eq!(
        pairs(&plan),
        [
            pair("host-gw", ""),
            pair("vxlan", "host-gw"),
            pair("host-gw 5 services iptables-legacy", "host-gw"),
            pair("vxlan 5 services iptables-legacy", "vxlan"),
            pair("host-gw 5 services nftables", "host-gw"),
            pair("vxlan 5 services nftables", "vxlan"),
        ]
    );
    plan.validate().unwrap();
    let mut other = plan.clone();
    other.compare_with("vxlan").unwrap();
    assert_eq!(other.treatments[0].baseline, Some(1));
    assert_eq!(other.treatments[2].baseline, Some(0), "its own path");
    let mut tampered = plan;
    tampered.treatments[2].scene.services.count = 1_000_000;
    tampered.validate().unwrap_err();
}

#[test]
fn policies_are_compared_with_the_same_scene_without_them() {
    let plan = with_factors(
        "network = \"host-gw\"\nservices = [0, 5]\npolicies = [0, 9]\n\
         enforcer = [\"nft\", \"romana\"]\npolicy-position = \"first\"\nmembers = 3",
    );
    // No policies have no enforcer.
    let (bare, services) = ("host-gw", "host-gw 5 services");
    assert_eq!(
        pairs(&plan),
        [
            pair("host-gw", ""),
            pair("host-gw 9 policies nft", bare),
            pair("host-gw 9 policies romana", bare),
            pair("host-gw 5 services", bare),
            pair("host-gw 5 services 9 policies nft", services),
            pair("host-gw 5 services 9 policies romana", services),
        ]
    );
    plan.validate().unwrap();
    let mut tampered = plan;
    tampered.treatments[1].scene.policies.members = 0;
    tampered.validate().unwrap_err();
}

/// An experiment on a network that is its own baseline.
fn of_one_network(network: &str, factors: &str) -> String {
    format!(
        "name = \"t\"\nbaseline = \"{network}\"\n[factors]\nnetwork = \"{network}\"\n\
         {factors}\n[[workload]]\nkind = \"rr\"\nrate = 100\n"
    )
}

/// Labels and scenes name them: a record says what was there.
#[test]
fn policies_are_enforced_by_the_networks_own_system() {
    let mut plan = with_factors("network = [\"host-gw\", \"calico\"]\npolicies = 9");
    let planned = [
        pair("host-gw nft", ""),
        pair("routed calico-iptables", "host-gw nft"),
    ];
    assert_eq!(pairs(&plan), planned);
    let enforcers = plan.treatments.iter().map(|it| it.scene.policies.enforcer);
    let own = [Enforcer::Nft, Enforcer::CalicoIptables];
    assert_eq!(enforcers.collect::<Vec<_>>(), own);
    plan.validate().unwrap();
    plan.compare_with("routed").unwrap();
    let turned = [
        pair("host-gw nft", "routed calico-iptables"),
        pair("routed calico-iptables", ""),
    ];
    assert_eq!(pairs(&plan), turned);
    plan.validate().unwrap();

    let mut tampered = resolve(&of_one_network("vxlan", "policies = 9"));
    let mut other = tampered.treatments[0].clone();
    other.scene.policies.enforcer = Enforcer::Iptables;
    (other.id, other.baseline) = (1, Some(0));
    tampered.treatments.push(other);
    tampered.blocks.iter_mut().for_each(|it| it.push(1));
    tampered
        .validate()
        .expect_err("two systems are no two networks");
}

#[test]
fn an_enforcer_beside_that_of_the_network_is_named() {
    let factors = "policies = [0, 9]\nenforcer = [\"own\", \"nft\"]";
    let plan = resolve(&of_one_network("routed", factors));
    let wanted = [
        pair("routed", ""),
        pair("routed 9 policies calico-iptables", "routed"),
        pair("routed 9 policies nft", "routed"),
    ];
    assert_eq!(pairs(&plan), wanted);
    plan.validate().unwrap();
    let text = of_one_network("vxlan", factors);
    let experiment = Experiment::parse(&text, "t.toml").unwrap();
    let error = experiment.resolve(1, &expand).unwrap_err().to_string();
    assert!(error.contains("`own` is `nft` on `vxlan`"), "{error}");
}

#[test]
fn a_proxy_beside_that_of_the_network_is_named() {
    let with = |proxy: &str| {
        let factors = format!("services = [0, 9]\nproxy = [\"own\", \"{proxy}\"]");
        of_one_network("routed", &factors)
    };
    let plan = resolve(&with("nftables"));
    let wanted = [
        pair("routed", ""),
        pair("routed 9 services iptables-legacy", "routed"),
        pair("routed 9 services nftables", "routed"),
    ];
    assert_eq!(pairs(&plan), wanted);
    plan.validate().unwrap();
    let experiment = Experiment::parse(&with("iptables-legacy"), "t.toml").unwrap();
    let error = experiment.resolve(1, &expand).unwrap_err().to_string();
    let twice = "`own` is `iptables-legacy` on `routed`";
    assert!(
        error.contains(twice) && error.contains("`proxy`"),
        "{error}"
    );
}

#[test]
fn without_a_bare_path_services_are_compared_as_networks_are() {
    let plan = with_factors("network = [\"host-gw\", \"vxlan\"]\nservices = [5, 7]");
    assert_eq!(
        pairs(&plan),
        [
            pair("host-gw 5 services", ""),
            pair("vxlan 5 services", "host-gw 5 services"),
            pair("host-gw 7 services", ""),
            pair("vxlan 7 services", "host-gw 7 services"),
        ]
    );
}

#[test]
fn a_copy_of_a_dressed_network_is_compared_with_the_first() {
    let plan = with_factors("network = [\"host-gw\", \"host-gw\"]\nservices = [0, 5]");
    assert_eq!(
        pairs(&plan),
        [
            pair("host-gw", ""),
            pair("host-gw#2", "host-gw"),
            pair("host-gw 5 services", "host-gw"),
            pair("host-gw#2 5 services", "host-gw 5 services"),
        ]
    );
}

#[test]
fn what_says_something_of_no_services_is_refused() {
    let refused = |factors: &str| {
        let text = format!(
            "name = \"t\"\n[factors]\n{factors}\n[[workload]]\nkind = \"rr\"\nrate = 100\n"
        );
        let parsed = Experiment::parse(&text, "t.toml");
        parsed.and_then(|it| it.resolve(1, &expand)).unwrap_err()
    };
    let error = refused("proxy = \"nftables\"");
    assert_eq!(error.line(), Some(3));
    assert!(error.to_string().contains("no services"), "{error}");
    assert!(refused("services = 0\nposition = [\"first\", \"last\"]").line() == Some(4));
    refused("services = 100001");
    refused("services = [5, 5]");
    refused("services = 5\nproxy = \"haproxy\"");
    let error = refused("enforcer = \"nft\"").to_string();
    assert!(error.contains("no policies"), "{error}");
    refused("policies = 5\nenforcer = \"firewalld\"");
    refused("policies = 5\nmembers = 0");
    refused("policies = 5\npolicy-position = \"none\"");
    let error = refused("services = 100000\nendpoints = 1000").to_string();
    assert!(error.contains("500000 endpoints"), "{error}");
}
