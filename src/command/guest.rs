//! `plumbline guest`: the first process inside User-mode Linux.

use std::process::ExitCode;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    // An ordinary process could not do harm with it, but would wait for nothing.
    anyhow::ensure!(
        std::process::id() == 1,
        "this is started by `--kernel uml` as the first process of a kernel, not by people"
    );
    Err(plumbline_uml::guest::run().into())
}
