//! The peer of launched pods. It waits for the first packet of each, asks each until that
//! has reached it, and later asks at the addresses of those that end, until nobody answers
//! there.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use plumbline_protocol::{MeetOrder, MeetingPhase, MetPod};
use plumbline_sys::clock::{ClockPair, now_ns};
use plumbline_sys::poll::{Interest, Poller, Trigger};
use plumbline_sys::socket::Socket;

use crate::launched::{PodGreeting, arrived_ns, question};

/// From one question to the next, until a pod has said that one reached it; and where that
/// takes long, the share of the time since: see the gaps of the pods themselves.
const GAP_NS: u64 = 1_000_000;
const SHARE: u64 = 32;

/// From one question to the next to a pod that ends: so well its last answer is dated.
const LAST_GAP_NS: u64 = 50_000_000;

/// How often it looks whether something else is wanted.
const LOOK_NS: u64 = 20_000_000;

/// Longest greeting, in bytes.
const GREETING: usize = 1_024;

/// The pods that an agent waits for.
#[derive(Clone, Default)]
pub(crate) struct Meeting(Arc<Mutex<Arc<Mutex<MeetingState>>>>);

/// Of one launch.
#[derive(Default)]
struct MeetingState {
    phase: MeetingPhase,
    pods: BTreeMap<u32, AskedPod>,
    /// What ended it.
    error: Option<io::Error>,
}

struct AskedPod {
    seen: MetPod,
    question: String,
    /// By which it is asked.
    socket: Socket,
    /// When it is asked next.
    next_ns: u64,
}

impl Meeting {
    /// Waits for the pods of a launch, and for those of an earlier one no longer. Gives where.
    pub(crate) fn begin(&self, order: &MeetOrder) -> io::Result<SocketAddr> {
        let state = Arc::new(Mutex::new(MeetingState {
            phase: MeetingPhase::Begins,
            ..MeetingState::default()
        }));
        let before = std::mem::replace(&mut *lock(&self.0), Arc::clone(&state));
        lock(&before).phase = MeetingPhase::Over;
        let socket = Socket::bind_udp((order.address, 0).into(), false)?;
        // Where the kernel does not date what arrives, the moment of reading counts.
        let _ = socket.enable_stamps();
        let address = socket.local_addr()?;
        let launch = order.launch.clone();
        thread::spawn(move || {
            if let Err(error) = wait(&socket, &launch, &state) {
                lock(&state).error = Some(error);
            }
        });
        Ok(address)
    }

    /// Whether it waits for pods, or asks them.
    pub(crate) fn is_under_way(&self) -> bool {
        let state = lock(&self.0);
        lock(&state).phase != MeetingPhase::Over
    }

    /// Says whom it has met, and goes over to a phase.
    pub(crate) fn pass(&self, phase: MeetingPhase) -> io::Result<Vec<MetPod>> {
        let state = Arc::clone(&lock(&self.0));
        let mut state = lock(&state);
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        state.phase = phase;
        Ok(state.pods.values().map(|it| it.seen.clone()).collect())
    }
}

fn wait(socket: &Socket, launch: &str, state: &Mutex<MeetingState>) -> io::Result<()> {
    let mut poller = Poller::new(1)?;
    poller.add(socket.as_fd(), 0, Interest::Read, Trigger::Level)?;
    let mut packet = [0; GREETING];
    let mut clocks = ClockPair::now();
    loop {
        let mut state = lock(state);
        if state.phase == MeetingPhase::Over {
            return Ok(());
        }
        while let Ok((length, stamp)) = socket.receive_stamped(&mut packet) {
            let ns = arrived_ns(stamp, &clocks, &ClockPair::now());
            let greeting = serde_json::from_slice::<PodGreeting>(&packet[..length]);
            if let Some(greeting) = greeting.ok().filter(|it| it.launch == launch) {
                state.hear(&greeting, ns)?;
            }
        }
        let next_ns = state.ask();
        drop(state);
        clocks = ClockPair::now();
        poller.wait(next_ns.saturating_sub(now_ns()).min(LOOK_NS))?;
    }
}

impl MeetingState {
    fn hear(&mut self, greeting: &PodGreeting, ns: u64) -> io::Result<()> {
        let asked = match self.pods.entry(greeting.pod) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(AskedPod::new(greeting, ns)?),
        };
        let seen = &mut asked.seen;
        let asked_ns = greeting.asked_age_ns.map(|age| ns.saturating_sub(age));
        seen.first_in_ns = seen.first_in_ns.or(asked_ns);
        if self.phase == MeetingPhase::Ends {
            seen.answered_ns = seen.answered_ns.max(Some(ns));
        }
        Ok(())
    }

    /// Asks those that are to be asked now; gives when the next is.
    fn ask(&mut self) -> u64 {
        let (now, phase) = (now_ns(), self.phase);
        let next = self.pods.values_mut().filter_map(|it| it.ask(now, phase));
        next.min().unwrap_or(u64::MAX)
    }
}

