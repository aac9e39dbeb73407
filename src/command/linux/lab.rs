//! `plumbline lab up`: a lab that stands, to look around in it; and what looks at one.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plumbline_experiment::{Scene, flagged_scene};
use plumbline_harness::Target;
use plumbline_lab::{Lab, LabOptions, PathFault, StandingNetwork};
use plumbline_session::{take_down, with_causes};

use crate::cli::{InLabArgs, LabAction, LabArgs};
use crate::command::{BadUsage, print};

pub(crate) fn run(args: &LabArgs) -> anyhow::Result<ExitCode> {
    let LabAction::Up {
        network,
        fault,
        cni_bin,
        flags,
    } = &args.action;
    let scene = flagged_scene(network, &flags.0)?;
    on(&scene, cni_bin, *fault, |standing, name| {
        if name != network {
            print(&format!("{network} is the network `{name}`.\n"))?;
        }
        if let Some(fault) = fault {
            print(&format!("Planted: {}.\n", fault.about))?;
        }
        let interrupted = plumbline_sys::signal::interruption()?;
        for entrance in standing.entrances() {
            let address = entrance.address.map(|a| a.to_string()).unwrap_or_default();
            print(&format!(
                "{:<7} {address:<15} {}\n",
                entrance.name, entrance.command
            ))?;
        }
        print("Ctrl-C takes it down.\n")?;
        while !interrupted.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// A lab as flags of a run have it. To be called while this process has no thread: only then
/// can it enter a user namespace.
pub(crate) fn target(args: &InLabArgs) -> anyhow::Result<Box<dyn Target>> {
    plumbline_sys::namespace::enter_private()?;
    Ok(Box::new(lab(&args.cni_bin, args.awake)?))
}

pub(super) fn lab(cni_bin: &[PathBuf], awake: bool) -> anyhow::Result<Lab> {
    let mut options = LabOptions::with_this_program()?.cni_directories(cni_bin);
    options.awake = awake;
    Ok(Lab::new(options))
}

/// What was done in a lab or a cluster, after it has been taken down. Neither error hides the
/// other.
pub(super) fn after_take_down<T>(
    done: anyhow::Result<T>,
    lab: &mut dyn Target,
) -> anyhow::Result<T> {
    match (done, take_down(lab)) {
        (done, Ok(())) => done,
        (Ok(_), Err(left)) => Err(left.into()),
        (Err(error), Err(left)) => Err(anyhow::anyhow!("{}; and {left}", with_causes(&*error))),
    }
}

/// Has a network stand, with a fault on it where one is to be planted, while something is
/// done with it, which is told its own name. To be called while this process has no thread.
pub(super) fn on<T>(
    scene: &Scene,
    cni_bin: &[PathBuf],
    fault: Option<&PathFault>,
    work: impl FnOnce(&StandingNetwork, &str) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut lab = lab(cni_bin, false)?;
    let found = lab.find(&scene.network);
    let name = found.map_err(|e| BadUsage(e.to_string()))?.about().name;

    plumbline_sys::namespace::enter_private()?;
    let standing = lab.stand_as(scene)?;
    if let Some(fault) = fault {
        standing.plant(fault)?;
    }
    let done = work(standing, name)?;
    take_down(&mut lab)?;
    Ok(done)
}
