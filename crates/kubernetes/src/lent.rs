//! A path between two pods that are there already. An ephemeral container beside theirs has the
//! network of its pod, and ends by itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use plumbline_experiment::{Asked, Ends, Family, Scene, Treatment};
use plumbline_harness::{Demand, Levels, Path, Target, TargetError};
use plumbline_record::{Fingerprint, IdleSample, Warning};
use serde_json::json;

use crate::cluster::ClusterOptions;
use crate::error::ClusterError;
use crate::manifest::{self, RunMark, word};
use crate::path::ClusterPath;
use crate::pods::{self, RunningPod};
use crate::route::ClusterRoute;
use crate::seat::Seat;
use crate::session::ClusterConnection;
use crate::site::{Observers, PodSite};

/// How long such a container may take to start, and how often it is looked at meanwhile.
const START: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);

/// Two pods of somebody else's, and the path between them.
pub(crate) struct LentPods {
    session: Arc<ClusterConnection>,
    /// Each as `NAMESPACE/NAME`, or as a name in the namespace of the context.
    names: [String; 2],
    image: String,
    started_by: String,
    observers: Observers,
    nodes: Vec<String>,
    path: Option<ClusterPath>,
}

impl LentPods {
    /// Reads the configuration; sends nothing to the cluster yet.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Configuration`].
    pub(crate) fn open(options: ClusterOptions, names: [String; 2]) -> Result<Self, ClusterError> {
        let context = options.context.as_deref();
        let session = ClusterConnection::open(None, context, options.interrupted)?;
        Ok(Self {
            session: Arc::new(session),
            names,
            image: options.image,
            started_by: options.started_by,
            observers: Observers::default(),
            nodes: Vec::new(),
            path: None,
        })
    }

    /// The path from the first to the second, by addresses of one version.
    fn join(&mut self, family: Family) -> Result<ClusterPath, ClusterError> {
        let mut sites = Vec::new();
        for (number, name) in (0..).zip(&self.names) {
            let pod = self.borrow(name)?;
            let address = pod.address(family).ok_or_else(|| ClusterError::Pod {
                pod: name.clone(),
                message: format!("it has no address of {family:?}"),
            })?;
            self.nodes.push(pod.node.clone());
            // Others' packets pass the devices of these pods too, as those of a node of a mesh.
            let (session, seat) = (Arc::clone(&self.session), Seat::Member(number));
            sites.push(PodSite::new(session, &pod, seat, address, 0));
        }
        let client = sites.remove(0);
        let mark = RunMark {
            run: word(),
            started_by: self.started_by.clone(),
            shares_namespace: true,
        };
        ClusterPath::new(client, sites, None, mark, &self.observers)
    }

    /// Puts a container into a pod, and waits until it runs.
    fn borrow(&self, name: &str) -> Result<RunningPod, ClusterError> {
        let usual = || self.session.client().default_namespace().to_owned();
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) => (namespace.to_owned(), name),
            None => (usual(), name),
        };
        let api: Api<Pod> = Api::namespaced(self.session.client(), &namespace);
        let show = || {
            let what = format!("show the pod {namespace}/{name}");
            self.session.call(&what, api.get(name))
        };
        let Some(mut pod) = pods::state(&show()?, START, &self.image)? else {
            return Err(ClusterError::Pod {
                pod: format!("{namespace}/{name}"),
                message: "it does not run; name one that does".to_owned(),
            });
        };
        let container = format!("plumbline-{}", word());
        let lent = manifest::lent(&container, &self.image);
        let patch = Patch::Strategic(json!({ "spec": { "ephemeralContainers": [lent] } }));
        let what = format!("put an ephemeral container into the pod {namespace}/{name}");
        let params = PatchParams::default();
        let put = api.patch_ephemeral_containers(name, &params, &patch);
        self.session.call(&what, put).map_err(with_rights)?;
        let since = Instant::now();
        while !pods::has_started(&show()?, &container, since.elapsed(), &self.image)? {
            if since.elapsed() > START {
                return Err(ClusterError::TooLong {
                    what: format!("the container {container} in the pod {namespace}/{name}"),
                    limit: START,
                    hint: "; `kubectl describe pod` tells more".to_owned(),
                });
            }
            self.session.pause(LOOK)?;
        }
        pod.container = Some(container);
        Ok(pod)
    }
}

/// The rights of a run are no help here.
fn with_rights(error: ClusterError) -> ClusterError {
    match error {
        ClusterError::Forbidden { what, message } => ClusterError::Refused {
            what,
            message: format!(
                "{message}; this takes the rights to get pods, to patch pods/ephemeralcontainers \
                 and to create pods/exec there"
            ),
        },
        other => other,
    }
}

impl Target for LentPods {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn scenes(
        &mut self,
        _: &Asked<'_>,
        _: &[Family],
        _: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String> {
        Ok(vec![ClusterRoute::named("pod", false)?.through("")])
    }

    fn supports(&self, factor: &str) -> Levels {
        match factor {
            "network" | "path" => Levels::Any,
            "family" => Levels::These(&["6"]),
            _ => Levels::Default,
        }
    }

    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), TargetError> {
        let family = demand.treatments.first().map(|it| it.scene.family);
        self.path = Some(self.join(family.unwrap_or_default())?);
        Ok(())
    }

    fn nodes(&self) -> Vec<String> {
        self.nodes.clone()
    }

    fn is_one_kernel(&self) -> bool {
        self.path
            .as_ref()
            .is_some_and(|it| !it.is_on_two_machines())
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        Err(looked_at_only())
    }

    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    fn stage(&self, _: &Treatment, _: Ends) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        let path = self.path.clone().ok_or_else(looked_at_only)?;
        Ok(Box::new(path))
    }

    fn idle_sample(&self, _: &Treatment, _: usize, _: Duration) -> Result<IdleSample, TargetError> {
        Err(looked_at_only())
    }

    /// Ends the agents. The containers end by themselves, and Kubernetes removes them with
    /// their pods.
    fn teardown(&mut self) -> Vec<TargetError> {
        self.path = None;
        self.observers.end();
        Vec::new()
    }
}

/// Nothing is measured between pods that others use meanwhile.
fn looked_at_only() -> TargetError {
    TargetError::Unsupported {
        what: "a run between pods that are there already".to_owned(),
        needs: "`plumbline doctor --path` looks at them; a run makes its own".to_owned(),
    }
}
