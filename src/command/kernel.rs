//! `--kernel`: the same command inside another kernel.

use std::path::Path;
use std::process::ExitCode;

use plumbline_uml::Installation;

use crate::cli::Kernel;
use crate::progress;

/// Runs the command as it was typed in the kernel that was asked for, and gives
/// its exit code; `None` when this is that kernel. `writable` is where the
/// command writes.
///
/// To be called before the process has a thread or namespaces of its own.
pub(crate) fn elsewhere(
    kernel: Kernel,
    writable: Option<&Path>,
) -> anyhow::Result<Option<ExitCode>> {
    if kernel == Kernel::Host || plumbline_uml::inside() {
        return Ok(None);
    }
    let installation = Installation::find()?;
    progress::say(&format!(
        "starting User-mode Linux {}, with one CPU",
        installation.release
    ));
    let arguments = std::env::args_os().skip(1).collect();
    let interrupted = plumbline_sys::signal::interruption()?;
    let code = plumbline_uml::run_inside(installation, arguments, writable, interrupted)?;
    Ok(Some(ExitCode::from(code)))
}
