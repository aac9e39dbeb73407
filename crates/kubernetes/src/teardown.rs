//! Undoing what a run made in a cluster.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition, Pod, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};

use crate::ClusterError;
use crate::session::{ClusterConnection, PATIENCE};

/// How often what ends is looked at.
const LOOK: Duration = Duration::from_millis(150);

/// Longest wait for the end of a namespace, or of the pods in one.
const END: Duration = Duration::from_secs(60);

/// The same of a namespace in which finalizers hold an object: nothing that a run makes has any,
/// so who has to take them away is not known.
const HELD: Duration = Duration::from_secs(20);

/// Deletes namespaces, and waits until they are gone: all at once, because each
/// takes some seconds. An API server that is away is waited for.
pub(crate) fn delete_namespaces(
    session: &ClusterConnection,
    names: &[String],
) -> Vec<ClusterError> {
    let (going, mut errors) = begin_to_delete(session, names);
    let started = Instant::now();
    let api: Api<Namespace> = Api::all(session.client());
    for name in going {
        errors.extend(wait_until_gone(session, &api, name, started).err());
    }
    errors
}

/// As [`delete_namespaces`], but gives those that are going instead of waiting.
pub(crate) fn begin_to_delete<'n>(
    session: &ClusterConnection,
    names: &'n [String],
) -> (Vec<&'n String>, Vec<ClusterError>) {
    let mut errors = Vec::new();
    let mut going = Vec::new();
    let until = Instant::now() + PATIENCE;
    let api: Api<Namespace> = Api::all(session.client());
    for name in names {
        // With no grace: a kubelet that does not answer would keep its pods, and so the
        // namespace; and the pods have nothing to finish.
        let pods: Api<Pod> = Api::namespaced(session.client(), name);
        let now = DeleteParams::default().grace_period(0);
        let all = ListParams::default();
        let what = format!("delete the pods of namespace {name}");
        let deleted = session.insist(&what, until, || async {
            found(pods.delete_collection(&now, &all).await)
        });
        errors.extend(deleted.err());
        let what = format!("delete namespace {name}");
        let deleted = session.insist(&what, until, || async {
            found(api.delete(name, &DeleteParams::default()).await)
        });
        match deleted {
            Ok(_) => going.push(name),
            Err(error) => errors.push(error),
        }
    }
    (going, errors)
}

fn wait_until_gone(
    session: &ClusterConnection,
    api: &Api<Namespace>,
    name: &str,
    started: Instant,
) -> Result<(), ClusterError> {
    let what = format!("look for namespace {name}");
    loop {
        let looked = session.insist(&what, started + PATIENCE, || api.get_opt(name));
        let Some(namespace) = looked? else {
            return Ok(());
        };
        let limit = longest_wait(&namespace);
        if started.elapsed() > limit {
            return Err(ClusterError::TooLong {
                what: format!("the end of namespace {name}"),
                limit,
                hint: format!(
                    "{}; it goes when that is resolved, or try `plumbline cleanup` later",
                    why_it_stays(&namespace)
                ),
            });
        }
        std::thread::sleep(LOOK);
    }
}

fn longest_wait(namespace: &Namespace) -> Duration {
    match holding(namespace).any(|it| it.type_ == "NamespaceFinalizersRemaining") {
        true => HELD,
        false => END,
    }
}

/// What keeps a namespace from its end, in the cluster's words.
fn holding(namespace: &Namespace) -> impl Iterator<Item = &NamespaceCondition> {
    let status = namespace.status.iter();
    let conditions = status.flat_map(|it| it.conditions.iter().flatten());
    conditions.filter(|it| it.status == "True")
}

fn why_it_stays(namespace: &Namespace) -> String {
    let messages: Vec<&str> = holding(namespace)
        .filter_map(|it| it.message.as_deref())
        .collect();
    if messages.is_empty() {
        String::new()
    } else {
        format!(" ({})", messages.join("; "))
    }
}

