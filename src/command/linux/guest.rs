//! `plumbline guest`: the first process inside User-mode Linux.

use std::process::ExitCode;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    // In an ordinary process it would do no harm, but wait for ever.
    anyhow::ensure!(
        std::process::id() == 1,
        "this is started by `--kernel uml` as the first process of a kernel, and is not for use by hand"
    );
    Err(plumbline_uml::guest::run().into())
}
