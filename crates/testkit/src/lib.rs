//! For tests only: private namespaces, counted skips, and planted refusals.
//!
//! A test program that uses this crate enters namespaces of its own before its
//! first thread starts. Its tests therefore need no root, and cannot touch the
//! machine's network.

mod seccomp;

use std::io::Write;
use std::sync::OnceLock;

use plumbline_sys::namespace::{Privacy, enter_private};
pub use seccomp::forbid_io_uring;

/// The environment variable that names the file to which skips are appended.
pub const SKIPS: &str = "PLUMBLINE_SKIPS";

/// A test program that is started with this environment variable stays in its
/// parent's namespaces, so that parent and child can reach each other.
pub const STAY: &str = "PLUMBLINE_TEST_STAY";

static ENTERED: OnceLock<Result<Privacy, String>> = OnceLock::new();

/// Runs before `main`, while the process has only one thread: a process with
/// several cannot enter a user namespace.
#[allow(
    unsafe_code,
    reason = "the attribute says that code runs before `main`; it uses nothing that `main` sets up"
)]
#[ctor::ctor(unsafe)]
fn enter() {
    if std::env::var_os(STAY).is_some() {
        return;
    }
    let entered = enter_private().map_err(|error| error.to_string());
    // Nothing else sets it, and the constructor runs once.
    let _ = ENTERED.set(entered);
}

/// Whether the process is in private namespaces. If the machine allows none,
/// counts `test` as skipped.
///
/// A test that touches a network begins with
/// `if !testkit::in_private_namespaces("its name") { return; }`.
pub fn in_private_namespaces(test: &str) -> bool {
    match ENTERED.get() {
        Some(Ok(_)) => true,
        Some(Err(reason)) => {
            skip(test, reason);
            false
        }
        None => panic!("the constructor that enters private namespaces did not run"),
    }
}

/// Reports that `test` was skipped, and why: on standard error, past the test
/// harness's capture, and in the file that [`SKIPS`] names.
///
/// CI compares the name, which ends at the first colon, with its list of known
/// skips.
pub fn skip(test: &str, reason: &str) {
    assert!(
        !test.contains([':', '\n']),
        "`{test}` would be counted as the test before the colon"
    );
    let reason = reason.replace('\n', " ");
    let line = format!("SKIP {test}: {reason}\n");
    // Standard error may be closed; what counts is the file below.
    let _ = std::io::stderr().write_all(line.as_bytes());
    let Some(path) = std::env::var_os(SKIPS) else {
        return;
    };
    let written = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!("cannot count a skip in {}: {error}", path.display());
    }
}
