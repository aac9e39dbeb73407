//! Flags and file about clusters, made into a target.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use plumbline_experiment::{Experiment, Provision, Wanted};
use plumbline_harness::Target;

use crate::choice::ClusterLayout;
use crate::cluster::{Cluster, ClusterOptions};
use crate::clusters::Clusters;
use crate::error::ClusterError;
use crate::fresh::FreshClusters;
use crate::image;
use crate::lent::LentPods;
use crate::maker::Maker;

/// One cluster, several side by side, or clusters that are made for the run: what
/// was typed, before it is known which.
#[derive(Clone, Debug)]
pub struct ClusterRequest {
    /// Contexts of the kubeconfig; empty for the current one.
    pub contexts: Vec<String>,
    /// Command that brings a cluster up; outranks the file's.
    pub provision: Option<String>,
    /// Command that takes it down; outranks the file's.
    pub unprovision: Option<String>,
    /// Names of the nodes; empty for a choice.
    pub nodes: Vec<String>,
    /// Namespace for the pods that an administrator made; each run makes one where there
    /// is none.
    pub namespace: Option<String>,
    /// Reference of the pods' image; this program's own where there is none.
    pub image: Option<String>,
    /// Whether pods may be in the nodes' networks.
    pub host_network: bool,
    /// Whether packets are to be followed, from a pod on each node of a path that may load
    /// programs into its kernel.
    pub tracing: bool,
    /// Whether a privileged pod on each node sets what makes its figures steadier.
    pub tuning: bool,
    /// Whether a NetworkPolicy keeps all but the run's own pods from those that receive.
    pub policy: bool,
    /// Which nodes are measured with which.
    pub layout: ClusterLayout,
    /// The two pods of somebody else's to look between, as `NAMESPACE/NAME`; the target makes its
    /// own where there are none.
    pub between: Option<[String; 2]>,
    /// Whether environments may differ between clusters.
    pub across_environments: bool,
    /// Directory for what the commands say.
    pub logs: PathBuf,
    /// Set when the user wants to stop.
    pub interrupted: &'static AtomicBool,
}

impl ClusterRequest {
    /// The target. Connects to nothing yet. `say` gets what the user should know.
    ///
    /// # Errors
    ///
    /// Flags that do not go together, and a configuration that cannot be read.
    pub fn open_target(
        self,
        experiment: Option<&Experiment>,
        say: &dyn Fn(&str),
    ) -> Result<Box<dyn Target>, ClusterError> {
        if let Some(pods) = self.between.clone() {
            return Ok(Box::new(self.lent(pods)?));
        }
        let in_file = experiment.map(Experiment::provision).transpose()?;
        let commands = self.commands(in_file.unwrap_or_default());
        self.refuse_layout(&commands)?;
        if self.tracing && (commands.up.is_some() || self.contexts.len() > 1) {
            return Err(ClusterError::Options(
                "packets are followed in one cluster that stands: leave out --provision, or all \
                 but one --context"
                    .to_owned(),
            ));
        }
        let mut options = self.options();
        if let Some(up) = commands.up {
            let (down, limit) = (commands.down, commands.limit);
            let mut maker = Maker::new(up, down, limit, self.logs, self.interrupted)?;
            if self.image.is_none() {
                hand_own_image(&mut maker, say);
            }
            let across = self.across_environments;
            let fresh = FreshClusters::new(maker, options, across);
            return Ok(Box::new(Clusters::made_by(fresh)));
        }
        if commands.down.is_some() {
            return Err(ClusterError::Options(
                "--unprovision: takes down what --provision brought up; say that too".to_owned(),
            ));
        }
        if let Some(network) = names_a_cluster(experiment)?
            && self.contexts.len() < 2
        {
            return Err(ClusterError::Options(format!(
                "`{network}` names the network of a whole cluster: give --provision \
                 'COMMAND', which brings a cluster up with {{network}}, or --context for each that \
                 stands"
            )));
        }
        if self.contexts.len() > 1 {
            let across = self.across_environments;
            return Ok(Box::new(Clusters::open(self.contexts, &options, across)?));
        }
        options.context = self.contexts.into_iter().next();
        options.layout = self.layout;
        Ok(Box::new(Cluster::open(options)?))
    }

