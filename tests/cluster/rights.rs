//! The Role in one namespace suffices, and gives no more than it says.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::kubelab::NodeInventory;
use super::left::elsewhere;
use super::outages::inventory_in_time;
use super::{Cluster, cluster, read, refused, short};
use crate::observed::ran_to_its_end;
use crate::world::{eventually, run_directory, runs_in, stderr, stdout, trials};

pub(super) const ACCOUNT: &str = "plumbline-tester";

/// The namespace that the administrator made.
pub(super) const SHARED: &str = "shared-by-testers";

/// A service account, removed when dropped.
pub(super) struct Account<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) config: tempfile::NamedTempFile,
}

impl<'a> Account<'a> {
    pub(super) fn new(cluster: &'a Cluster) -> Self {
        cluster.kubectl(&[
            "create",
            "serviceaccount",
            ACCOUNT,
            "--namespace",
            "default",
        ]);
        cluster.kubectl(&["create", "namespace", SHARED]);
        let restricted = "pod-security.kubernetes.io/enforce=restricted";
        cluster.kubectl(&["label", "namespace", SHARED, restricted]);
        let token = cluster.kubectl(&["create", "token", ACCOUNT, "--namespace", "default"]);
        let view = ["config", "view", "--raw", "--minify", "--output", "json"];
        let mut config: serde_json::Value = serde_json::from_str(&cluster.kubectl(&view)).unwrap();
        config["users"][0]["user"] = serde_json::json!({ "token": token.trim() });
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(config.to_string().as_bytes()).unwrap();
        Self {
            cluster,
            config: file,
        }
    }

    /// Applies what `plumbline manifest` prints, and binds it in the shared namespace, or
    /// in the whole cluster.
    pub(super) fn is_granted(&self, manifest: &str, bind: &[&str]) {
        let printed = self.cluster.plumbline(&["manifest", manifest]).output();
        let mut apply = Command::new("kubectl")
            .args(["apply", "--namespace", SHARED, "--filename", "-"])
            .env("KUBECONFIG", &self.cluster.config)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = apply.stdin.take().unwrap();
        input.write_all(&printed.unwrap().stdout).unwrap();
        drop(input);
        assert!(apply.wait().unwrap().success());
        let account = format!("--serviceaccount=default:{ACCOUNT}");
        let bind = [&["create"], bind, &["--namespace", SHARED, &account]].concat();
        self.cluster.kubectl(&bind);
    }

    /// Whether it may do this in a namespace, or in all of them.
    fn may(&self, verb: &str, what: &str, namespace: Option<&str>) -> bool {
        let account = format!("system:serviceaccount:default:{ACCOUNT}");
        let mut arguments = vec!["auth", "can-i", verb, what, "--as", &account];
        match namespace {
            Some(namespace) => arguments.extend(["--namespace", namespace]),
            None => arguments.push("--all-namespaces"),
        }
        self.cluster.try_kubectl(&arguments).status.success()
    }

