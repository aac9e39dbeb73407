//! For tests only: private namespaces, counted skips, and planted refusals.
//!
//! A test program that uses this crate enters namespaces of its own before its
//! first thread starts. Its tests therefore need no root, and cannot touch the
//! machine's network.

mod seccomp;
mod skipped;

use std::sync::OnceLock;

use plumbline_sys::namespace::{Privacy, enter_private};
pub use seccomp::forbid_io_uring;

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
/// harness's capture, and in the file that `PLUMBLINE_SKIPS` names.
///
/// CI compares the name, which ends at the first colon, with its list of known
/// skips, and looks whether the running test, which is told too, is promised.
pub fn skip(test: &str, reason: &str) {
    skipped::skip(test, reason);
}
