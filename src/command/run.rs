//! `plumbline run`: an experiment from file to report.

use std::cell::RefCell;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{
    Asked, Experiment, Flag, Layout, Link, Pairing, Plan, Treatment, TreatmentId, ready_made,
};
use plumbline_harness::{Cpus, Demand, Settings, Target, Thresholds, conduct, refuse};
use plumbline_record::{
    FORMAT_VERSION, Provenance, Run, RunDirectory, Trial, TrialStatus, Warning, write_atomically,
};
use plumbline_report::compare::{CompareError, differences};
use plumbline_report::{Summary, html, json, terminal};

use super::undo::{take_down, with_undoing};
use super::{BadUsage, kernel, maxima, print, report};
use crate::cli::{self, RunArgs, TargetKind};
use crate::progress::{self, Reporter};
use crate::target as chosen;

/// What a run has after its preparation.
struct Prepared {
    directory: RunDirectory,
    run: Run,
    done: Vec<Trial>,
}

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let experiment = match &args.resume {
        None => Some(experiment(args)?),
        Some(path) => recorded(path)?,
    };
    let kind = chosen::kind(&args.target, experiment.as_ref())?;
    check_flags(args, kind, experiment.as_ref())?;
    let writes = args.resume.as_ref().unwrap_or(&args.out);
    if let Some(code) = kernel::elsewhere(args.target.lab.kernel, Some(writes))? {
        return Ok(code);
    }
    let mut target = chosen::pick(kind, args, experiment.as_ref())?;
    let target = &mut *target;
    let interrupted = plumbline_sys::signal::interruption()?;

    let prepared = match (&args.resume, experiment) {
        (Some(path), _) => resume(args, path, target),
        (None, Some(experiment)) => prepare(args, experiment, target, interrupted),
        (None, None) => unreachable!("clap gives an experiment its default"),
    };
    let Prepared {
        mut directory,
        run,
        mut done,
    } = match prepared {
        Ok(prepared) => prepared,
        // What stands already goes too.
        Err(error) => return with_undoing(Err(error), take_down(target)),
    };
    if let Err(error) = target.run_directory(directory.path()) {
        return with_undoing(Err(error.into()), take_down(target));
    }
    let plan = &run.plan;
    if let Some(pairing) = &plan.pairing {
        announce(plan, pairing, target);
    }
    let mut progress = Reporter::new(plan.blocks.len());
    let earlier = done.clone();
    let settings = settings(target.cpus());
    let mut keep = |trial: &Trial| {
        directory.append(trial)?;
        done.push(trial.clone());
        Ok(())
    };
    let conducted = conduct(
        plan,
        &earlier,
        target,
        &mut keep,
        &mut progress,
        &settings,
        interrupted,
    );
    progress.close();
    // Whatever went wrong, what there is gets shown and everything is undone;
    // only then is the first error told.
    let torn_down = take_down(target);
    let summary = Summary::new(&run, &done);
    let shown = finish(args, &directory, &run, &done, &summary);
    let outcome = with_undoing(conducted.map_err(anyhow::Error::from), torn_down)?;
    shown?;
    let complete = !outcome.interrupted && summary.has_results();
    Ok(if complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
}

/// The experiment that a run was started with, where it still says something of
/// the target: what was typed on top is in the plan.
fn recorded(path: &Path) -> anyhow::Result<Option<Experiment>> {
    let (run, _) = RunDirectory::read(path)?;
    let parse = |text: String| Experiment::parse(&text, "the experiment of the run");
    Ok(run.experiment_text.map(parse).transpose()?)
}

