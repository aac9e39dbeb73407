//! A command of this machine while traffic goes on between pods.

use serde_json::Value;

use super::kubelab::Kubelab;
use super::outages::{SERVER, failed, inventory_in_time, until_nodes_stay_ready};
use super::{Cluster, cluster, gates, lasting, read, refused, statuses};
use crate::observed::ran_to_its_end;
use crate::world::{run_directory, stderr};

/// An experiment of one command on these paths.
fn file(cluster: &Cluster, networks: &str, during: &str, factors: &str, more: &str) -> String {
    let file = cluster.out().join("survive.toml");
    let text = format!(
        "name = \"survive\"\nquestion = \"What?\"\nbaseline = \"pod\"\n\
         [factors]\nnetwork = {networks}\n{factors}\
         [[workload]]\nkind = \"survive\"\nduring = '''{during}'''\n{more}\
         [design]\nblocks = 1\nwarm_up = \"500ms\"\nduration = \"1s\"\nretries = 3\n"
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// What was seen in the last trial of a treatment, of those that only a busy machine voids.
#[track_caller]
fn seen<'t>(trials: &'t [Value], treatment: &Value, said: &str) -> &'t Value {
    let is_its = |it: &&Value| it["treatment"] == treatment["id"];
    let own: Vec<&Value> = trials.iter().filter(is_its).collect();
    let are_of_load = |it: &String| ["send-lag", "unwell"].contains(&it.as_str());
    let all_are = own
        .iter()
        .flat_map(|it| gates(it))
        .all(|it| are_of_load(&it));
    assert!(all_are, "{:?} {said}", statuses(trials));
    let last = own.last().unwrap_or_else(|| panic!("{treatment} {said}"));
    let seen = &last["observation"]["what"];
    assert_eq!(seen["exercise"], "survive", "{last} {said}");
    seen
}

/// It is told the nodes, and all three kinds of traffic go on before and after it: through
/// services too, also where they spread it over several pods.
#[test]
fn traffic_goes_on_by_every_path_while_a_command_runs_here() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let networks = "[\"pod\", \"cluster-ip:2\", \"node-port\", \"host\"]";
    let during = "test -n \"$PLUMBLINE_NODE1$PLUMBLINE_NODE2\" && sleep 0.3";
    let file = file(&cluster, networks, during, "", "");
    let leave = ["--allow-commands", "--allow-host-network"];
    let flags = [&[&*file], &leave[..], &["--control", "off"]].concat();
    let output = cluster.run(&flags).output().unwrap();
    let (said, directory) = (stderr(&output), run_directory(cluster.out()));
    ran_to_its_end(&output, &directory);
    let (record, trials) = read(&directory);
    let treatments = record["plan"]["treatments"].as_array().unwrap();
    assert_eq!(treatments.len(), 4);
    for treatment in treatments {
        let seen = seen(&trials, treatment, &said);
        let [begun, ended] = ["begun_ns", "ended_ns"].map(|it| seen[it].as_u64().unwrap());
        assert!(ended - begun >= 300_000_000, "{seen}");
        let flows = seen["flows"].as_array().unwrap();
        assert_eq!(flows.len(), 3);
        for flow in flows {
            let spells = flow["spells"].as_array().unwrap();
            let answered = |ns: u64, is_before: bool| {
                spells.iter().any(|it| {
                    let is_there = (it["first_ns"].as_u64().unwrap() < ns) == is_before;
                    is_there && it["outcome"] != "failed" && it["outcome"] != "unanswered"
                })
            };
            assert!(answered(begun, true), "{}: {flow}", treatment["label"]);
            let last = spells[spells.len() - 1]["last_ns"].as_u64().unwrap();
            assert!(last > ended + 900_000_000, "{flow}");
        }
    }
    assert_eq!(cluster.inventory(), before);
}

/// Policies of a scene are for one port of TCP.
#[test]
fn traffic_under_policies_that_have_no_place_for_it_is_refused() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let file = file(&cluster, "\"pod\"", "true", "policies = 10\n", "");
    let output = cluster.run(&[&file, "--allow-commands"]).output().unwrap();
    refused(&output, 2, &["`survive` under policies", "a path without"]);
    assert_eq!(cluster.inventory(), before);
}

