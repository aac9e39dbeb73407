//! Clusters that are brought up for the run: a fresh one for each network of each block.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plumbline_experiment::{Scene, Treatment};
use plumbline_harness::{Target as _, TargetError};
use plumbline_record::{Fingerprint, SetUp};

use crate::alike;
use crate::cluster::{Cluster, ClusterOptions};
use crate::level;
use crate::maker::{LOGS, Made, Maker};
use crate::member::Member;
use crate::route::ClusterRoute;

/// How long nodes may take until pods can be placed on them.
const NODES: Duration = Duration::from_secs(60);
const NODES_LOOK: Duration = Duration::from_millis(300);

/// Makes clusters one at a time, checks that they can be measured, and records what
/// that took.
pub(crate) struct FreshClusters {
    /// How runs are done in each; the configuration is the one that is handed over.
    options: ClusterOptions,
    /// Whether nodes may differ between clusters.
    pub(crate) across_environments: bool,
    pub(crate) maker: Maker,
    planned: Vec<Treatment>,
    has_begun: bool,
    /// Whether anything was asked of this block's clusters.
    used: bool,
    /// Networks that did not come up in this block, and why.
    failed: BTreeMap<String, String>,
    /// Scenes through which packets got in a cluster of this run, and those through which
    /// none did in the first one, with the reason: these are not tried again.
    reached: BTreeSet<Scene>,
    unreached: BTreeMap<Scene, String>,
    /// Those that were not recorded yet.
    set_ups: Vec<SetUp>,
    /// The network of the last request.
    asked: String,
    /// The first cluster, which the others have to be like.
    first: Option<Fingerprint>,
    /// Whether a cluster was not permitted what the run wants.
    is_refused: bool,
}

impl FreshClusters {
    /// Does nothing yet.
    pub(crate) fn new(maker: Maker, options: ClusterOptions, across_environments: bool) -> Self {
        Self {
            options,
            across_environments,
            maker,
            planned: Vec::new(),
            has_begun: false,
            used: false,
            failed: BTreeMap::new(),
            reached: BTreeSet::new(),
            unreached: BTreeMap::new(),
            set_ups: Vec::new(),
            asked: String::new(),
            first: None,
            is_refused: false,
        }
    }

    /// Notes what the clusters will be asked for.
    pub(crate) fn plan(&mut self, treatments: &[Treatment]) -> Result<(), TargetError> {
        for treatment in treatments {
            is_name(level::cluster_of(treatment)?).map_err(TargetError::Failed)?;
        }
        self.planned = treatments.to_vec();
        Ok(())
    }

    fn is_interrupted(&self) -> bool {
        self.options.interrupted.load(Ordering::SeqCst)
    }

    /// Whether it is of no use to try another network: the user wants to stop, or has to
    /// be asked.
    pub(crate) fn must_stop(&self) -> bool {
        self.is_interrupted() || self.is_refused
    }

    /// The environment of the first cluster; the record of each set-up has its own.
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint, TargetError> {
        let first = self.first.clone();
        first.ok_or_else(|| TargetError::Failed("no cluster was up".to_owned()))
    }

    /// Begins a block; whether what stands belongs to the one before.
    pub(crate) fn begin_block(&mut self) -> bool {
        let has_ended = std::mem::replace(&mut self.has_begun, true) && self.used;
        if has_ended {
            self.failed.clear();
        }
        self.used = false;
        has_ended
    }

    /// Notes that a scene is asked for.
    ///
    /// # Errors
    ///
    /// The cluster of its network did not come up in this block, or the scene carried
    /// nothing in the first one.
    pub(crate) fn ask(&mut self, scene: &Scene) -> Result<(), TargetError> {
        let network = &scene.network;
        self.used = true;
        network.clone_into(&mut self.asked);
        let Some(why) = self.failed.get(network) else {
            let carries_nothing = self.unreached.get(scene).cloned();
            return carries_nothing.map_or(Ok(()), |why| Err(TargetError::Unreached(why)));
        };
        // The reason once, in full; later trials refer to it.
        let is_news = self.set_ups.iter().any(|it| it.network == *network);
        Err(if is_news {
            TargetError::Failed(why.clone())
        } else {
            not_up(network)
        })
    }