    /// Leaves it only the right to list these in the shared namespace.
    pub(super) fn may_only_list(&self, what: &str) {
        let role = ["role", "plumbline", "--namespace", SHARED];
        let shown = [&["get"], &role[..], &["--output", "json"]].concat();
        let shown: serde_json::Value = serde_json::from_str(&self.cluster.kubectl(&shown)).unwrap();
        let mut rules = shown["rules"].as_array().unwrap().iter();
        let at = rules.position(|it| it["resources"][0] == what).unwrap();
        let verbs =
            format!(r#"[{{"op": "replace", "path": "/rules/{at}/verbs", "value": ["list"]}}]"#);
        let patch = ["--type=json", "--patch", &verbs];
        self.cluster
            .kubectl(&[&["patch"], &role[..], &patch].concat());
    }

    /// A run in the shared namespace, but for what `other` flags say.
    pub(super) fn run(&self, other: &[&str]) -> Output {
        let mut command = self.cluster.run(&short(&["--namespace", SHARED]));
        command.args(other).env("KUBECONFIG", self.config.path());
        command.output().unwrap()
    }

    /// What is in the shared namespace.
    pub(super) fn shared(&self) -> String {
        let list = [
            "get",
            "pods,services,networkpolicies",
            "--namespace",
            SHARED,
            "--output",
            "name",
        ];
        self.cluster.kubectl(&list)
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        for what in [
            ["serviceaccount", ACCOUNT],
            ["namespace", SHARED],
            ["clusterrolebinding", ACCOUNT],
            ["clusterrole", "plumbline-nodes"],
        ] {
            let [kind, name] = what;
            // Some are not there yet when a test fails.
            let _ = self
                .cluster
                .try_kubectl(&["delete", kind, name, "--ignore-not-found"]);
        }
    }
}

#[test]
fn the_role_suffices_and_gives_no_more_than_it_says() {
    let Some(cluster) = cluster() else { return };
    let account = Account::new(&cluster);
    let every_path = ["--network", "all"];
    let refused = account.run(&every_path);
    assert_eq!(refused.status.code(), Some(2));
    let says = stderr(&refused);
    assert!(says.contains("create pod"), "{says}");
    assert!(says.contains("plumbline manifest role"), "{says}");

    account.is_granted("role", &["rolebinding", ACCOUNT, "--role=plumbline"]);
    let output = account.run(&every_path);
    let directory = run_directory(cluster.out());
    ran_to_its_end(&output, &directory);
    let (record, all) = read(&directory);
    // One of them is the control.
    assert_eq!(record["plan"]["treatments"].as_array().unwrap().len(), 4);
    let valid = all.iter().filter(|it| it["status"]["status"] != "failed");
    assert!(valid.count() >= 3, "{}", stderr(&output));
    let node = |side: &str| &record["fingerprint"]["versions"][format!("{side} node name")];
    assert_ne!(node("client"), node("server"), "the ends are kept apart");
    assert_eq!(account.shared(), "", "it may delete what it made");
    assert!(cluster.ours().is_empty(), "no other namespace is made");

    for (verb, what) in [
        ("create", "pods"),
        ("get", "pods/exec"),
        ("create", "services"),
        ("patch", "services"),
        ("list", "endpointslices.discovery.k8s.io"),
        ("deletecollection", "endpointslices.discovery.k8s.io"),
        ("patch", "networkpolicies.networking.k8s.io"),
    ] {
        assert!(account.may(verb, what, Some(SHARED)), "{verb} {what}");
        for elsewhere in [Some("default"), None] {
            let may = account.may(verb, what, elsewhere);
            assert!(!may, "{verb} {what} in {elsewhere:?}");
        }
    }
    for (verb, what) in [
        ("create", "namespaces"),
        ("delete", "namespaces"),
        ("list", "nodes"),
        ("get", "secrets"),
        ("list", "configmaps"),
        ("update", "pods"),
        ("create", "deployments.apps"),
        ("create", "rolebindings.rbac.authorization.k8s.io"),
        ("impersonate", "users"),
        ("*", "*"),
    ] {
        let may = account.may(verb, what, Some(SHARED));
        assert!(!may, "{verb} {what} should not be granted");
    }
}

#[test]
fn host_networking_takes_a_privileged_namespace_and_a_mesh_the_nodes() {
    let Some(cluster) = cluster() else { return };
    let account = Account::new(&cluster);
    account.is_granted("role", &["rolebinding", ACCOUNT, "--role=plumbline"]);
    let host = ["--network", "host", "--allow-host-network"];
    refused(&account.run(&host), 2, &["PodSecurity"]);
    let privileged = "pod-security.kubernetes.io/enforce=privileged";
    cluster.kubectl(&["label", "--overwrite", "namespace", SHARED, privileged]);
    let ran = account.run(&host);
    let of_host = run_directory(cluster.out());
    ran_to_its_end(&ran, &of_host);
    let (_, trials_of_host) = read(&of_host);
    assert!(!trials_of_host.is_empty());

    let mesh = ["--network", "pod", "--mesh"];
    refused(&account.run(&mesh), 2, &["plumbline manifest nodes"]);
    let nodes = [
        "clusterrolebinding",
        ACCOUNT,
        "--clusterrole=plumbline-nodes",
    ];
    account.is_granted("nodes", &nodes);
    let of_mesh = account.run(&mesh);
    let says = stderr(&of_mesh);
    let runs = runs_in(cluster.out());
    assert_eq!(runs.len(), 2, "of the host network and of the mesh: {says}");
    let mesh = runs.iter().find(|run| **run != of_host);
    ran_to_its_end(&of_mesh, mesh.expect("they are two"));
    assert!(runs.iter().all(|run| trials(run) > 0), "{says}");
    assert_eq!(account.shared(), "");
}

#[test]
fn what_a_killed_run_left_in_a_shared_namespace_is_shown_and_removed() {
    let Some(cluster) = cluster() else { return };
    let account = Account::new(&cluster);
    account.is_granted("role", &["rolebinding", ACCOUNT, "--role=plumbline"]);
    // The cluster puts these into every namespace, some time after it is made.
    let is_there = |what: [&str; 2]| {
        let shown = cluster.try_kubectl(&[&["get", "--namespace", SHARED], &what[..]].concat());
        shown.status.success()
    };
    for what in [
        ["serviceaccount", "default"],
        ["configmap", "kube-root-ca.crt"],
    ] {
        eventually("the namespace is complete", Duration::from_secs(30), || {
            is_there(what)
        });
    }
    let (before, nodes) = (cluster.inventory(), NodeInventory::take(&cluster));
    let flags = [
        "--namespace",
        SHARED,
        "--network",
        "cluster-ip",
        "--blocks",
        "200",
    ];
    let mut run = cluster.start(&short(&flags));
    eventually("a trial has ended", Duration::from_secs(60), || {
        cluster.run_directory().is_some_and(|run| trials(&run) > 0)
    });
    run.signal(Signal::SIGKILL);
    assert_eq!(run.wait(Duration::from_secs(10)), None);
    // From where nobody knows whether the run has ended.
    let cleanup = |flags: &[&str]| {
        let flags = [&["cleanup", "--namespace", SHARED], flags].concat();
        let mut command = cluster.plumbline(&flags);
        command.env("KUBECONFIG", account.config.path());
        let shown = elsewhere(&command).output().unwrap();
        assert!(shown.status.success(), "{}", stderr(&shown));
        stdout(&shown)
    };
    let listed = cleanup(&[]);
    assert!(
        listed.contains("run ") && listed.contains("4 pods"),
        "{listed}"
    );
    assert!(account.shared().contains("service/"));
    cleanup(&["--yes"]);
    assert!(account.shared().contains("service/"), "its pods run");
    cluster.end_pods(SHARED);
    cleanup(&["--yes"]);
    assert_eq!(account.shared(), "");
    assert_eq!(inventory_in_time(&cluster, &before), before);
    if let Some(nodes) = nodes {
        nodes.assert_nothing_new(&cluster);
    }
}
