//! `plumbline agent`: one endpoint under command, and the pod that it is in.

use std::process::ExitCode;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    plumbline_sys::signal::ignore_interrupt()?;
    plumbline_agent::run(std::io::stdin(), std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

/// Does nothing, until the pod is deleted. Never wakes: the node is measured.
pub(crate) fn hold() -> ! {
    loop {
        std::thread::park();
    }
}