    pub(crate) fn has_failed(&self, scene: &Scene) -> bool {
        self.failed.contains_key(&scene.network) || self.carries_nothing(scene)
    }

    pub(crate) fn carries_nothing(&self, scene: &Scene) -> bool {
        self.unreached.contains_key(scene)
    }

    pub(crate) fn none_came_up(&self) -> TargetError {
        let reasons: Vec<&str> = self.failed.values().map(String::as_str).collect();
        TargetError::Failed(format!(
            "none of the clusters came up: {}; what the commands said is in {}",
            reasons.join("; "),
            self.maker.logs.display()
        ))
    }

    /// What it took to bring up the network of the last request, if that was not told.
    pub(crate) fn set_up(&mut self) -> Option<SetUp> {
        let of_it = |it: &SetUp| it.network == self.asked;
        let at = self.set_ups.iter().position(of_it)?;
        Some(self.set_ups.remove(at))
    }

    /// Brings a cluster up, and records what that took. One that fails is taken down.
    pub(crate) fn bring_up(&mut self, network: &str) -> Result<Member, TargetError> {
        let log = self.maker.next_log(network);
        let started = Instant::now();
        let made = self.maker.make(network, &log);
        let mut set_up = SetUp {
            network: network.to_owned(),
            took_ns: nanoseconds(started.elapsed()),
            paths_ns: None,
            came_up: false,
            log: format!("{LOGS}/{log}"),
            fingerprint: None,
        };
        let member = made.and_then(|made| self.open(made, &mut set_up));
        self.set_ups.push(set_up);
        member.map_err(|why| {
            let why = format!(
                "the network {network} did not come up: {why} ({LOGS}/{log} has all of it)"
            );
            self.failed.insert(network.to_owned(), why.clone());
            TargetError::Failed(why)
        })
    }

    fn open(&mut self, made: Made, set_up: &mut SetUp) -> Result<Member, String> {
        let permitted = self.check_permission(&made);
        let cluster = match permitted.and_then(|()| self.reached_by(&made)) {
            Ok(cluster) => cluster,
            Err(why) => {
                self.maker.unmake(&made);
                return Err(why);
            }
        };
        let mut member = Member {
            name: made.network.clone(),
            cluster,
            made: Some(made),
        };
        match self.try_out(&mut member, set_up) {
            Ok(()) => Ok(member),
            Err(why) => {
                self.take_down(member);
                Err(why)
            }
        }
    }

    /// Refuses pods in the nodes' networks of a cluster that others may use, unless the
    /// user allowed them.
    fn check_permission(&mut self, made: &Made) -> Result<(), String> {
        if made.for_run || self.options.host_network {
            return Ok(());
        }
        let in_nodes = |it: &&Treatment| {
            let route = ClusterRoute::of(&it.scene);
            it.scene.network == made.network && route.is_ok_and(ClusterRoute::needs_host_network)
        };
        let Some(first) = self.planned.iter().find(in_nodes) else {
            return Ok(());
        };
        self.is_refused = true;
        Err(format!(
            "`{}` puts pods into the nodes' own networks, in a namespace with the privileged \
             profile, and the command did not say that only this run uses the cluster: have it \
             print a line MADE_FOR_RUN=yes, say --allow-host-network, or measure without, such as \
             by --path pod --baseline {}",
            first.scene.name(),
            made.network
        ))
    }

    /// The cluster that a command handed over.
    fn reached_by(&self, made: &Made) -> Result<Cluster, String> {
        let opened = Cluster::open(ClusterOptions {
            kubeconfig: Some(made.kubeconfig.clone()),
            host_network: self.options.host_network || made.for_run,
            policy: self.options.policy && !made.for_run,
            ..self.options.clone()
        });
        opened.map_err(|error| error.to_string())
    }

