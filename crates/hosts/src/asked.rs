//! Which hosts were asked for, by flags that go together.

use plumbline_experiment::{Experiment, SpecError, Wanted};

use crate::error::HostsError;
use crate::options::{Between, Pair, Wire};

impl Between {
    /// The pairs that are compared with each other; often there is one. `hosts` are
    /// those of `--host`, `named` those of `--pair`, `wires` those of `--address`.
    ///
    /// # Errors
    ///
    /// Text that makes no sense, or not two hosts.
    pub fn pairs(hosts: &[String], named: &[String], wires: &[String]) -> Result<Self, HostsError> {
        let wires = parse(wires)?;
        let pairs = match hosts {
            [] => {
                let pairs = named.iter();
                let pairs = pairs.map(|text| Pair::parse(text, wires.clone()));
                pairs.collect::<Result<_, _>>()?
            }
            [client, server] => vec![Pair::new(client, server, wires)?],
            other => {
                return Err(HostsError::Options(format!(
                    "--host: {} given, and it takes two: --host user@a --host user@b; for more \
                     say --mesh or --pairs N too",
                    other.len()
                )));
            }
        };
        Ok(Self::Pairs(pairs))
    }

    /// The hosts of a mesh, or of so many pairs that are measured at the same time.
    ///
    /// # Errors
    ///
    /// As [`pairs`](Self::pairs), and hosts that are too few or too many.
    pub fn many(
        hosts: &[String],
        named: &[String],
        wires: &[String],
        pairs: Option<u32>,
    ) -> Result<Self, HostsError> {
        let given = hosts.len();
        if !named.is_empty() {
            return Err(HostsError::Options(
                "--pair names a pair as a network to compare; with --mesh or --pairs give a \
                 --host for each machine"
                    .to_owned(),
            ));
        }
        match pairs {
            Some(pairs) if given != 2 * pairs as usize => Err(HostsError::Options(format!(
                "--pairs {pairs} takes {} hosts, and --host was given {given} times: the first is \
                 paired with the second, the third with the fourth",
                2 * pairs
            ))),
            None if given < 2 => Err(HostsError::Options(
                "--mesh is of two hosts at least: say --host for each".to_owned(),
            )),
            _ => Self::all(hosts.to_vec(), parse(wires)?),
        }
    }
}

fn parse(wires: &[String]) -> Result<Vec<Wire>, HostsError> {
    wires.iter().map(|text| Wire::parse(text)).collect()
}

/// Asks for the hosts; of an experiment that names its networks, for a pair of
/// each.
///
/// # Errors
///
/// Networks that the experiment does not write as it should.
pub fn which_hosts(experiment: Option<&Experiment>) -> Result<HostsError, SpecError> {
    let networks = experiment.map_or(Ok(Vec::new()), Experiment::networks)?;
    let mut flags = Vec::new();
    for name in &networks {
        if Wanted::new(name).name().is_some() {
            flags.push(format!("--pair {name}=HOST,HOST"));
        }
    }
    Ok(HostsError::Options(match experiment {
        Some(experiment) if flags.len() > 1 => format!(
            "{} compares pairs of hosts, and needs to know which: {}, with each HOST as you \
             would name it to ssh",
            experiment.name(),
            flags.join(" ")
        ),
        _ => "--target hosts: between which? Say --host user@a --host user@b, or --pair \
              NAME=user@a,user@b for each pair to compare"
            .to_owned(),
    }))
}
