//! Pods that are launched in a cluster, open loop. Each is followed by what the cluster
//! shows of it and by its own packets: a peer waits for them in the pod of the path that
//! stands on the other node. Then all of them end.

mod calls;
mod limiter;
mod lot;
mod peers;
mod watch;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::Api;
use plumbline_experiment::{Launch, Placement, Treatment};
use plumbline_harness::TargetError;
use plumbline_protocol::{LaunchedOrder, MeetingPhase};
use plumbline_record::{CALLED, LaunchObservation, PodLaunch, PodRelease, READY, SANDBOX};

use crate::ClusterError;
use crate::manifest::{self, LAUNCH, RunMark, word};
use calls::PluginCall;
use limiter::Waited;
use lot::{AskedChange, LIMIT, LaunchedLot};
pub(crate) use peers::LaunchEnd;
use peers::{LaunchPeers, SeenPod};
use watch::{PodWatch, ShownPod};

/// Whether pods can be launched on the path of a treatment that wants that.
///
/// # Errors
///
/// [`TargetError::Unsupported`] where they cannot.
pub(crate) fn check(treatment: &Treatment) -> Result<(), TargetError> {
    let Some(launch) = treatment.task.pods() else {
        return Ok(());
    };
    let scene = &treatment.scene;
    let survives_under_policy = treatment.task.survive().is_some_and(|it| it.policy);
    let (place, needs) = if scene.placement == Placement::SameNode {
        (
            "on one node",
            "placement cross-node: pods are launched on both nodes, and their peers are on the \
             other one",
        )
    } else if scene.variant.is_some() {
        (
            "on a variant of a network",
            "the network as it is: pods that come and go would be without its settings",
        )
    } else if scene.is_dressed() || survives_under_policy {
        (
            "beside services, policies or neighbours",
            "a path on which nothing is laid: it is not waited until rules know pods that come \
             and go",
        )
    } else {
        return Ok(());
    };
    Err(TargetError::Unsupported {
        what: format!("pods of the workload `{}` {place}", launch.name),
        needs: needs.to_owned(),
    })
}

/// A launch for which all is ready.
pub(crate) struct PreparedLaunch<'p> {
    ends: [LaunchEnd<'p>; 2],
    /// What the second, the control, dates otherwise is our own, not the cluster's (A/A).
    watches: [PodWatch; 2],
    lot: LaunchedLot<'p>,
    peers: LaunchPeers<'p>,
    /// Before the first pod.
    waited: Waited,
}

