//! `plumbline image`, `cleanup` and `manifest`: what clusters need besides runs.

use std::fs::File;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use plumbline_kubernetes::{
    Chosen, Leftovers, NODES_ROLE, ROLE, TRACER, TUNER, choose, image as archive,
};
use plumbline_record::write_atomically;

use super::print;
use crate::cli::{CleanupArgs, ImageArgs, ManifestArgs};
use crate::progress::say;

/// Writes the image, and says how to go on.
pub(crate) fn image(args: &ImageArgs) -> anyhow::Result<ExitCode> {
    let program = match &args.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().context("this program cannot be found")?,
    };
    let mut source =
        File::open(&program).with_context(|| format!("{} cannot be read", program.display()))?;
    let reference = args
        .reference
        .clone()
        .unwrap_or_else(archive::local_reference);
    let mut image = Vec::new();
    let written = archive::write(&mut source, &reference, &mut image)
        .with_context(|| format!("no image of {} was made", program.display()))?;
    write_atomically(&args.output, &image)?;
    print(&format!("{} {}\n", written.reference, written.digest))?;
    say(&format!(
        "{} is for {}; `plumbline image --help` says how to load it into nodes",
        args.output.display(),
        written.architecture
    ));
    Ok(ExitCode::SUCCESS)
}

/// Shows what killed runs left, and removes it with `--yes`.
pub(crate) fn cleanup(args: &CleanupArgs) -> anyhow::Result<ExitCode> {
    let interrupted = plumbline_sys::signal::interruption()?;
    let context = args.context.as_deref();
    let found = Leftovers::find(context, args.namespace.as_deref(), interrupted)?;
    if found.left.is_empty() {
        say("nothing of Plumbline's is in this cluster");
        return Ok(ExitCode::SUCCESS);
    }
    for left in &found.left {
        print(&format!("{left}\n"))?;
    }
    let chosen = choose(
        &found.left,
        match (&args.runs[..], args.all) {
            (_, true) => Chosen::All,
            ([], false) => Chosen::Own,
            (names, false) => Chosen::Named(names),
        },
    )?;
    if chosen.is_empty() {
        say(
            "nothing was removed: none of these is yours and has ended; name one, or say \
             --all for what others left",
        );
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes {
        let names: Vec<&str> = chosen.iter().map(|it| it.name()).collect();
        say(&format!(
            "nothing was removed; with --yes too: {}",
            names.join(", ")
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let errors = found.remove(&chosen);
    if !errors.is_empty() {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        bail!("not everything could be removed: {}", all.join("; "));
    }
    say("removed");
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn manifest(args: &ManifestArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        crate::cli::ManifestKind::Role => print(ROLE)?,
        crate::cli::ManifestKind::Nodes => print(NODES_ROLE)?,
        crate::cli::ManifestKind::Tracing => print(TRACER)?,
        crate::cli::ManifestKind::Tuning => print(TUNER)?,
    }
    Ok(ExitCode::SUCCESS)
}
