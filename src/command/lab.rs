//! `plumbline lab up`: a lab that stands, to look around in it.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plumbline_experiment::{Family, Placement};
use plumbline_lab::{Lab, LabOptions};
use plumbline_session::take_down;

use super::{BadUsage, print};
use crate::cli::{LabAction, LabArgs};

pub(crate) fn run(args: &LabArgs) -> anyhow::Result<ExitCode> {
    let LabAction::Up {
        network,
        cni_bin,
        placement,
        family,
    } = &args.action;
    let placement = match placement.as_str() {
        "cross-node" => Placement::CrossNode,
        "same-node" => Placement::SameNode,
        other => {
            return Err(BadUsage(format!(
                "--placement {other}: write cross-node or same-node"
            ))
            .into());
        }
    };
    let family = Family::try_from(*family).map_err(|e| BadUsage(format!("--{e}")))?;

    let options = LabOptions::with_this_program()?.cni_directories(cni_bin);
    let mut lab = Lab::new(options);
    let name = lab
        .find(network)
        .map_err(|e| BadUsage(e.to_string()))?
        .about()
        .name;
    if name != network {
        print(&format!("{network} is the network `{name}`.\n"))?;
    }

    plumbline_sys::namespace::enter_private()?;
    let interrupted = plumbline_sys::signal::interruption()?;
    let standing = lab.stand(network, placement, family)?;
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
    take_down(&mut lab)?;
    Ok(ExitCode::SUCCESS)
}
