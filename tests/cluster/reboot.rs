//! A node that reboots while a run is under way.

use std::process::Command;
use std::time::Duration;

use super::left::agents;
use super::outages::{
    SERVER, failed, inventory_in_time, kubelab, under_way, until_nodes_stay_ready,
};
use super::{cluster, read, statuses};
use crate::observed::exit_code;
use crate::world::{eventually, run_directory};

/// That of the receiver loses its power amid a trial. The trial is lost, and so may be those that
/// are tried before the node has its pods again; the run says on which pod, and goes on to its end.
#[test]
fn a_node_that_reboots_is_told_and_the_run_goes_on() {
    let Some(cluster) = cluster() else { return };
    let Some(kubelab) = kubelab() else { return };
    let before = cluster.inventory();
    let (mut run, _) = under_way(&cluster, &["--duration", "5s", "--blocks", "4"]);
    // Until the next trial is under way.
    std::thread::sleep(Duration::from_secs(1));
    eventually("a load runs", Duration::from_secs(30), || {
        agents(&cluster) > 2
    });
    let rebooted = Command::new(kubelab).args(["reboot", "node2"]).status();
    assert!(rebooted.expect("kubelab is there").success());
    let code = run.wait(Duration::from_secs(240));
    let (said, directory) = (cluster.said(), run_directory(cluster.out()));
    assert_eq!(code, Some(exit_code(&directory)), "{said}");
    let (_, trials) = read(&directory);
    let lost = failed(&trials);
    assert!(!lost.is_empty(), "{:?}", statuses(&trials));
    let why = lost[0]["status"]["error"].as_str().unwrap();
    assert!(why.contains(&format!("/{SERVER}")), "{why}");
    assert!(said.contains(why), "{why}: {said}");
    assert_eq!(trials.last().unwrap()["block"], 3, "{said}");
    assert!(trials.last().unwrap()["observation"].is_object(), "{said}");
    assert_eq!(inventory_in_time(&cluster, &before), before);
    until_nodes_stay_ready(&cluster);
}
