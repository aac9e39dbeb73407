//! What was seen of pods that were launched: when each began, was attached, had its first
//! packets, and was gone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The step by which a cluster shows that a pod is ready.
pub const READY: &str = "ready";

/// The step by which a node in a cluster came to call its network's first plugin for a pod.
pub const CALLED: &str = "called";

/// The step by which a pod in a cluster got its sandbox.
pub const SANDBOX: &str = "sandbox";

/// What was seen of the pods of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchObservation {
    /// How long each pod was waited for from its intended start on, nanoseconds.
    pub limit_ns: u64,
    /// How far what was seen in pods may be off, because their nodes have clocks of their own,
    /// nanoseconds; null where one clock dates all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_ns: Option<u64>,
    /// In a cluster, from when the launch was wanted, which beside a command is when that began,
    /// to when its first pod was to begin, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead_ns: Option<u64>,
    /// In a cluster, why it was not seen when the nodes called their network's plugins; null
    /// where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_unseen: Option<String>,
    /// What requests waited in the rate limiters of the network's own agents meanwhile, by the
    /// kind of request, where these agents show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limiter: Vec<LimiterWait>,
    /// In the order of their intended starts.
    pub pods: Vec<PodLaunch>,
}

/// Waiting in the rate limiter of a network's agent, which is no work of its.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimiterWait {
    /// The kind of request, in the agent's own words: `endpoint-create`.
    pub call: String,
    /// How many passed the limiter.
    pub requests: u64,
    /// How long they waited together, nanoseconds.
    pub waited_ns: u64,
}

/// The life of one pod. Times are nanoseconds since its intended start; null is what was
/// not reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodLaunch {
    /// The node that it was on.
    pub node: String,
    /// When its start was begun: later than intended by the lag of the launch itself.
    pub begun_ns: u64,
    /// What a cluster did before its node began with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed: Vec<LaunchStep>,
    /// When its network namespace was there.
    pub namespace_ns: Option<u64>,
    /// The steps by which the network attached it: its plugins. In a cluster before them that
    /// the first was called, where these calls are seen, and last that its sandbox began.
    pub steps: Vec<LaunchStep>,
    /// When its program began to send to a peer, and the peer to it.
    pub probed_ns: Option<u64>,
    /// When the first packet from it reached the peer.
    pub first_out_ns: Option<u64>,
    /// When the first packet of the peer reached it.
    pub first_in_ns: Option<u64>,
    /// What a cluster has shown of it, which is later than it was so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<LaunchStep>,
    /// How far two watches of the cluster were apart at most in when they saw it scheduled,
    /// with a sandbox, running and ready, nanoseconds; null where there were none, or one saw
    /// what the other did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watches_apart_ns: Option<u64>,
    /// Its end; null where there was nothing to end.
    pub release: Option<PodRelease>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The end of a pod. Times are nanoseconds since it was to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodRelease {
    /// When its end was begun.
    pub begun_ns: u64,
    /// The steps by which the network gave it up, or a cluster.
    pub steps: Vec<LaunchStep>,
    /// When its devices were gone and its address was free; null where that failed.
    pub ended_ns: Option<u64>,
}

/// A step that began when what was before it had ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchStep {
    /// What was done.
    pub step: String,
    /// When it had ended, nanoseconds since the same moment as the times around it.
    pub ended_ns: u64,
}

/// A stretch of a pod's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchPart<'a> {
    /// Which.
    pub kind: LaunchPartKind,
    /// What happened.
    pub name: &'a str,
    /// From this moment on, nanoseconds since the intended start.
    pub from_ns: u64,
    /// Until this one.
    pub to_ns: u64,
}

/// Whose time a stretch of a pod's start is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchPartKind {
    /// The launch was late, because the machine was busy.
    Lag,
    /// A cluster decides, before the pod's node begins with it.
    Placing,
    /// The namespace, which is made alike for every network.
    Namespace,
    /// A step of the network.
    Attach,
    /// The pod's program begins.
    Program,
    /// Packets are sent and none has arrived.
    Packets,
    /// Until the cluster has shown something.
    Shown,
}

