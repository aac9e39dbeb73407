//! `plumbline validate`: our engine against the tools that a sceptic trusts.
//!
//! Each comparison alternates theirs and ours on one standing path of the lab,
//! every run with fresh processes, and judges the pairs as `run` judges its
//! blocks. Both sides are watched from outside in the same way: CPU is what
//! the kernel charged the process from its start to its end.

mod bouts;
mod ours;
mod peers;
mod point;
mod stage;
mod table;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_experiment::{Family, Placement};
use plumbline_lab::{Lab, LabOptions};

use self::bouts::{Bout, Reading};
use self::point::Outcome;
use self::stage::Stage;
use super::{BadUsage, print, print_json};
use crate::cli::ValidateArgs;
use crate::progress;

/// What came of one bout: its readings, theirs and ours, pair by pair.
struct Fought {
    bout: &'static Bout,
    theirs: Vec<Reading>,
    ours: Vec<Reading>,
    /// Why it could not be finished.
    error: Option<String>,
}

pub(crate) fn run(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    let chosen = chosen(args)?;
    plumbline_sys::namespace::enter_private()?;
    let interrupted = plumbline_sys::signal::interruption()?;
    let mut lab = Lab::new(LabOptions::with_this_program()?);
    let standing = lab.stand("host", Placement::CrossNode, Family::V4)?;
    let stage = Stage::new(standing, args.seconds)?;
    if let Some(warning) = stage.shared_cpu() {
        progress::say(&warning);
    }
    let mut fought = Vec::new();
    let mut missing = Vec::new();
    for bout in chosen {
        if let Some(program) = bout.needs.iter().find(|name| !stage.has(name)) {
            missing.push((bout, *program));
        } else if !interrupted.load(Ordering::SeqCst) {
            fought.push(fight(&stage, bout, args.pairs, interrupted));
        }
    }
    drop(stage);
    let outcomes: Vec<Outcome> = fought.iter().flat_map(point::judge).collect();
    if args.json {
        print_json(&table::to_json(&outcomes, &missing))?;
    } else {
        print(&table::to_text(&outcomes, &missing, args.figures))?;
    }
    super::run::take_down(&mut lab)?;
    let failed = fought.iter().any(|it| it.error.is_some());
    Ok(ExitCode::from(if failed || outcomes.is_empty() {
        2
    } else {
        0
    }))
}

fn chosen(args: &ValidateArgs) -> Result<Vec<&'static Bout>, BadUsage> {
    if args.pairs == 0 || args.seconds == 0 {
        let text = "--pairs and --seconds must be at least 1";
        return Err(BadUsage(text.to_owned()));
    }
    let named =
        |bout: &&Bout| args.only.is_empty() || args.only.iter().any(|name| name == bout.name);
    for name in &args.only {
        if !bouts::all().any(|bout| bout.name == name) {
            let all: Vec<&str> = bouts::all().map(|bout| bout.name).collect();
            return Err(BadUsage(format!(
                "--only {name}: there is no such comparison; there are {}",
                all.join(", ")
            )));
        }
    }
    Ok(bouts::all().filter(named).collect())
}

/// Runs the pairs of one bout, first one side ahead, then the other, so that
/// neither always finds the machine as the other left it (C-1).
fn fight(stage: &Stage, bout: &'static Bout, pairs: u32, stop: &AtomicBool) -> Fought {
    let mut fought = Fought {
        bout,
        theirs: Vec::new(),
        ours: Vec::new(),
        error: None,
    };
    for pair in 0..pairs {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        progress::say(&format!("{}: pair {} of {pairs}", bout.name, pair + 1));
        match one_pair(stage, bout, pair % 2 == 1) {
            Ok((theirs, ours)) => {
                fought.theirs.push(theirs);
                fought.ours.push(ours);
            }
            Err(error) => {
                progress::say(&format!("{}: {error:#}", bout.name));
                fought.error = Some(format!("{error:#}"));
                break;
            }
        }
    }
    fought
}

fn one_pair(stage: &Stage, bout: &Bout, ours_first: bool) -> anyhow::Result<(Reading, Reading)> {
    if ours_first {
        let ours = (bout.ours)(stage)?;
        return Ok(((bout.theirs)(stage)?, ours));
    }
    let theirs = (bout.theirs)(stage)?;
    Ok((theirs, (bout.ours)(stage)?))
}
