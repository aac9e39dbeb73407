//! A run of several clusters: each compared with its own nodes, in one table.

use std::collections::BTreeMap;

use plumbline_record::{Common, DeviceFingerprint, Fingerprint, Observation, SetUp, Trial, What};
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, html, json, markdown, terminal};

use crate::documented;
use crate::fake::{Fake, Network};

fn network(label: &'static str, latency: f64) -> Network {
    Network {
        latency,
        ..Network::same(label)
    }
}

/// Puts a set-up before a trial.
fn set_up(trials: &mut Vec<Trial>, before: usize, network: &str, seconds: u64, came_up: bool) {
    let set_up = SetUp {
        network: network.to_owned(),
        took_ns: seconds * 1_000_000_000,
        paths_ns: came_up.then_some(2_000_000_000),
        came_up,
        log: format!("provision/{network}.log"),
        fingerprint: None,
    };
    let line = Trial {
        observation: Some(Observation {
            common: Common::default(),
            what: What::SetUp(Box::new(set_up)),
        }),
        ..trials[before].clone()
    };
    trials.insert(before, line);
}

#[test]
fn each_cluster_is_compared_with_its_own_nodes_and_its_set_up_is_told() {
    let (mut run, mut trials) = Fake::new(&[
        network("a/host", 1.0),
        network("a/pod", 1.2),
        network("b/host", 2.0),
        network("b/pod", 3.0),
    ])
    .run();
    run.plan.compare_with("host").unwrap();
    let alone = Summary::new(&run, &trials);
    set_up(&mut trials, 10, "b", 90, false);
    set_up(&mut trials, 8, "a", 16, true);
    set_up(&mut trials, 2, "b", 9, true);
    set_up(&mut trials, 0, "a", 14, true);
    let summary = Summary::new(&run, &trials);
    let answer = terminal::render(&summary, Style::default());
    assert!(
        answer.starts_with("Against host of the same cluster"),
        "{answer}"
    );
    assert_eq!(summary.account, alone.account, "no trials of the plan");
    let page = html::render(&summary, &run, &trials);
    assert_eq!(page.matches("<td>kept</td>").count(), trials.len() - 4);

    // One table for each workload, the baselines before what is compared.
    assert_eq!(summary.sections.len(), 2);
    let labels: Vec<&str> = summary.sections[0]
        .treatments
        .iter()
        .map(|&id| summary.treatments[id].treatment.label.as_str())
        .collect();
    assert_eq!(labels, ["a/host", "b/host", "a/pod", "b/pod"]);
    let effect = |label: &str| {
        let of = |one: &&plumbline_report::analysis::TreatmentSummary| one.treatment.label == label;
        let id = summary.treatments.iter().find(of).unwrap().id();
        let found = summary.comparison(id, "p50").unwrap();
        found.effect.unwrap().ratio_minus_one
    };
    assert!((effect("a/pod") - 0.2).abs() < 0.05, "{}", effect("a/pod"));
    assert!((effect("b/pod") - 0.5).abs() < 0.05, "{}", effect("b/pod"));

    let costs = &summary.set_ups;
    assert_eq!(
        (costs[0].network.as_str(), costs[0].came_up, costs[0].tried),
        ("b", 1, 2)
    );
    assert_eq!(costs[1].took_ns.unwrap().median, 15e9);
    let markdown = markdown::render(&summary);
    assert!(markdown.contains("**b/pod** against b/host"), "{markdown}");
    for text in [
        markdown,
        html::render(&summary, &run, &trials),
        terminal::render(&summary, Style::default()),
    ] {
        let text = text.replace('\u{a0}', " ").to_lowercase();
        for part in ["set-up cost", "15.0 s", "1 of 2", "provision/b.log"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let json: serde_json::Value = documented::read(&json::render(&summary));
    assert_eq!(json["set_ups"][1]["up_ns"]["median"], 15e9);
}

/// A cluster as its API server, its daemons and the agents told of it.
fn fingerprint(facts: &[(&str, &str)], mtu: u32) -> Fingerprint {
    let mut facts: BTreeMap<String, String> = facts
        .iter()
        .map(|(fact, value)| ((*fact).to_owned(), (*value).to_owned()))
        .collect();
    facts.insert("kubernetes".to_owned(), "v1.34.4".to_owned());
    facts.insert("client node name".to_owned(), "worker-1".to_owned());
    facts.insert("server node name".to_owned(), "worker-2".to_owned());
    let device = |mtu| DeviceFingerprint {
        mtu,
        ..DeviceFingerprint::default()
    };
    let server = Fingerprint {
        kernel: "6.2".to_owned(),
        ..Fingerprint::default()
    };
    Fingerprint {
        kernel: "6.1".to_owned(),
        versions: facts,
        devices: [("host", 1500), ("pod", mtu)]
            .map(|(path, mtu)| (path.to_owned(), vec![device(mtu)]))
            .into(),
        others: [("server".to_owned(), server)].into(),
        ..Fingerprint::default()
    }
}

#[test]
fn every_format_says_which_network_was_found_and_asks_about_the_cluster() {
    let (mut run, trials) = Fake::new(&[Network::same("host"), network("pod", 1.2)]).run();
    run.plan.question = "What do container networks cost on this machine?".to_owned();
    run.provenance.target = "kubernetes".to_owned();
    let modes = ["client", "server"].map(|side| format!("{side} node kube-proxy"));
    let [near, far] = modes.each_ref().map(String::as_str);
    let calico = "client node network projectcalico.org";
    let cases: [(&[(&str, &str)], &str); 15] = [
        (
            &[
                ("daemon calico-node", "calico/node:v3.29.1"),
                (calico, "projectcalico.org/IPv4VXLANTunnelAddr=present"),
                (near, "iptables"),
                (far, "iptables"),
                ("policy of the run", "admits its own pods"),
            ],
            "Calico with VXLAN, MTU 1450; kube-proxy with iptables; a NetworkPolicy of the run \
             before its receiving pods;",
        ),
        (
            &[
                ("daemon calico-node", "calico/node:v3.29.1"),
                (calico, "projectcalico.org/IPv4VXLANTunnelAddr=present"),
                ("calico vxlanMode", "CrossSubnet"),
            ],
            "Calico with native routes within a subnet and VXLAN beyond, MTU 1450;",
        ),
        (
            &[
                ("daemon calico-node", "calico/node:v3.29.1"),
                (calico, "projectcalico.org/IPv4Address=present"),
            ],
            "Calico with native routes, MTU 1450; kube-proxy’s mode unknown;",
        ),
        (
            &[
                ("daemon cilium", "cilium:v1.18"),
                ("cilium settings", "seen"),
                ("cilium routing-mode", "native"),
                ("cilium kube-proxy-replacement", "true"),
            ],
            "Cilium with native routes, MTU 1450; Cilium instead of kube-proxy;",
        ),
        (
            &[("daemon cilium", "cilium:v1.18")],
            "Cilium, unknown how packets cross between nodes, MTU 1450;",
        ),
        (
            &[
                ("daemon kube-flannel-ds", "flannel:v0.27"),
                (
                    "client node network flannel.alpha.coreos.com",
                    "flannel.alpha.coreos.com/backend-type=host-gw",
                ),
            ],
            "Flannel with native routes (host-gw), MTU 1450;",
        ),
        (
            &[(
                "client node network flannel.alpha.coreos.com",
                "flannel.alpha.coreos.com/backend-type=udp",
            )],
            "Flannel with UDP in user space, MTU 1450;",
        ),
        (
            &[("network api cilium.io", "served")],
            "Cilium, unknown how packets cross between nodes, MTU 1450;",
        ),
        (
            &[
                ("daemon kube-flannel-ds", "flannel:v0.27"),
                (
                    "client node network flannel.alpha.coreos.com",
                    "flannel.alpha.coreos.com/backend-type=",
                ),
            ],
            "Flannel with UDP in user space, MTU 1450;",
        ),
        (
            &[
                ("daemon kube-ovn-cni", "kubeovn/kube-ovn:v1.14"),
                ("daemon ovs-ovn", "kubeovn/kube-ovn:v1.14"),
            ],
            "Kube-OVN, unknown how packets cross between nodes, MTU 1450;",
        ),
        (
            &[("daemon ovnkube-node", "ovn-kube:v1.1")],
            "OVN-Kubernetes, unknown how packets cross between nodes, MTU 1450;",
        ),
        (
            &[(near, "none answers"), (far, "iptables")],
            "MTU 1450; kube-proxy with iptables on one node, and none that answers on the other;",
        ),
        (
            &[(near, "none answers"), (far, "none answers")],
            "MTU 1450; no kube-proxy that answers;",
        ),
        (
            &[(near, "ipvs"), (far, "iptables")],
            "MTU 1450; kube-proxy with ipvs and with iptables;",
        ),
        (&[], "an unknown network, MTU 1450;"),
    ];
    for (facts, expected) in cases {
        run.fingerprint = fingerprint(facts, 1450);
        let summary = Summary::new(&run, &trials);
        let question = "What do the paths through this cluster cost?";
        for text in [
            terminal::render(&summary, Style::default()),
            markdown::render(&summary).replace('\\', ""),
            html::render(&summary, &run, &trials).replace("&#38;", "&"),
        ] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let nodes = "nodes worker-1 (Linux 6.1) and worker-2 (Linux 6.2).";
            assert!(
                text.contains(expected) && text.contains(nodes),
                "{expected}: {text}"
            );
        }
        assert!(markdown::render(&summary).contains(question));
        assert!(html::render(&summary, &run, &trials).contains(question));
    }
    let summary = Summary::new(&run, &trials);
    let text = terminal::render(&summary, Style::default());
    let (before, _) = text.split_once("\nFound: ").expect("a cluster");
    assert!(before.contains("\nChange against the baseline"), "{text}");
    let object: serde_json::Value = documented::read(&json::render(&summary));
    assert_eq!(object["clusters"][0]["nodes"][1]["kernel"], "6.2");
    assert!(object["clusters"][0]["network"].is_null());
    let second = run.fingerprint.clone();
    run.fingerprint.others.insert("second".to_owned(), second);
    for of_a_lab in [
        "What do container networks cost on this machine?",
        "What do the networks that this machine can build cost?",
    ] {
        run.plan.question = of_a_lab.to_owned();
        let asked = Summary::new(&run, &trials).question;
        assert_eq!(asked, "What do the paths through these clusters cost?");
    }
}

/// What every format says that was found, where the clusters of the run are as this says.
fn found_in(fingerprint: Fingerprint) -> [String; 3] {
    let (mut run, trials) = Fake::new(&[Network::same("host"), network("pod", 1.2)]).run();
    run.provenance.target = "kubernetes".to_owned();
    run.fingerprint = fingerprint;
    let summary = Summary::new(&run, &trials);
    documented::read(&json::render(&summary));
    let texts = [
        terminal::render(&summary, Style::default()),
        markdown::render(&summary).replace('\\', ""),
        html::render(&summary, &run, &trials),
    ];
    texts.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// As a mesh records them: every machine by the name of its node, and every node as the API
/// server shows it.
fn mesh(kernels: &[&str]) -> Fingerprint {
    let names = || (1..).map(|number| format!("worker-{number}"));
    let mut whole = fingerprint(&[], 1450);
    let machine = |kernel: &str| Fingerprint {
        kernel: kernel.to_owned(),
        ..Fingerprint::default()
    };
    let others = names().zip(kernels.iter().map(|it| machine(it)));
    whole.others = others.skip(1).collect();
    for (name, kernel) in names().zip(kernels) {
        let facts = format!("v1.34.4, {kernel}");
        whole.versions.insert(format!("node {name}"), facts);
    }
    whole
}

#[test]
fn every_node_of_a_mesh_is_counted_and_has_its_own_kernel() {
    let three = "nodes worker-1 (Linux 6.1), worker-2 (Linux 6.2) and worker-3 (Linux 6.3).";
    for text in found_in(mesh(&["6.1", "6.2", "6.3"])) {
        assert!(text.contains(three), "{text}");
    }
    let six = "nodes worker-1 (Linux 6.1), worker-2 (Linux 6.2), worker-3 (Linux 6.1) and 3 others \
               (Linux 6.1, Linux 6.4).";
    for text in found_in(mesh(&["6.1", "6.2", "6.1", "6.4", "6.1", "6.4"])) {
        assert!(text.contains(six), "{text}");
    }
    // Where some share a kernel, only the API server tells all of them apart.
    let mut shared = mesh(&["6.1", "6.2", "6.3"]);
    shared.others.clear();
    for text in found_in(shared) {
        assert!(text.contains(three), "{text}");
    }
    // Without names the facts of the API server are not read.
    let mut nameless = mesh(&["6.1", "6.2", "6.3"]);
    let facts = nameless.versions.iter_mut();
    for (_, value) in facts.filter(|(fact, _)| fact.starts_with("node ")) {
        *value = "version-1".to_owned();
    }
    for text in found_in(nameless) {
        assert!(text.contains(three), "{text}");
    }
}

#[test]
fn what_was_not_found_is_called_unknown() {
    let mut whole = fingerprint(&[], 1450);
    whole.devices.clear();
    whole.kernel.clear();
    whole.others.clear();
    for text in found_in(whole.clone()) {
        let expected = "an unknown network, MTU unknown; kube-proxy’s mode unknown; nodes worker-1 \
                        (kernel unknown) and worker-2 (kernel unknown).";
        assert!(text.contains(expected), "{text}");
    }
    for side in ["client", "server"] {
        whole.versions.remove(&format!("{side} node name"));
    }
    for text in found_in(whole) {
        assert!(text.contains("mode unknown; nodes unknown."), "{text}");
    }
}

#[test]
fn a_tour_between_hosts_asks_about_their_paths() {
    let (mut run, trials) = Fake::new(&[Network::same("host"), network("vxlan", 1.2)]).run();
    run.plan.question = "What do container networks cost on this machine?".to_owned();
    run.provenance.target = "hosts".to_owned();
    let asked = Summary::new(&run, &trials).question;
    assert_eq!(asked, "What do the paths between these hosts cost?");
}
