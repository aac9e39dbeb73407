//! Two hosts as a place.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_hosts::{Hosts, HostsError, HostsOptions, Pair, Wire};
use plumbline_record::{Floor, Warning};

use super::{Cpus, Place};
use crate::cli::{HostsArgs, is_harmless};
use crate::command::BadUsage;

/// The target of what was typed. Connects to nothing yet.
pub(super) fn pick(args: &HostsArgs) -> anyhow::Result<Hosts> {
    let program = match &args.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?,
    };
    Ok(Hosts::new(options(args, program).map_err(usage)?).map_err(usage)?)
}

fn options(args: &HostsArgs, program: PathBuf) -> Result<HostsOptions, HostsError> {
    let wires = args.address.iter().map(|text| Wire::parse(text));
    let wires: Vec<Wire> = wires.collect::<Result<_, _>>()?;
    let pairs = match &args.host[..] {
        [] if args.pair.is_empty() => return Err(none()),
        [] => {
            let pairs = args.pair.iter();
            pairs
                .map(|text| Pair::parse(text, wires.clone()))
                .collect::<Result<_, _>>()?
        }
        [client, server] => vec![Pair::new(client, server, wires)?],
        other => {
            return Err(HostsError::Options(format!(
                "--host: {} given, and it takes two: --host user@a --host user@b",
                other.len()
            )));
        }
    };
    Ok(HostsOptions {
        pairs,
        program,
        ssh_config: args.ssh_config.clone(),
        directory: args.host_directory.clone().unwrap_or_default(),
        may_send_to: if args.i_own_this {
            |_| true
        } else {
            is_harmless
        },
    })
}

fn none() -> HostsError {
    HostsError::Options(
        "--target hosts: between which? Say --host user@a --host user@b, or --pair NAME=user@a,user@b \
         for each pair to compare"
            .to_owned(),
    )
}

fn usage(error: HostsError) -> BadUsage {
    BadUsage(error.to_string())
}

impl Place for Hosts {
    /// `all` is every pair and network that was typed.
    fn networks(&self, word: &str, _left_out: &mut Vec<Warning>) -> Result<Vec<String>, String> {
        let known = Hosts::networks(self);
        if word == "all" {
            return Ok(known);
        }
        if known.iter().any(|name| name == word) {
            return Ok(vec![word.to_owned()]);
        }
        Err(format!(
            "these hosts have no network `{word}`, they have {}; name pairs with --pair and \
             networks with --address, and what to compare with by --baseline",
            known.join(", ")
        ))
    }

    fn cpus(&self) -> Cpus {
        let (client, server) = Hosts::cpus(self);
        Cpus { client, server }
    }

    fn floor(&mut self, interrupted: &AtomicBool) -> anyhow::Result<Option<Floor>> {
        if interrupted.load(Ordering::SeqCst) {
            return Ok(None);
        }
        Ok(Hosts::floor(self)?)
    }
}