/// Refuses flags that would say nothing here.
fn check_flags(
    args: &RunArgs,
    kind: TargetKind,
    experiment: Option<&Experiment>,
) -> anyhow::Result<()> {
    let several = args.target.cluster.context.len() > 1 || is_provisioned(args, experiment)?;
    if args.across_environments && args.resume.is_none() && !several {
        return Err(BadUsage(
            "--across-environments: one place has one environment; the flag goes with --resume, \
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

/// The experiment with what was typed on top. Touches files only.
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
    for (flag, value) in flags(args) {
        experiment.set_flag(flag, &value)?;
    }
    for (factor, levels) in args.factors.given() {
        experiment.set_factor_flag(factor, levels)?;
    }
    for pair in &args.set {
        experiment.set(pair)?;
    }
    // Nobody asked for host networking by name: what is nearest to it will do.
    let provisioned = is_provisioned(args, Some(&experiment))?;
    if let Some(word) = args
        .target
        .instead_of_host(experiment.target(), provisioned)
        && args.baseline.is_none()
        && experiment.baseline() == "host"
    {
        experiment.set_flag(Flag::Baseline, word)?;
    }
    experiment.check()?;
    Ok(experiment)
}

/// Flags are settings of the experiment with shorter names, in the order in
/// which they have to be applied.
fn flags(args: &RunArgs) -> Vec<(Flag, String)> {
    let list = |values: &[String]| (!values.is_empty()).then(|| values.join(","));
    let value = |flag| match flag {
        Flag::Workload => list(&args.workload),
        Flag::Baseline => args.baseline.clone(),
        Flag::Rate => args.rate.clone(),
        Flag::Connections => args.connections.clone(),
        Flag::RequestSize => args.request_size.clone(),
        Flag::ResponseSize => args.response_size.clone(),
        Flag::Wait => args.wait.clone(),
        Flag::Duration => args.duration.clone(),
        Flag::Blocks => args.blocks.clone(),
        Flag::Seed => args.seed.map(|seed| seed.to_string()),
    };
    Flag::ALL
        .into_iter()
        .filter_map(|flag| Some((flag, value(flag)?)))
        .collect()
}

/// Resolves the plan, builds every path once, and only then makes the run directory.
fn prepare(
    args: &RunArgs,
    experiment: Experiment,
    target: &mut dyn Target,
    interrupted: &AtomicBool,
) -> anyhow::Result<Prepared> {
    let text = experiment.text().to_owned();
    let name = experiment.name().to_owned();
    let families = experiment.families()?;
    let said = RefCell::new(Vec::new());
    let seed = random_seed();
    let mut draft = {
        let target = RefCell::new(&mut *target);
        let scenes = |asked: &Asked<'_>| {
            let mut target = target.borrow_mut();
            target.scenes(asked, &families, &mut said.borrow_mut())
        };
        experiment.draft(seed, &scenes)?
    };
    if target.keeps_sites_together() {
        if !draft.sought().is_empty() {
            return Err(BadUsage(
                "a load that is a share of the maximum needs networks that stand before the \
                 first trial; where clusters are made for the run, give a --rate"
                    .to_owned(),
            )
            .into());
        }
        draft = draft.keep_together(&|treatment| target.site_of(treatment));
    }
    let first = draft.blocks().first().cloned().unwrap_or_default();
    build(draft.link(), draft.treatments(), &first, target)?;
    let settings = settings(target.cpus());
    let floor = target.floor(settings.cpus.clone(), interrupted)?;
    let kept_in = (args.out.as_path(), name.as_str());
    let maxima = maxima::measure(&draft, target, &settings, interrupted, kept_in)?;
    let share = draft.window_share();
    let mut plan = draft.settle(&maxima.rates())?;
    plan.pairing = pairing(args, target);
    let mut warnings = target.warnings();
    warnings.extend(said.into_inner());
    warnings.extend(maxima.warnings());
    warnings.extend((share < 1.0).then_some(Warning::ShorterWindows { share }));
    let run = Run {
        format: FORMAT_VERSION,
        provenance: Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: std::env::args().collect(),
            started: now(),
            target: target.name().to_owned(),
            floor,
        },
        fingerprint: target.fingerprint()?,
        experiment_text: Some(text),
        maxima: maxima.found,
        warnings,
        plan,
    };
    let name = &run.plan.experiment;
    let directory = RunDirectory::create_with(&args.out, name, &run, &maxima.searches)?;
    Ok(Prepared {
        directory,
        run,
        done: Vec::new(),
    })
}

/// Goes on with a run, in the environment that it was started in (C-13).
fn resume(args: &RunArgs, path: &Path, target: &mut dyn Target) -> anyhow::Result<Prepared> {
    let (run, done, directory) = RunDirectory::open(path)?;
    let recorded = &run.provenance.target;
    if recorded != target.name() {
        return Err(BadUsage(format!(
            "--resume {}: the run was started with --target {recorded}; give the same flags of the \
             target again, as in `{}`",
            path.display(),
            run.provenance.command.join(" ")
        ))
        .into());
    }
    let order = pending(&run.plan, &done);
    build(run.plan.link, &run.plan.treatments, &order, target)?;
    if pairing(args, target) != run.plan.pairing {
        return Err(BadUsage(format!(
            "--resume {}: the run was of other pairs of nodes; give the same flags again, as in \
             `{}`, and name the nodes where they have changed",
            path.display(),
            run.provenance.command.join(" ")
        ))
        .into());
    }
    let differences = differences(1, &run.fingerprint, &target.fingerprint()?);
    if !differences.is_empty() && !args.across_environments {
        return Err(CompareError::DifferentEnvironments(differences).into());
    }
    Ok(Prepared {
        directory,
        run,
        done,
    })
}

/// What is left of the first block that is not complete, in its order.
fn pending(plan: &Plan, done: &[Trial]) -> Vec<TreatmentId> {
    let is_done = |block: usize, id: TreatmentId| {
        let counts = |it: &Trial| matches!(it.status, TrialStatus::Valid);
        done.iter()
            .any(|it| it.block as usize == block && it.treatment == id && counts(it))
    };
    let blocks = plan.blocks.iter().enumerate();
    let open = blocks.map(|(block, order)| {
        let left = order.iter().copied().filter(|&id| !is_done(block, id));
        left.collect::<Vec<_>>()
    });
    open.into_iter()
        .find(|left| !left.is_empty())
        .unwrap_or_default()
}

fn build(
    link: Link,
    treatments: &[Treatment],
    first: &[TreatmentId],
    target: &mut dyn Target,
) -> anyhow::Result<()> {
    let demand = Demand {
        treatments,
        first,
        link,
    };
    // What a target can never have was asked for by mistake.
    refuse(target, &demand).map_err(|error| BadUsage(error.to_string()))?;
    Ok(plumbline_harness::prepare(target, &demand)?)
}

/// What a trial takes beside its phases: agents are started, counters read.
const BESIDE_PHASES: Duration = Duration::from_millis(400);

/// Says how much there is to do: it grows with the square of the nodes.
fn announce(plan: &Plan, pairing: &Pairing, target: &dyn Target) {
    let at_once = !(target.is_one_kernel() && pairing.layout == Layout::Mesh);
    let rounds = if at_once {
        pairing.rounds()
    } else {
        pairing.pairs()
    };
    let estimate = plan.duration_estimate(BESIDE_PHASES) * rounds as u32;
    let how = match (rounds, at_once) {
        (1, _) => "all at once".to_owned(),
        (_, true) => format!("in {rounds} rounds"),
        (_, false) => "one after the other, for they are one kernel".to_owned(),
    };
    let some = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        several => format!("{several} {what}s"),
    };
    progress::say(&format!(
        "{} of {} {how}, {}: about {}",
        some(pairing.pairs(), "pair"),
        some(pairing.nodes.len(), "node"),
        some(plan.blocks.len(), "block"),
        match estimate.as_secs() {
            seconds @ 0..100 => format!("{} s", seconds.max(1)),
            seconds => format!("{} min", seconds.div_ceil(60)),
        }
    ));
}

