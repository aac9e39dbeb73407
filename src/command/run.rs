//! `plumbline run`: an experiment from file to report.

use std::path::Path;
use std::process::ExitCode;

use plumbline_experiment::{Experiment, ready_made};
use plumbline_record::{GuestLock, RunDirectory, write_atomically};
use plumbline_report::{Summary, html, json, terminal};
use plumbline_session::{RunOptions, Session};

use super::{BadUsage, kernel, print, report};
use crate::cli::{self, RunArgs, TargetKind};
use crate::progress::{self, Reporter};
use crate::target;

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let experiment = match &args.resume {
        None => Some(experiment(args)?),
        Some(path) => recorded(path)?,
    };
    let kind = target::kind(&args.target, experiment.as_ref())?;
    check_flags(args, kind, experiment.as_ref())?;
    let kernel = args.target.lab.kernel;
    if kernel::is_elsewhere(kernel) {
        // The locks of a program inside are not seen outside.
        let _held = match &args.resume {
            Some(run) => GuestLock::on_run(run)?,
            None => GuestLock::on_new_run_below(&args.out)?,
        };
        let writes = args.resume.as_ref().unwrap_or(&args.out);
        return kernel::run_inside(Some(writes));
    }
    let mut target = target::pick(kind, args, experiment.as_ref())?;
    let order = RunOptions {
        out: &args.out,
        command: std::env::args().collect(),
        anonymise: args.anonymise,
        layout: args.target.pairing.layout(),
        across_environments: args.across_environments,
        mix_builds: args.mix_builds,
        interrupted: plumbline_sys::signal::interruption()?,
    };
    let mut progress = Reporter::new();
    let mut session = match (&args.resume, experiment) {
        (Some(path), _) => Session::resume(path, &mut *target, &order)?,
        (None, Some(experiment)) => {
            Session::begin(experiment, &mut *target, &order, &mut progress)?
        }
        (None, None) => unreachable!("clap gives an experiment its default"),
    };
    let conducted = session.conduct(&mut progress);
    progress.close();
    // Whatever went wrong, show what there is; then report the first error.
    let summary = Summary::new(session.run(), session.trials());
    let unfinished = conducted.is_err() || summary.is_cut_off();
    let shown = show(args, &session, &summary, unfinished);
    let ending = conducted?;
    shown?;
    let complete = !ending.interrupted && summary.has_results();
    Ok(ExitCode::from(if complete { 0 } else { 2 }))
}

/// The experiment that a run was started with, for what it says about the target:
/// what flags added is in the plan.
fn recorded(path: &Path) -> anyhow::Result<Option<Experiment>> {
    let (run, _) = RunDirectory::read(path)?;
    let parse = |text: String| Experiment::parse(&text, "the experiment of the run");
    Ok(run.experiment_text.map(parse).transpose()?)
}

/// Refuses flags that would have no effect.
fn check_flags(
    args: &RunArgs,
    kind: TargetKind,
    experiment: Option<&Experiment>,
) -> anyhow::Result<()> {
    let several = args.target.cluster.context.len() > 1 || is_provisioned(args, experiment)?;
    if args.across_environments && args.resume.is_none() && !several {
        return Err(BadUsage(
            "--across-environments: a single target has one environment; the flag goes with --resume, \
             or with several clusters"
                .to_owned(),
        )
        .into());
    }
    let paths = experiment.map_or(Ok(Vec::new()), Experiment::paths)?;
    if kind != TargetKind::Kubernetes && !paths.is_empty() {
        return Err(BadUsage(format!(
            "`path` is a factor of clusters, and the target is {}: leave it out, or say --target \
             kubernetes",
            kind.name()
        ))
        .into());
    }
    Ok(())
}

/// Whether clusters are made for the run.
fn is_provisioned(args: &RunArgs, experiment: Option<&Experiment>) -> anyhow::Result<bool> {
    let commands = experiment.map(Experiment::provision).transpose()?;
    let in_file = commands.is_some_and(|it| it.up.is_some());
    let cluster = &args.target.cluster;
    Ok(cluster.provision.is_some() || in_file && cluster.context.is_empty())
}

/// The experiment with the flags applied. Touches files only.
fn experiment(args: &RunArgs) -> anyhow::Result<Experiment> {
    let (text, name) = match ready_made()
        .iter()
        .find(|(name, _)| *name == args.experiment)
    {
        Some((name, text)) => ((*text).to_owned(), format!("{name}.toml")),
        None => {
            let text = std::fs::read_to_string(&args.experiment).map_err(|error| {
                BadUsage(format!(
                    "`{}` is neither a ready-made experiment (see `plumbline list experiments`) nor a file that can be read: {error}",
                    args.experiment
                ))
            })?;
            (text, args.experiment.clone())
        }
    };
    let mut experiment = Experiment::parse(&text, &name)?;
    for (flag, value) in &args.flags.0 {
        experiment.set_flag(flag, value)?;
    }
    for pair in &args.set {
        experiment.set(pair)?;
    }
    // Host networking was not asked for by name: what comes nearest will do.
    let provisioned = is_provisioned(args, Some(&experiment))?;
    if let Some(word) = args
        .target
        .instead_of_host(experiment.target(), provisioned)
        && !args.flags.has("baseline")
        && experiment.baseline() == "host"
    {
        experiment.set_flag("baseline", word)?;
    }
    experiment.check()?;
    Ok(experiment)
}

/// Writes the page, prints what there is, and says how to go on with a run that is
/// not finished.
fn show(
    args: &RunArgs,
    session: &Session<'_>,
    summary: &Summary,
    unfinished: bool,
) -> anyhow::Result<()> {
    let (directory, run) = (session.directory(), session.run());
    let page = directory.join("report.html");
    let text = html::render(summary, run, session.trials());
    let written = write_atomically(&page, text.as_bytes());
    let text = if args.json {
        json::render(summary)
    } else {
        terminal::render(summary, report::terminal_style())
    };
    let printed = print(&text);
    match &written {
        Ok(()) => progress::say(&format!("\nThe page: {}", page.display())),
        Err(_) => progress::say(&format!("\nThe trials: {}", directory.display())),
    }
    if unfinished && !args.anonymise {
        // The lab is the default.
        let target = &run.provenance.target;
        let (target, flags) = if target == "lab" && !cli::is_plugin() {
            (String::new(), "")
        } else {
            (
                format!(" --target {target}"),
                ", with the target's other flags",
            )
        };
        progress::say(&format!(
            "To go on: {} run{target} --resume {}{flags}",
            cli::typed(),
            directory.display()
        ));
    }
    written?;
    printed
}
