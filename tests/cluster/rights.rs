//! The least role suffices, and gives no more than it says.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::{Cluster, cluster, read, short};
use crate::world::{run_directory, stderr};

const ACCOUNT: &str = "plumbline-tester";

/// A service account, removed when dropped.
struct Account<'a> {
    cluster: &'a Cluster,
    config: tempfile::NamedTempFile,
}

impl<'a> Account<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        cluster.kubectl(&[
            "create",
            "serviceaccount",
            ACCOUNT,
            "--namespace",
            "default",
        ]);
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

    fn is_granted(&self) {
        let manifest = self
            .cluster
            .plumbline(&["manifest", "role"])
            .output()
            .unwrap();
        let mut apply = Command::new("kubectl")
            .args(["apply", "--filename", "-"])
            .env("KUBECONFIG", &self.cluster.config)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = apply.stdin.take().unwrap();
        input.write_all(&manifest.stdout).unwrap();
        drop(input);
        assert!(apply.wait().unwrap().success());
        let account = format!("--serviceaccount=default:{ACCOUNT}");
        let bind = [
            "create",
            "clusterrolebinding",
            ACCOUNT,
            "--clusterrole=plumbline",
            &account,
        ];
        self.cluster.kubectl(&bind);
    }

    fn may(&self, verb: &str, what: &str) -> bool {
        let account = format!("system:serviceaccount:default:{ACCOUNT}");
        let arguments = [
            "auth",
            "can-i",
            verb,
            what,
            "--as",
            &account,
            "--all-namespaces",
        ];
        self.cluster.try_kubectl(&arguments).status.success()
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        for what in [
            ["serviceaccount", ACCOUNT],
            ["clusterrolebinding", ACCOUNT],
            ["clusterrole", "plumbline"],
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
    let run = || {
        let mut command = cluster.run(&short(&[]));
        command.args(["--network", "all", "--allow-host-network"]);
        command.env("KUBECONFIG", account.config.path());
        command.output().unwrap()
    };

    let refused = run();
    assert_eq!(refused.status.code(), Some(2));
    let says = stderr(&refused);
    assert!(says.contains("list the nodes"), "{says}");
    assert!(says.contains("plumbline manifest role"), "{says}");

    account.is_granted();
    let output = run();
    let (record, trials) = read(&run_directory(cluster.out()));
    assert_eq!(record["plan"]["treatments"].as_array().unwrap().len(), 6);
    assert!(trials.len() >= 6, "{}", stderr(&output));
    assert!(cluster.ours().is_empty(), "it may delete what it made");
    let mut cleanup = cluster.plumbline(&["cleanup", "--yes"]);
    let cleanup = cleanup.env("KUBECONFIG", account.config.path()).output();
    assert!(
        cleanup.unwrap().status.success(),
        "it may look for leftovers"
    );

    for (verb, what) in [
        ("create", "namespaces"),
        ("delete", "namespaces"),
        ("list", "nodes"),
        ("create", "pods"),
        ("get", "pods/exec"),
        ("create", "services"),
        ("list", "daemonsets.apps"),
    ] {
        assert!(account.may(verb, what), "{verb} {what} should be granted");
    }
    for (verb, what) in [
        ("get", "secrets"),
        ("list", "configmaps"),
        ("patch", "nodes"),
        ("delete", "nodes"),
        ("update", "pods"),
        ("delete", "services"),
        ("create", "deployments.apps"),
        ("create", "clusterrolebindings.rbac.authorization.k8s.io"),
        ("impersonate", "users"),
        ("*", "*"),
    ] {
        assert!(
            !account.may(verb, what),
            "{verb} {what} should not be granted"
        );
    }
}