/// The pairs of nodes that were asked for. Known when the paths stand.
fn pairing(args: &RunArgs, target: &dyn Target) -> Option<Pairing> {
    Some(Pairing {
        layout: args.target.pairing.layout()?,
        nodes: target.nodes(),
    })
}

fn settings(cpus: Cpus) -> Settings {
    Settings {
        cpus,
        thresholds: if plumbline_uml::inside() {
            Thresholds::user_mode()
        } else {
            Thresholds::default()
        },
        idle: Duration::from_millis(200),
        now,
    }
}

/// Writes the page, and prints what there is.
fn finish(
    args: &RunArgs,
    directory: &RunDirectory,
    run: &Run,
    done: &[Trial],
    summary: &Summary,
) -> anyhow::Result<()> {
    let page = directory.path().join("report.html");
    let written = write_atomically(&page, html::render(summary, run, done).as_bytes());
    let text = if args.json {
        json::render(summary)
    } else {
        terminal::render(summary, report::terminal_style())
    };
    let printed = print(&text);
    match &written {
        Ok(()) => progress::say(&format!("\nThe page: {}", page.display())),
        Err(_) => progress::say(&format!("\nThe trials: {}", directory.path().display())),
    }
    if summary.is_cut_off() {
        // The lab is what there is without a word.
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
            directory.path().display()
        ));
    }
    written?;
    printed
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// From the clock: it only has to differ from run to run, and is recorded.
fn random_seed() -> u64 {
    jiff::Timestamp::now().as_nanosecond() as u64
}
