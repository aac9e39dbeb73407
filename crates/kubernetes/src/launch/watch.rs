//! What a cluster shows of pods while they come and go, dated by this machine's clock when
//! the news arrive: the cluster's own dates are whole seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use tokio::task::JoinHandle;

use crate::ClusterError;
use crate::pods::state;
use crate::session::ClusterConnection;
use crate::site::lock;

/// How long to wait before a watch that was cut off is begun again.
const AGAIN: Duration = Duration::from_millis(500);

/// How soon a watch is refused.
const REFUSED: Duration = Duration::from_millis(200);

type Events = BoxStream<'static, kube::Result<WatchEvent<Pod>>>;

/// When something was first shown of a pod.
#[derive(Debug, Default)]
pub(super) struct ShownPod {
    /// That it has a node.
    pub(super) scheduled: Option<Instant>,
    /// That its sandbox has its network, where the cluster says so.
    pub(super) sandbox: Option<Instant>,
    /// That its container runs.
    pub(super) running: Option<Instant>,
    pub(super) ready: Option<Instant>,
    /// That there is no such pod any more.
    pub(super) gone: Option<Instant>,
    pub(super) last: Option<Pod>,
}

impl ShownPod {
    fn note(&mut self, pod: Pod, now: Instant) {
        let first = |seen: &mut Option<Instant>, is_so: bool| {
            if is_so {
                seen.get_or_insert(now);
            }
        };
        let has_node = pod.spec.as_ref().is_some_and(|it| it.node_name.is_some());
        first(&mut self.scheduled, has_node);
        first(&mut self.sandbox, is_so(&pod, "PodReadyToStartContainers"));
        first(&mut self.running, runs(&pod));
        first(&mut self.ready, is_so(&pod, "Ready"));
        self.last = Some(pod);
    }

    /// How far another watch dates its start from these dates at most; `None` where one of
    /// the two has a date that the other lacks, or both have none.
    pub(super) fn apart(&self, other: &Self) -> Option<Duration> {
        let dates = |of: &Self| [of.scheduled, of.sandbox, of.running, of.ready];
        let pairs = dates(self).into_iter().zip(dates(other));
        let apart = pairs
            .filter(|pair| *pair != (None, None))
            .map(|(one, other)| Some(one?.max(other?) - one?.min(other?)));
        apart.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Why it will not be ready, as far as the cluster shows after such a time.
    pub(super) fn failed(&self, waited: Duration) -> Option<String> {
        if self.ready.is_some() {
            return None;
        }
        if self.gone.is_some() {
            return Some("somebody deleted it before it was ready".to_owned());
        }
        let pod = self.last.as_ref()?;
        let container = pod.spec.as_ref().and_then(|it| it.containers.first());
        let image = container.and_then(|it| it.image.as_deref());
        let failed = state(pod, waited, image.unwrap_or_default()).err()?;
        Some(failed.to_string())
    }
}

fn is_so(pod: &Pod, condition: &str) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|it| it.conditions.iter().flatten());
    let mut of_it = conditions.filter(|it| it.type_ == condition);
    of_it.any(|it| it.status == "True")
}

fn runs(pod: &Pod) -> bool {
    let status = pod.status.iter();
    let mut containers = status.flat_map(|it| it.container_statuses.iter().flatten());
    containers.any(|it| it.state.as_ref().is_some_and(|it| it.running.is_some()))
}

/// Pods that are watched as long as it lives.
pub(super) struct PodWatch {
    shown: Arc<Mutex<BTreeMap<String, ShownPod>>>,
    task: JoinHandle<()>,
    /// Where it shares nothing with another one.
    _own: Option<ClusterConnection>,
}

impl PodWatch {
    /// Watches the pods that a selector finds: from now on, and there are none yet.
    ///
    /// # Errors
    ///
    /// The cluster does not let this account.
    pub(super) fn start(
        session: &ClusterConnection,
        api: &Api<Pod>,
        selector: &str,
    ) -> Result<Self, ClusterError> {
        let shown = Arc::default();
        let begun = begin(api, selector, &shown);
        let events = session.call("watch the pods that it launches", begun)?;
        let task = keep(api.clone(), selector.to_owned(), events, Arc::clone(&shown));
        Ok(Self {
            shown,
            task: session.runtime().spawn(task),
            _own: None,
        })
    }