/// Deletes pods, by namespace and name, with the grace that they have, and waits until they
/// have ended and are gone.
pub(crate) fn end_in_peace(
    session: &ClusterConnection,
    pods: &BTreeSet<(String, String)>,
) -> Vec<ClusterError> {
    let until = Instant::now() + PATIENCE;
    let mut errors = Vec::new();
    for (namespace, name) in pods {
        let api: Api<Pod> = Api::namespaced(session.client(), namespace);
        let what = format!("delete pod {namespace}/{name}");
        let deleted = session.insist(&what, until, || async {
            found(api.delete(name, &DeleteParams::default()).await)
        });
        errors.extend(deleted.err());
    }
    for (namespace, name) in pods {
        let api: Api<Pod> = Api::namespaced(session.client(), namespace);
        let name = format!("metadata.name={name}");
        let it = ListParams::default().fields(&name);
        errors.extend(wait_until_none(session, &api, &it).err());
    }
    errors
}

/// Deletes the pods, services and policies that a selector finds in a namespace, and waits
/// until the pods are gone. An API server that is away is waited for.
pub(crate) fn delete_selected(
    session: &ClusterConnection,
    namespace: &str,
    selector: &str,
) -> Vec<ClusterError> {
    let until = Instant::now() + PATIENCE;
    let now = DeleteParams::default().grace_period(0);
    let ours = ListParams::default().labels(selector);
    let services: Api<Service> = Api::namespaced(session.client(), namespace);
    let what = format!("delete the services of the run in namespace {namespace}");
    let deleted = session.insist(&what, until, || async {
        found(services.delete_collection(&now, &ours).await)
    });
    let mut errors = Vec::from_iter(deleted.err());
    let pods: Api<Pod> = Api::namespaced(session.client(), namespace);
    let what = format!("delete the pods of the run in namespace {namespace}");
    let deleted = session.insist(&what, until, || async {
        found(pods.delete_collection(&now, &ours).await)
    });
    let gone = deleted.and_then(|_| wait_until_none(session, &pods, &ours));
    errors.extend(gone.err());
    // After the pods, which it keeps others from.
    errors.extend(delete_policies(session, namespace, &ours).err());
    errors
}

fn delete_policies(
    session: &ClusterConnection,
    namespace: &str,
    ours: &ListParams,
) -> Result<(), ClusterError> {
    let policies: Api<NetworkPolicy> = Api::namespaced(session.client(), namespace);
    if policies_of(session, &policies, ours)?.is_empty() {
        return Ok(());
    }
    let until = Instant::now() + PATIENCE;
    let what = format!("delete the NetworkPolicy of the run in namespace {namespace}");
    let now = DeleteParams::default();
    let deleted = session.insist(&what, until, || policies.delete_collection(&now, ours));
    deleted.map(|_| ())
}

