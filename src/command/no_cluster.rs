//! The commands about clusters of a program that was built without them.

use std::process::ExitCode;

use super::BadUsage;
use crate::cli::{CleanupArgs, ImageArgs, ManifestArgs};

fn none() -> anyhow::Result<ExitCode> {
    Err(BadUsage(
        "this program was built without clusters; build it with --features kubernetes".to_owned(),
    )
    .into())
}

pub(crate) fn image(_: &ImageArgs) -> anyhow::Result<ExitCode> {
    none()
}

pub(crate) fn cleanup(_: &CleanupArgs) -> anyhow::Result<ExitCode> {
    none()
}

pub(crate) fn manifest(_: &ManifestArgs) -> anyhow::Result<ExitCode> {
    none()
}