    /// As [`start`](Self::start), over a connection and in a thread of its own.
    pub(super) fn start_apart(
        session: &ClusterConnection,
        namespace: &str,
        selector: &str,
    ) -> Result<Self, ClusterError> {
        let own = session.another()?;
        let api = Api::namespaced(own.client(), namespace);
        let mut watch = Self::start(&own, &api, selector)?;
        watch._own = Some(own);
        Ok(watch)
    }

    /// Looks at what was shown of a pod.
    pub(super) fn of<T>(&self, pod: &Pod, look: impl FnOnce(&ShownPod) -> T) -> T {
        match lock(&self.shown).get(&pod.name_any()) {
            Some(shown) => look(shown),
            None => look(&ShownPod::default()),
        }
    }
}

impl Drop for PodWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Notes what is there, and begins to watch.
async fn begin(
    api: &Api<Pod>,
    selector: &str,
    shown: &Mutex<BTreeMap<String, ShownPod>>,
) -> kube::Result<Events> {
    let listed = api.list(&ListParams::default().labels(selector)).await?;
    let version = listed.metadata.resource_version.unwrap_or_default();
    note_all(listed.items, &mut lock(shown));
    let watched = WatchParams::default().labels(selector);
    let mut events = Box::pin(api.watch(&watched, &version).await?.peekable());
    // A refusal comes as the first event.
    let first = tokio::time::timeout(REFUSED, events.as_mut().peek()).await;
    if matches!(first, Ok(Some(Err(_))))
        && let Some(Err(error)) = events.next().await
    {
        return Err(error);
    }
    Ok(events)
}

fn note_all(pods: Vec<Pod>, shown: &mut BTreeMap<String, ShownPod>) {
    let now = Instant::now();
    let names: BTreeSet<String> = pods.iter().map(|it| it.name_any()).collect();
    for (_, pod) in shown.iter_mut().filter(|(name, _)| !names.contains(*name)) {
        pod.gone.get_or_insert(now);
    }
    for pod in pods {
        shown.entry(pod.name_any()).or_default().note(pod, now);
    }
}

