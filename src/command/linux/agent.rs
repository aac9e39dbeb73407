//! `plumbline agent`: one endpoint under command, and the pod that it is in.

use std::process::ExitCode;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    plumbline_sys::signal::ignore_interrupt()?;
    plumbline_agent::run(std::io::stdin(), std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

/// Keeps a pod as long as a run uses it.
pub(crate) fn hold() -> ExitCode {
    plumbline_agent::hold();
    ExitCode::SUCCESS
}
