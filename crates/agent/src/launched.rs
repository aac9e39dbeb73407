//! The program of a pod that was launched: it says to its peer that it is there, and when
//! it began, and answers whatever that asks.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, process};

use plumbline_protocol::LaunchedOrder;
use plumbline_sys::clock::{ClockPair, boot_ns, now_ns, sleep_until_ns};
use plumbline_sys::poll::{Interest, Poller, Trigger};
use plumbline_sys::socket::Socket;
use serde::{Deserialize, Serialize};

/// From one packet to the next, until the peer has answered.
const GAP_NS: u64 = 1_000_000;

/// Where an answer is missing for so long that a gap is less than this share of it, the gap
/// is this share: many pods that wait long must not keep the nodes from what they wait for.
const SHARE: u64 = 32;

/// How long it waits for questions at a time once it has been heard.
const LOOK_NS: u64 = 1_000_000_000;

/// The kernel's tick in which processes are dated for programs, nanoseconds (`USER_HZ`).
const TICK_NS: u64 = 10_000_000;

/// Where a process finds its start in its `stat`, after its name: proc_pid_stat(5).
const START_FIELD: usize = 19;

/// What the peer asks a pod with.
pub(crate) fn question(launch: &str, pod: u32) -> String {
    format!("{launch} {pod}")
}

/// What a launched pod says to its peer. Ages are nanoseconds before it was sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PodGreeting {
    pub(crate) launch: String,
    pub(crate) pod: u32,
    /// Where it can be asked.
    pub(crate) at: SocketAddr,
    pub(crate) namespace_age_ns: Option<u64>,
    pub(crate) sandbox_age_ns: Option<u64>,
    pub(crate) begun_age_ns: u64,
    /// Of the first question.
    pub(crate) asked_age_ns: Option<u64>,
}

/// Greets the peer until it asks, and answers each question, for so long.
pub(crate) fn answer(order: &LaunchedOrder, begun_ns: u64, life: Duration) -> io::Result<()> {
    let end_ns = begun_ns + life.as_nanos() as u64;
    let mut clocks = ClockPair::now();
    let out = loop {
        match Socket::connect_udp(order.peer, None) {
            Ok(socket) => break socket,
            Err(error) if now_ns() > end_ns => return Err(error),
            Err(_) => sleep_until_ns(now_ns() + GAP_NS),
        }
    };
    let asked = Socket::bind_udp(SocketAddr::new(out.local_addr()?.ip(), 0), false)?;
    // Where the kernel does not date what arrives, the moment of reading counts.
    let _ = asked.enable_stamps();
    let mut poller = Poller::new(1)?;
    poller.add(asked.as_fd(), 0, Interest::Read, Trigger::Level)?;
    let (namespace_ns, sandbox_ns) = (namespace_ns(begun_ns, &clocks), sandbox_ns());
    let question = question(&order.launch, order.pod);
    let at = asked.local_addr()?;
    let mut first_asked_ns = None;
    let mut answers = false;
    while now_ns() < end_ns {
        if answers || first_asked_ns.is_none() {
            let age = |ns: u64| now_ns().saturating_sub(ns);
            let greeting = PodGreeting {
                launch: order.launch.clone(),
                pod: order.pod,
                at,
                namespace_age_ns: namespace_ns.map(age),
                sandbox_age_ns: sandbox_ns.map(age),
                begun_age_ns: age(begun_ns),
                asked_age_ns: first_asked_ns.map(age),
            };
            // Where nobody waits yet, or any more, that is an error, and no reason to end.
            let _ = out.send(&serde_json::to_vec(&greeting)?);
        }
        let waited_ns = now_ns().saturating_sub(begun_ns);
        let gap_ns = (waited_ns / SHARE).max(GAP_NS);
        clocks = ClockPair::now();
        poller.wait(first_asked_ns.map_or(gap_ns, |_| LOOK_NS))?;
        let mut packet = [0; 256];
        answers = false;
        while let Ok((length, stamp)) = asked.receive_stamped(&mut packet) {
            if packet[..length] == *question.as_bytes() {
                first_asked_ns.get_or_insert(arrived_ns(stamp, &clocks, &ClockPair::now()));
                answers = true;
            }
        }
    }
    Ok(())
}