impl AskedPod {
    /// One whose first greeting came at this moment.
    fn new(greeting: &PodGreeting, ns: u64) -> io::Result<Self> {
        let ago = |age: u64| ns.saturating_sub(age);
        Ok(Self {
            seen: MetPod {
                pod: greeting.pod,
                namespace_ns: greeting.namespace_age_ns.map(ago),
                sandbox_ns: greeting.sandbox_age_ns.map(ago),
                begun_ns: ago(greeting.begun_age_ns),
                first_out_ns: ns,
                first_in_ns: None,
                answered_ns: None,
            },
            question: question(&greeting.launch, greeting.pod),
            socket: Socket::connect_udp(greeting.at, None)?,
            next_ns: 0,
        })
    }

    /// Asks, if it is time to; gives when it is to be asked next.
    fn ask(&mut self, now: u64, phase: MeetingPhase) -> Option<u64> {
        let is_new = self.seen.first_in_ns.is_none();
        if !is_new && phase != MeetingPhase::Ends {
            return None;
        }
        if now >= self.next_ns {
            // What comes back here is that nobody listens any more at an address that is
            // still somebody's. That there is no way is no answer.
            let answers = [
                self.socket.receive(&mut [0; 1]),
                self.socket.send(self.question.as_bytes()),
            ];
            let refused = |it: &io::Result<usize>| matches!(it, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused);
            if phase == MeetingPhase::Ends && answers.iter().any(refused) {
                self.seen.answered_ns = Some(now);
            }
            let waited_ns = now.saturating_sub(self.seen.first_out_ns);
            let gap_ns = if is_new {
                (waited_ns / SHARE).max(GAP_NS)
            } else {
                LAST_GAP_NS
            };
            self.next_ns = now + gap_ns;
        }
        Some(self.next_ns)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::{Duration, Instant};

    use plumbline_protocol::LaunchedOrder;

    use super::*;
    use crate::launched;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn begun(meeting: &Meeting) -> SocketAddr {
        let order = MeetOrder {
            address: HERE,
            launch: "word".to_owned(),
        };
        meeting.begin(&order).unwrap()
    }

    fn met(meeting: &Meeting, phase: MeetingPhase) -> Vec<MetPod> {
        meeting.pass(phase).unwrap()
    }

    /// How long pods answer, on a machine that others use too.
    const LIFE: Duration = Duration::from_secs(1);

    /// Whom it has met, once that is so or twenty seconds are over.
    fn until(meeting: &Meeting, phase: MeetingPhase, is_so: fn(&[MetPod]) -> bool) -> Vec<MetPod> {
        let since = Instant::now();
        loop {
            let pods = met(meeting, phase);
            if is_so(&pods) || since.elapsed() > Duration::from_secs(20) {
                return pods;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn launched(
        peer: SocketAddr,
        launch: &str,
        pod: u32,
        life: Duration,
    ) -> thread::JoinHandle<()> {
        let order = LaunchedOrder {
            peer,
            launch: launch.to_owned(),
            pod,
        };
        thread::spawn(move || launched::answer(&order, now_ns(), life).unwrap())
    }

    #[test]
    fn pods_are_met_both_ways_and_dated_in_order() {
        let meeting = Meeting::default();
        let peer = begun(&meeting);
        let before = now_ns();
        let strange = launched(peer, "another", 0, LIFE);
        let pods = [3, 4].map(|pod| launched(peer, "word", pod, LIFE));
        let is_met = |it: &[MetPod]| it.len() == 2 && it.iter().all(|it| it.first_in_ns.is_some());
        let seen = until(&meeting, MeetingPhase::Begins, is_met);
        assert_eq!(seen.iter().map(|it| it.pod).collect::<Vec<_>>(), [3, 4]);
        for pod in &seen {
            let first_in_ns = pod.first_in_ns.expect("it has said so");
            // Ages are read a little after one another.
            assert!(pod.begun_ns + 1_000_000 >= before, "{seen:?}");
            assert!(pod.begun_ns <= pod.first_out_ns, "{seen:?}");
            assert!(first_in_ns + 1_000_000 >= pod.first_out_ns, "{seen:?}");
            assert_eq!(pod.answered_ns, None);
        }
        for pod in pods {
            pod.join().unwrap();
        }
        strange.join().unwrap();
        met(&meeting, MeetingPhase::Over);
    }

    /// On one machine the kernel goes on to say that nobody listens: an answer too.
    #[test]
    fn the_last_answer_of_an_address_is_dated() {
        let meeting = Meeting::default();
        let peer = begun(&meeting);
        let pod = launched(peer, "word", 0, LIFE);
        let is_met = |it: &[MetPod]| it.iter().any(|it| it.first_in_ns.is_some());
        until(&meeting, MeetingPhase::Begins, is_met);
        met(&meeting, MeetingPhase::Ends);
        pod.join().unwrap();
        let ended = now_ns();
        thread::sleep(Duration::from_nanos(4 * LAST_GAP_NS));
        let seen = met(&meeting, MeetingPhase::Over);
        assert!(seen[0].answered_ns.is_some_and(|it| it > ended), "{seen:?}");
    }

    #[test]
    fn a_new_launch_ends_the_one_before() {
        let meeting = Meeting::default();
        let first = begun(&meeting);
        let second = begun(&meeting);
        assert_ne!(first, second);
        let pod = launched(first, "word", 0, Duration::from_millis(100));
        pod.join().unwrap();
        assert_eq!(met(&meeting, MeetingPhase::Over), []);
    }
}
