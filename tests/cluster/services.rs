//! Many services beside the paths: they stand while they are measured and are gone after,
//! and what keeps them from being made is told.

use std::process::Output;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::kubelab::NodeInventory;
use super::outages::{Away, create};
use super::rights::{ACCOUNT, Account, SHARED};
use super::{Cluster, cluster, lasting, read, refused, short, statuses};
use crate::moments::say;
use crate::observed::ran_to_its_end;
use crate::world::{eventually, run_directory, stderr};

/// The path `pod` alone, whose traffic asks none of the services.
const POD: &[&str] = &[
    "--network",
    "pod",
    "--baseline",
    "pod",
    "--position",
    "none",
];

/// A run of the path `pod` with so many services.
fn run(cluster: &Cluster, services: &str, other: &[&str]) -> Output {
    let flags = [POD, &["--services", services], other].concat();
    cluster.run(&short(&flags)).output().unwrap()
}

/// What changes of the services took: what there was then, until the API server had it,
/// and until it acted, nanoseconds.
fn set_ups(trials: &[Value]) -> Vec<(String, u64, u64)> {
    let of = |trial: &Value| {
        let seen = &trial["observation"]["what"];
        let network = seen["network"].as_str()?.to_owned();
        let took = trial["took_ns"].as_u64()?;
        Some((network, took, seen["paths_ns"].as_u64()?))
    };
    trials.iter().filter_map(of).collect()
}

/// Whether something was seen of a load of this treatment.
pub(super) fn is_measured(trials: &[Value], treatment: usize) -> bool {
    trials
        .iter()
        .any(|it| it["treatment"] == treatment && is_load(it))
}

fn is_load(trial: &Value) -> bool {
    trial["observation"]["what"]["exercise"] == "load"
}

#[test]
fn services_stand_on_both_nodes_while_they_are_measured() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let more = ["--endpoints", "3", "--allow-host-network"];
    let output = run(&cluster, "0,40", &more);
    ran_to_its_end(&output, &run_directory(cluster.out()));
    let (record, all) = read(&run_directory(cluster.out()));
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    assert_eq!(treatments.len(), 2, "{}", stderr(&output));
    assert_eq!(treatments[1]["services"]["proxy"], "own");
    for treatment in [0, 1] {
        assert!(is_measured(&all, treatment), "{:?}", statuses(&all));
    }
    let nodes = cluster.workers();
    for trial in all.iter().filter(|it| is_load(it)) {
        let rules = &trial["observation"]["common"]["rules"];
        let [client, server] = &rules.as_array().expect("of the nodes")[..] else {
            panic!("two nodes track connections: {rules}");
        };
        for seen in [client, server] {
            let node = seen["namespace"].as_str().unwrap().to_owned();
            assert!(nodes.contains(&node), "{rules}");
            assert!(seen["connections_max"].as_u64() > Some(0), "{rules}");
        }
    }
    let took = set_ups(&all);
    let of = |what: &str| took.iter().filter(|it| it.0 == what).count();
    assert!(
        of("40 services") >= 1 && of("no services or policies") >= 1,
        "{took:?}"
    );
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn a_quota_is_told_before_the_first_trial_and_nothing_is_left() {
    let Some(cluster) = cluster() else { return };
    let account = Account::new(&cluster);
    account.is_granted("role", &["rolebinding", ACCOUNT, "--role=plumbline"]);
    let quota = [
        "create",
        "quota",
        "few",
        "--hard=services=20",
        "--namespace",
        SHARED,
    ];
    cluster.kubectl(&quota);
    let flags = [POD, &["--services", "0,30"]].concat();
    let many = account.run(&flags);
    refused(&many, 2, &["exceeded quota", "ResourceQuota"]);
    assert_eq!(account.shared(), "", "nothing is left");
    cluster.kubectl(&["delete", "quota", "few", "--namespace", SHARED]);
    let with_rights = account.run(&flags);
    ran_to_its_end(&with_rights, &run_directory(cluster.out()));
    let (_, all) = read(&run_directory(cluster.out()));
    let measured = [0, 1].iter().all(|it| is_measured(&all, *it));
    assert!(measured, "{}", stderr(&with_rights));
    assert_eq!(account.shared(), "", "nothing is left");
}

