//! What another system than Linux answers where that is needed.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use plumbline_harness::Target;
use plumbline_session::Session;

use super::refused;
use crate::cli::{InLabArgs, Kernel, ListArgs, RunArgs, TargetKind};

/// Commands that are not here.
const ON_LINUX: [&str; 7] = ["doctor", "tune", "xray", "lab", "load", "serve", "validate"];

/// A command that is not here, or nowhere.
pub(crate) fn run(command: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let name = command.first().map(|it| it.to_string_lossy());
    let name = name.unwrap_or_default();
    match ON_LINUX.contains(&&*name) {
        true => needs_linux(&format!("`plumbline {name}`")),
        false => refused(format!("no command `{name}`: --help lists all")),
    }
}

pub(crate) fn is_usage(_: &anyhow::Error) -> bool {
    false
}

pub(crate) fn is_elsewhere(kernel: Kernel) -> bool {
    kernel != Kernel::Host
}

pub(crate) fn run_inside(_: Option<&Path>) -> anyhow::Result<ExitCode> {
    needs_linux("--kernel uml")
}

pub(crate) fn around_this() -> anyhow::Result<Option<ExitCode>> {
    needs_linux("--tune")
}

pub(crate) fn check_beside(_: &RunArgs, _: TargetKind, _: bool) -> anyhow::Result<()> {
    Ok(())
}

pub(crate) fn beside(_: &RunArgs, _: &Session<'_>) -> anyhow::Result<bool> {
    Ok(false)
}

pub(crate) fn target(_: &InLabArgs) -> anyhow::Result<Box<dyn Target>> {
    needs_linux("a lab, so say --target kubernetes or --target hosts")
}

pub(crate) fn list(_: &ListArgs) -> anyhow::Result<ExitCode> {
    needs_linux("the list of networks, which are a lab's")
}

fn needs_linux<T>(what: &str) -> anyhow::Result<T> {
    bail!("needs Linux: {what}")
}
