//! `plumbline run`: an experiment from file to report.

use std::cell::RefCell;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_engine::EngineError;
use plumbline_experiment::{Experiment, Family, Flag, Link, Treatment, ready_made};
use plumbline_harness::{Settings, Target as _, Thresholds, conduct};
use plumbline_lab::network::USUAL;
use plumbline_lab::{Lab, LabOptions};
use plumbline_record::{
    FORMAT_VERSION, Floor, Provenance, Run, RunDirectory, Trial, Warning, write_atomically,
};
use plumbline_report::compare::{CompareError, differences};
use plumbline_report::{Summary, html, json, terminal};

use super::{BadUsage, kernel, maxima, print, report};
use crate::cli::RunArgs;
use crate::progress::{self, Reporter};

/// What a run has after its preparation.
struct Prepared {
    directory: RunDirectory,
    run: Run,
    done: Vec<Trial>,
}

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let experiment = if args.resume.is_none() {
        Some(experiment(args)?)
    } else {
        None
    };
    let writes = args.resume.as_ref().unwrap_or(&args.out);
    if let Some(code) = kernel::elsewhere(args.kernel, Some(writes))? {
        return Ok(code);
    }
    // Before any thread: a process enters a user namespace alone or not at all.
    plumbline_sys::namespace::enter_private()?;
    let interrupted = plumbline_sys::signal::interruption()?;
    let mut lab = Lab::new(LabOptions::with_this_program()?.cni_directories(&args.cni_bin));

    let Prepared {
        mut directory,
        run,
        mut done,
    } = match (&args.resume, experiment) {
        (Some(path), _) => resume(args, path, &mut lab)?,
        (None, Some(experiment)) => prepare(args, experiment, &mut lab, interrupted)?,
        (None, None) => unreachable!("clap gives an experiment its default"),
    };
    let plan = &run.plan;
    let mut progress = Reporter::new(plan.blocks.len());
    let earlier = done.clone();
    let conducted = conduct(
        plan,
        &earlier,
        &mut lab,
        &mut |trial| {
            directory.append(trial)?;
            done.push(trial.clone());
            Ok(())
        },
        &mut progress,
        &settings(),
        interrupted,
    );
    progress.close();
    // Whatever went wrong, what there is gets shown and everything is undone;
    // only then is the first error told.
    let torn_down = take_down(&mut lab);
    let summary = Summary::new(&run, &done);
    let shown = finish(args, &directory, &run, &done, &summary);
    let outcome = conducted?;
    torn_down?;
    shown?;
    let complete = !outcome.interrupted && summary.has_results();
    Ok(if complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
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
    for pair in &args.set {
        experiment.set(pair)?;
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
        Flag::Network => list(&args.network),
        Flag::Baseline => args.baseline.clone(),
        Flag::Placement => list(&args.placement),
        Flag::Family => list(&args.family),
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
    lab: &mut Lab,
    interrupted: &AtomicBool,
) -> anyhow::Result<Prepared> {
    let text = experiment.text().to_owned();
    let name = experiment.name().to_owned();
    let families = experiment.families()?;
    let said = RefCell::new(Vec::new());
    let seed = random_seed();
    let draft = experiment.draft(seed, &|word| {
        expand(word, &families, &mut said.borrow_mut())
    })?;
    build(draft.link(), draft.treatments(), lab)?;
    let settings = settings();
    let floor = floor(&settings, interrupted)?;
    let kept_in = (args.out.as_path(), name.as_str());
    let maxima = maxima::measure(&draft, lab, seed, &settings, interrupted, kept_in)?;
    let share = draft.window_share();
    let plan = draft.settle(&maxima.rates())?;
    let mut warnings = lab.warnings();
    warnings.extend(said.into_inner());
    warnings.extend(maxima.warnings());
    warnings.extend((share < 1.0).then_some(Warning::ShorterWindows { share }));
    let run = Run {
        format: FORMAT_VERSION,
        provenance: Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: std::env::args().collect(),
            started: now(),
            target: lab.name().to_owned(),
            floor,
        },
        fingerprint: lab.fingerprint()?,
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

/// What the generator measures where there is no network, on the CPUs that the
/// trials will use (L-13).
fn floor(settings: &Settings, interrupted: &AtomicBool) -> Result<Option<Floor>, EngineError> {
    plumbline_engine::floor(&settings.client_cpus, &settings.server_cpus, interrupted)
}

/// Goes on with a run, in the environment that it was started in (C-13).
fn resume(args: &RunArgs, path: &Path, lab: &mut Lab) -> anyhow::Result<Prepared> {
    let (run, done, directory) = RunDirectory::open(path)?;
    build(run.plan.link, &run.plan.treatments, lab)?;
    let differences = differences(1, &run.fingerprint, &lab.fingerprint()?);
    if !differences.is_empty() && !args.across_environments {
        return Err(CompareError::DifferentEnvironments(differences).into());
    }
    Ok(Prepared {
        directory,
        run,
        done,
    })
}

/// Builds every path, so that what cannot be built is an error before the
/// first trial and not in the middle.
fn build(link: Link, treatments: &[Treatment], lab: &mut Lab) -> anyhow::Result<()> {
    lab.use_link(link);
    lab.validate(treatments)?;
    for treatment in treatments {
        lab.path(treatment)?;
    }
    Ok(())
}

/// What a network word stands for. Of `all` and `usual`, those that cannot
/// be built here are left out with a warning; the name of a system is said to
/// be one.
fn expand(word: &str, families: &[Family], said: &mut Vec<Warning>) -> Result<Vec<String>, String> {
    // A file is read when the lab is built.
    if word.starts_with(plumbline_lab::network::cni::PREFIX) {
        return Ok(vec![word.to_owned()]);
    }
    let belongs: fn(&str) -> bool = match word {
        "all" => |_| true,
        "usual" => |name| USUAL.contains(&name),
        _ => {
            let network = plumbline_lab::network::find(word).map_err(|e| e.to_string())?;
            let name = network.about().name.to_owned();
            if word != name {
                said.push(Warning::StandsFor {
                    alias: word.to_owned(),
                    network: name.clone(),
                });
            }
            return Ok(vec![name]);
        }
    };
    let mut names = Vec::new();
    let listed = plumbline_lab::list().map_err(|e| e.to_string())?;
    for listing in listed.into_iter().filter(|one| belongs(one.name)) {
        let network = listing.name.to_owned();
        match listing.needs_for(families) {
            None => names.push(network),
            Some(needs) => said.push(Warning::Unsupported { network, needs }),
        }
    }
    Ok(names)
}

/// The sender and the receiver on CPUs of their own where there are two.
fn settings() -> Settings {
    let cpus = plumbline_sys::cpu::allowed().unwrap_or_default();
    let (client_cpus, server_cpus) = match (cpus.first(), cpus.last()) {
        (Some(&first), Some(&last)) if first != last => (vec![first], vec![last]),
        _ => (Vec::new(), Vec::new()),
    };
    Settings {
        client_cpus,
        server_cpus,
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
        progress::say(&format!(
            "To go on: plumbline run --resume {}",
            directory.path().display()
        ));
    }
    written?;
    printed
}

/// Undoes the lab, and says everything that could not be undone.
pub(crate) fn take_down(lab: &mut Lab) -> anyhow::Result<ExitCode> {
    let errors = lab.teardown();
    if errors.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Err(anyhow::anyhow!(
        "the lab could not be taken down cleanly: {}",
        all.join("; ")
    ))
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// From the clock: it only has to differ from run to run, and is recorded.
fn random_seed() -> u64 {
    jiff::Timestamp::now().as_nanosecond() as u64
}
