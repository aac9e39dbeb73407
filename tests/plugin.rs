//! `kubectl plumbline`, and the manifest by which krew installs it.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::world::{self, stderr, stdout};

/// The program under the name by which kubectl finds it.
fn plugin(directory: &Path, arguments: &[&str]) -> Output {
    let name = directory.join("kubectl-plumbline");
    let program = world::plumbline(&[]);
    if !name.exists() {
        symlink(program.get_program(), &name).expect("it is ours");
    }
    // Of a cluster that nobody has.
    let config = directory.join("kubeconfig");
    std::fs::write(&config, "apiVersion: v1\nkind: Config\n").expect("it is ours");
    Command::new(name)
        .args(arguments)
        .env("KUBECONFIG", config)
        .output()
        .expect("it starts")
}

#[test]
fn what_is_typed_is_what_usage_says() {
    let directory = tempfile::tempdir().unwrap();
    let help = stdout(&plugin(directory.path(), &["run", "--help"]));
    assert!(help.contains("Usage: kubectl plumbline run"), "{help}");
    let bad = plugin(directory.path(), &["run", "--bogus"]);
    assert_eq!(bad.status.code(), Some(64));
    assert!(
        stderr(&bad).contains("Usage: kubectl plumbline run"),
        "{}",
        stderr(&bad)
    );
    let version = stdout(&plugin(directory.path(), &["--version"]));
    assert!(version.starts_with("plumbline "), "{version}");
    let usual = stdout(&world::output(&["run", "--help"]));
    assert!(usual.contains("Usage: plumbline run"), "{usual}");
}

#[test]
fn a_plugin_measures_the_cluster_unless_told_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let out = out.to_str().unwrap();
    let run = plugin(directory.path(), &["run", "--out", out]);
    assert_eq!(run.status.code(), Some(2), "{}", stderr(&run));
    assert!(
        stderr(&run).contains("no Kubernetes cluster"),
        "{}",
        stderr(&run)
    );
    // The flags of another place say which is meant.
    let lab = ["run", "--target", "hosts", "--out", out];
    let hosts = plugin(directory.path(), &lab);
    assert_eq!(hosts.status.code(), Some(64));
    assert!(
        stderr(&hosts).contains("--host user@a"),
        "{}",
        stderr(&hosts)
    );
}

/// The manifest of a release whose archives hold a small program: a build with
/// all that debuggers want takes gzip a minute.
fn manifest(directory: &Path) -> (Value, String) {
    let program = directory.join("program");
    std::fs::write(&program, "#!/bin/sh\necho plumbline\n").expect("it is ours");
    let archives = directory.join("archives");
    for arch in ["amd64", "arm64"] {
        let made = Command::new("packaging/archive")
            .arg(&program)
            .args(["1.2.3", arch])
            .arg(&archives)
            .output()
            .expect("bash is there");
        assert!(made.status.success(), "{}", stderr(&made));
    }
    let filled = fill("1.2.3", &archives);
    assert!(filled.status.success(), "{}", stderr(&filled));
    let text = stdout(&filled);
    (serde_saphyr::from_str(&text).expect("valid YAML"), text)
}

fn fill(version: &str, archives: &Path) -> Output {
    Command::new("packaging/krew/fill")
        .args([version, "https://example.org/plumbline"])
        .arg("https://example.org/releases/v1.2.3")
        .arg(archives)
        .output()
        .expect("bash is there")
}

#[test]
fn the_manifest_of_krew_is_what_krew_takes() {
    let directory = tempfile::tempdir().unwrap();
    let (manifest, text) = manifest(directory.path());
    let version = "krew.googlecontainertools.github.com/v1alpha2";
    assert_eq!(manifest["apiVersion"], version);
    assert_eq!(manifest["kind"], "Plugin");
    assert_eq!(manifest["metadata"]["name"], "plumbline");
    let spec = &manifest["spec"];
    assert_eq!(spec["version"], "v1.2.3");
    assert_eq!(spec["homepage"], "https://example.org/plumbline");
    let short = spec["shortDescription"].as_str().unwrap();
    // What krew's naming guide asks for.
    assert!(short.len() <= 50 && !short.ends_with('.'), "{short}");
    let platforms = spec["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 2);
    for (platform, arch) in platforms.iter().zip(["amd64", "arm64"]) {
        let labels = &platform["selector"]["matchLabels"];
        assert_eq!(labels["os"], "linux");
        assert_eq!(labels["arch"], arch);
        let name = format!("plumbline-1.2.3-linux-{arch}.tar.gz");
        let uri = format!("https://example.org/releases/v1.2.3/{name}");
        assert_eq!(platform["uri"], uri.as_str());
        let archive = directory.path().join("archives").join(&name);
        let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
        let sum = stdout(&sum);
        assert_eq!(platform["sha256"], sum.split_whitespace().next().unwrap());
        // What is linked as kubectl-plumbline is in the archive, and starts.
        let bin = platform["bin"].as_str().unwrap();
        let files = platform["files"].as_array().unwrap();
        assert!(
            files
                .iter()
                .any(|file| file["from"] == bin && file["to"] == ".")
        );
        let unpacked = directory.path().join(arch);
        std::fs::create_dir(&unpacked).unwrap();
        let tar = Command::new("tar")
            .arg("--extract")
            .arg("--file")
            .arg(&archive)
            .arg("--directory")
            .arg(&unpacked)
            .status();
        assert!(tar.unwrap().success());
        for file in files {
            assert!(unpacked.join(file["from"].as_str().unwrap()).is_file());
        }
        let started = Command::new(unpacked.join(bin)).arg("--version").output();
        assert!(started.unwrap().status.success());
    }
    for word in ["VERSION", "BASE", "HOMEPAGE", "SHA256"] {
        assert!(!text.contains(word), "{word} was not filled in: {text}");
    }
}

#[test]
fn an_archive_that_is_missing_gives_no_manifest() {
    let directory = tempfile::tempdir().unwrap();
    manifest(directory.path());
    let missing = fill("9.9.9", &directory.path().join("archives"));
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(stdout(&missing), "");
    assert!(stderr(&missing).contains("packaging/archive makes it"));
}
