//! `--kernel`: the same command inside another kernel.

use std::path::Path;
use std::process::ExitCode;

use plumbline_uml::Installation;

use crate::cli::Kernel;
use crate::progress;

/// Whether that kernel is another one than this.
pub(crate) fn is_elsewhere(kernel: Kernel) -> bool {
    kernel != Kernel::Host && !plumbline_uml::inside()
}

/// Runs the command as it was typed in User-mode Linux, and gives its exit code.
/// `writable` is where the command writes.
///
/// To be called before the process has a thread or namespaces of its own.
pub(crate) fn run_inside(writable: Option<&Path>) -> anyhow::Result<ExitCode> {
    let installation = Installation::find()?;
    progress::say(&format!(
        "starting User-mode Linux {}, with one CPU",
        installation.release
    ));
    let arguments = std::env::args_os().skip(1).collect();
    let interrupted = plumbline_sys::signal::interruption()?;
    let code = plumbline_uml::run_inside(installation, arguments, writable, interrupted)?;
    Ok(ExitCode::from(code))
}
