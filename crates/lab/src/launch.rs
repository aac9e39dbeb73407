//! Pods that are launched on a network that stands. Each begins at its intended moment, in
//! a thread of its own, and is followed by packets of this process until they have passed
//! both ways; then all of them end.

mod watch;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_experiment::{Launch, Placement, Treatment};
use plumbline_record::{LaunchObservation, LaunchStep, PodLaunch, PodRelease};
use plumbline_sys::clock::{now_ns, sleep_unless};
use plumbline_sys::cpu::allow_open_files;

use crate::error::LabError;
use crate::journal::Journal;
use crate::network::{Leave, Network, takes_no_pods};
use crate::place::{NamespaceRole, Place};
use crate::topology::{NEAR_INDEX, Pod, Topology, UPLINK, veth};
use watch::PacketWatch;

/// How long a pod is waited for.
const LIMIT_NS: u64 = 20_000_000_000;

/// The number of the first launched pod among all pods, far above those that stand.
const FIRST_POD: usize = 100;

/// The place of the first one among the addresses of its node.
const FIRST_ADDRESS: usize = 6;

/// What the start of all threads may take before the first of them is to begin.
const LEAD_NS: u64 = 5_000_000;
const OF_A_THREAD_NS: u64 = 200_000;

/// Files that may be open while pods are there: some for each of them and its plugins.
const OPEN_FILES: u64 = 8_192;

/// Longest wait until the kernel has taken back what pods had.
const TAKEN_BACK: Duration = Duration::from_secs(30);
const TAKEN_BACK_PAUSE: Duration = Duration::from_millis(1);

/// The pair of devices by which that is seen.
const LAST: &str = "last";
const LAST_INDEX: u32 = NEAR_INDEX + 250;

/// Whether pods can be launched on the path of a treatment that wants that.
///
/// # Errors
///
/// [`LabError::Unsupported`] where they cannot.
pub(crate) fn check(network: &dyn Network, treatment: &Treatment) -> Result<(), LabError> {
    let Some(launch) = treatment.task.launch() else {
        return Ok(());
    };
    let what = || format!("the workload `{}`", launch.name);
    if !network.takes_pods() {
        return Err(takes_no_pods(network.about().name));
    }
    if treatment.scene.placement == Placement::SameNode {
        return Err(LabError::Unsupported {
            what: format!("{} on one node", what()),
            needs: "placement cross-node: pods are launched on both nodes, and their peers are \
                    on the other one"
                .to_owned(),
        });
    }
    if treatment.scene.variant.is_some() {
        return Err(LabError::Unsupported {
            what: format!("{} on a variant of a network", what()),
            needs: "the network as it is: pods that come and go would be without its settings"
                .to_owned(),
        });
    }
    if treatment.scene.is_dressed() {
        return Err(LabError::Unsupported {
            what: format!("{} beside services, policies or neighbours", what()),
            needs: "a path on which nothing is laid: no rules are written for pods that come and \
                    go"
            .to_owned(),
        });
    }
    Ok(())
}

/// Where pods are launched.
pub(crate) struct LaunchSite<'a> {
    pub(crate) network: &'static dyn Network,
    pub(crate) topology: &'a Topology,
}

/// A pod whose start is over.
struct StartedPod {
    seen: PodLaunch,
    /// What is left of it to be ended.
    attached: Option<(Pod, Leave)>,
}