/// Those that a selector finds; none where the account may not see them, which then could
/// not make any.
pub(crate) fn policies_of(
    session: &ClusterConnection,
    policies: &Api<NetworkPolicy>,
    ours: &ListParams,
) -> Result<Vec<NetworkPolicy>, ClusterError> {
    let until = Instant::now() + PATIENCE;
    let list = || async { found(policies.list(ours).await) };
    match session.insist("list NetworkPolicies", until, list) {
        Ok(found) => Ok(found.map_or_else(Vec::new, |it| it.items)),
        Err(ClusterError::Forbidden { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn wait_until_none(
    session: &ClusterConnection,
    pods: &Api<Pod>,
    ours: &ListParams,
) -> Result<(), ClusterError> {
    let started = Instant::now();
    loop {
        let what = "list the pods of the run";
        let left = session.insist(what, started + PATIENCE, || pods.list(ours))?;
        let names: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
        if names.is_empty() {
            return Ok(());
        }
        if started.elapsed() > END {
            return Err(ClusterError::TooLong {
                what: format!("the end of the pods {}", names.join(", ")),
                limit: END,
                hint: "; try `plumbline cleanup --namespace` later".to_owned(),
            });
        }
        std::thread::sleep(LOOK);
    }
}

/// `None` for what is not there.
pub(crate) fn found<T>(answer: kube::Result<T>) -> kube::Result<Option<T>> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::planted::{PlantedServer, Reply};

    #[test]
    fn a_teardown_waits_for_an_api_server_that_is_away() {
        let troubled = |code| Reply::Status(code, "InternalError", "etcd is slow");
        let replies = [
            Reply::Nothing,
            troubled(500),
            troubled(503),
            troubled(504),
            Reply::Status(404, "NotFound", "no pods"),
            troubled(500),
        ];
        let gone = Reply::Status(404, "NotFound", "no such namespace");
        let server = PlantedServer::start(replies, gone);
        let errors = delete_namespaces(&server.session(), &["plumbline-x".to_owned()]);
        assert!(errors.is_empty(), "{errors:?}");
        let asked = server.asked();
        let pods = "DELETE /api/v1/namespaces/plumbline-x/pods";
        assert_eq!(
            asked.iter().filter(|it| it.starts_with(pods)).count(),
            5,
            "{asked:?}"
        );
        assert!(asked.last().unwrap().starts_with("GET "), "{asked:?}");
    }

    #[test]
    fn finalizers_are_not_waited_for_as_long_as_what_ends_by_itself() {
        let ending = |kind: &str, status: &str| -> Namespace {
            let condition = json!({ "type": kind, "status": status, "message": "1 is left" });
            serde_json::from_value(json!({ "status": { "conditions": [condition] } })).unwrap()
        };
        let held = ending("NamespaceFinalizersRemaining", "True");
        assert_eq!(longest_wait(&held), HELD);
        assert_eq!(why_it_stays(&held), " (1 is left)");
        for other in [
            ending("NamespaceFinalizersRemaining", "False"),
            ending("NamespaceContentRemaining", "True"),
        ] {
            assert_eq!(longest_wait(&other), END);
        }
    }

    #[test]
    fn in_a_shared_namespace_only_what_the_run_made_is_deleted() {
        let server = PlantedServer::start([Reply::Nothing, Reply::Gone, Reply::Gone], Reply::Gone);
        let errors = delete_selected(&server.session(), "shared", "plumbline/run=3fa2");
        assert!(errors.is_empty(), "{errors:?}");
        let asked = server.asked();
        let ours = "labelSelector=plumbline%2Frun%3D3fa2";
        assert!(asked.iter().all(|it| it.contains(ours)), "{asked:?}");
        for (kind, times) in [("DELETE", 3), ("GET", 2)] {
            let of_kind = asked.iter().filter(|it| it.starts_with(kind));
            assert_eq!(of_kind.count(), times, "{asked:?}");
        }
    }

    #[test]
    fn a_policy_of_the_run_goes_after_its_pods() {
        let made = Reply::Left("3fa2");
        let server =
            PlantedServer::start([Reply::Gone, Reply::Gone, Reply::Gone, made], Reply::Gone);
        let errors = delete_selected(&server.session(), "shared", "plumbline/run=3fa2");
        assert!(errors.is_empty(), "{errors:?}");
        let asked = server.asked();
        let policies = "DELETE /apis/networking.k8s.io/v1/namespaces/shared/networkpolicies?";
        assert!(asked.last().unwrap().starts_with(policies), "{asked:?}");
        assert_eq!(asked.len(), 5, "{asked:?}");
    }

    #[test]
    fn an_account_that_may_not_see_policies_made_none() {
        let forbidden = Reply::Status(403, "Forbidden", "is forbidden: User \"ann\" cannot list");
        let server = PlantedServer::start([Reply::Gone, Reply::Gone, Reply::Gone], forbidden);
        let errors = delete_selected(&server.session(), "shared", "plumbline/run=3fa2");
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(server.asked().len(), 4);
    }

    #[test]
    fn a_refusal_is_not_tried_again() {
        let forbidden = Reply::Status(403, "Forbidden", "is forbidden: User \"ann\" cannot delete");
        let server = PlantedServer::start([], forbidden);
        let errors = delete_namespaces(&server.session(), &["plumbline-x".to_owned()]);
        assert_eq!((errors.len(), server.asked().len()), (2, 2), "{errors:?}");
    }
}