/// Pods begin with the command, on both nodes, and are gone afterwards.
#[test]
fn pods_that_begin_with_a_command_are_followed_until_they_are_gone() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let file = file(&cluster, "\"pod\"", "sleep 1", "", "pods = 3\n");
    // One that a busy machine voids shows the same.
    let twice = ["--allow-commands", "--set", "design.retries=1"];
    let output = cluster
        .run(&[&[&*file], &twice[..]].concat())
        .output()
        .unwrap();
    let directory = run_directory(cluster.out());
    ran_to_its_end(&output, &directory);
    let (record, trials) = read(&directory);
    let treatment = &record["plan"]["treatments"][0];
    let seen = seen(&trials, treatment, &stderr(&output));
    let lead = seen["launched"]["lead_ns"].as_u64().unwrap();
    assert!(lead < 1_000_000_000, "{seen}");
    let pods = seen["launched"]["pods"].as_array().unwrap();
    assert_eq!(pods.len(), 3, "{seen}");
    for pod in pods {
        assert!(pod["first_in_ns"].is_u64(), "{pod}");
        let shown = pod["shown"].as_array().unwrap();
        assert!(shown.iter().any(|it| it["step"] == "ready"), "{pod}");
        assert!(pod["release"]["ended_ns"].is_u64(), "{pod}");
    }
    assert_ne!(pods[0]["node"], pods[1]["node"]);
    assert_eq!(pods[0]["node"], pods[2]["node"]);
    assert_eq!(cluster.inventory(), before);
}

/// The receiver's node loses its power: nobody is left there to answer, and the run says on
/// which pod. The node has booted all the same, because the command was not cut off.
#[test]
fn a_node_that_a_command_reboots_boots_and_is_told() {
    let Some(cluster) = cluster() else { return };
    let Some(kubelab) = Kubelab::of_cluster("no cluster of which nodes may be rebooted") else {
        return;
    };
    let before = cluster.inventory();
    let marks = cluster.out().join("marks");
    let mark = |word: &str| format!("echo {word} >>{}", marks.display());
    let reboot = kubelab.command("reboot $PLUMBLINE_NODE2");
    let during = format!("{} && {reboot} && {}", mark("off"), mark("on"));
    let file = file(&cluster, "\"pod\"", &during, "", "");
    let once = ["--allow-commands", "--set", "design.retries=0"];
    let output = cluster
        .run(&[&[&*file], &once[..]].concat())
        .output()
        .unwrap();
    let (said, directory) = (stderr(&output), run_directory(cluster.out()));
    ran_to_its_end(&output, &directory);
    let (_, trials) = read(&directory);
    let lost = failed(&trials);
    assert_eq!(lost.len(), trials.len(), "{:?}", statuses(&trials));
    let why = lost[0]["status"]["error"].as_str().unwrap();
    assert!(why.contains(&format!("/{SERVER}")), "{why}");
    assert!(said.contains(why), "{why}: {said}");
    assert_eq!(
        std::fs::read_to_string(&marks).unwrap(),
        "off\non\n",
        "{said}"
    );
    until_nodes_stay_ready(&cluster);
    assert_eq!(inventory_in_time(&cluster, &before), before);
}

/// A node that no end of the path is on loses its power meanwhile: what goes on is counted.
#[test]
fn a_node_that_carries_no_end_reboots_while_traffic_goes_on() {
    let Some(cluster) = lasting() else { return };
    let Some(kubelab) = Kubelab::of_cluster("no cluster of which nodes may be rebooted") else {
        return;
    };
    let before = cluster.inventory();
    let workers = cluster.workers();
    let [client, server, other, ..] = &workers[..] else {
        panic!("a third node is needed: {workers:?}");
    };
    let reboot = kubelab.command(&format!("reboot {other}"));
    let file = file(&cluster, "\"pod\"", &reboot, "", "");
    let pair = format!("{client},{server}");
    let nodes = ["--allow-commands", "--nodes", &pair];
    let output = cluster
        .run(&[&[&*file], &nodes[..]].concat())
        .output()
        .unwrap();
    let said = stderr(&output);
    let directory = run_directory(cluster.out());
    ran_to_its_end(&output, &directory);
    let (record, trials) = read(&directory);
    let seen = seen(&trials, &record["plan"]["treatments"][0], &said);
    let [begun, ended] = ["begun_ns", "ended_ns"].map(|it| seen[it].as_u64().unwrap());
    // It takes a node longer to boot.
    assert!(ended - begun > 1_000_000_000, "{seen}");
    for flow in seen["flows"].as_array().unwrap() {
        assert_eq!(flow["broken"], 0, "{flow}");
        let spells = flow["spells"].as_array().unwrap();
        let last = spells[spells.len() - 1]["last_ns"].as_u64().unwrap();
        assert!(last > ended + 900_000_000, "{flow}");
    }
    until_nodes_stay_ready(&cluster);
    assert_eq!(inventory_in_time(&cluster, &before), before);
}

