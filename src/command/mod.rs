//! One file per subcommand: arguments in, exit code out.

#[cfg(feature = "kubernetes")]
pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod generate;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
pub(crate) mod linux;
pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod run;

use std::io::{ErrorKind, Write as _};

/// A contradictory or meaningless command line; the text says the remedy. Exit code 64.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadUsage(pub(crate) String);

fn refused<T>(why: impl Into<String>) -> anyhow::Result<T> {
    Err(BadUsage(why.into()).into())
}

/// Why a program that was built without clusters refuses what concerns them.
#[cfg(not(feature = "kubernetes"))]
pub(crate) fn no_clusters() -> anyhow::Error {
    let why = "this program was built without clusters; build it with --features kubernetes";
    BadUsage(why.to_owned()).into()
}

/// Writes results. A closed pipe is the reader's choice: no error, and the exit code
/// stays what the results make it.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Writes a value as JSON with a line end.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}
