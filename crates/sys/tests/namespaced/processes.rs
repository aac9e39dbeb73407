//! Processes inside namespaces.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use plumbline_sys::namespace::Namespace;
use plumbline_sys::process::{Child, Command, ProcessError};
use plumbline_testkit as testkit;

const LIMIT: Duration = Duration::from_secs(20);

fn shell(script: &str, namespace: &Namespace) -> Child {
    let command = Command::new(Path::new("/bin/sh")).args(["-c", script]);
    command.spawn_in(namespace).expect("started")
}

#[test]
fn a_child_runs_inside_in_a_group_of_its_own() {
    if !testkit::in_private_namespaces("a child runs inside") {
        return;
    }
    let namespace = Namespace::create().expect("made");
    let mut child = shell(
        "readlink /proc/self/ns/net; cut -d' ' -f5 /proc/$$/stat",
        &namespace,
    );
    let mut text = String::new();
    child
        .take_stdout()
        .expect("piped")
        .read_to_string(&mut text)
        .expect("read");
    let pid = child.pid();
    assert_eq!(text, format!("net:[{}]\n{pid}\n", namespace.inode()));
    child.wait(LIMIT).expect("ended well");
}

#[test]
fn the_end_of_standard_error_is_kept() {
    if !testkit::in_private_namespaces("the end of standard error is kept") {
        return;
    }
    let namespace = Namespace::create().expect("made");
    // Far more than a pipe holds: the child must not block on it.
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done; exit 3";
    let error = shell(script, &namespace).wait(LIMIT).expect_err("failed");
    let ProcessError::Failed { status, stderr, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(status.code(), Some(3));
    assert!(stderr.ends_with("line 19999\n"), "{stderr}");
    assert!(stderr.len() <= 8 * 1024, "{} bytes", stderr.len());
}

#[test]
fn waiting_has_an_end_and_dropping_kills() {
    if !testkit::in_private_namespaces("waiting has an end") {
        return;
    }
    let namespace = Namespace::create().expect("made");
    let mut child = shell("exec sleep 60", &namespace);
    let error = child
        .wait(Duration::from_millis(20))
        .expect_err("it runs on");
    assert!(
        matches!(error, ProcessError::StillRunning { .. }),
        "{error}"
    );
    let process = format!("/proc/{}", child.pid());
    assert!(Path::new(&process).exists());
    drop(child);
    assert!(!Path::new(&process).exists(), "killed and reaped");
}

#[test]
fn a_child_dies_with_the_thread_that_started_it() {
    if !testkit::in_private_namespaces("a child dies with its parent thread") {
        return;
    }
    let namespace = Namespace::create().expect("made");
    let start = || shell("exec sleep 60", &namespace);
    let mut child = std::thread::scope(|scope| scope.spawn(start).join()).expect("started");
    let error = child.wait(LIMIT).expect_err("killed");
    assert!(error.to_string().contains("signal: 9"), "{error}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    if !testkit::in_private_namespaces("a program that is not there is named") {
        return;
    }
    let namespace = Namespace::create().expect("made");
    let command = Command::new(Path::new("/no/such/program"));
    let error = command
        .spawn_in(&namespace)
        .expect_err("missing")
        .to_string();
    assert!(error.contains("/no/such/program"), "{error}");
}