/// A program of the sender's node's network is ended as by a crash and started again. What it has
/// written into the kernel stays, so what stands goes on.
#[test]
fn connections_stand_while_an_agent_of_the_network_is_restarted() {
    let Some(cluster) = lasting() else { return };
    let missing = "no cluster of which an agent may be restarted";
    let Some(kubelab) = Kubelab::of_cluster(missing) else {
        return;
    };
    let before = cluster.inventory();
    let files = kubelab.exec(&cluster.workers()[0], &["ls", "/run/kubelab"]);
    let is_there = |it: &&str| files.lines().any(|file| file == format!("{it}.pid"));
    let mut agents = ["flanneld", "calico-felix", "cilium-agent", "kube-proxy"].into_iter();
    let agent = agents.find(is_there);
    let agent = agent.unwrap_or_else(|| panic!("no agent of a network: {files}"));
    let order = |word: &str| kubelab.command(&format!("{word} $PLUMBLINE_NODE1 {agent}"));
    let restart = format!("{} && {}", order("stop"), order("start"));
    let file = file(&cluster, "\"pod\"", &restart, "", "");
    let output = cluster.run(&[&file, "--allow-commands"]).output().unwrap();
    let said = stderr(&output);
    let directory = run_directory(cluster.out());
    ran_to_its_end(&output, &directory);
    let (record, trials) = read(&directory);
    let seen = seen(&trials, &record["plan"]["treatments"][0], &said);
    let [begun, ended] = ["begun_ns", "ended_ns"].map(|it| seen[it].as_u64().unwrap());
    // By the sender's clock, which begins with its first request.
    assert!(400_000_000 <= begun && begun < ended, "{agent}: {seen}");
    let flows = seen["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 3);
    assert_eq!(flows[0]["connections"], 100, "{agent}: {seen}");
    for flow in flows {
        assert_eq!(flow["broken"], 0, "{agent}: {flow}");
        let spells = flow["spells"].as_array().unwrap();
        let last = spells[spells.len() - 1]["last_ns"].as_u64().unwrap();
        assert!(last > ended + 900_000_000, "{agent}: {flow}");
    }
    assert_eq!(inventory_in_time(&cluster, &before), before);
}

/// Whether connections that the policy forbids got through before the command and since.
fn opened(seen: &Value) -> [bool; 2] {
    let begun = seen["begun_ns"].as_u64().unwrap();
    let spells = seen["forbidden"]["spells"].as_array().unwrap();
    let opened = spells.iter().filter(|it| it["outcome"] == "opened");
    let since: Vec<bool> = opened
        .map(|it| it["first_ns"].as_u64().unwrap() >= begun)
        .collect();
    [false, true].map(|it| since.contains(&it))
}

/// What a policy forbids gets through once a command has taken it away, and never while it
/// stands. Where nothing enforces policies, that is said before the first trial.
#[test]
fn a_policy_that_is_taken_away_is_open_from_then_on() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let away = "kubectl delete networkpolicies --all-namespaces --selector plumbline/run \
                --field-selector metadata.name=confined";
    for (during, is_open) in [("sleep 0.5", false), (away, true)] {
        let file = file(&cluster, "\"pod\"", during, "policy = true\n", "");
        let output = cluster.run(&[&file, "--allow-commands"]).output().unwrap();
        if std::env::var("PLUMBLINE_TEST_POLICIES").is_ok_and(|it| it == "enforced") {
            let directory = run_directory(cluster.out());
            ran_to_its_end(&output, &directory);
            let (record, trials) = read(&directory);
            let treatment = &record["plan"]["treatments"][0];
            let seen = seen(&trials, treatment, &stderr(&output));
            assert_eq!(opened(seen), [false, is_open], "{during}: {seen}");
            std::fs::remove_dir_all(directory).unwrap();
        } else {
            let says = [
                "a network that enforces NetworkPolicies",
                "its `policy` out",
            ];
            refused(&output, 2, &says);
        }
        assert_eq!(cluster.inventory(), before);
    }
}
