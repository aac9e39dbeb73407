//! `plumbline xray`: where the microseconds of a request go.

use std::process::ExitCode;

use plumbline_session::Session;
use plumbline_xray::{NamedScene, XrayOrder, survey};

use super::lab::{after_take_down, lab};
use crate::cli::{RunArgs, XrayCommand};
use crate::command::{print, print_json};
use crate::progress::say;

pub(crate) fn run(command: &XrayCommand) -> anyhow::Result<ExitCode> {
    let args = &command.args;
    let order = args.order()?;
    plumbline_sys::namespace::enter_private()?;
    let interrupted = plumbline_sys::signal::interruption()?;
    let mut lab = lab(&[], args.awake)?;
    let subjects = NamedScene::named(&args.network, &command.flags.0, &mut lab, &say)?;
    let found = survey(order, &subjects, &mut lab, interrupted, &say);
    let shown = found.map_err(anyhow::Error::from).and_then(|found| {
        if let Some(file) = &args.html {
            found.write_page(file)?;
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

/// Looks into the networks of a run that has ended, and keeps what it finds beside the trials.
pub(crate) fn beside(args: &RunArgs, session: &Session<'_>) -> anyhow::Result<()> {
    let interrupted = plumbline_sys::signal::interruption()?;
    let subjects = NamedScene::of_plan(&session.run().plan);
    let asked = &args.target.lab;
    let mut lab = lab(&asked.cni_bin, asked.awake)?;
    let found = survey(XrayOrder::default(), &subjects, &mut lab, interrupted, &say);
    let kept = found.map_err(anyhow::Error::from).and_then(|found| {
        if !args.json {
            print(&format!("\n{}", found.to_text()))?;
        }
        let page = found.keep(session.directory())?;
        say(&format!("\nThe hops: {}", page.display()));
        Ok(())
    });
    after_take_down(kept, &mut lab)
}
