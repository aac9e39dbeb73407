//! The pods of one launch: asked for and deleted, each at its moment.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use plumbline_experiment::Launch;
use plumbline_protocol::MeetingPhase;
use plumbline_record::LaunchStep;

use super::peers::{LaunchPeers, SeenPod};
use super::watch::PodWatch;
use crate::ClusterError;
use crate::session::{ClusterConnection, unless};
use crate::teardown::found;

/// How long a pod is waited for, to come and to go.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// From when all is ready to the first pod.
const LEAD: Duration = Duration::from_millis(100);

/// How often it is looked whether all pods are there, or gone.
const LOOK: Duration = Duration::from_millis(100);

/// How long an address has to be silent until its last answer is taken for that.
const SILENT: Duration = Duration::from_millis(500);

/// Connections that are opened to the API server before the first pod: as many requests of a
/// steady rate are under way at a time, or more.
const CONNECTIONS: usize = 8;

/// Longest wait for the end of pods that are not followed to theirs. What stays then goes
/// with all else of the run.
const UNDONE: Duration = Duration::from_secs(10);

/// Something that was asked of the cluster at its moment.
pub(super) struct AskedChange {
    pub(super) intended: Instant,
    pub(super) begun: Instant,
    /// When it was answered.
    pub(super) answered: Result<Instant, ClusterError>,
}

impl AskedChange {
    fn is_awaited(&self) -> bool {
        self.answered.is_ok() && self.intended.elapsed() < LIMIT
    }

    /// Nanoseconds since it was intended.
    pub(super) fn since(&self, moment: Instant) -> u64 {
        moment.saturating_duration_since(self.intended).as_nanos() as u64
    }

    pub(super) fn steps<'s>(
        &self,
        steps: impl IntoIterator<Item = (&'s str, Option<Instant>)>,
    ) -> Vec<LaunchStep> {
        let step = |(step, at): (&str, Option<Instant>)| {
            Some(LaunchStep {
                step: step.to_owned(),
                ended_ns: self.since(at?),
            })
        };
        steps.into_iter().filter_map(step).collect()
    }

    pub(super) fn answered(&self) -> Option<Instant> {
        self.answered.as_ref().ok().copied()
    }
}

/// The pods of one launch. Those that are there when it is dropped are deleted.
pub(super) struct LaunchedLot<'p> {
    pub(super) session: &'p ClusterConnection,
    pub(super) api: Api<Pod>,
    pub(super) pods: Vec<Pod>,
    pub(super) selector: String,
    pub(super) gap: Duration,
    /// Whether nobody wants it any more.
    pub(super) given_up: &'p AtomicBool,
}

