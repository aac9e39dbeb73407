//! The flags of a target of hosts.

use plumbline_experiment::Experiment;
use plumbline_harness::{Target, is_harmless};
use plumbline_hosts::{Between, Hosts, HostsArgs, HostsError, HostsOptions, which_hosts};

use crate::cli::PairingArgs;
use crate::command::BadUsage;

/// The target of what was typed. Connects to nothing yet.
pub(super) fn pick(
    args: &HostsArgs,
    pairing: &PairingArgs,
    experiment: Option<&Experiment>,
) -> anyhow::Result<Box<dyn Target>> {
    let usage = |error: HostsError| BadUsage(error.to_string());
    if args.host.is_empty() && args.pair.is_empty() {
        return Err(usage(which_hosts(experiment)?).into());
    }
    let program = match &args.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?,
    };
    let (hosts, named, wires) = (&args.host, &args.pair, &args.address);
    let between = match (pairing.pairs, pairing.mesh) {
        (None, false) => Between::pairs(hosts, named, wires),
        (pairs, _) => Between::many(hosts, named, wires, pairs),
    };
    let hosts = Hosts::new(HostsOptions {
        between: between.map_err(usage)?,
        program,
        ssh_config: args.ssh_config.clone(),
        directory: args.host_directory.clone().unwrap_or_default(),
        may_send_to: if args.i_own_this {
            |_| true
        } else {
            is_harmless
        },
        interrupted: plumbline_sys::signal::interruption()?,
    });
    Ok(Box::new(hosts.map_err(usage)?))
}
