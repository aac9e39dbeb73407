//! `plumbline xray` between pods: by consent, with hops that add up.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{Cluster, add_image, cluster, lasting, refused};
use crate::documented;
use crate::observed::ran_to_its_end;
use crate::world::{Running, eventually, run_directory, stderr, stdout};

/// `plumbline xray` in a cluster that lets it.
fn xray(cluster: &Cluster, more: &[&str]) -> Command {
    let order = ["xray", "--target", "kubernetes", "--allow-tracing"];
    let mut command = cluster.plumbline(&[&order[..], more].concat());
    add_image(&mut command);
    command
}

/// What it found on the path between two pods.
#[track_caller]
fn found(cluster: &Cluster, more: &[&str]) -> Value {
    let order = ["--network", "pod", "--rounds", "2", "--json"];
    let mut command = xray(cluster, &[&order[..], more].concat());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found = serde_json::from_slice(&output.stdout).unwrap();
    documented::check("xray", &found);
    found
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("{key} of {of}"))
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_else(|| panic!("{key} of {of}"))
}

/// The hops of a trip, each with the node where it begins and, behind a slash, the pod.
fn hops<'a>(network: &'a Value, trip: &str) -> Vec<(&'a str, &'a str)> {
    let all = network["hops"].as_array().expect("a list");
    let of_trip = all.iter().filter(|hop| text(hop, "trip") == trip);
    of_trip
        .map(|hop| (text(hop, "name"), text(hop, "at")))
        .collect()
}

/// Looks, and holds the sum of the hops of each network against its latency: at most a fifth of
/// that may be in no hop, in one of five tries, for others may have the machine.
#[track_caller]
fn adds_up(cluster: &Cluster, more: &[&str]) -> Value {
    let mut told = Vec::new();
    for _ in 0..5 {
        let found = found(cluster, more);
        number(&found, "observer_share");
        let networks = found["networks"].as_array().expect("a list");
        let shares: Vec<f64> = networks.iter().map(in_no_hop).collect();
        let unfollowed = found["unfollowed"].to_string();
        if unfollowed == "[]" && shares.iter().all(|share| share.abs() < 0.2) {
            return found;
        }
        told.push((shares, unfollowed));
    }
    panic!("hops do not add up: {told:?}");
}

/// The share of a network's latency that is in no hop.
#[track_caller]
fn in_no_hop(network: &Value) -> f64 {
    let all = network["hops"].as_array().expect("a list");
    let sum: f64 = all.iter().map(|hop| number(hop, "ns")).sum();
    let left = number(network, "unaccounted_ns");
    let total = number(network, "total_ns");
    assert!((sum + left - total).abs() < 1.0, "{network}");
    assert!(number(network, "journeys") > 10.0, "{network}");
    left / total
}

#[test]
fn without_consent_nothing_is_made_and_it_says_what_would_be() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let mut command = cluster.plumbline(&["xray", "--target", "kubernetes"]);
    let output = command.output().unwrap();
    let says = [
        "would make a namespace under the privileged profile",
        "BPF and PERFMON and no others",
        "--allow-tracing allows it",
    ];
    refused(&output, 64, &says);
    assert_eq!(stdout(&output), "");
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn hops_between_two_pods_add_up_and_say_where_they_are() {
    let Some(cluster) = cluster() else { return };
    let Some([near, far]) = cluster.pair() else {
        return;
    };
    let before = cluster.inventory();
    // Through a service, which is a rule of the node's, packets meet the same hops.
    let found = adds_up(&cluster, &["--network", "cluster-ip"]);
    let networks = found["networks"].as_array().expect("a list");
    let names = networks.iter().map(|it| text(it, "name"));
    assert_eq!(names.collect::<Vec<_>>(), ["pod", "cluster-ip"]);
    // Each path has pods of its own.
    let way = |network: &'static str, trip| {
        let client = [near.clone(), format!("{near}/client-{network}")];
        let server = [far.clone(), format!("{far}/server-{network}")];
        match trip {
            "request" => (network, trip, client, server),
            _ => (network, trip, server, client),
        }
    };
    let ways = ["pod", "cluster-ip"].map(|it| [way(it, "request"), way(it, "answer")]);
    for (network, trip, [node, pod], [other_node, other_pod]) in ways.as_flattened() {
        let network = networks.iter().find(|it| it["name"] == *network);
        let hops = hops(network.expect("it was followed"), trip);
        let has = |name: &str, at: &str| hops.contains(&(name, at));
        assert!(has("pod stack", pod) && has("veth", pod), "{hops:?}");
        assert!(has("forward", node), "{hops:?}");
        assert!(has("underlay", node), "{hops:?}");
        assert!(has("prerouting", other_node), "{hops:?}");
        assert!(has("wake-up", other_pod), "{hops:?}");
        // Of Flannel's usual backend, which is that of our own cluster.
        let is_tunnelled = has("vxlan", node) && has("decapsulation", other_node);
        let is_ours = std::env::var_os("PLUMBLINE_TEST_KUBELAB").is_some();
        let is_plain = !is_ours && hops.iter().all(|(name, _)| *name != "vxlan");
        assert!(is_tunnelled || is_plain, "{hops:?}");
    }
    assert_eq!(cluster.inventory(), before);
}

