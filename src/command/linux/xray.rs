//! `plumbline xray`: where the microseconds of a request go.

use std::process::ExitCode;

use anyhow::Context as _;
use plumbline_experiment::{Asked, Family, Scene, flagged_scene};
use plumbline_harness::Target as _;
use plumbline_lab::{Lab, LabOptions};
use plumbline_report::warning;
use plumbline_xray::survey;

use super::lab::after_take_down;
use crate::cli::XrayCommand;
use crate::command::{BadUsage, print, print_json};
use crate::progress::say;

pub(crate) fn run(command: &XrayCommand) -> anyhow::Result<ExitCode> {
    let args = &command.args;
    let order = args.order()?;
    plumbline_sys::namespace::enter_private()?;
    let interrupted = plumbline_sys::signal::interruption()?;
    let mut options = LabOptions::with_this_program()?;
    options.awake = args.awake;
    let mut lab = Lab::new(options);
    let scenes = scenes(command, &mut lab)?;
    let found = survey(order, &scenes, &mut lab, interrupted, &say);
    let shown = found.map_err(anyhow::Error::from).and_then(|found| {
        if let Some(file) = &args.html {
            std::fs::write(file, found.to_html()?)
                .with_context(|| format!("write {}", file.display()))?;
        }
        if args.json {
            print_json(&found.to_json())?;
        } else {
            print(&found.to_text())?;
        }
        Ok(ExitCode::SUCCESS)
    });
    after_take_down(shown, &mut lab)
}

/// The scenes of the networks that were named, each as the flags describe it.
fn scenes(command: &XrayCommand, lab: &mut Lab) -> anyhow::Result<Vec<Scene>> {
    let mut scenes = Vec::new();
    let mut said = Vec::new();
    for word in &command.args.network {
        let found = lab.scenes(&Asked::network(word), &[Family::V4], &mut said);
        for scene in found.map_err(BadUsage)? {
            scenes.push(flagged_scene(&scene.network, &command.flags.0)?);
        }
    }
    for warning in &said {
        say(&warning::text(warning));
    }
    Ok(scenes)
}
