//! `plumbline xray`: where the microseconds of a request go.

use std::process::ExitCode;

use plumbline_session::Session;
use plumbline_xray::{LookedAt, NamedScene, XrayOrder, survey};

use super::lab::{after_take_down, lab};
use crate::cli::{PairingArgs, RunArgs, XrayCommand};
use crate::command::print;
use crate::progress::say;
use crate::target::{OfClusters, clusters};

pub(crate) fn run(command: &XrayCommand) -> anyhow::Result<ExitCode> {
    let args = &command.args;
    let order = args.order(command.cluster.given())?;
    let look = |at: LookedAt<'_>| -> anyhow::Result<ExitCode> {
        let interrupted = plumbline_sys::signal::interruption()?;
        print(&args.look(order, at, &command.flags.0, interrupted, &say)?)?;
        Ok(ExitCode::SUCCESS)
    };
    if args.is_in_cluster() {
        let also = OfClusters {
            tracing: true,
            ..OfClusters::default()
        };
        let mut target = clusters(&command.cluster, &PairingArgs::default(), None, also)?;
        return after_take_down(look(LookedAt::Cluster(&mut *target)), &mut *target);
    }
    plumbline_sys::namespace::enter_private()?;
    let mut lab = lab(&[], args.awake)?;
    after_take_down(look(LookedAt::Lab(&mut lab)), &mut lab)
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
