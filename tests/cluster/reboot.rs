//! A node that reboots while a run is under way.

use std::time::Duration;

use super::kubelab::Kubelab;
use super::outages::{SERVER, amid_a_trial, failed, inventory_in_time};
use super::{cluster, read, statuses};
use crate::observed::exit_code;
use crate::world::run_directory;

/// That of the receiver loses its power amid a trial. The trial is lost, and so may be those that
/// are tried before the node has its pods again; the run says on which pod, and goes on to its end.
#[test]
fn a_node_that_reboots_is_told_and_the_run_goes_on() {
    let Some(cluster) = cluster() else { return };
    let Some(kubelab) = Kubelab::of_cluster("no cluster of which parts may be stopped") else {
        return;
    };
    let before = cluster.inventory();
    let (mut run, _) = amid_a_trial(&cluster, "6");
    cluster.disturb();
    kubelab.order(&["reboot", "node2"]);
    let code = run.wait(Duration::from_secs(240));
    let (said, directory) = (cluster.said(), run_directory(cluster.out()));
    assert_eq!(code, Some(exit_code(&directory)), "{said}");
    let (_, trials) = read(&directory);
    let lost = failed(&trials);
    assert!(!lost.is_empty(), "{:?}", statuses(&trials));
    let why = lost[0]["status"]["error"].as_str().unwrap();
    assert!(why.contains(&format!("/{SERVER}")), "{why}");
    assert!(said.contains(why), "{why}: {said}");
    let mut since = trials.iter().skip_while(|it| *it != lost[0]);
    // Until its pods are there again, and no longer.
    since.find(|it| it["observation"].is_object());
    let after = since.filter(|it| it["status"]["status"] == "failed");
    assert_eq!(after.count(), 0, "{:?}", statuses(&trials));
    assert_eq!(trials.last().unwrap()["block"], 5, "{said}");
    assert!(trials.last().unwrap()["observation"].is_object(), "{said}");
    assert_eq!(inventory_in_time(&cluster, &before), before);
}