    /// Sees that paths can be made in it, and that it is as the first cluster was.
    fn try_out(&mut self, member: &mut Member, set_up: &mut SetUp) -> Result<(), String> {
        let started = Instant::now();
        let works = self.make_paths(member)?;
        set_up.paths_ns = Some(nanoseconds(started.elapsed()));
        member.cluster.settle(&works);
        set_up.fingerprint = Some(self.compare_with_first(member)?);
        set_up.came_up = true;
        Ok(())
    }

    /// Makes every path that the plan wants of a network, and gives a treatment whose
    /// path could be made. One that cannot be made fails its own trials; when none can,
    /// the network is not up.
    fn make_paths(&mut self, member: &mut Member) -> Result<Treatment, String> {
        // A path is the same for every workload.
        let mut seen = BTreeSet::new();
        let own = self.planned.iter();
        let own =
            own.filter(|it| it.scene.network == member.name && seen.insert((&it.scene, it.copy)));
        let own: Vec<Treatment> = own.cloned().collect();
        self.wait_for_nodes(member, &own)?;
        let mut works = None;
        let mut first_error = None;
        for treatment in own {
            let made = member.cluster.ready(&treatment, &[0, 1]);
            self.note(&treatment.scene, &made);
            match made {
                Ok(()) => works = works.or(Some(treatment)),
                Err(error) if self.is_interrupted() => return Err(error.to_string()),
                Err(error) => first_error = first_error.or(Some(error.to_string())),
            }
        }
        let why = || first_error.unwrap_or_else(|| "the plan has no path in it".to_owned());
        works.ok_or_else(why)
    }

    /// Notes whether a scene carries packets.
    fn note(&mut self, scene: &Scene, made: &Result<(), TargetError>) {
        match made {
            Ok(()) => {
                self.reached.insert(scene.clone());
            }
            Err(TargetError::Unreached(why)) if !self.reached.contains(scene) => {
                self.unreached.insert(scene.clone(), why.clone());
            }
            Err(_) => {}
        }
    }

    /// Waits until the nodes that the paths need take pods: the command may end
    /// a moment before they do.
    fn wait_for_nodes(&self, member: &mut Member, own: &[Treatment]) -> Result<(), String> {
        let started = Instant::now();
        while let Err(error) = member.cluster.plan(own) {
            if started.elapsed() > NODES || self.is_interrupted() {
                return Err(error.to_string());
            }
            std::thread::sleep(NODES_LOOK);
            // A cluster keeps the nodes that it chose.
            if let Some(made) = &member.made {
                member.cluster = self.reached_by(made)?;
            }
        }
        Ok(())
    }

    /// What the cluster is made of, when it is as the first was (C-13).
    fn compare_with_first(&mut self, member: &mut Member) -> Result<Fingerprint, String> {
        let seen = member.fingerprint().map_err(|it| it.to_string())?;
        let first = self.first.get_or_insert_with(|| seen.clone());
        let differing = alike::differences(first, &seen);
        if differing.is_empty() || self.across_environments {
            return Ok(seen);
        }
        Err(format!(
            "it differs from the first cluster of the run in more than its network: {}; \
             --across-environments compares them all the same",
            differing.join("; ")
        ))
    }

    /// Takes a cluster down. What goes wrong is kept for the end.
    pub(crate) fn take_down(&mut self, mut member: Member) {
        // The command may keep the cluster for others, without its networks.
        let for_run = member.made.as_ref().is_some_and(|made| made.for_run);
        let in_it = if for_run {
            member.cluster.release()
        } else {
            member.cluster.teardown()
        };
        if !member.made.is_some_and(|made| self.maker.unmake(&made)) {
            self.maker.left.extend(in_it);
        }
    }
}

pub(crate) fn not_up(network: &str) -> TargetError {
    TargetError::Failed(format!(
        "the network {network} did not come up in this block"
    ))
}

