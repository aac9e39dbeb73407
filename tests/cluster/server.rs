//! A server that the image does not hold. No cluster is needed, because none is asked.

use std::fs;

use crate::world::{self, stderr};

/// A configuration of clusters `a` and `b` where nobody listens.
const NOBODY: &str = r#"{
  "apiVersion": "v1", "kind": "Config", "current-context": "a",
  "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
  "users": [{"name": "u", "user": {}}],
  "contexts": [
    {"name": "a", "context": {"cluster": "c", "user": "u"}},
    {"name": "b", "context": {"cluster": "c", "user": "u"}}
  ]
}"#;

#[test]
fn nginx_is_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config");
    fs::write(&config, NOBODY).unwrap();
    let made = directory.path().join("made");
    let make = format!("touch {} # {{network}}", made.display());
    let out = directory.path().join("out");
    for flags in [
        &["--network", "pod"][..],
        &["--context", "a", "--context", "b", "--network", "pod"],
        &["--provision", &make, "--network", "one", "--path", "pod"],
    ] {
        let result = world::plumbline(&["run", "http", "--target", "kubernetes"])
            .args(["--set", "workload.server=nginx", "--blocks", "1"])
            .arg("--out")
            .arg(&out)
            .args(flags)
            .env("KUBECONFIG", &config)
            .output()
            .expect("the program starts");
        let said = stderr(&result);
        assert_eq!(result.status.code(), Some(2), "{flags:?}: {said}");
        for words in ["server = \"nginx\"", "--set workload.server=plumbline"] {
            assert!(said.contains(words), "{flags:?}: {said}");
        }
        assert!(!made.exists(), "{flags:?}: a cluster was made");
        assert!(!out.exists(), "{flags:?}: there is a run");
    }
}