/// Where nodes share a kernel their halves can be followed apart all the same, which is how nodes
/// with kernels of their own are looked into.
#[test]
fn each_node_follows_its_half_by_its_own_clock() {
    let Some(cluster) = cluster() else { return };
    let Some([near, far]) = cluster.pair() else {
        return;
    };
    let found = adds_up(&cluster, &["--by-node"]);
    let network = &found["networks"][0];
    let both_ways = "underlay, both ways";
    let [there, back] = ["request", "answer"].map(|trip| hops(network, trip));
    let is_it = |(name, _): &&(&str, &str)| *name == both_ways;
    assert_eq!(there.iter().filter(is_it).count(), 1, "{there:?}");
    assert!(!back.iter().any(|hop| is_it(&hop)), "{back:?}");
    let (client, server) = (format!("{near}/client-pod"), format!("{far}/server-pod"));
    assert_eq!(there[0], ("pod stack", &*client), "{there:?}");
    assert_eq!(there[there.len() - 1], ("wake-up", &*server), "{there:?}");
    assert_eq!(back[0], ("responder", &*server), "{back:?}");
    assert_eq!(back[back.len() - 1], ("system calls", &*client), "{back:?}");
}

/// Beside the trials of a run are the hops of the paths that it compared.
#[test]
fn a_run_is_looked_into_by_consent_when_it_has_ended() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let few = ["--blocks", "1", "--duration", "200ms", "--control", "off"];
    let order = ["tour", "--network", "pod", "--workload", "rr", "--xray"];
    let order = [&order[..], &few].concat();
    refused(
        &cluster.run(&order).output().unwrap(),
        64,
        &["--allow-tracing allows it"],
    );
    let consent = [&order[..], &["--allow-tracing"]].concat();
    let output = cluster.run(&consent).output().unwrap();
    let directory = run_directory(cluster.out());
    ran_to_its_end(&output, &directory);
    let hops = std::fs::read_to_string(directory.join("hops.json"));
    let hops = hops.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let hops: Value = serde_json::from_str(&hops).unwrap();
    assert_eq!(text(&hops["networks"][0], "name"), "pod");
    let report = std::fs::read_to_string(directory.join("report.html")).unwrap();
    assert!(report.contains("<a href=\"hops.html\">"));
    assert_eq!(cluster.inventory(), before);
}

/// The independent eye on what consent was given to.
#[test]
fn the_pods_that_trace_have_the_rights_that_were_named() {
    let Some(cluster) = cluster() else { return };
    let mut command = xray(&cluster, &["--network", "pod", "--rounds", "1000"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(command.spawn().unwrap());
    let wanted = "plumbline/seat in (client-tracer,server-tracer)";
    let pods = || -> Vec<Value> {
        let list = ["get", "pods", "--all-namespaces", "--output", "json"];
        let list = cluster.kubectl(&[&list[..], &["--selector", wanted]].concat());
        let list: Value = serde_json::from_str(&list).unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    };
    let phase = |pod: &Value| pod["status"]["phase"] == "Running";
    eventually("both trace", Duration::from_secs(60), || {
        let pods = pods();
        pods.len() == 2 && pods.iter().all(phase)
    });
    for pod in pods() {
        let spec = &pod["spec"];
        let own = &spec["containers"][0]["securityContext"];
        assert_eq!(
            own["capabilities"]["add"],
            serde_json::json!(["BPF", "PERFMON"])
        );
        assert_eq!(own["capabilities"]["drop"], serde_json::json!(["ALL"]));
        assert!(
            own["privileged"].is_null() && spec["hostPID"].is_null(),
            "{spec}"
        );
        assert_eq!(spec["hostNetwork"], true);
        assert_eq!(
            spec["securityContext"]["seccompProfile"]["type"],
            "RuntimeDefault"
        );
    }
    running.signal(nix::sys::signal::Signal::SIGINT);
    let code = running.wait(Duration::from_secs(60));
    // 2 where the network was not yet looked at once.
    assert!(matches!(code, Some(0 | 2)), "{code:?}");
    assert_eq!(cluster.ours(), Vec::<String>::new());
}
