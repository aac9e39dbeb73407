//! `plumbline validate`: our engine beside tools that are widely trusted.

use std::process::ExitCode;

use plumbline_lab::{Lab, LabOptions};
use plumbline_validation::{Comparisons, ValidateArgs, ValidationOptions};

use super::lab::after_take_down;
use crate::command::{BadUsage, print, print_json};
use crate::progress::say;

pub(crate) fn run(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    let order = ValidationOptions::new(&args.only, args.pairs, args.seconds);
    let order = order.map_err(|error| BadUsage(error.to_string()))?;
    plumbline_sys::namespace::enter_private()?;
    let interrupted = plumbline_sys::signal::interruption()?;
    let mut lab = Lab::new(LabOptions::with_this_program()?);
    let compared = order.run(&mut lab, interrupted, &say);
    let shown = compared
        .map_err(anyhow::Error::from)
        .and_then(|comparisons| show(args, &comparisons));
    after_take_down(shown, &mut lab)
}

fn show(args: &ValidateArgs, comparisons: &Comparisons) -> anyhow::Result<ExitCode> {
    if args.json {
        print_json(&comparisons.to_json())?;
    } else {
        print(&comparisons.to_text(args.figures))?;
    }
    if !comparisons.succeeded() {
        return Ok(ExitCode::from(2));
    }
    let missed = comparisons.missed();
    if args.strict && !missed.is_empty() {
        say(&format!("missed: {}", missed.join("; ")));
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}
