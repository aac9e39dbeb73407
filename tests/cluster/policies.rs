//! Policies that are measured: enforced or not measured at all.

use super::rights::{ACCOUNT, Account};
use super::{Cluster, cluster, gates, lasting, read, refused, services, short, statuses};
use crate::observed::ran_to_its_end;
use crate::world::{run_directory, skip, stderr};

fn flags<'a>(other: &[&'a str]) -> Vec<&'a str> {
    let usual = [
        "--network",
        "pod",
        "--baseline",
        "pod",
        "--policies",
        "0,20",
    ];
    short(&[&usual[..], other].concat())
}

/// Whether this cluster's network is known to enforce policies.
fn enforces() -> bool {
    std::env::var_os("PLUMBLINE_TEST_POLICIES").is_some()
}

fn are_measured(cluster: &Cluster, other: &[&str]) {
    let before = cluster.inventory();
    let output = cluster.run(&flags(other)).output().unwrap();
    ran_to_its_end(&output, &run_directory(cluster.out()));
    let (_, all) = read(&run_directory(cluster.out()));
    for treatment in [0, 1] {
        let said = (statuses(&all), stderr(&output));
        assert!(services::is_measured(&all, treatment), "{said:?}");
    }
    let unenforced = all
        .iter()
        .any(|it| gates(it).contains(&"not-enforced".to_owned()));
    assert!(!unenforced, "{:?}", statuses(&all));
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn where_policies_are_enforced_they_are_measured() {
    if !enforces() {
        return skip(
            "cluster",
            "PLUMBLINE_TEST_POLICIES does not say that this one enforces policies",
        );
    }
    let others = [
        &[
            "--direction",
            "both",
            "--members",
            "3",
            "--peers",
            "addresses",
        ][..],
        &["--selects", "others"],
    ];
    for other in others {
        let Some(cluster) = lasting() else { return };
        are_measured(&cluster, other);
    }
}

#[test]
fn a_network_that_enforces_none_is_found_out() {
    if enforces() {
        return skip(
            "cluster",
            "PLUMBLINE_TEST_POLICIES says that this one enforces policies",
        );
    }
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let output = cluster.run(&flags(&[])).output().unwrap();
    refused(&output, 2, &["enforces NetworkPolicies", "got through"]);
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn without_the_right_to_make_policies_none_are_measured() {
    let Some(cluster) = cluster() else { return };
    let account = Account::new(&cluster);
    account.is_granted("role", &["rolebinding", ACCOUNT, "--role=plumbline"]);
    account.may_only_list("networkpolicies");
    let output = account.run(&["--network", "pod", "--baseline", "pod", "--policies", "0,3"]);
    let says = ["NetworkPolicies", "plumbline manifest role"];
    refused(&output, 2, &says);
    assert_eq!(account.shared(), "", "nothing is left");
}