/// Notes what is shown, and begins again where it is cut off: what happens meanwhile is
/// dated when it is seen.
async fn keep(
    api: Api<Pod>,
    selector: String,
    mut events: Events,
    shown: Arc<Mutex<BTreeMap<String, ShownPod>>>,
) {
    loop {
        while let Some(Ok(event)) = events.next().await {
            let now = Instant::now();
            let mut shown = lock(&shown);
            match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                    shown.entry(pod.name_any()).or_default().note(pod, now);
                }
                WatchEvent::Deleted(pod) => {
                    let shown = shown.entry(pod.name_any()).or_default();
                    shown.gone.get_or_insert(now);
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => break,
            }
        }
        events = loop {
            tokio::time::sleep(AGAIN).await;
            if let Ok(events) = begin(&api, &selector, &shown).await {
                break events;
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::planted::{PlantedServer, Reply};

    fn pod(spec: &Value, status: &Value) -> Pod {
        let metadata = json!({ "name": "launched-1" });
        crate::manifest::built(json!({ "metadata": metadata, "spec": spec, "status": status }))
    }

    #[test]
    fn what_is_shown_is_dated_when_it_is_shown_first() {
        let mut shown = ShownPod::default();
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let (unplaced, placed) = (
            json!({ "containers": [] }),
            json!({ "nodeName": "b", "containers": [] }),
        );
        shown.note(pod(&unplaced, &json!({ "phase": "Pending" })), at(1));
        assert_eq!((shown.scheduled, shown.ready), (None, None));
        shown.note(pod(&placed, &json!({ "phase": "Pending" })), at(2));
        let condition = |type_: &str| json!({ "type": type_, "status": "True" });
        let running = json!([{ "name": "p", "image": "i", "imageID": "", "ready": true,
            "restartCount": 0, "state": { "running": {} } }]);
        let conditions = [condition("PodReadyToStartContainers"), condition("Ready")];
        let status = json!({ "phase": "Running", "conditions": conditions,
            "containerStatuses": running });
        shown.note(pod(&placed, &status), at(3));
        shown.note(pod(&placed, &status), at(4));
        let seen = [shown.scheduled, shown.sandbox, shown.running, shown.ready];
        assert_eq!(seen, [2, 3, 3, 3].map(|ms| Some(at(ms))));
        assert_eq!(shown.failed(Duration::from_secs(60)), None);
    }

    #[test]
    fn two_watches_are_as_far_apart_as_their_furthest_dates() {
        let begun = Instant::now();
        let at = |ms| Some(begun + Duration::from_millis(ms));
        let shown = |running, ready| ShownPod {
            scheduled: at(1),
            running,
            ready,
            ..ShownPod::default()
        };
        let one = shown(at(20), at(30));
        for (other, ms) in [
            (shown(at(20), at(30)), Some(0)),
            (shown(at(18), at(31)), Some(2)),
            (shown(at(20), None), None),
            (ShownPod::default(), None),
        ] {
            let apart = ms.map(Duration::from_millis);
            assert_eq!([one.apart(&other), other.apart(&one)], [apart; 2]);
        }
        let unseen = ShownPod::default();
        assert_eq!(unseen.apart(&unseen), None);
    }

    #[test]
    fn why_a_pod_does_not_start_is_told() {
        let spec = json!({ "containers": [{ "name": "p", "image": "image:1" }] });
        let message = "0/2 nodes are available: 2 Too many pods.";
        let status = json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "message": message },
        ] });
        let mut shown = ShownPod::default();
        shown.note(pod(&spec, &status), Instant::now());
        assert_eq!(shown.failed(Duration::ZERO), None);
        let told = shown.failed(Duration::from_secs(60)).unwrap();
        assert!(told.contains("Too many pods"), "{told}");
        let waiting = json!([{ "name": "p", "image": "image:1", "imageID": "", "ready": false,
            "restartCount": 0, "state": { "waiting": { "reason": "ErrImageNeverPull" } } }]);
        let status = json!({ "phase": "Pending", "containerStatuses": waiting });
        shown.note(pod(&spec, &status), Instant::now());
        let told = shown.failed(Duration::ZERO).unwrap();
        assert!(told.contains("image:1"), "{told}");
        shown.gone = Some(Instant::now());
        assert!(shown.failed(Duration::ZERO).unwrap().contains("deleted"));
    }

    #[test]
    fn who_may_not_watch_is_told_how_to_get_the_right() {
        let message = "pods is forbidden: User \"ann\" cannot watch resource \"pods\"";
        let forbidden = Reply::Status(403, "Forbidden", message);
        let server = PlantedServer::start([Reply::Gone], forbidden);
        let session = server.session();
        let api = Api::namespaced(session.client(), "n");
        let refused = PodWatch::start(&session, &api, "a=b")
            .err()
            .unwrap()
            .to_string();
        assert!(refused.contains("watch the pods"), "{refused}");
        assert!(refused.contains("manifest role"), "{refused}");
    }

    /// Between the two watches it went.
    #[test]
    fn a_watch_that_ends_begins_again() {
        let event = r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"launched-1"},"spec":{"nodeName":"b","containers":[]}}}"#;
        let server = PlantedServer::start([Reply::Gone, Reply::Text(event)], Reply::Gone);
        let session = server.session();
        let api = Api::namespaced(session.client(), "n");
        let watch = PodWatch::start(&session, &api, "a=b").unwrap();
        let since = Instant::now();
        let launched = pod(&json!({ "containers": [] }), &Value::Null);
        while watch.of(&launched, |it| it.gone.is_none()) {
            assert!(
                since.elapsed() < Duration::from_secs(10),
                "{:?}",
                server.asked()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(watch.of(&launched, |it| it.scheduled.is_some()));
    }
}
