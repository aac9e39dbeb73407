//! `plumbline agent`: one endpoint under command.

use std::process::ExitCode;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    plumbline_sys::signal::ignore_interrupt()?;
    plumbline_agent::run(std::io::stdin(), std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}