impl LaunchPartKind {
    /// Whether it is one of several steps, which differ from system to system.
    pub fn is_step(self) -> bool {
        matches!(self, Self::Placing | Self::Attach | Self::Shown)
    }
}

impl LaunchObservation {
    /// How many pods had packets both ways.
    pub fn up(&self) -> usize {
        self.pods.iter().filter(|it| it.up_ns().is_some()).count()
    }
}

impl PodLaunch {
    /// When packets had passed both ways.
    pub fn up_ns(&self) -> Option<u64> {
        Some(self.first_out_ns?.max(self.first_in_ns?))
    }

    /// When the network had attached it.
    pub fn attached_ns(&self) -> Option<u64> {
        self.probed_ns?;
        Some(self.steps.last()?.ended_ns)
    }

    /// How long the network took to attach it, nanoseconds.
    pub fn attach_ns(&self) -> Option<u64> {
        Some(self.attached_ns()?.saturating_sub(self.namespace_ns?))
    }

    /// How long the network's plugins took to add it, nanoseconds, where a cluster's node dates
    /// that.
    pub fn add_ns(&self) -> Option<u64> {
        let is_sandbox = |it: &&LaunchStep| it.step == SANDBOX;
        let called = self.steps.first().filter(|it| it.step == CALLED)?;
        let added = self.steps.iter().rev().find(|it| !is_sandbox(it))?;
        Some(added.ended_ns - called.ended_ns)
    }

    /// From when its program began to send until packets had passed both ways: what is before
    /// that is the network's, or in a cluster the start of a container.
    pub fn first_packets_ns(&self) -> Option<u64> {
        Some(self.up_ns()?.saturating_sub(self.probed_ns?))
    }

    /// When its node began with it: from then until its namespace was there, that is made.
    pub fn placed_ns(&self) -> u64 {
        self.placed.last().map_or(self.begun_ns, |it| it.ended_ns)
    }

    /// When a cluster showed that it is ready.
    pub fn ready_ns(&self) -> Option<u64> {
        let ready = self.shown.iter().find(|it| it.step == READY)?;
        Some(ready.ended_ns)
    }

    /// From its intended end until nothing of it was left.
    pub fn release_ns(&self) -> Option<u64> {
        self.release.as_ref()?.ended_ns
    }

    /// Its start in stretches, one after the other, by when they ended: as far as it came.
    pub fn parts(&self) -> Vec<LaunchPart<'_>> {
        use LaunchPartKind::{Attach, Lag, Namespace, Packets, Placing, Program, Shown};
        let mut ends = vec![(Lag, "lag", Some(self.begun_ns))];
        ends.extend(steps(Placing, &self.placed));
        ends.push((Namespace, "namespace", self.namespace_ns));
        ends.extend(steps(Attach, &self.steps));
        ends.push((Program, "program", self.probed_ns));
        ends.push((Packets, "first out", self.first_out_ns));
        ends.push((Packets, "first in", self.first_in_ns));
        ends.extend(steps(Shown, &self.shown));
        let mut ends: Vec<_> = ends
            .into_iter()
            .filter_map(|(kind, name, end)| Some((kind, name, end?)))
            .collect();
        ends.sort_by_key(|(.., end)| *end);
        let mut from_ns = 0;
        let part = |(kind, name, to_ns)| LaunchPart {
            kind,
            name,
            from_ns: std::mem::replace(&mut from_ns, to_ns),
            to_ns,
        };
        ends.into_iter().map(part).collect()
    }
}

