//! A server that a host does not have. The hosts are this machine, by a program
//! that stands for ssh.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::world::{self, stderr};

/// Runs the command here, whatever the host.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
exec sh -c "$3"
"#;

#[test]
fn a_host_without_nginx_is_refused_by_name() {
    let test = "a host without nginx";
    let directory = tempfile::tempdir().unwrap();
    let ssh = directory.path().join("ssh");
    fs::write(&ssh, SSH).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let out = directory.path().join("out");
    let path = std::env::var("PATH").unwrap();
    for (flags, host) in [
        (&["--host", "left", "--host", "right"][..], "right"),
        (&["--mesh", "--host", "left", "--host", "right"], "left"),
    ] {
        let result = world::plumbline(&["run", "http", "--target", "hosts"])
            .args(["--set", "workload.server=nginx", "--blocks", "1"])
            // No host has such an address: where nginx is installed, that ends the run.
            .args(["--address", "203.0.113.0/24", "--out"])
            .arg(&out)
            .args(flags)
            .env("PATH", format!("{}:{path}", directory.path().display()))
            .output()
            .expect("the program starts");
        let said = stderr(&result);
        assert_eq!(result.status.code(), Some(2), "{flags:?}: {said}");
        assert!(!out.exists(), "{flags:?}: there is a run");
        if said.contains("no address in 203.0.113.0/24") {
            world::skip(test, "nginx is installed");
            return;
        }
        for words in [&format!("on {host}, nginx"), "install the package `nginx`"] {
            assert!(said.contains(words), "{flags:?}: {said}");
        }
    }
}
