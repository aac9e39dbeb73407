//! Dev-only: private namespaces for tests, skips that are counted, and planted
//! refusals.
//!
//! A test program that uses this crate runs in namespaces of its own from
//! before its first thread. So its tests need no root and cannot touch the
//! network of the machine.

mod seccomp;

use std::io::Write;
use std::sync::OnceLock;

use plumbline_sys::namespace::{Privacy, enter_private};
pub use seccomp::forbid_io_uring;

/// The environment variable that names the file to which skips are appended.
pub const SKIPS: &str = "PLUMBLINE_SKIPS";

/// A test program that is started with this environment variable stays in the
/// namespaces of its parent: it is the parent's peer.
pub const STAY: &str = "PLUMBLINE_TEST_STAY";

static ENTERED: OnceLock<Result<Privacy, String>> = OnceLock::new();

/// Runs before `main`, where the process has one thread only: later it could
/// not enter a user namespace.
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

/// Whether the process is in private namespaces. Where the machine allows none,
/// `test` is counted as skipped.
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

/// Says that `test` was not run and why, on the real standard error (the test
/// harness does not swallow it), and in the file that [`SKIPS`] names.
///
/// CI compares the name, up to the first colon, with its list of known skips.
pub fn skip(test: &str, reason: &str) {
    assert!(
        !test.contains([':', '\n']),
        "`{test}` would be counted as the test before the colon"
    );
    let reason = reason.replace('\n', " ");
    let line = format!("SKIP {test}: {reason}\n");
    // Standard error may be closed; the file below is what is counted.
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