impl LaunchSite<'_> {
    /// Launches pods, and ends them again.
    ///
    /// # Errors
    ///
    /// A network that takes none, peers that cannot wait, and a kernel that does not take the
    /// pods back. What single pods fail with is in what is seen.
    pub(crate) fn launch(
        &self,
        launch: &Launch,
        interrupted: &AtomicBool,
    ) -> Result<LaunchObservation, LabError> {
        if !self.network.takes_pods() {
            return Err(takes_no_pods(self.network.about().name));
        }
        let (pods, gap_ns) = (launch.pods as usize, launch.gap_ns());
        // Where these are too many, single pods say so.
        let _ = allow_open_files(OPEN_FILES);
        let of_node = pods.div_ceil(self.topology.nodes.len());
        let used = self.topology.used.fetch_add(of_node, Ordering::SeqCst);
        let watch = PacketWatch::new(self.topology, pods)?;
        let started = watch.during(|| {
            open_loop(
                (0..pods).collect(),
                gap_ns,
                interrupted,
                |at, intended_ns| self.start((at, used), intended_ns, &watch, interrupted),
            )
        })?;
        // What has begun is ended, whoever wants to stop.
        let never = AtomicBool::new(false);
        let ended = open_loop(started, gap_ns, &never, |started, intended_ns| {
            started.map(|it| end(it, intended_ns))
        });
        self.wait_for_kernel()?;
        Ok(LaunchObservation {
            limit_ns: LIMIT_NS,
            clock_error_ns: None,
            lead_ns: None,
            calls_unseen: None,
            limiter: Vec::new(),
            pods: ended.into_iter().flatten().flatten().collect(),
        })
    }

    /// Starts a pod. Its address follows on those that are used: whoever knew the pod that
    /// had an address before would for seconds send to that one's device.
    fn start(
        &self,
        (at, used): (usize, usize),
        intended_ns: u64,
        watch: &PacketWatch,
        interrupted: &AtomicBool,
    ) -> StartedPod {
        let since = || now_ns().saturating_sub(intended_ns);
        let node = at % self.topology.nodes.len();
        let mut seen = PodLaunch {
            node: self.topology.nodes[node].name.clone(),
            begun_ns: since(),
            ..PodLaunch::default()
        };
        let further = (used + at / self.topology.nodes.len()) % self.network.room();
        // A subnet has fewer addresses than a u8 holds.
        let index = (FIRST_ADDRESS + further) as u8;
        let made = self.topology.further_pod(FIRST_POD + at, node, index);
        let attached = made.and_then(|pod| {
            seen.namespace_ns = Some(since());
            let mut journal = Journal::of_pod();
            let joined = self.network.join(self.topology, &pod, &mut journal);
            seen.steps = dated(journal, intended_ns);
            Ok((joined?, pod))
        });
        match attached {
            Err(error) => {
                seen.error = Some(error.to_string());
                StartedPod {
                    seen,
                    attached: None,
                }
            }
            Ok((leave, pod)) => {
                let deadline_ns = intended_ns + LIMIT_NS;
                let followed = watch.follow(at, &pod, deadline_ns, interrupted);
                let since = |ns: u64| ns.saturating_sub(intended_ns);
                match followed {
                    Ok(followed) => {
                        seen.probed_ns = Some(since(followed.probed_ns));
                        seen.first_out_ns = followed.first_out_ns.map(since);
                        seen.first_in_ns = followed.first_in_ns.map(since);
                    }
                    Err(error) => seen.error = Some(error.to_string()),
                }
                StartedPod {
                    seen,
                    attached: Some((pod, leave)),
                }
            }
        }
    }

    /// Waits until the kernel has come to the last namespace that it has to take back, which
    /// it does in the background, one after the other, and with the locks that whoever
    /// comes next needs.
    fn wait_for_kernel(&self) -> Result<(), LabError> {
        let node = &self.topology.nodes[0];
        let family = self.topology.addressing.family();
        let last = Place::create(LAST.to_owned(), NamespaceRole::Pod, family)?;
        let mtu = self.topology.mtu;
        node.ask(|it| it.add_link(veth(LAST, LAST_INDEX, UPLINK, &last, mtu)))?;
        // Its end of the pair goes with it, and so the other one.
        drop(last);
        let since = Instant::now();
        while node.link(LAST).is_ok() {
            if since.elapsed() > TAKEN_BACK {
                return Err(LabError::Unsettled {
                    place: node.name.clone(),
                    device: LAST.to_owned(),
                    limit: TAKEN_BACK,
                });
            }
            thread::sleep(TAKEN_BACK_PAUSE);
        }
        Ok(())
    }
}

/// Takes a pod off its network, and lets its namespace go.
fn end(started: StartedPod, intended_ns: u64) -> PodLaunch {
    let since = || now_ns().saturating_sub(intended_ns);
    let StartedPod { mut seen, attached } = started;
    let Some((pod, leave)) = attached else {
        return seen;
    };
    let mut release = PodRelease {
        begun_ns: since(),
        ..PodRelease::default()
    };
    let mut journal = Journal::of_pod();
    match leave(&mut journal) {
        Ok(()) => release.ended_ns = Some(since()),
        Err(error) => {
            seen.error.get_or_insert_with(|| error.to_string());
        }
    }
    release.steps = dated(journal, intended_ns);
    seen.release = Some(release);
    drop(pod);
    seen
}

/// The steps of a journal, since a moment.
fn dated(journal: Journal, since_ns: u64) -> Vec<LaunchStep> {
    let mut steps = journal.into_steps();
    for step in &mut steps {
        step.ended_ns = step.ended_ns.saturating_sub(since_ns);
    }
    steps
}

/// Does some work for each item in a thread of its own, at its intended moment and however
/// long the others take; `None` where that moment was not waited for.
fn open_loop<I: Send, T: Send>(
    items: Vec<I>,
    gap_ns: u64,
    interrupted: &AtomicBool,
    work: impl Fn(I, u64) -> T + Sync,
) -> Vec<Option<T>> {
    let first_ns = now_ns() + LEAD_NS + OF_A_THREAD_NS * items.len() as u64;
    let work = &work;
    thread::scope(|scope| {
        let threads = items.into_iter().enumerate().map(|(at, item)| {
            let intended_ns = first_ns + gap_ns * at as u64;
            scope.spawn(move || {
                sleep_unless(interrupted, intended_ns).then(|| work(item, intended_ns))
            })
        });
        // All are started before the first is waited for.
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    #[test]
    fn none_waits_for_another() {
        let never = AtomicBool::new(false);
        let (count, all) = (Mutex::new(0), Condvar::new());
        let begun = open_loop(vec![0, 1, 2], 10_000_000, &never, |item, intended_ns| {
            assert!(now_ns() >= intended_ns);
            *count.lock().unwrap() += 1;
            all.notify_all();
            // None ends before the last has begun.
            let limit = Duration::from_secs(20);
            let waited = all.wait_timeout_while(count.lock().unwrap(), limit, |it| *it < 3);
            assert!(!waited.unwrap().1.timed_out(), "{item} waits for another");
            (item, intended_ns)
        });
        let begun: Vec<_> = begun.into_iter().flatten().collect();
        let items: Vec<i32> = begun.iter().map(|it| it.0).collect();
        assert_eq!(items, [0, 1, 2]);
        assert!(
            begun
                .windows(2)
                .all(|two| two[1].1 - two[0].1 == 10_000_000)
        );
    }

    #[test]
    fn what_has_not_begun_can_be_stopped() {
        let stop = AtomicBool::new(true);
        let begun = open_loop(vec![(); 3], 3_600_000_000_000, &stop, |(), _| ());
        assert_eq!(begun, [None, None, None]);
    }
}
