//! Many objects of one kind in the namespace of a run: made and deleted some at a time.

use std::fmt::Debug;
use std::time::Instant;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ClusterError;
use crate::manifest::RunMark;
use crate::session::{ClusterConnection, PATIENCE};

/// The label by which many objects are deleted in parts: the API server deletes what one
/// request asks for one after the other, and works at several requests at a time.
const LOT: &str = "plumbline/lot";
const LOTS: u32 = 16;

/// As whom the API server knows us among those who may own a field.
const MANAGER: &str = "plumbline";

/// Where a run makes objects.
#[derive(Clone, Copy)]
pub(crate) struct RunPlace<'a> {
    pub(crate) session: &'a ClusterConnection,
    pub(crate) namespace: &'a str,
    pub(crate) mark: &'a RunMark,
}

/// A kind of objects that namespaces hold.
pub(crate) trait ObjectKind:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
{
}

impl<K> ObjectKind for K where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
{
}

impl RunPlace<'_> {
    /// Name and labels of one of many objects.
    pub(crate) fn metadata(&self, name: &str, number: u32) -> Value {
        let mut metadata = self.mark.metadata(name);
        metadata["labels"][LOT] = (number % LOTS).to_string().into();
        metadata
    }

    /// Has these objects as they are written, in the end: made, or changed. Gives them as the
    /// API server has them. `what` completes "the cluster could not make …".
    ///
    /// # Errors
    ///
    /// The first that is refused; others may have been made.
    pub(crate) fn apply<K: ObjectKind>(
        &self,
        what: &str,
        objects: &[K],
    ) -> Result<Vec<K>, ClusterError> {
        let api: &Api<K> = &Api::namespaced(self.session.client(), self.namespace);
        // Not by force: what somebody else has under this name stays theirs.
        let params = &PatchParams::apply(MANAGER);
        let requests = objects.iter().map(|object| {
            move || async move {
                let name = object.name_any();
                api.patch(&name, params, &Patch::Apply(object)).await
            }
        });
        let what = format!("make {what}");
        self.session.patiently_each(&what, requests)
    }

    /// Deletes objects by their names within the run, whether they are there or not.
    ///
    /// # Errors
    ///
    /// The first that is refused; others may have been deleted.
    pub(crate) fn delete<K: ObjectKind>(
        &self,
        what: &str,
        names: impl IntoIterator<Item = String>,
    ) -> Result<(), ClusterError> {
        let api: &Api<K> = &Api::namespaced(self.session.client(), self.namespace);
        let names: Vec<String> = names.into_iter().map(|it| self.mark.name(&it)).collect();
        let now = &DeleteParams::default();
        let requests = names.iter().map(|name| {
            move || async move {
                let deleted = api.delete(name, now).await;
                absent(deleted.map(drop))
            }
        });
        let what = format!("delete {what}");
        self.session.patiently_each(&what, requests).map(drop)
    }

    /// Deletes all objects of a kind that were made by number.
    ///
    /// # Errors
    ///
    /// As for [`delete`](Self::delete).
    pub(crate) fn delete_all<K: ObjectKind>(&self, what: &str) -> Result<(), ClusterError> {
        let selector = self.mark.selector();
        let errors = clear_kind::<K>(self.session, self.namespace, &selector, what);
        errors.into_iter().next().map_or(Ok(()), Err)
    }
}

/// Deletes what one run made by number in a namespace, whatever the user wants meanwhile.
/// Gives what could not be done.
pub(crate) fn clear(
    session: &ClusterConnection,
    namespace: &str,
    selector: &str,
) -> Vec<ClusterError> {
    let mut errors = clear_kind::<Service>(session, namespace, selector, "services");
    errors.extend(clear_kind::<EndpointSlice>(
        session,
        namespace,
        selector,
        "endpoints of services",
    ));
    errors.extend(clear_kind::<NetworkPolicy>(
        session,
        namespace,
        selector,
        "NetworkPolicies",
    ));
    // Who may not delete them could not make them.
    errors.retain(|error| !matches!(error, ClusterError::Forbidden { .. }));
    errors
}

