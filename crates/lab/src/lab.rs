//! The Target: paths on one machine, made when first asked for.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plumbline_experiment::{Asked, Ends, Family, Link, Placement, Scene, Treatment, Wanted};
use plumbline_harness::{Cpus, Demand, Levels, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Warning};

use crate::agent::Launcher;
use crate::error::LabError;
use crate::network::catalogue::{self, Catalogue};
use crate::network::{Network, cni};
use crate::spec::PathSpec;
use crate::standing::StandingNetwork;

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
    /// Looks for CNI plugins in these directories; in the usual ones if there are
    /// none.
    pub fn cni_directories(mut self, directories: &[PathBuf]) -> Self {
        if !directories.is_empty() {
            self.cni_directories = directories.to_vec();
        }
        self
    }

    /// Agents are the program that runs now, as `program agent`; MTU 1500.
    pub fn with_this_program() -> Result<Self, LabError> {
        let program = std::env::current_exe().map_err(|source| LabError::Agent {
            program: "this program".into(),
            source,
        })?;
        Ok(Self {
            agent: program,
            agent_arguments: vec!["agent".into()],
            mtu: 1500,
            cni_directories: cni::default_directories(),
        })
    }
}

/// Network, placement, family, and which copy of these.
type SceneKey = (&'static str, Placement, Family, u32);

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
    catalogue: Mutex<Catalogue>,
    standing: BTreeMap<SceneKey, StandingNetwork>,
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
            catalogue: Mutex::new(Catalogue::new(options.cni_directories)),
            standing: BTreeMap::new(),
        }
    }

    /// The network of this name, alias or file (`cni:FILE`).
    pub fn find(&self, name: &str) -> Result<&'static dyn Network, LabError> {
        self.catalogue().find(name)
    }

    fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.catalogue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a path, or gives the one that stands.
    pub fn stand(
        &mut self,
        network: &str,
        placement: Placement,
        family: Family,
    ) -> Result<&mut StandingNetwork, LabError> {
        self.stand_copy(network, placement, family, 1)
    }

    fn stand_copy(
        &mut self,
        network: &str,
        placement: Placement,
        family: Family,
        copy: u32,
    ) -> Result<&mut StandingNetwork, LabError> {
        let spec = self.spec(network, placement, family);
        let catalogue = self
            .catalogue
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let key = (
            catalogue.find(network)?.about().name,
            placement,
            family,
            copy,
        );
        match self.standing.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let validated = spec.validate(&catalogue)?.over(self.link, &catalogue)?;
                let standing = validated.build(&self.launcher)?;
                Ok(entry.insert(standing))
            }
        }
    }

    fn spec(&self, network: &str, placement: Placement, family: Family) -> PathSpec {
        PathSpec {
            network: network.into(),
            placement,
            family,
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

    fn scenes(
        &mut self,
        asked: &Asked<'_>,
        families: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String> {
        let belongs: fn(&str) -> bool = match asked.network {
            Wanted::All => |_| true,
            Wanted::Usual => |name| catalogue::USUAL.contains(&name),
            // A file is read when the lab is built.
            Wanted::Named(file) if file.starts_with(cni::PREFIX) => {
                return Ok(vec![Scene::of(file)]);
            }
            Wanted::Named(word) => return Ok(vec![Scene::of(named(word, said)?)]),
        };
        let mut scenes = Vec::new();
        let listed = catalogue::list().map_err(|e| e.to_string())?;
        for listing in listed.into_iter().filter(|one| belongs(one.about.name)) {
            let network = listing.about.name.to_owned();
            match listing.needs_for(families) {
                None => scenes.push(Scene::of(network)),
                Some(needs) => said.push(Warning::Unsupported { network, needs }),
            }
        }
        Ok(scenes)
    }

    fn supports(&self, factor: &str) -> Levels {
        match factor {
            "network" | "planted" => Levels::Any,
            "placement" => Levels::These(&["same-node"]),
            "family" => Levels::These(&["6"]),
            _ => Levels::Default,
        }
    }

    fn shapes_link(&self) -> bool {
        true
    }

    /// Checks that every network can be built before the first one is.
    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), TargetError> {
        self.link = demand.link;
        self.launcher.check()?;
        for treatment in demand.treatments {
            let catalogue = self.catalogue();
            let scene = &treatment.scene;
            let spec = self.spec(&scene.network, scene.placement, scene.family);
            let validated = spec.validate(&catalogue)?;
            validated.over(self.link, &catalogue)?;
            let server = plumbline_agent::check_server(treatment.task.server());
            server.map_err(|error| TargetError::Unsupported {
                what: "`server = \"nginx\"`".to_owned(),
                needs: error.to_string(),
            })?;
        }
        for it in demand.treatments {
            let scene = &it.scene;
            self.stand_copy(&scene.network, scene.placement, scene.family, it.copy)?;
        }
        Ok(())
    }

    fn nodes(&self) -> Vec<String> {
        ["node1", "node2"].map(str::to_owned).into()
    }

    fn is_one_kernel(&self) -> bool {
        true
    }

    /// Each path has nodes and counters of its own. A kernel that runs as a program is
    /// left out: there wake-ups are as late as a slice is long.
    fn can_rotate(&self) -> bool {
        !plumbline_agent::is_user_mode()
    }

    fn stage(
        &self,
        treatment: &Treatment,
        _: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        let name = self.find(&treatment.scene.network)?.about().name;
        let scene = &treatment.scene;
        let key = (name, scene.placement, scene.family, treatment.copy);
        match self.standing.get(&key) {
            Some(standing) => Ok(Box::new(standing)),
            None => Err(TargetError::Failed(format!(
                "{name} was not built before the first trial"
            ))),
        }
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        let mut fingerprint = plumbline_agent::fingerprint();
        let firsts = self.standing.iter().filter(|((.., copy), _)| *copy == 1);
        for ((network, placement, family, _), standing) in firsts {
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
        let mut standing: Vec<StandingNetwork> =
            std::mem::take(&mut self.standing).into_values().collect();
        // Paths share nothing, and what takes long is that the kernel waits.
        let errors = std::thread::scope(|scope| {
            let take_down = |path| scope.spawn(|| StandingNetwork::take_down(path));
            let threads: Vec<_> = standing.iter_mut().map(take_down).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect::<Vec<_>>()
        });
        errors.into_iter().map(TargetError::from).collect()
    }
}

/// The network of that name, or that the system of that name uses.
fn named(word: &str, said: &mut Vec<Warning>) -> Result<String, String> {
    let network = catalogue::find(word).map_err(|e| e.to_string())?;
    let name = network.about().name.to_owned();
    if word != name {
        said.push(Warning::StandsFor {
            alias: word.to_owned(),
            network: name.clone(),
        });
    }
    Ok(name)
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Best effort: call `teardown` before to get the errors.
        self.teardown();
    }
}
