//! The Target: paths on one machine, made when first asked for.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumbline_experiment::{
    Asked, Ends, Enforcer, Family, Link, Placement, Scene, TaskKind, Treatment, Wanted,
};
use plumbline_harness::{Cpus, Demand, Levels, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, Warning};
use plumbline_sys::awake::Awake;
use plumbline_sys::clock::now_ns;

use crate::agent::Launcher;
use crate::dressing::{self, Dressing, tuning};
use crate::error::LabError;
use crate::launch;
use crate::network::catalogue::{self, Catalogue};
use crate::network::{self, About, Network, cni};
use crate::renewal::Renewal;
use crate::spec::{PathSpec, Validated};
use crate::standing::StandingNetwork;
use crate::survive;

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
    /// Whether idle CPUs of the machine are kept from halting.
    pub awake: bool,
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
            awake: false,
        })
    }
}

/// What each path is made for: treatments that take turns have one of their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SceneKey {
    /// By the network's own name.
    scene: Scene,
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
    /// Whether CPUs are to be kept awake, and what keeps them so.
    is_awake: bool,
    awake: Option<Awake>,
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
            is_awake: options.awake,
            awake: None,
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
        self.stand_as(&Scene {
            placement,
            family,
            ..Scene::of(network)
        })
    }

    /// Makes the path of a scene, with what is laid on it, or gives the one that stands.
    pub fn stand_as(&mut self, scene: &Scene) -> Result<&mut StandingNetwork, LabError> {
        self.stand_for(self.key(scene, 1)?)
    }

    fn stand_for(&mut self, key: SceneKey) -> Result<&mut StandingNetwork, LabError> {
        let standing = match self.standing.remove(&key) {
            Some(standing) => standing,
            None => self.build(&key.scene)?,
        };
        Ok(self.standing.entry(key).or_insert(standing))
    }

    fn build(&self, scene: &Scene) -> Result<StandingNetwork, LabError> {
        let dressing = Dressing::of(scene);
        let validated = self.validated(scene)?.beside(dressing.company());
        let mut standing = validated.build(&self.launcher)?;
        standing.dress(dressing)?;
        Ok(standing)
    }

    /// The path of a scene that this kernel can build, without its dressing.
    fn validated(&self, scene: &Scene) -> Result<Validated, LabError> {
        let catalogue = self.catalogue();
        let tuning = tuning::of(&scene.variant);
        let spec = PathSpec {
            network: scene.network.clone(),
            placement: scene.placement,
            family: scene.family,
            mtu: tuning.mtu.unwrap_or(self.link.mtu),
        };
        let validated = spec.validate(&catalogue)?.over(self.link, &catalogue)?;
        Ok(validated.tuned(tuning))
    }

    fn key_of(&self, treatment: &Treatment) -> Result<SceneKey, LabError> {
        self.key(&treatment.scene, treatment.copy)
    }

    fn key(&self, scene: &Scene, copy: u32) -> Result<SceneKey, LabError> {
        let network = self.find(&scene.network)?.about().name.to_owned();
        let scene = Scene {
            network,
            ..scene.clone()
        };
        Ok(SceneKey { scene, copy })
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
                // Whatever its plugins are, none of them enforces policies here.
                return Ok(vec![network::scene(file, Enforcer::Nft)]);
            }
            Wanted::Named(word) => return Ok(vec![named(word, said)?.scene()]),
        };
        let mut scenes = Vec::new();
        let listed = catalogue::list().map_err(|e| e.to_string())?;
        for listing in listed.into_iter().filter(|one| belongs(one.about.name)) {
            match listing.needs_for(families) {
                None => scenes.push(listing.about.scene()),
                Some(needs) => said.push(Warning::Unsupported {
                    network: listing.about.name.to_owned(),
                    needs,
                }),
            }
        }
        Ok(scenes)
    }

    /// Found out by making it, without a path beside it.
    fn lacks(&mut self, variant: &Scene) -> Result<Option<String>, String> {
        let built = self
            .validated(variant)
            .and_then(|it| it.build(&self.launcher));
        match built.map_err(TargetError::from) {
            Ok(_) => Ok(None),
            Err(TargetError::Unsupported { what, needs }) => Ok(Some(format!("{what}: {needs}"))),
            Err(error) => Err(error.to_string()),
        }
    }

    fn supports(&self, factor: &str) -> Levels {
        match factor {
            "network" | "settings" | "planted" | "services" | "endpoints" => Levels::Any,
            "proxy" | "position" => Levels::Any,
            "policies" | "policy-position" | "selects" | "members" | "peers" => Levels::Any,
            "direction" | "enforcer" | "neighbours" | "share" | "pairs" => Levels::Any,
            "placement" => Levels::These(&["same-node"]),
            "family" => Levels::These(&["6"]),
            _ => Levels::Default,
        }
    }

    fn does(&self, task: TaskKind) -> bool {
        task != TaskKind::Programming
    }

    fn shapes_link(&self) -> bool {
        true
    }

    /// Checks that every network can be built before the first one is.
    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), TargetError> {
        self.link = demand.link;
        self.launcher.check()?;
        if self.is_awake {
            let held = Awake::demand().or_else(|_| Awake::spin());
            self.awake = Some(held.map_err(|error| TargetError::Unsupported {
                what: "`--awake`".to_owned(),
                needs: format!("root and a kernel with cpuidle, or all CPUs: {error}"),
            })?);
        }
        for treatment in demand.treatments {
            let validated = self.validated(&treatment.scene)?;
            dressing::check(treatment, validated.network.about().pods)?;
            launch::check(validated.network, treatment)?;
            survive::check(treatment)?;
            let server = plumbline_agent::check_server(treatment.task.server());
            server.map_err(|error| TargetError::Unsupported {
                what: "`server = \"nginx\"`".to_owned(),
                needs: error.to_string(),
            })?;
        }
        let began = (self.clock)();
        for treatment in demand.treatments {
            self.stand_for(self.key_of(treatment)?)?;
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

    fn has_controls(&self) -> bool {
        true
    }

    /// Makes all paths anew where that is due.
    fn begin_block(&mut self, _: usize) {
        let began = (self.clock)();
        if !self.renewal.is_due(began) {
            return;
        }
        let keys: Vec<SceneKey> = self.standing.keys().cloned().collect();
        let left = self.clear();
        self.left.extend(left);
        for key in keys {
            // What fails is tried again, and its error told, by `ready`.
            let _ = self.stand_for(key);
        }
        self.renewal = Renewal::between(began, (self.clock)());
    }

    /// Makes anew what a command of the user's was run on.
    fn ready(&mut self, treatment: &Treatment, _: &[usize]) -> Result<(), TargetError> {
        let key = self.key_of(treatment)?;
        let standing = self.standing.get(&key);
        if standing.is_some_and(StandingNetwork::is_disrupted) {
            // Dropping it takes it down.
            self.standing.remove(&key);
        }
        self.stand_for(key)?;
        Ok(())
    }

    fn stage(
        &self,
        treatment: &Treatment,
        _: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        match self.standing.get(&self.key_of(treatment)?) {
            Some(standing) => Ok(Box::new(standing)),
            None => Err(TargetError::Failed(format!(
                "{} was not built before the trial",
                treatment.scene.network
            ))),
        }
    }

    fn floor(
        &mut self,
        cpus: Cpus,
        interrupted: &AtomicBool,
    ) -> Result<Option<Floor>, TargetError> {
        let floor = plumbline_agent::floor(&cpus.client, &cpus.server, interrupted);
        floor.map_err(|error| {
            TargetError::Failed(format!(
                "the generator cannot be measured without a network: {error}"
            ))
        })
    }

    fn idle_sample(
        &self,
        _treatment: &Treatment,
        _node: usize,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        plumbline_agent::idle_sample(length).map_err(|error| {
            TargetError::Failed(format!(
                "the CPU time of this machine cannot be read: {error}; is /proc mounted?"
            ))
        })
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        let mut fingerprint = plumbline_agent::fingerprint();
        let firsts = self.standing.iter().filter(|(key, _)| key.copy == 1);
        for (key, standing) in firsts {
            let scene = &key.scene;
            let mut name = scene.network_name().to_owned();
            if scene.placement == Placement::SameNode {
                name += " same-node";
            }
            if scene.family == Family::V6 {
                name += " v6";
            }
            fingerprint.devices.insert(name, standing.devices()?);
            if let Some(list) = standing.list()? {
                fingerprint.cni.insert(scene.network.clone(), list);
            }
        }
        Ok(fingerprint)
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = vec![Warning::OneKernel];
        if plumbline_sys::user_mode::is_here() {
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

/// The network of that name, or that the system of that name uses.
fn named(word: &str, said: &mut Vec<Warning>) -> Result<&'static About, String> {
    let network = catalogue::find(word).map_err(|e| e.to_string())?;
    let about = network.about();
    if word != about.name {
        said.push(Warning::StandsFor {
            alias: word.to_owned(),
            network: about.name.to_owned(),
        });
    }
    Ok(about)
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Best effort: call `teardown` before to get the errors.
        self.teardown();
    }
}
