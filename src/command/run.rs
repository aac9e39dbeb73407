//! `plumbline run`: an experiment from file to report.

use std::path::Path;
use std::process::ExitCode;

use plumbline_experiment::Experiment;
use plumbline_gate::Against;
use plumbline_record::{GuestLock, RunDirectory, write_atomically};
use plumbline_report::{Summary, html, json, progress as words, terminal};
use plumbline_session::{RunOptions, Session};

use super::{linux, print, refused, report};
use crate::cli::{self, RunArgs, TargetKind};
use crate::progress::{self, Reporter};
use crate::target::{self, OfClusters};

pub(crate) fn run(args: &RunArgs, against: Against<'_>) -> anyhow::Result<ExitCode> {
    let (experiment, commands) = match &args.resume {
        None => {
            let experiment = experiment(args, against)?;
            let commands = experiment.foreign_commands();
            (Some(experiment), commands)
        }
        Some(path) => recorded(path)?,
    };
    let kind = target::kind(&args.target, experiment.as_ref())?;
    check_flags(args, kind, experiment.as_ref(), against)?;
    check_commands(args, kind, experiment.as_ref(), commands)?;
    let kernel = args.target.lab.kernel;
    if linux::is_elsewhere(kernel) {
        // The locks of a program inside are not seen outside.
        let _held = match &args.resume {
            Some(run) => GuestLock::on_run(run)?,
            None => GuestLock::on_new_run_below(&args.out)?,
        };
        let writes = args.resume.as_ref().unwrap_or(&args.out);
        return linux::run_inside(Some(writes));
    }
    if args.target.lab.tune
        && let Some(code) = linux::around_this()?
    {
        return Ok(code);
    }
    let of_clusters = OfClusters {
        across_environments: args.across_environments,
        logs: match &args.resume {
            Some(directory) => directory.join("provision"),
            // Moved into the run directory when there is one.
            None => args.out.join(format!("provision-{}", std::process::id())),
        },
        ..OfClusters::default()
    };
    let mut target = target::pick(kind, &args.target, experiment.as_ref(), of_clusters)?;
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
    let interrupted = conducted.as_ref().is_ok_and(|it| it.interrupted);
    let judged = against.judge(session.run(), session.trials(), &summary, interrupted);
    let text = match judged.text(args.json) {
        // Exit code and verdict would contradict each other.
        Some(_) if conducted.is_err() => String::new(),
        Some(text) => text,
        None if args.json => json::render(&summary),
        None => terminal::render(&summary, report::terminal_style()),
    };
    let is_whole = conducted.is_ok() && !interrupted && !summary.is_cut_off();
    let to_go_on = (!is_whole).then(|| against.command());
    let shown = show(args, &session, &summary, (&text, to_go_on));
    let left = conducted?.left_behind.map_or(Ok(()), |it| Err(it.into()));
    let mut after = vec![shown, left];
    for (file, text) in judged.files() {
        after.push(write_atomically(file, text.as_bytes()).map_err(Into::into));
    }
    judged.lines.iter().for_each(|line| progress::say(line));
    if !interrupted {
        after.push(look_beside(args, &session, &summary));
    }
    let failed: Vec<_> = after.into_iter().filter_map(Result::err).collect();
    failed.iter().for_each(progress::say_error);
    let code = match judged.exit_code(&summary) {
        0 if !failed.is_empty() => 2,
        code => code,
    };
    Ok(ExitCode::from(code))
}

