//! `plumbline xray`: where the microseconds of a request go.

use std::path::PathBuf;
use std::process::ExitCode;

use plumbline_session::Session;
use plumbline_sys::signal::interruption;
use plumbline_xray::LookedAt;

use super::lab::{after_take_down, lab};
use crate::cli::{ClusterArgs, PairingArgs, RunArgs, TargetKind, XrayCommand};
use crate::command::print;
use crate::progress::say;
use crate::target::{OfClusters, clusters};

pub(crate) fn run(command: &XrayCommand) -> anyhow::Result<ExitCode> {
    let args = &command.args;
    let order = args.order(command.cluster.given())?;
    let look = |at: LookedAt<'_>| -> anyhow::Result<ExitCode> {
        print(&args.look(order, at, &command.flags.0, interruption()?, &say)?)?;
        Ok(ExitCode::SUCCESS)
    };
    if args.is_in_cluster() {
        return in_cluster(&command.cluster, look);
    }
    plumbline_sys::namespace::enter_private()?;
    in_lab(&command.cni_bin, args.awake, look)
}

fn in_cluster<T>(
    args: &ClusterArgs,
    look: impl FnOnce(LookedAt<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let also = OfClusters {
        tracing: true,
        ..OfClusters::default()
    };
    let mut target = clusters(args, &PairingArgs::default(), None, also)?;
    after_take_down(look(LookedAt::Cluster(&mut *target)), &mut *target)
}

/// To be called in namespaces of this process's own.
fn in_lab<T>(
    cni_bin: &[PathBuf],
    awake: bool,
    look: impl FnOnce(LookedAt<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut lab = lab(cni_bin, awake)?;
    after_take_down(look(LookedAt::Lab(&mut lab)), &mut lab)
}

/// Refuses a run that is to be looked into and could not be; `several` is whether it is of
/// several clusters.
pub(crate) fn check_beside(args: &RunArgs, kind: TargetKind, several: bool) -> anyhow::Result<()> {
    let is_many = several || args.target.pairing.given().is_some();
    Ok(args.beside.check(kind.name(), is_many)?)
}

/// Looks into the networks of a run that has ended where that was asked for, and keeps what it
/// finds beside the trials; gives whether.
pub(crate) fn beside(args: &RunArgs, session: &Session<'_>) -> anyhow::Result<bool> {
    if !args.beside.xray {
        return Ok(false);
    }
    let run = session.run();
    let look = |at: LookedAt<'_>| -> anyhow::Result<bool> {
        let (text, page) = at.beside((&run.plan, session.directory()), interruption()?, &say)?;
        if !args.json {
            print(&format!("\n{text}"))?;
        }
        say(&format!("\nThe hops: {}", page.display()));
        Ok(true)
    };
    let asked = &args.target;
    match &*run.provenance.target {
        "lab" => in_lab(&asked.lab.cni_bin, asked.lab.awake, look),
        _ => in_cluster(&asked.cluster, look),
    }
}