/// Whether a word may be the name of a cluster: it goes into a command for the
/// shell, and into names of files.
pub(crate) fn is_name(word: &str) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = word.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && word.len() <= 64 && word.chars().all(fine) {
        return Ok(());
    }
    Err(format!(
        "`{word}` cannot stand for {{network}} in a command: use at most 64 letters, digits, `-`, \
         `_` or `.`"
    ))
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use plumbline_experiment::{Asked, Experiment};

    use super::*;
    use crate::choice::ClusterLayout;

    static INTERRUPTED: AtomicBool = AtomicBool::new(false);

    /// Made by commands that note that they ran.
    fn fresh(scratch: &tempfile::TempDir, host_network: bool) -> FreshClusters {
        let note = |what: &str| format!("echo {what} >>{}/calls", scratch.path().display());
        let up = format!("{}; echo x >$KUBECONFIG", note("up"));
        let logs = scratch.path().join("logs");
        let maker = Maker::new(up, Some(note("down")), None, logs, &INTERRUPTED).unwrap();
        let options = ClusterOptions {
            policy: true,
            kubeconfig: None,
            context: None,
            layout: ClusterLayout::Pair,
            nodes: Vec::new(),
            namespace: None,
            image: String::new(),
            host_network,
            tracing: false,
            tuning: false,
            started_by: String::new(),
            interrupted: &INTERRUPTED,
        };
        let mut fresh = FreshClusters::new(maker, options, false);
        let text = "name = \"x\"\nfactors.network = \"a\"\nfactors.path = [\"pod\", \"host\"]\n\
                    [[workload]]\nkind = \"rr\"\nrate = 100\n";
        let scenes = |asked: &Asked<'_>| {
            let network = Scene::of(asked.network.word());
            Ok(vec![network.by(asked.path.map_or("host", |it| it.word()))])
        };
        let experiment = Experiment::parse(text, "x.toml").unwrap();
        let plan = experiment.resolve(1, &scenes).unwrap();
        fresh.plan(&plan.treatments).unwrap();
        fresh
    }

    #[test]
    fn host_networking_is_asked_about_before_anything_is_put_into_the_cluster() {
        let scratch = tempfile::tempdir().unwrap();
        let mut fresh = fresh(&scratch, false);
        let why = fresh.bring_up("a").err().unwrap().to_string();
        for part in ["`a/host`", "--allow-host-network", "MADE_FOR_RUN=yes"] {
            assert!(why.contains(part), "{why}");
        }
        assert!(
            fresh.must_stop(),
            "the next network would be asked about too"
        );
        let calls = std::fs::read_to_string(scratch.path().join("calls"));
        assert_eq!(calls.unwrap(), "up\ndown\n");
    }

    #[test]
    fn what_carries_nothing_in_the_first_cluster_is_not_tried_again() {
        let scratch = tempfile::tempdir().unwrap();
        let mut fresh = fresh(&scratch, true);
        let (dead, alive) = (Scene::of("a").by("pod"), Scene::of("a").by("host"));
        let silent = || Err(TargetError::Unreached("leads nowhere".to_owned()));
        fresh.note(&dead, &silent());
        fresh.note(&alive, &Ok(()));
        // It has worked before: an outage.
        fresh.note(&alive, &silent());
        for _ in 0..2 {
            fresh.begin_block();
            assert_eq!(fresh.ask(&dead).unwrap_err().to_string(), "leads nowhere");
            fresh.ask(&alive).unwrap();
            assert!(fresh.has_failed(&dead) && !fresh.has_failed(&alive));
        }
    }

    #[test]
    fn clusters_of_the_run_and_paths_among_pods_need_no_question() {
        let scratch = tempfile::tempdir().unwrap();
        let made = |for_run| Made::of("a", for_run);
        let mut allowed = fresh(&scratch, true);
        assert_eq!(allowed.check_permission(&made(false)), Ok(()));
        let mut other = fresh(&scratch, false);
        assert!(other.check_permission(&made(false)).is_err());
        assert_eq!(other.check_permission(&made(true)), Ok(()));
        other.planned.retain(|it| it.scene.path == "pod");
        assert_eq!(other.planned.len(), 1);
        assert_eq!(other.check_permission(&made(false)), Ok(()));
    }
}
