//! What runs that were killed have left.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

use crate::error::ClusterError;
use crate::manifest::{OWNER, STARTED_BY};
use crate::session::ClusterConnection;
use crate::standing::delete_namespaces;

/// A namespace of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its name.
    pub namespace: String,
    /// Who started the run, as the run said.
    pub started_by: String,
    /// How long ago.
    pub age: Duration,
    /// Pods in it.
    pub pods: usize,
}

/// Namespaces of runs in a cluster, found by label.
pub struct Leftovers {
    session: ClusterConnection,
    /// What was found.
    pub left: Vec<Left>,
}

impl Leftovers {
    /// Looks for them. Those of runs under way are included; age and starter show
    /// which they are.
    ///
    /// # Errors
    ///
    /// No cluster, or no right to list namespaces.
    pub fn find(
        context: Option<&str>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, ClusterError> {
        let session = ClusterConnection::open(None, context, interrupted)?;
        let namespaces: Api<Namespace> = Api::all(session.client());
        let ours = ListParams::default().labels(OWNER);
        let found = session.call("list the namespaces", namespaces.list(&ours))?;
        let mut left = Vec::new();
        for namespace in found {
            let name = namespace.name_any();
            let pods: Api<Pod> = Api::namespaced(session.client(), &name);
            let what = format!("list the pods of namespace {name}");
            let pods = session.call(&what, pods.list(&ListParams::default()))?;
            let created = namespace.creation_timestamp();
            left.push(Left {
                started_by: namespace
                    .annotations()
                    .get(STARTED_BY)
                    .cloned()
                    .unwrap_or_else(|| "unknown".to_owned()),
                age: created.map_or(Duration::ZERO, |it| age(&it)),
                pods: pods.items.len(),
                namespace: name,
            });
        }
        Ok(Self { session, left })
    }

    /// Deletes them all, and waits until they are gone. Gives what could not
    /// be done.
    pub fn remove(&self) -> Vec<ClusterError> {
        let names: Vec<String> = self.left.iter().map(|it| it.namespace.clone()).collect();
        delete_namespaces(&self.session, &names)
    }
}

fn age(created: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) -> Duration {
    let created = u64::try_from(created.0.as_second()).unwrap_or_default();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(Duration::from_secs(created))
}
