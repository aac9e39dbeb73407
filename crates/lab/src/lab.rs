//! The Target: paths on one machine, made when first asked for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plumbline_experiment::{
    Asked, Ends, Family, Link, Placement, Protocol, Scene, Treatment, Wanted,
};
use plumbline_harness::{Cpus, Demand, Levels, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Warning};
use plumbline_sys::clock::now_ns;

use crate::agent::Launcher;
use crate::dressing::Dressing;
use crate::error::LabError;
use crate::network::catalogue::{self, Catalogue};
use crate::network::{Network, cni};
use crate::renewal::Renewal;
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

/// What each path is made for: treatments that take turns have one of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SceneKey {
    network: &'static str,
    placement: Placement,
    family: Family,
    planted_ns: u64,
    dressing: Dressing,
    copy: u32,
}

/// Paths on one machine. To be used in private namespaces, from a thread that
/// outlives its agents (see [`Command::spawn_in`]).
///
/// Each path has nodes of its own, so that no network pays for the devices and
/// routes of another. Between blocks all are made anew as often as that takes less
/// than a tenth of the time: so a network is compared with a copy of itself in many
/// instances of both, and not in one. Dropping the lab takes all down.
///
/// [`Command::spawn_in`]: plumbline_sys::process::Command::spawn_in
pub struct Lab {
    launcher: Launcher,
    link: Link,
    catalogue: Mutex<Catalogue>,
    standing: BTreeMap<SceneKey, StandingNetwork>,
    renewal: Renewal,
    /// Nanoseconds since a fixed moment.
    clock: fn() -> u64,
    /// What could not be undone so far.
    left: Vec<LabError>,
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
            renewal: Renewal::default(),
            clock: now_ns,
            left: Vec::new(),
        }
    }

    /// Tells by this clock, in nanoseconds, when paths are made anew.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> u64) -> Self {
        self.clock = clock;
        self
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
        let network = self.find(network)?.about().name;
        self.stand_for(SceneKey {
            network,
            placement,
            family,
            planted_ns: 0,
            dressing: Dressing::default(),
            copy: 1,
        })
    }

    fn stand_for(&mut self, key: SceneKey) -> Result<&mut StandingNetwork, LabError> {
        let spec = self.spec(key.network, key.placement, key.family);
        match self.standing.entry(key) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let catalogue = self
                    .catalogue
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let validated = spec.validate(&catalogue)?.over(self.link, &catalogue)?;
                let validated = validated.beside(key.dressing.neighbours());
                let mut standing = validated.build(&self.launcher)?;
                standing.dress(key.dressing)?;
                Ok(entry.insert(standing))
            }
        }
    }

    fn key(&self, treatment: &Treatment) -> Result<SceneKey, LabError> {
        let scene = &treatment.scene;
        Ok(SceneKey {
            network: self.find(&scene.network)?.about().name,
            placement: scene.placement,
            family: scene.family,
            planted_ns: scene.planted_ns,
            dressing: Dressing::of(scene),
            copy: treatment.copy,
        })
    }

    /// Takes all paths down, and gives all errors.
    fn clear(&mut self) -> Vec<LabError> {
        self.launcher.end_all();
        let mut standing: Vec<StandingNetwork> =
            std::mem::take(&mut self.standing).into_values().collect();
        // Paths share nothing, and what takes long is that the kernel waits.
        std::thread::scope(|scope| {
            let take_down = |path| scope.spawn(|| StandingNetwork::take_down(path));
            let threads: Vec<_> = standing.iter_mut().map(take_down).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        })
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
            "network" | "planted" | "services" | "endpoints" => Levels::Any,
            "proxy" | "position" => Levels::Any,
            "policies" | "policy-position" | "selects" | "members" => Levels::Any,
            "direction" | "enforcer" => Levels::Any,
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
            refuse_datagrams(treatment)?;
            let server = plumbline_agent::check_server(treatment.task.server());
            server.map_err(|error| TargetError::Unsupported {
                what: "`server = \"nginx\"`".to_owned(),
                needs: error.to_string(),
            })?;
        }
        let began = (self.clock)();
        for treatment in demand.treatments {
            self.stand_for(self.key(treatment)?)?;
        }
        self.renewal = Renewal::between(began, (self.clock)());
        Ok(())
    }

    fn nodes(&self) -> Vec<String> {
        ["node1", "node2"].map(str::to_owned).into()
    }

    fn is_one_kernel(&self) -> bool {
        true
    }

    /// Each path has nodes and counters of its own.
    fn can_rotate(&self, _: &Treatment, _: &Treatment) -> bool {
        true
    }

    /// Makes all paths anew where that is due.
    fn begin_block(&mut self, _: usize) {
        let began = (self.clock)();
        if !self.renewal.is_due(began) {
            return;
        }
        let keys: Vec<SceneKey> = self.standing.keys().copied().collect();
        let left = self.clear();
        self.left.extend(left);
        for key in keys {
            // What fails is tried again, and its error told, by `ready`.
            let _ = self.stand_for(key);
        }
        self.renewal = Renewal::between(began, (self.clock)());
    }

    fn ready(&mut self, treatment: &Treatment, _: &[usize]) -> Result<(), TargetError> {
        self.stand_for(self.key(treatment)?)?;
        Ok(())
    }

    fn stage(
        &self,
        treatment: &Treatment,
        _: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        match self.standing.get(&self.key(treatment)?) {
            Some(standing) => Ok(Box::new(standing)),
            None => Err(TargetError::Failed(format!(
                "{} was not built before the trial",
                treatment.scene.network
            ))),
        }
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        let mut fingerprint = plumbline_agent::fingerprint();
        let firsts = self.standing.iter().filter(|(key, _)| key.copy == 1);
        for (key, standing) in firsts {
            let mut name = key.network.to_owned();
            if key.placement == Placement::SameNode {
                name += " same-node";
            }
            if key.family == Family::V6 {
                name += " v6";
            }
            fingerprint.devices.insert(name, standing.devices()?);
            if let Some(list) = standing.list()? {
                fingerprint.cni.insert(key.network.to_owned(), list);
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
        let last = self.clear();
        let all = std::mem::take(&mut self.left).into_iter().chain(last);
        all.map(TargetError::from).collect()
    }
}

/// Services and policies of a lab are of TCP.
fn refuse_datagrams(treatment: &Treatment) -> Result<(), TargetError> {
    let protocol = treatment.task.load().map(|load| load.protocol);
    if !treatment.scene.policies.is_none() && protocol == Some(Protocol::Udp) {
        return Err(TargetError::Unsupported {
            what: format!("policies under {}, which is UDP", treatment.task.name()),
            needs: "a workload of TCP, whose port they allow".to_owned(),
        });
    }
    match (treatment.scene.services.asked(), protocol) {
        (Some(_), Some(Protocol::Udp)) => Err(TargetError::Unsupported {
            what: format!("a service under {}, which is UDP", treatment.task.name()),
            needs: "a workload of TCP, or position = \"none\"".to_owned(),
        }),
        _ => Ok(()),
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