/// When a packet arrived that the kernel has stamped by the wall clock since `earlier`; where
/// it has not, or that clock was set, the moment of reading counts, which is now.
pub(crate) fn arrived_ns(stamp: Option<u64>, earlier: &ClockPair, now: &ClockPair) -> u64 {
    let stamp = stamp.filter(|_| now.error_since(earlier).is_some());
    stamp.map_or(now.monotonic_ns, |ns| now.to_monotonic(ns))
}

/// When the network namespace of this process was made, where that can be seen: a container
/// runtime gives a new one a name at once, so that it outlives whoever made it, and the file
/// behind that name has a date by the wall clock. The controller knows whether that was set
/// before this process began.
fn namespace_ns(begun_ns: u64, begun: &ClockPair) -> Option<u64> {
    let made = fs::metadata("/proc/self/ns/net").ok()?.modified().ok()?;
    let made_ns = made.duration_since(UNIX_EPOCH).ok()?.as_nanos() as u64;
    made_before(begun_ns, made_ns, begun, &ClockPair::now())
}

/// A date of the wall clock, on the other clock. One without a name gets its file when it is
/// looked at.
fn made_before(begun_ns: u64, made_ns: u64, begun: &ClockPair, now: &ClockPair) -> Option<u64> {
    now.error_since(begun)?;
    Some(now.to_monotonic(made_ns)).filter(|ns| *ns < begun_ns)
}

/// When the first process of the pod began, to half a tick, where it is not this one: a
/// runtime starts it when the pod's network is attached.
fn sandbox_ns() -> Option<u64> {
    if process::id() == 1 {
        return None;
    }
    let stat = fs::read_to_string("/proc/1/stat").ok()?;
    let age_ns = boot_ns().checked_sub(started_ns(&stat)?)?;
    now_ns().checked_sub(age_ns)
}

/// The middle of the tick in which a process began, since the start of the kernel.
pub(crate) fn started_ns(stat: &str) -> Option<u64> {
    // A name may hold anything, parentheses too.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: u64 = fields.split_whitespace().nth(START_FIELD)?.parse().ok()?;
    ticks.checked_mul(TICK_NS)?.checked_add(TICK_NS / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_dated_by_its_tick() {
        let stat = "1 (a) pause) S 0 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123 4096 1";
        assert_eq!(started_ns(stat), Some(1_235_000_000));
        assert_eq!(started_ns("1 (pause) S"), None);
        assert_eq!(
            started_ns(&stat.replace("123", "18446744073709551615")),
            None
        );
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        let age_ns = boot_ns() + TICK_NS - started_ns(&own).unwrap();
        assert!(age_ns < 3_600_000_000_000, "{own}");
    }

    #[test]
    fn a_namespace_is_older_than_what_began_in_it() {
        // Of one that was made before this moment, and whose file stays open.
        let kept = fs::File::open("/proc/self/ns/net").unwrap();
        sleep_until_ns(now_ns() + 50_000_000);
        let now = now_ns();
        let clocks = ClockPair::now();
        let made = namespace_ns(now, &clocks).unwrap();
        assert!(made <= now && now - made >= 30_000_000, "{made} {now}");
        let long_before = made.saturating_sub(60_000_000_000);
        assert_eq!(namespace_ns(long_before, &clocks), None);
        drop(kept);
    }

    const MS: u64 = 1_000_000;
    const HOUR: u64 = 3_600_000 * MS;

    /// A wall clock that is so much ahead of the other one.
    fn clocks(monotonic_ns: u64, ahead_ns: u64) -> ClockPair {
        ClockPair {
            monotonic_ns,
            realtime_ns: monotonic_ns + ahead_ns,
            error_ns: 100,
        }
    }

    #[test]
    fn an_hour_by_which_the_wall_clock_is_set_is_in_no_date() {
        let (begun, now) = (clocks(900 * MS, 9 * HOUR), clocks(950 * MS, 9 * HOUR));
        let made = |now| made_before(900 * MS, 700 * MS + 9 * HOUR, &begun, &now);
        let arrived = |now| arrived_ns(Some(940 * MS + 9 * HOUR), &begun, &now);
        assert_eq!((made(now), arrived(now)), (Some(700 * MS), 940 * MS));
        for ahead_ns in [8 * HOUR, 10 * HOUR, 9 * HOUR + MS] {
            let set = clocks(950 * MS, ahead_ns);
            assert_eq!((made(set), arrived(set)), (None, 950 * MS), "{ahead_ns}");
        }
        assert_eq!(arrived_ns(None, &begun, &now), 950 * MS);
    }
}