    /// Two pods that are there already.
    fn lent(self, pods: [String; 2]) -> Result<LentPods, ClusterError> {
        let flags = [
            ("--provision", self.provision.is_some()),
            ("--nodes", !self.nodes.is_empty()),
            ("--namespace", self.namespace.is_some()),
            ("--allow-tracing", self.tracing),
        ];
        if let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given) {
            return Err(ClusterError::Options(format!(
                "{flag}: is of pods that are made; {} and {} are there already",
                pods[0], pods[1]
            )));
        }
        let mut options = self.options();
        options.context = self.contexts.into_iter().next();
        LentPods::open(options, pods)
    }

    /// What was typed outranks what the file says; contexts name clusters that stand.
    fn commands(&self, in_file: Provision) -> Provision {
        let in_file = if self.contexts.is_empty() {
            in_file
        } else {
            Provision::default()
        };
        Provision {
            up: self.provision.clone().or(in_file.up),
            down: self.unprovision.clone().or(in_file.down),
            limit: in_file.limit,
        }
    }

    /// Refuses many nodes of several clusters.
    fn refuse_layout(&self, commands: &Provision) -> Result<(), ClusterError> {
        let flag = match self.layout {
            ClusterLayout::Pair => return Ok(()),
            ClusterLayout::Mesh => "--mesh",
            ClusterLayout::Pairs(_) => "--pairs",
        };
        if commands.up.is_none() && self.contexts.len() < 2 {
            return Ok(());
        }
        Err(ClusterError::Options(format!(
            "{flag}: the nodes of one cluster are measured; leave out --provision, or all but one \
             --context"
        )))
    }

    /// Those of any cluster; of a pair in the current one unless changed.
    fn options(&self) -> ClusterOptions {
        ClusterOptions {
            kubeconfig: None,
            context: None,
            layout: ClusterLayout::Pair,
            nodes: self.nodes.clone(),
            namespace: self.namespace.clone(),
            image: self.image.clone().unwrap_or_else(image::local_reference),
            host_network: self.host_network,
            tracing: self.tracing,
            tuning: self.tuning,
            policy: self.policy,
            started_by: started_by(),
            interrupted: self.interrupted,
        }
    }
}

/// The first network of an experiment of networks and paths that is no word for
/// all of them.
fn names_a_cluster(experiment: Option<&Experiment>) -> Result<Option<String>, ClusterError> {
    let Some(experiment) = experiment else {
        return Ok(None);
    };
    if experiment.paths()?.is_empty() {
        return Ok(None);
    }
    let networks = experiment.networks()?;
    let is_cluster = |it: &String| Wanted::new(it).name().is_some();
    Ok(networks.into_iter().find(is_cluster))
}

/// Hands the image of this program to the command that makes clusters, if an image
/// can hold it and the environment names no other.
fn hand_own_image(maker: &mut Maker, say: &dyn Fn(&str)) {
    if std::env::var_os("PLUMBLINE_IMAGE").is_some() {
        return;
    }
    let reference = image::local_reference();
    let program = std::env::current_exe().and_then(File::open);
    let handed = program
        .map_err(image::ImageError::from)
        .and_then(|mut program| maker.hand_image(&mut program, &reference));
    if let Err(error) = handed {
        say(&format!(
            "no image of this program for the clusters: {error}; so the command that brings them \
             up has to load {reference} itself, or name another with --image"
        ));
    }
}

/// Says whose the namespaces of a run are.
pub(crate) fn started_by() -> String {
    format!("{}, process {}", this_user(), std::process::id())
}

/// Whether [`started_by`] said so for this user on this machine.
pub(crate) fn is_own(started_by: &str) -> bool {
    let process = started_by.strip_prefix(&this_user());
    process.is_some_and(|rest| rest.starts_with(", process "))
}

fn this_user() -> String {
    let user = std::env::var("USER");
    let user = user.unwrap_or_else(|_| format!("user {}", nix::unistd::getuid()));
    let host = nix::unistd::gethostname().ok();
    let host = host.and_then(|it| it.into_string().ok());
    let host = host.unwrap_or_else(|| "an unnamed machine".to_owned());
    format!("{user} on {host}")
}