impl LaunchedLot<'_> {
    /// Opens connections for the requests to come: to open one takes longer than many a
    /// request.
    pub(super) fn connect(&self, task: &Launch) -> Result<(), ClusterError> {
        let all = self.pods.len();
        let count = task.rate.map_or(all, |_| all.min(CONNECTIONS));
        let what = "look for the pods that it launches";
        let ask = |pod: &Pod| {
            let name = pod.name_any();
            async move { self.session.bounded(what, self.api.get_opt(&name)).await }
        };
        let asked = self.pods[..count].iter().map(ask);
        let answers = self.stoppable(async { Ok(join_all(asked).await) })?;
        answers.into_iter().try_for_each(|it| it.map(drop))
    }

    /// Asks for each pod at its moment, whether those before it are there or not.
    ///
    /// # Errors
    ///
    /// None was accepted.
    pub(super) fn begin(&self) -> Result<Vec<AskedChange>, ClusterError> {
        let first = Instant::now() + LEAD;
        let params = &PostParams::default();
        let asked = self.pods.iter().enumerate().map(|(at, pod)| async move {
            let what = format!("create pod {}", pod.name_any());
            let request = async { self.api.create(params, pod).await.map(drop) };
            self.ask(first + self.gap * at as u32, &what, request).await
        });
        let mut asked = self.stoppable(async { Ok(join_all(asked).await) })?;
        if asked.iter().all(|it| it.answered.is_err()) && !asked.is_empty() {
            return Err(asked
                .swap_remove(0)
                .answered
                .err()
                .unwrap_or(ClusterError::Interrupted));
        }
        Ok(asked)
    }

    /// Asks for the end of each pod at its moment, as [`begin`](Self::begin) did for its
    /// start; `None` for one that was not accepted.
    pub(super) fn end(
        &self,
        begun: &[AskedChange],
    ) -> Result<Vec<Option<AskedChange>>, ClusterError> {
        let first = Instant::now() + LEAD;
        let params = &DeleteParams::default();
        let asked = self
            .pods
            .iter()
            .zip(begun)
            .enumerate()
            .map(|(at, (pod, begun))| async move {
                begun.answered()?;
                let name = pod.name_any();
                let what = format!("delete pod {name}");
                let request = async { found(self.api.delete(&name, params).await).map(drop) };
                Some(self.ask(first + self.gap * at as u32, &what, request).await)
            });
        self.stoppable(async { Ok(join_all(asked).await) })
    }

    /// As the session does it, and stopped too where it is given up.
    fn stoppable<T>(
        &self,
        work: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        self.session.stoppable(unless(self.given_up, work))
    }

    /// Lets some time pass until it is looked again.
    fn pause(&self) -> Result<(), ClusterError> {
        self.stoppable(async {
            tokio::time::sleep(LOOK).await;
            Ok(())
        })
    }

    async fn ask(
        &self,
        intended: Instant,
        what: &str,
        request: impl Future<Output = kube::Result<()>>,
    ) -> AskedChange {
        tokio::time::sleep_until(intended.into()).await;
        let begun = Instant::now();
        let answer = self.session.bounded(what, request).await;
        AskedChange {
            intended,
            begun,
            answered: answer.map(|()| Instant::now()),
        }
    }

    /// Waits until all pods are shown as ready and have had packets both ways, as far as
    /// they come. Gives what their peers saw.
    pub(super) fn until_up(
        &self,
        begun: &[AskedChange],
        watch: &PodWatch,
        peers: &LaunchPeers<'_>,
    ) -> Result<BTreeMap<u32, SeenPod>, ClusterError> {
        let awaited = || {
            let all = begun.iter().zip(&self.pods).enumerate();
            all.filter(|(_, (asked, _))| asked.is_awaited())
                .filter(|(_, (asked, pod))| {
                    let waited = asked.intended.elapsed();
                    watch.of(pod, |shown| shown.failed(waited).is_none())
                })
                .map(|(at, (_, pod))| (at as u32, pod))
        };
        loop {
            if awaited().all(|(_, pod)| watch.of(pod, |shown| shown.ready.is_some())) {
                let met = peers.met(MeetingPhase::Begins)?;
                let is_up = |at| met.get(&at).is_some_and(|it| it.first_in.is_some());
                if awaited().all(|(at, _)| is_up(at)) {
                    return Ok(met);
                }
            }
            self.pause()?;
        }
    }

    /// Waits until no pod is there any more, and no address answers. Gives what the peers
    /// saw.
    pub(super) fn until_gone(
        &self,
        ended: &[Option<AskedChange>],
        watch: &PodWatch,
        peers: &LaunchPeers<'_>,
    ) -> Result<BTreeMap<u32, SeenPod>, ClusterError> {
        let awaited = || {
            let all = ended.iter().zip(&self.pods).enumerate();
            all.filter_map(|(at, (asked, pod))| Some((at as u32, asked.as_ref()?, pod)))
                .filter(|(_, asked, _)| asked.is_awaited())
        };
        loop {
            if awaited().all(|(.., pod)| watch.of(pod, |shown| shown.gone.is_some())) {
                let last = peers.met(MeetingPhase::Ends)?;
                let answers = |at| {
                    let answered = last.get(&at).and_then(|it: &SeenPod| it.answered);
                    answered.is_some_and(|it| it.elapsed() < SILENT)
                };
                if !awaited().any(|(at, ..)| answers(at)) {
                    return Ok(last);
                }
            }
            self.pause()?;
        }
    }
}

impl Drop for LaunchedLot<'_> {
    fn drop(&mut self) {
        let (now, all) = (
            DeleteParams::default().grace_period(0),
            ListParams::default().labels(&self.selector),
        );
        let delete = || async { found(self.api.delete_collection(&now, &all).await) };
        let until = Instant::now() + UNDONE;
        // As well as it can be done: the rest goes with all else of the run.
        drop(
            self.session
                .insist("delete the pods that it launched", until, delete),
        );
    }
}
