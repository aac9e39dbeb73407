//! The place where an experiment runs, as it was asked for.

mod hosts;
#[cfg(feature = "kubernetes")]
mod kubernetes;

use std::sync::atomic::AtomicBool;

use plumbline_harness::Target;
use plumbline_lab::{Lab, LabOptions};
use plumbline_record::{Floor, Warning};

use crate::cli::{TargetArgs, TargetKind};
use crate::command::BadUsage;

/// A target, with what a command has to know of it beside what the harness does.
pub(crate) trait Place: Target {
    /// The names of the networks that a word of an experiment stands for. What
    /// cannot be had here is left out of `all`, with a warning.
    ///
    /// # Errors
    ///
    /// A sentence, when the place knows no such network.
    fn networks(&self, word: &str, left_out: &mut Vec<Warning>) -> Result<Vec<String>, String>;

    /// The CPUs that the endpoints are to be held on. Asked when all paths stand.
    fn cpus(&self) -> Cpus;

    /// What the generator measures where there is no network, on the CPUs that
    /// the trials will use (L-13). `None` when it was interrupted.
    ///
    /// # Errors
    ///
    /// A machine on which not even loopback works.
    fn floor(&mut self, interrupted: &AtomicBool) -> anyhow::Result<Option<Floor>>;
}

/// Where the endpoints run; empty for any CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpus {
    pub(crate) client: Vec<usize>,
    pub(crate) server: Vec<usize>,
}

/// The place that was asked for, with nothing done in it yet.
///
/// To be called before the first thread: a process enters a user namespace,
/// which the lab needs, alone or not at all.
pub(crate) fn pick(args: &TargetArgs) -> anyhow::Result<Box<dyn Place>> {
    if args.target != TargetKind::Hosts
        && let Some(flag) = args.hosts.given()
    {
        return Err(BadUsage(format!("{flag}: say --target hosts too")).into());
    }
    if args.target != TargetKind::Kubernetes
        && let Some(flag) = args.cluster.given()
    {
        return Err(BadUsage(format!("{flag}: say --target kubernetes too")).into());
    }
    match args.target {
        TargetKind::Lab => {
            plumbline_sys::namespace::enter_private()?;
            Ok(Box::new(Lab::new(LabOptions::with_this_program()?)))
        }
        TargetKind::Hosts => Ok(Box::new(hosts::pick(&args.hosts)?)),
        #[cfg(feature = "kubernetes")]
        TargetKind::Kubernetes => Ok(Box::new(kubernetes::pick(&args.cluster)?)),
        #[cfg(not(feature = "kubernetes"))]
        TargetKind::Kubernetes => Err(BadUsage(
            "--target kubernetes: this program was built without clusters; build it with \
             --features kubernetes"
                .to_owned(),
        )
        .into()),
    }
}

impl Place for Lab {
    fn networks(&self, word: &str, left_out: &mut Vec<Warning>) -> Result<Vec<String>, String> {
        if word != "all" {
            let network = plumbline_lab::network::find(word).map_err(|e| e.to_string())?;
            return Ok(vec![network.about().name.to_owned()]);
        }
        let mut names = Vec::new();
        for network in plumbline_lab::list().map_err(|e| e.to_string())? {
            match network.needs {
                None => names.push(network.name.to_owned()),
                Some(needs) => {
                    let network = network.name.to_owned();
                    left_out.push(Warning::Unsupported { network, needs });
                }
            }
        }
        Ok(names)
    }

    /// The sender and the receiver on CPUs of their own where there are two.
    fn cpus(&self) -> Cpus {
        let cpus = plumbline_sys::cpu::allowed().unwrap_or_default();
        match (cpus.first(), cpus.last()) {
            (Some(&first), Some(&last)) if first != last => Cpus {
                client: vec![first],
                server: vec![last],
            },
            _ => Cpus::default(),
        }
    }

    fn floor(&mut self, interrupted: &AtomicBool) -> anyhow::Result<Option<Floor>> {
        let Cpus { client, server } = self.cpus();
        Ok(plumbline_engine::floor(&client, &server, interrupted)?)
    }
}
