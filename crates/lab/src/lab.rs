//! The Target: paths on one machine, made when first asked for.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::PathBuf;

use plumbline_experiment::{Family, Link, Placement, Treatment};
use plumbline_harness::{Cpus, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Warning};

use crate::agent::Launcher;
use crate::error::LabError;
use crate::network::catalogue::Catalogue;
use crate::network::{Network, cni};
use crate::spec::Spec;
use crate::standing::Standing;

/// How a lab is made.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The program that is started as agent.
    pub agent: PathBuf,
    /// Its arguments.
    pub agent_arguments: Vec<String>,
    /// MTU of the underlay, in bytes.
    pub mtu: u32,
    /// Where CNI plugins are looked for.
    pub cni_directories: Vec<PathBuf>,
}

impl LabOptions {
    /// Agents are `program agent`; MTU 1500.
    pub fn with_agent(program: PathBuf) -> Self {
        Self {
            agent: program,
            agent_arguments: vec!["agent".into()],
            mtu: 1500,
            cni_directories: cni::default_directories(),
        }
    }

    /// Looks for CNI plugins in these directories; in the usual ones if there are
    /// none.
    pub fn cni_directories(mut self, directories: &[PathBuf]) -> Self {
        if !directories.is_empty() {
            self.cni_directories = directories.to_vec();
        }
        self
    }

    /// As [`with_agent`](Self::with_agent), with the program that runs now.
    pub fn with_this_program() -> Result<Self, LabError> {
        let program = std::env::current_exe().map_err(|source| LabError::Agent {
            program: "this program".into(),
            source,
        })?;
        Ok(Self::with_agent(program))
    }
}

type Key = (&'static str, Placement, Family);

/// Paths on one machine. To be used in private namespaces, from a thread that
/// outlives its agents (see [`Command::spawn_in`]).
///
/// Each path has nodes of its own, so that no network pays for the devices and
/// routes of another. Dropping the lab takes all down.
///
/// [`Command::spawn_in`]: plumbline_sys::process::Command::spawn_in
pub struct Lab {
    launcher: Launcher,
    link: Link,
    catalogue: Catalogue,
    standing: BTreeMap<Key, Standing>,
}

impl Lab {
    /// A lab with nothing in it yet.
    pub fn new(options: LabOptions) -> Self {
        Self {
            launcher: Launcher::new(options.agent, options.agent_arguments),
            link: Link {
                mtu: options.mtu,
                ..Link::default()
            },
            catalogue: Catalogue::new(options.cni_directories),
            standing: BTreeMap::new(),
        }
    }

    /// The network of this name, alias or file (`cni:FILE`).
    pub fn find(&self, name: &str) -> Result<&'static dyn Network, LabError> {
        self.catalogue.find(name)
    }

    /// Joins the nodes by such a link, in every path that is made from now on.
    pub fn use_link(&mut self, link: Link) {
        self.link = link;
    }

    /// Makes a path, or gives the one that stands.
    pub fn stand(
        &mut self,
        network: &str,
        placement: Placement,
        family: Family,
    ) -> Result<&mut Standing, LabError> {
        let spec = Spec {
            network: network.into(),
            placement,
            family,
            mtu: self.link.mtu,
        };
        let key = (
            self.catalogue.find(network)?.about().name,
            placement,
            family,
        );
        match self.standing.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let validated = spec
                    .validate(&self.catalogue)?
                    .over(self.link, &self.catalogue)?;
                let standing = validated.build(&self.launcher)?;
                Ok(entry.insert(standing))
            }
        }
    }

    fn spec(&self, treatment: &Treatment) -> Spec {
        Spec {
            network: treatment.scene.network.clone(),
            placement: treatment.scene.placement,
            family: treatment.scene.family,
            mtu: self.link.mtu,
        }
    }
}

impl Target for Lab {
    fn name(&self) -> &'static str {
        "lab"
    }

    /// The sender and the receiver on CPUs of their own where there are two.
    fn cpus(&self) -> Cpus {
        Cpus::apart(&plumbline_sys::cpu::allowed().unwrap_or_default())
    }

    fn validate(&self, treatments: &[Treatment]) -> Result<(), TargetError> {
        self.launcher.check()?;
        for treatment in treatments {
            let validated = self.spec(treatment).validate(&self.catalogue)?;
            validated.over(self.link, &self.catalogue)?;
        }
        Ok(())
    }

    fn path(&mut self, treatment: &Treatment) -> Result<&mut dyn Path, TargetError> {
        let standing = self.stand(
            &treatment.scene.network,
            treatment.scene.placement,
            treatment.scene.family,
        )?;
        Ok(standing)
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        let mut fingerprint = plumbline_agent::fingerprint();
        for ((network, placement, family), standing) in &self.standing {
            let mut name = network.to_string();
            if *placement == Placement::SameNode {
                name += " same-node";
            }
            if *family == Family::V6 {
                name += " v6";
            }
            fingerprint.devices.insert(name, standing.devices()?);
            if let Some(list) = standing.list()? {
                fingerprint.cni.insert(network.to_string(), list);
            }
        }
        Ok(fingerprint)
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = vec![Warning::OneKernel];
        if plumbline_agent::is_user_mode() {
            warnings.push(Warning::UserModeKernel);
        }
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        // Two ends and the network's own work in between.
        if cpus < 4 {
            warnings.push(Warning::SharedCpus { cpus });
        }
        warnings
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        self.launcher.end_all();
        let mut standing: Vec<Standing> =
            std::mem::take(&mut self.standing).into_values().collect();
        // Paths share nothing, and what takes long is that the kernel waits.
        let errors = std::thread::scope(|scope| {
            let take_down = |path| scope.spawn(|| Standing::take_down(path));
            let threads: Vec<_> = standing.iter_mut().map(take_down).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect::<Vec<_>>()
        });
        errors.into_iter().map(TargetError::from).collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Best effort: whoever wants the errors calls `teardown` before.
        self.teardown();
    }
}