impl<'p> PreparedLaunch<'p> {
    /// Prepares to launch pods on the nodes of two ends in turn.
    ///
    /// # Errors
    ///
    /// What follows the pods failed, or the cluster does not let this account.
    pub(crate) fn new(
        task: &Launch,
        ends: [LaunchEnd<'p>; 2],
        mark: &RunMark,
        given_up: &'p AtomicBool,
    ) -> Result<Self, ClusterError> {
        let launch = word();
        let peers = LaunchPeers::begin(ends, &launch)?;
        let orders = (0..task.pods).map(|pod| {
            let node = pod as usize % ends.len();
            let order = LaunchedOrder {
                peer: peers.waiting[1 - node],
                launch: launch.clone(),
                pod,
            };
            let on = &ends[node].site.pod;
            manifest::launched(&order, &on.node, &on.image, mark)
        });
        let standing = ends[0].site;
        let lot = LaunchedLot {
            session: &standing.session,
            api: Api::namespaced(standing.session.client(), &standing.pod.namespace),
            pods: orders.collect(),
            selector: format!("{LAUNCH}={launch}"),
            gap: Duration::from_nanos(task.gap_ns()),
            given_up,
        };
        lot.connect(task)?;
        let namespace = &standing.pod.namespace;
        let watches = [
            PodWatch::start(lot.session, &lot.api, &lot.selector)?,
            PodWatch::start_apart(lot.session, namespace, &lot.selector)?,
        ];
        Ok(Self {
            ends,
            watches,
            lot,
            waited: peers.waited(),
            peers,
        })
    }

    /// Launches the pods, follows them, and ends them.
    ///
    /// # Errors
    ///
    /// No pod could be made, or what follows them failed. What single pods fail with is in
    /// what is seen.
    pub(crate) fn run(self) -> Result<LaunchObservation, ClusterError> {
        let Self {
            ends,
            watches: [watch, control],
            lot,
            peers,
            waited,
        } = &self;
        let wanted = Instant::now();
        let begun = lot.begin()?;
        let first = begun.first().map(|it| it.intended);
        let met = lot.until_up(&begun, watch, peers)?;
        let namespace = &ends[0].site.pod.namespace;
        let full_name = |pod: &Pod| format!("{namespace}/{}", pod.name_any());
        let calls = peers.calls();
        let calls_unseen = calls.as_ref().err().cloned();
        let calls = calls.unwrap_or_default();
        let started = begun.iter().zip(&lot.pods).enumerate();
        let started = started.map(|(at, (asked, pod))| {
            let (met, added) = (met.get(&(at as u32)), calls.of("ADD", &full_name(pod)));
            PodLaunch {
                node: ends[at % ends.len()].site.pod.node.clone(),
                ..watch.of(pod, |shown| came(asked, met, &added, shown))
            }
        });
        let mut pods: Vec<PodLaunch> = started.collect();
        peers.met(MeetingPhase::Ends)?;
        let ended = lot.end(&begun)?;
        let last = lot.until_gone(&ended, watch, peers)?;
        let calls = peers.calls().unwrap_or_default();
        for (at, (asked, pod)) in ended.iter().zip(&lot.pods).enumerate() {
            let (met, deleted) = (last.get(&(at as u32)), calls.of("DEL", &full_name(pod)));
            let went = |asked| watch.of(pod, |shown| went(asked, met, &deleted, shown));
            pods[at].release = asked.as_ref().map(went);
            let apart = watch.of(pod, |one| control.of(pod, |other| one.apart(other)));
            pods[at].watches_apart_ns = apart.map(|it| it.as_nanos() as u64);
        }
        Ok(LaunchObservation {
            limit_ns: LIMIT.as_nanos() as u64,
            clock_error_ns: Some(peers.error_ns(Instant::now())),
            lead_ns: first.map(|it| it.duration_since(wanted).as_nanos() as u64),
            calls_unseen,
            limiter: peers.waited().since(waited),
            pods,
        })
    }
}

/// That a runtime called the first plugin, and the end of each call.
fn called<'c>(calls: &'c [&PluginCall]) -> impl Iterator<Item = (&'c str, Option<Instant>)> {
    let first = calls.iter().map(|it| it.began).min();
    let ends = calls.iter().map(|it| (&*it.plugin, Some(it.ended)));
    first.map(|it| (CALLED, Some(it))).into_iter().chain(ends)
}

/// The start of a pod. What began its sandbox is known to a tick, and had waited for the
/// plugins.
fn came(
    asked: &AskedChange,
    met: Option<&SeenPod>,
    added: &[&PluginCall],
    shown: &ShownPod,
) -> PodLaunch {
    let met = met.copied().unwrap_or_default();
    let since = |moment: Option<Instant>| moment.map(|it| asked.since(it));
    let added_at = added.last().map(|it| it.ended);
    let sandbox = met
        .sandbox
        .map(|it| added_at.map_or(it, |added| it.max(added)));
    // Before the pod was asked for it had none: then the wall clock was set, which dates it.
    let namespace = met.namespace.filter(|it| *it >= asked.begun);
    let failed = shown.failed(asked.intended.elapsed());
    let refused = asked.answered.as_ref().err().map(ToString::to_string);
    PodLaunch {
        begun_ns: asked.since(asked.begun),
        placed: asked.steps([
            ("accepted", asked.answered()),
            ("scheduled", shown.scheduled),
        ]),
        namespace_ns: since(namespace),
        steps: asked.steps(called(added).chain([(SANDBOX, sandbox)])),
        probed_ns: since(met.begun),
        first_out_ns: since(met.first_out),
        first_in_ns: since(met.first_in),
        shown: asked.steps([
            ("sandbox shown", shown.sandbox),
            ("running", shown.running),
            (READY, shown.ready),
        ]),
        error: refused.or(failed),
        ..PodLaunch::default()
    }
}

/// The end of a pod. It is over when the cluster shows none, and its address has answered
/// for the last time.
fn went(
    asked: &AskedChange,
    met: Option<&SeenPod>,
    deleted: &[&PluginCall],
    shown: &ShownPod,
) -> PodRelease {
    let silent = met.and_then(|it| it.answered);
    let seen = [
        ("accepted", asked.answered()),
        ("silent", silent),
        ("gone", shown.gone),
    ];
    let mut steps = asked.steps(called(deleted).chain(seen));
    steps.sort_by_key(|it| it.ended_ns);
    let over = shown
        .gone
        .map(|gone| silent.map_or(gone, |it| it.max(gone)));
    PodRelease {
        begun_ns: asked.since(asked.begun),
        steps,
        ended_ns: over.map(|it| asked.since(it)),
    }
}

#[cfg(test)]
mod tests;
