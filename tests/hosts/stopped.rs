//! Ctrl-C while hosts connect. A program stands for ssh that comes to no end.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::world::{self, Running, eventually};

/// Logs in, and takes one byte of the program.
const LOGIN: &str = r#"echo "plumbline-at $(uname -s) $(uname -m) /nonexistent"
head -c 1 > /dev/null"#;

#[test]
fn ctrl_c_is_heard_while_hosts_connect() {
    is_heard_after("");
}

#[test]
fn ctrl_c_is_heard_while_the_program_is_copied() {
    is_heard_after(LOGIN);
}

/// Stops a run whose ssh says nothing after what `first` does.
#[track_caller]
fn is_heard_after(first: &str) {
    let directory = tempfile::tempdir().unwrap();
    let ssh = directory.path().join("ssh");
    let script = format!("#!/bin/sh\n{first}\n: > \"$STARTED\"\nexec sleep 1000\n");
    fs::write(&ssh, script).unwrap();
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
    eventually("ssh got that far", Duration::from_secs(30), || {
        started.exists()
    });
    run.signal(Signal::SIGINT);
    // What ssh does is waited for longer than that.
    let code = run.wait(Duration::from_secs(15));
    let said = io::read_to_string(run.0.stderr.take().unwrap()).unwrap();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert!(!directory.path().join("out").exists(), "there is a run");
}
