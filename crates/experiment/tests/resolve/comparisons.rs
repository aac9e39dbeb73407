//! What is compared with what.

use plumbline_experiment::{Experiment, Family, Placement, Plan};

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