/// The ends of some steps.
fn steps(
    kind: LaunchPartKind,
    steps: &[LaunchStep],
) -> impl Iterator<Item = (LaunchPartKind, &str, Option<u64>)> {
    let steps = steps.iter();
    steps.map(move |it| (kind, it.step.as_str(), Some(it.ended_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> PodLaunch {
        let step = |step: &str, ended_ns| LaunchStep {
            step: step.to_owned(),
            ended_ns,
        };
        PodLaunch {
            node: "node1".to_owned(),
            begun_ns: 5,
            namespace_ns: Some(20),
            steps: vec![step("device", 50), step("route", 60)],
            probed_ns: Some(70),
            first_out_ns: Some(95),
            first_in_ns: Some(80),
            release: Some(PodRelease {
                begun_ns: 1,
                steps: vec![step("device", 9)],
                ended_ns: Some(10),
            }),
            ..PodLaunch::default()
        }
    }

    #[test]
    fn a_pod_is_up_when_packets_have_passed_both_ways() {
        let of = pod();
        assert_eq!(of.up_ns(), Some(95));
        assert_eq!(of.attach_ns(), Some(40));
        assert_eq!(of.first_packets_ns(), Some(25));
        assert_eq!(of.release_ns(), Some(10));
        let deaf = PodLaunch {
            first_in_ns: None,
            ..pod()
        };
        assert_eq!((deaf.up_ns(), deaf.first_packets_ns()), (None, None));
        assert_eq!(deaf.attach_ns(), Some(40));
        let seen = LaunchObservation {
            pods: vec![of, deaf],
            ..LaunchObservation::default()
        };
        assert_eq!(seen.up(), 1);
    }

    #[test]
    fn the_parts_of_a_start_follow_each_other_and_end_when_it_is_up() {
        let of = pod();
        let parts = of.parts();
        let names: Vec<&str> = parts.iter().map(|it| it.name).collect();
        let expected = [
            "lag",
            "namespace",
            "device",
            "route",
            "program",
            "first in",
            "first out",
        ];
        assert_eq!(names, expected);
        assert!(parts.windows(2).all(|two| two[0].to_ns == two[1].from_ns));
        assert_eq!(parts.last().map(|it| it.to_ns), of.up_ns());
    }

    #[test]
    fn what_a_pod_did_not_reach_is_no_part_of_its_start() {
        let failed = PodLaunch {
            probed_ns: None,
            first_out_ns: None,
            first_in_ns: None,
            release: None,
            error: Some("no address".to_owned()),
            ..pod()
        };
        assert_eq!(failed.attach_ns(), None);
        assert_eq!(failed.parts().len(), 4);
        let deaf = PodLaunch {
            first_in_ns: None,
            ..pod()
        };
        let last = deaf.parts().pop().map(|it| (it.name.to_owned(), it.to_ns));
        assert_eq!(last, Some(("first out".to_owned(), 95)));
        let mute = PodLaunch {
            first_out_ns: None,
            ..pod()
        };
        let last = mute.parts().pop().map(|it| it.name.to_owned());
        assert_eq!(last.as_deref(), Some("first in"));
    }

    /// In a cluster, which shows what was so before.
    #[test]
    fn a_start_goes_on_until_the_cluster_shows_it_as_ready() {
        let step = |step: &str, ended_ns| LaunchStep {
            step: step.to_owned(),
            ended_ns,
        };
        let of = PodLaunch {
            placed: vec![step("accepted", 8), step("scheduled", 12)],
            steps: vec![
                step(CALLED, 22),
                step("bridge", 40),
                step("portmap", 44),
                step(SANDBOX, 50),
            ],
            shown: vec![step("running", 90), step(READY, 400)],
            ..pod()
        };
        let parts = of.parts();
        let names: Vec<&str> = parts.iter().map(|it| it.name).collect();
        let expected = [
            "lag",
            "accepted",
            "scheduled",
            "namespace",
            CALLED,
            "bridge",
            "portmap",
            SANDBOX,
            "program",
            "first in",
            "running",
            "first out",
            READY,
        ];
        assert_eq!(names, expected);
        assert!(parts.windows(2).all(|two| two[0].to_ns == two[1].from_ns));
        assert_eq!((of.placed_ns(), of.attach_ns()), (12, Some(30)));
        assert_eq!((of.add_ns(), pod().add_ns()), (Some(22), None));
        assert_eq!((of.up_ns(), of.ready_ns()), (Some(95), Some(400)));
        assert_eq!((pod().placed_ns(), pod().ready_ns()), (5, None));
    }
}