/// A command that somebody else may have chosen, and its key.
type NamedCommand = (&'static str, String);

/// The experiment that a run was started with, for what it says about the target:
/// what flags added is in the plan, and so are the commands.
fn recorded(path: &Path) -> anyhow::Result<(Option<Experiment>, Vec<NamedCommand>)> {
    let (run, _) = RunDirectory::read(path)?;
    let parse = |text: String| Experiment::parse(&text, "the experiment of the run");
    let experiment = run.experiment_text.map(parse).transpose()?;
    Ok((experiment, run.plan.foreign_commands()))
}

/// Refuses commands that were not typed: a file, or a run to resume, may come from
/// somebody else.
fn check_commands(
    args: &RunArgs,
    kind: TargetKind,
    experiment: Option<&Experiment>,
    mut commands: Vec<NamedCommand>,
) -> anyhow::Result<()> {
    let cluster = &args.target.cluster;
    if let (TargetKind::Kubernetes, Some(experiment)) = (kind, experiment) {
        let typed = [cluster.provision.is_some(), cluster.unprovision.is_some()];
        let stands = !cluster.context.is_empty();
        commands.extend(experiment.provision()?.used(stands, typed));
    }
    if commands.is_empty() || args.allow_commands {
        return Ok(());
    }
    let named = commands.iter().map(|(key, it)| format!("\n  {key} = {it}"));
    let named: String = named.collect();
    refused(format!(
        "the experiment names commands that would be run on this machine:{named}\nread them, and \
         say --allow-commands to have them run"
    ))
}

/// Refuses flags that would have no effect.
fn check_flags(
    args: &RunArgs,
    kind: TargetKind,
    experiment: Option<&Experiment>,
    against: Against<'_>,
) -> anyhow::Result<()> {
    let is_in_guest = linux::is_elsewhere(args.target.lab.kernel);
    if let Against::Base(gate) = against
        && let Some(why) = gate.refusal(args.resume.is_some(), is_in_guest)
    {
        return refused(why);
    }
    let several = args.target.cluster.context.len() > 1 || is_provisioned(args, experiment)?;
    if args.across_environments && args.resume.is_none() && !several {
        return refused(
            "--across-environments: a single target has one environment; the flag goes with --resume, \
             or with several clusters",
        );
    }
    linux::check_beside(args, kind, several)?;
    let paths = experiment.map_or(Ok(Vec::new()), Experiment::paths)?;
    if kind != TargetKind::Kubernetes && !paths.is_empty() {
        return refused(format!(
            "`path` is a factor of clusters, and the target is {}: leave it out, or say --target \
             kubernetes",
            kind.name()
        ));
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
fn experiment(args: &RunArgs, against: Against<'_>) -> anyhow::Result<Experiment> {
    let mut experiment = Experiment::named(&args.experiment)?;
    for (flag, value) in &args.flags.0 {
        experiment.set_flag(flag, value)?;
    }
    for pair in &args.set {
        experiment.set(pair)?;
    }
    experiment.compare_survivors()?;
    if let Against::Base(gate) = against {
        gate.ask(
            &mut experiment,
            ["network", "baseline"].map(|it| args.flags.get(it)),
        )?;
    }
    // Host networking was not asked for by name: what comes nearest will do.
    let provisioned = is_provisioned(args, Some(&experiment))?;
    if let Some(word) = args
        .target
        .instead_of_host(experiment.target(), provisioned)
        && args.flags.get("baseline").is_none()
        && !matches!(against, Against::Base(_))
        && experiment.baseline() == "host"
    {
        experiment.set_flag("baseline", word)?;
    }
    experiment.check()?;
    Ok(experiment)
}

/// Shows the hops of the run's networks where that was asked for, and links them.
fn look_beside(args: &RunArgs, session: &Session<'_>, summary: &Summary) -> anyhow::Result<()> {
    if linux::beside(args, session)? {
        let (directory, run) = (session.directory(), session.run());
        html::write_page(directory, summary, run, session.trials())?;
    }
    Ok(())
}

/// Writes the page, prints the text, and says by which command a run that is not finished
/// goes on.
fn show(
    args: &RunArgs,
    session: &Session<'_>,
    summary: &Summary,
    (shown, to_go_on): (&str, Option<String>),
) -> anyhow::Result<()> {
    let (directory, run) = (session.directory(), session.run());
    let written = html::write_page(directory, summary, run, session.trials());
    let printed = print(shown);
    match &written {
        Ok(page) => progress::say(&format!("\nThe page: {}", page.display())),
        Err(_) => progress::say(&format!("\nThe trials: {}", directory.display())),
    }
    if let Some(command) = to_go_on
        && !args.anonymise
    {
        let target = &*run.provenance.target;
        // The lab is the default.
        let target = Some(target).filter(|it| *it != "lab" || cli::is_plugin());
        let command = format!("{} {command}", cli::typed());
        progress::say(&words::to_go_on(&command, target, run, directory));
    }
    written?;
    printed
}
