//! The flags of a target of hosts.

use std::net::IpAddr;

use plumbline_experiment::{Experiment, SpecError, Wanted};
use plumbline_harness::Target;
use plumbline_hosts::{Between, Hosts, HostsError, HostsOptions, Pair, Wire};

use crate::cli::{HostsArgs, PairingArgs, is_harmless};
use crate::command::BadUsage;

/// The target of what was typed. Connects to nothing yet.
pub(super) fn pick(
    args: &HostsArgs,
    pairing: &PairingArgs,
    experiment: Option<&Experiment>,
) -> anyhow::Result<Box<dyn Target>> {
    if args.host.is_empty() && args.pair.is_empty() {
        return Err(none(experiment)?.into());
    }
    let program = match &args.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?,
    };
    let between = if pairing.given().is_some() {
        many(args, pairing)?
    } else {
        pairs(args).map_err(usage)?
    };
    let hosts = Hosts::new(HostsOptions {
        between,
        program,
        ssh_config: args.ssh_config.clone(),
        directory: args.host_directory.clone().unwrap_or_default(),
        may_send_to: may_send_to(args),
    });
    Ok(Box::new(hosts.map_err(usage)?))
}

/// The hosts of a mesh, or of several pairs that are measured at the same time.
fn many(args: &HostsArgs, pairing: &PairingArgs) -> Result<Between, BadUsage> {
    let given = args.host.len();
    if !args.pair.is_empty() {
        return Err(BadUsage(
            "--pair names a pair as a network to compare; with --mesh or --pairs give a --host \
             for each machine"
                .to_owned(),
        ));
    }
    match pairing.pairs {
        Some(pairs) if given != 2 * pairs as usize => {
            return Err(BadUsage(format!(
                "--pairs {pairs} takes {} hosts, and --host was given {given} times: the first is \
                 paired with the second, the third with the fourth",
                2 * pairs
            )));
        }
        None if given < 2 => {
            return Err(BadUsage(
                "--mesh is of two hosts at least: say --host for each".to_owned(),
            ));
        }
        _ => {}
    }
    let wires = wires(args).map_err(usage)?;
    Between::all(args.host.clone(), wires).map_err(usage)
}

fn wires(args: &HostsArgs) -> Result<Vec<Wire>, HostsError> {
    args.address.iter().map(|text| Wire::parse(text)).collect()
}

fn may_send_to(args: &HostsArgs) -> fn(IpAddr) -> bool {
    if args.i_own_this {
        |_| true
    } else {
        is_harmless
    }
}

/// The pairs that are compared with each other; often there is one.
fn pairs(args: &HostsArgs) -> Result<Between, HostsError> {
    let wires = wires(args)?;
    let pairs = match &args.host[..] {
        [] => {
            let pairs = args.pair.iter();
            pairs
                .map(|text| Pair::parse(text, wires.clone()))
                .collect::<Result<_, _>>()?
        }
        [client, server] => vec![Pair::new(client, server, wires)?],
        other => {
            return Err(HostsError::Options(format!(
                "--host: {} given, and it takes two: --host user@a --host user@b; for more say \
                 --mesh or --pairs N too",
                other.len()
            )));
        }
    };
    Ok(Between::Pairs(pairs))
}

/// Asks for the hosts; of an experiment that names its networks, for a pair of
/// each.
fn none(experiment: Option<&Experiment>) -> Result<BadUsage, SpecError> {
    let networks = experiment.map_or(Ok(Vec::new()), Experiment::networks)?;
    let named: Vec<&String> = networks
        .iter()
        .filter(|name| Wanted::new(name).name().is_some())
        .collect();
    let (Some(experiment), [_, _, ..]) = (experiment, &named[..]) else {
        return Ok(BadUsage(
            "--target hosts: between which? Say --host user@a --host user@b, or --pair \
             NAME=user@a,user@b for each pair to compare"
                .to_owned(),
        ));
    };
    let flags: Vec<String> = named
        .iter()
        .map(|name| format!("--pair {name}=HOST,HOST"))
        .collect();
    Ok(BadUsage(format!(
        "{} compares pairs of hosts, and has to be told which: {}, with each HOST as you would \
         name it to ssh",
        experiment.name(),
        flags.join(" ")
    )))
}

fn usage(error: HostsError) -> BadUsage {
    BadUsage(error.to_string())
}
