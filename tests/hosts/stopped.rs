//! Ctrl-C while hosts connect. A program stands for ssh that never logs in.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::world::{self, Running, eventually};

/// Tells that it was started, and then says nothing.
const SSH: &str = "#!/bin/sh\n: > \"$STARTED\"\nexec sleep 1000\n";

#[test]
fn ctrl_c_is_heard_while_hosts_connect() {
    let directory = tempfile::tempdir().unwrap();
    let ssh = directory.path().join("ssh");
    fs::write(&ssh, SSH).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let started = directory.path().join("started");
    let path = std::env::var("PATH").unwrap();
    let arguments = ["run", "--target", "hosts", "--host", "a", "--host", "b"];
    let child = world::plumbline(&arguments)
        .arg("--out")
        .arg(directory.path().join("out"))
        .env("PATH", format!("{}:{path}", directory.path().display()))
        .env("STARTED", &started)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut run = Running(child);
    eventually("ssh was started", Duration::from_secs(30), || {
        started.exists()
    });
    run.signal(Signal::SIGINT);
    // A login is waited for longer than that.
    run.wait(Duration::from_secs(15));
    assert!(!directory.path().join("out").exists(), "there is a run");
}
