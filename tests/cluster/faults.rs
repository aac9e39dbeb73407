//! What keeps a run from starting: it ends with an exit code and a sentence with the
//! remedy, and leaves nothing behind.

use std::process::Command;

use super::kubelab::Kubelab;
use super::{cluster, lasting, read, refused, short};
use crate::observed::ran_to_its_end;
use crate::world::{run_directory, stderr};

#[test]
fn without_a_cluster_it_says_how_to_name_one() {
    let missing = |path: &str| {
        let mut command = crate::world::plumbline(&["run", "--target", "kubernetes"]);
        command.env("KUBECONFIG", path);
        command.output().unwrap()
    };
    refused(
        &missing("/nonexistent"),
        2,
        &["no Kubernetes cluster", "KUBECONFIG", "--context"],
    );

    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config");
    // Nobody listens on this port of loopback (RFC 863 set it aside).
    let text = r#"{"apiVersion":"v1","kind":"Config","current-context":"a",
        "contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
        "clusters":[{"name":"a","cluster":{"server":"http://127.0.0.1:9"}}],
        "users":[{"name":"a","user":{}}]}"#;
    std::fs::write(&config, text).unwrap();
    refused(
        &missing(config.to_str().unwrap()),
        2,
        &["127.0.0.1:9", "does not answer"],
    );
    let mut other = crate::world::plumbline(&["run", "--target", "kubernetes", "--context", "b"]);
    let output = other.env("KUBECONFIG", &config).output().unwrap();
    refused(&output, 2, &["context b", "there are: a"]);
}

#[test]
fn flags_of_a_cluster_ask_for_the_target() {
    let output = crate::world::output(&["run", "--allow-host-network"]);
    refused(
        &output,
        64,
        &["--allow-host-network", "--target kubernetes"],
    );
}

#[test]
fn an_image_that_is_not_there_is_told() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let image = "localhost/plumbline:none";
    let output = cluster
        .run(&short(&["--network", "pod", "--image", image]))
        .output()
        .unwrap();
    // Whoever waits for the pods in vain says something else.
    refused(
        &output,
        2,
        &[image, "cannot get the image", "plumbline image", "--image"],
    );
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn nodes_that_cannot_be_used_are_named() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let run = |nodes: &str| {
        let arguments = short(&["--network", "pod", "--nodes", nodes]);
        cluster.run(&arguments).output().unwrap()
    };
    refused(&run("nowhere"), 2, &["no node nowhere", "there are"]);
    let Some([one, two]) = &cluster.pair() else {
        return;
    };
    refused(&run(one), 2, &["two ready nodes", "--placement same-node"]);
    cluster.kubectl(&["cordon", two]);
    let cordoned = run(&format!("{one},{two}"));
    let alone = cluster.run(&short(&["--network", "pod"])).output();
    let within = [
        "--network",
        "pod",
        "--baseline",
        "pod",
        "--placement",
        "same-node",
    ];
    let within = cluster.run(&short(&within)).output().unwrap();
    cluster.kubectl(&["uncordon", two]);
    refused(&cordoned, 2, &["cordoned", two]);
    if cluster.workers().len() == 2 {
        refused(&alone.unwrap(), 2, &["two ready nodes"]);
    }
    let directory = run_directory(cluster.out());
    ran_to_its_end(&within, &directory);
    let (_, trials) = read(&directory);
    assert!(
        trials.iter().any(|it| it["observation"].is_object()),
        "one node is enough within it: {}",
        stderr(&within)
    );
    assert_eq!(cluster.inventory(), before);
}

/// A program that greets as another version.
const OTHER_VERSION: &str = r#"#!/bin/busybox sh
hello='{"message":"hello","protocol":2,"version":"9.9.9"}'
case $1 in
hold) exec /bin/busybox sleep 1000 ;;
esac
/bin/busybox printf '\000\000\000\062%s' "$hello"
/bin/busybox cat >/dev/null
"#;

#[test]
fn an_image_of_another_version_is_refused() {
    let Some(cluster) = lasting() else { return };
    let Some(kubelab) = Kubelab::of_cluster("nothing that could load an image") else {
        return;
    };
    let before = cluster.inventory();
    let image = "localhost/plumbline:other";
    load_other_version(&kubelab, image);
    let arguments = short(&["--network", "pod", "--image", image]);
    let output = cluster.run(&arguments).output().unwrap();
    refused(&output, 2, &["is Plumbline 9.9.9", "same version"]);
    assert_eq!(cluster.inventory(), before);
}

/// Makes an image of the script and the shell that is in one of kubelab's, and
/// loads it.
#[track_caller]
fn load_other_version(kubelab: &Kubelab, image: &str) {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let home = std::env::var("KUBELAB_HOME").unwrap_or_else(|_| "/var/lib/kubelab".to_owned());
    let unpack = |archive: &std::path::Path, to: &std::path::Path| {
        let mut tar = Command::new("tar");
        let output = tar.arg("-xf").arg(archive).arg("-C").arg(to).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{tar:?}: {}", stderr(&output));
    };
    unpack(
        &std::path::Path::new(&home).join("images/busybox.tar"),
        dir.path(),
    );
    unpack(&dir.path().join("layer.tar"), &root);
    let program = root.join("plumbline");
    std::fs::write(&program, OTHER_VERSION).unwrap();
    for path in [&root, &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let archive = dir.path().join("image.tar");
    let [archive, root] = [&archive, &root].map(|it| it.to_str().unwrap());
    kubelab.order(&["image", archive, image, root, "/plumbline"]);
    kubelab.order(&["load", archive]);
}