fn clear_kind<K: ObjectKind>(
    session: &ClusterConnection,
    namespace: &str,
    selector: &str,
    what: &str,
) -> Vec<ClusterError> {
    let api: &Api<K> = &Api::namespaced(session.client(), namespace);
    let lots = lots(selector);
    let now = &DeleteParams::default();
    let requests = lots
        .iter()
        .map(|lot| move || async move { absent(api.delete_collection(now, lot).await.map(drop)) });
    let what = format!("delete the {what} of the run in namespace {namespace}");
    session.insist_each(&what, Instant::now() + PATIENCE, requests)
}

fn lots(selector: &str) -> Vec<ListParams> {
    let of = |lot| ListParams::default().labels(&format!("{selector},{LOT}={lot}"));
    (0..LOTS).map(of).collect()
}

/// What is not there need not be deleted.
fn absent(answer: kube::Result<()>) -> kube::Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::built;
    use crate::planted::{PlantedServer, Reply};

    pub(crate) fn mark() -> RunMark {
        RunMark {
            run: "3fa2".to_owned(),
            started_by: "me".to_owned(),
            shares_namespace: true,
        }
    }

    #[test]
    fn objects_are_deleted_by_lots_and_with_the_run_only() {
        let server = PlantedServer::start([Reply::Nothing], Reply::Gone);
        let session = server.session();
        let errors = clear(&session, "shared", &mark().selector());
        assert!(errors.is_empty(), "{errors:?}");
        let asked = server.asked();
        assert_eq!(asked.len() as u32, 3 * LOTS + 1, "{asked:?}");
        let ours = "labelSelector=plumbline%2Frun%3D3fa2%2Cplumbline%2Flot%3D";
        let is_ours = |it: &String| it.starts_with("DELETE ") && it.contains(ours);
        assert!(asked.iter().all(is_ours), "{asked:?}");
    }

    /// What came of making a hundred services that the API server refuses in this way, and
    /// what it was asked.
    fn refused(code: u16, reason: &'static str, message: &'static str) -> (String, Vec<String>) {
        let server = PlantedServer::start([], Reply::Status(code, reason, message));
        let session = server.session();
        let mark = mark();
        let place = RunPlace {
            session: &session,
            namespace: "shared",
            mark: &mark,
        };
        let services: Vec<Service> = (0..100)
            .map(|number| {
                let metadata = place.metadata(&format!("service-{number}"), number);
                built(json!({ "metadata": metadata }))
            })
            .collect();
        let error = place.apply("100 services", &services).unwrap_err();
        (error.to_string(), server.asked())
    }

    #[test]
    fn the_first_refusal_ends_it() {
        for (code, message, remedy) in [
            (
                403,
                "services \"x\" is forbidden: exceeded quota: few, requested: services=1",
                "ResourceQuota",
            ),
            (
                403,
                "services \"x\" is forbidden: User \"ann\" cannot patch resource \"services\"",
                "manifest role",
            ),
            (
                403,
                "admission webhook \"few.example\" denied the request: ask first",
                "denied the request: ask first",
            ),
        ] {
            let (told, asked) = refused(code, "Forbidden", message);
            assert!(told.contains("make 100 services"), "{told}");
            assert!(told.contains(remedy), "{told}");
            assert!(asked.len() < 100, "{asked:?}");
        }
    }

    /// What somebody else has under a name stays theirs: nothing is asked for by force.
    #[test]
    fn a_name_that_is_taken_is_told() {
        let conflict = "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .spec";
        let (told, asked) = refused(409, "Conflict", conflict);
        assert!(told.contains("conflict with \"kubectl\""), "{told}");
        let is_forced = |it: &String| it.contains("force");
        assert!(!asked.iter().any(is_forced), "{asked:?}");
    }
}
