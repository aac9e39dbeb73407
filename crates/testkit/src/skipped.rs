//! Skips that are counted. The tests of the program, which stay out of private namespaces, have
//! this file too.

use std::io::Write as _;

/// Tells on standard error that `test` was skipped and why, and appends that to the file that
/// `PLUMBLINE_SKIPS` names. The harness names the thread of each test.
pub(crate) fn skip(test: &str, reason: &str) {
    assert!(
        !test.contains([':', '\n']),
        "`{test}` would be counted as the test before the colon"
    );
    let reason = reason.replace('\n', " ");
    let running = std::thread::current();
    let running = running.name().unwrap_or("a thread without a name");
    let line = format!("SKIP {test}: {reason} (in {running})\n");
    // Standard error may be closed; what counts is the file below.
    let _ = std::io::stderr().write_all(line.as_bytes());
    let Some(path) = std::env::var_os("PLUMBLINE_SKIPS") else {
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