/// A rule of the API server that refuses objects of runs, until dropped.
struct Refusal<'c>(&'c Cluster);

impl<'c> Refusal<'c> {
    const NAME: &'static str = "plumbline-tests";
    const KINDS: &'static str = "validatingadmissionpolicies,validatingadmissionpolicybindings";

    /// Refuses Services of runs with these words.
    fn new(cluster: &'c Cluster, words: &str) -> Self {
        let services = json!({
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["services"],
        });
        let ours = json!({ "matchLabels": { "app.kubernetes.io/managed-by": "plumbline" } });
        create(
            cluster,
            &json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": { "name": Self::NAME },
                "spec": {
                    "matchConstraints": { "resourceRules": [services], "objectSelector": ours },
                    "validations": [{ "expression": "false", "message": words }],
                },
            }),
        );
        create(
            cluster,
            &json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": { "name": Self::NAME },
                "spec": { "policyName": Self::NAME, "validationActions": ["Deny"] },
            }),
        );
        Self(cluster)
    }
}

impl Drop for Refusal<'_> {
    fn drop(&mut self) {
        self.0
            .try_kubectl(&["delete", Self::KINDS, Self::NAME, "--ignore-not-found"]);
    }
}

/// A policy of admission refuses as an admission webhook does, and takes none.
#[test]
fn what_admission_refuses_is_told_before_the_first_trial_and_nothing_is_left() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let words = "services are made by the gateway team";
    let refusal = Refusal::new(&cluster, words);
    let many = || run(&cluster, "0,30", &[]);
    let mut output = many();
    // The API server acts upon it some moments later.
    eventually("services are refused", Duration::from_secs(60), || {
        let is_refused = !output.status.success();
        if !is_refused {
            output = many();
        }
        is_refused
    });
    refused(&output, 2, &["the cluster could not make", words]);
    drop(refusal);
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn a_proxy_that_never_catches_up_is_told_with_the_last_try_and_nothing_is_left() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let Some(away) = Away::new("node2", "kube-proxy") else {
        return;
    };
    let output = run(&cluster, "0,30", &[]);
    let says = [
        "the rules of 30 services on node node2 took more than",
        "is the node's proxy, such as kube-proxy, well",
    ];
    refused(&output, 2, &says);
    drop(away);
    assert_eq!(cluster.inventory(), before);
}

/// Killed while they are made, once `PLUMBLINE_TEST_SERVICES` stand, or 300.
#[test]
fn cleanup_removes_the_services_of_a_run_that_was_killed() {
    let Some(cluster) = cluster() else { return };
    let (before, nodes) = (cluster.inventory(), NodeInventory::take(&cluster));
    let flags = short(&[POD, &["--services", "0,30000"]].concat());
    let mut run = cluster.start(&flags);
    let count = || {
        let some = cluster.kubectl(&["get", "--raw", "/api/v1/services?limit=1"]);
        let some: Value = serde_json::from_str(&some).unwrap();
        some["metadata"]["remainingItemCount"].as_u64().unwrap_or(0)
    };
    let enough = std::env::var("PLUMBLINE_TEST_SERVICES");
    let enough = enough.map_or(300, |it| it.parse::<u64>().unwrap());
    eventually("many services stand", Duration::from_secs(600), || {
        count() >= enough
    });
    run.signal(Signal::SIGKILL);
    assert_eq!(run.wait(Duration::from_secs(5)), None);
    let stood = count();
    assert!(stood >= enough, "{stood}");
    let since = Instant::now();
    let removed = cluster.plumbline(&["cleanup", "--yes"]).output().unwrap();
    say(&format!(
        "{stood} services are gone after {:?}",
        since.elapsed()
    ));
    assert!(removed.status.success(), "{}", stderr(&removed));
    assert_eq!(cluster.inventory(), before);
    if let Some(nodes) = nodes {
        nodes.assert_nothing_new(&cluster);
    }
}
