//! Whose clock the slices of a rotation are dates of.
//!
//! All senders have to share one clock. How far it is ahead of this machine's follows
//! from when an agent was asked for it and when it had answered: what it showed, it
//! showed in between.

use std::time::{Duration, Instant};

use plumbline_protocol::ClockReading;
use plumbline_sys::clock::now_ns;

/// From the moment at which all connections are open to the first slice: the time in which
/// agents hear of it, beyond the round trip that they are known for. Where one of them
/// hears too late it is doubled, up to the second.
pub(crate) const LEADS_NS: [u64; 2] = [60_000_000, 960_000_000];

/// The slowest control stream that the start is put off for.
const SLOWEST_NS: u64 = 1_000_000_000;

/// How far two readings of one clock may be apart beyond what their round trips leave
/// open: this machine's clock may run faster or slower than theirs.
const DRIFT_NS: u64 = 1_000_000;

/// How much faster a clock may run than another, as a share: crystals that nothing
/// disciplines differ by less.
const PACE: f64 = 50e-6;

/// Why treatments cannot take turns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// What has to be one machine is several.
    #[error("{one} and {other} do not show that they share a kernel, and so a clock")]
    Kernels {
        /// The site of an agent.
        one: String,
        /// The site of another.
        other: String,
    },
    /// One kernel, but not one clock: time namespaces have one of their own.
    #[error(
        "the monotonic clocks of {one} and {other} are {:.3} s apart: let both use the time namespace of their machine",
        *apart_ns as f64 / 1e9
    )]
    Apart {
        /// The site of an agent.
        one: String,
        /// The site of another.
        other: String,
        /// By how much at least, nanoseconds.
        apart_ns: u64,
    },
    /// The receiver's machine has another clock, and cannot be told the slices well
    /// enough.
    #[error(
        "the clock of {site} is known to {:.1} ms, and {:.1} ms are needed: the control stream's round trip is too long",
        *error_ns as f64 / 1e6,
        *room_ns as f64 / 1e6
    )]
    Vague {
        /// The site of the receiver.
        site: String,
        /// What it may be wrong by, nanoseconds.
        error_ns: u64,
        /// What it may be wrong by at most, nanoseconds.
        room_ns: u64,
    },
    /// Agents would hear of the start when it is over.
    #[error("{site} takes {:.1} s to answer", *round_trip_ns as f64 / 1e9)]
    Slow {
        /// The site of an agent.
        site: String,
        /// How long an answer takes, nanoseconds.
        round_trip_ns: u64,
    },
}

/// What an agent answered when it was asked for its clock.
#[derive(Clone, Debug)]
pub(crate) struct ClockAnswer {
    pub(crate) site: String,
    /// When it was asked and when it had answered, by the clock of this machine.
    pub(crate) asked_ns: u64,
    pub(crate) answered_ns: u64,
    pub(crate) reading: ClockReading,
    /// The longest that an answer took.
    pub(crate) slowest_ns: u64,
}

impl ClockAnswer {
    pub(crate) fn round_trip_ns(&self) -> u64 {
        self.answered_ns.saturating_sub(self.asked_ns)
    }

    /// How far the agent's clock is ahead of this machine's, at most half a round trip
    /// wrong.
    fn ahead_ns(&self) -> i64 {
        let middle_ns = self.asked_ns + self.round_trip_ns() / 2;
        self.reading.now_ns as i64 - middle_ns as i64
    }

    /// The same moment by the agent's clock.
    pub(crate) fn translated(&self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.ahead_ns())
    }

    /// How far a moment of this machine's clock may be off when it is
    /// [`translated`](Self::translated).
    pub(crate) fn error_ns(&self, ns: u64) -> u64 {
        let since_ns = self.asked_ns.abs_diff(ns);
        self.round_trip_ns() / 2 + (since_ns as f64 * PACE) as u64
    }

    /// Of two answers the one that leaves less open about a moment of this machine's clock,
    /// and how much that is, nanoseconds.
    pub(crate) fn nearer(early: Self, late: Self, ns: u64) -> (Self, u64) {
        match (early.error_ns(ns), late.error_ns(ns)) {
            (one, other) if one <= other => (early, one),
            (_, other) => (late, other),
        }
    }

    /// What it says of moments.
    pub(crate) fn clock(&self) -> AgentClock {
        let (now, here_ns) = (Instant::now(), now_ns());
        AgentClock {
            now,
            shows_ns: self.translated(here_ns),
            round_trip: Duration::from_nanos(self.round_trip_ns()),
        }
    }

    fn check_shared(&self, other: &Self) -> Result<(), ClockError> {
        let sites = || (self.site.clone(), other.site.clone());
        if self.reading.boot.is_empty() || self.reading.boot != other.reading.boot {
            let (one, other) = sites();
            return Err(ClockError::Kernels { one, other });
        }
        let apart_ns = self.ahead_ns().abs_diff(other.ahead_ns());
        let open_ns = (self.round_trip_ns() + other.round_trip_ns()) / 2 + DRIFT_NS;
        if apart_ns > open_ns {
            let (one, other) = sites();
            let apart_ns = apart_ns - open_ns;
            return Err(ClockError::Apart {
                one,
                other,
                apart_ns,
            });
        }
        Ok(())
    }
}

/// The monotonic clock of an agent, as it is known here.
#[derive(Clone, Copy, Debug)]
pub struct AgentClock {
    /// A moment, and what the agent's clock showed then, nanoseconds.
    now: Instant,
    shows_ns: u64,
    /// How long its answer took.
    round_trip: Duration,
}

impl AgentClock {
    /// When it shows so many nanoseconds.
    pub fn moment(&self, ns: u64) -> Instant {
        let since = Duration::from_nanos(ns.abs_diff(self.shows_ns));
        match ns >= self.shows_ns {
            true => self.now + since,
            // What was before this machine's clock began was not seen by anybody.
            false => self.now.checked_sub(since).unwrap_or(self.now),
        }
    }

    /// How far such a moment may be off.
    pub fn error(&self, moment: Instant) -> Duration {
        let (earlier, later) = (moment.min(self.now), moment.max(self.now));
        self.round_trip / 2 + (later - earlier).mul_f64(PACE)
    }
}

/// The clocks of all agents that take part in a rotation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks {
    /// Of the senders, and of the agent that watches their machine.
    pub(crate) senders: Vec<ClockAnswer>,
    /// Of the receivers on a machine of their own, and of the agent that watches it.
    pub(crate) receivers: Vec<ClockAnswer>,
    /// From the moment at which all connections are open to the first slice, beyond a round
    /// trip, nanoseconds.
    pub(crate) lead_ns: u64,
    /// The part of each slice that is not recorded, nanoseconds.
    pub(crate) skipped_ns: u64,
    /// The length of the rotation, nanoseconds.
    pub(crate) length_ns: u64,
}

/// When the slices begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// By the senders' clock, nanoseconds.
    pub(crate) sender_ns: u64,
    /// By the clock of the receivers' machine, nanoseconds, where that is another.
    pub(crate) receiver: Option<ReceiverBeginning>,
}

/// When they begin by the clock of the receivers' machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiverBeginning {
    /// Earlier by `error_ns` than is likeliest: then all that is recorded of a slice
    /// lies within it, its unrecorded part included.
    pub(crate) start_ns: u64,
    /// At most so much is it earlier or later than that, nanoseconds.
    pub(crate) error_ns: u64,
}

impl Clocks {
    /// Lets slices begin some time after the moment of this machine's clock at which all
    /// connections were open. Every trial of a rotation comes to the same result.
    pub(crate) fn begin_after(&self, ready_ns: u64) -> Result<Beginning, ClockError> {
        let all = || self.senders.iter().chain(&self.receivers);
        if let Some(slow) = all().find(|it| it.slowest_ns > SLOWEST_NS) {
            return Err(ClockError::Slow {
                site: slow.site.clone(),
                round_trip_ns: slow.slowest_ns,
            });
        }
        let slowest_ns = all().map(|it| it.slowest_ns).max().unwrap_or_default();
        let start_ns = ready_ns + self.lead_ns + slowest_ns;
        let Some(sender) = best(&self.senders)? else {
            return Ok(Beginning {
                sender_ns: start_ns,
                receiver: None,
            });
        };
        let receiver = best(&self.receivers)?;
        let receiver = receiver.map(|it| self.on_receiver(start_ns, sender, it));
        Ok(Beginning {
            sender_ns: sender.translated(start_ns),
            receiver: receiver.transpose()?,
        })
    }

    fn on_receiver(
        &self,
        start_ns: u64,
        sender: &ClockAnswer,
        receiver: &ClockAnswer,
    ) -> Result<ReceiverBeginning, ClockError> {
        let drift_ns = (self.length_ns as f64 * PACE) as u64;
        let error_ns = (sender.round_trip_ns() + receiver.round_trip_ns()) / 2 + drift_ns;
        let room_ns = self.skipped_ns / 2;
        if error_ns > room_ns {
            return Err(ClockError::Vague {
                site: receiver.site.clone(),
                error_ns,
                room_ns,
            });
        }
        Ok(ReceiverBeginning {
            start_ns: receiver.translated(start_ns).saturating_sub(error_ns),
            error_ns,
        })
    }
}

/// The answer that leaves least open, of agents that have to share a clock.
fn best(answers: &[ClockAnswer]) -> Result<Option<&ClockAnswer>, ClockError> {
    let best = answers.iter().min_by_key(|it| it.round_trip_ns());
    if let Some(best) = best {
        answers.iter().try_for_each(|it| best.check_shared(it))?;
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LEAD_NS: u64 = LEADS_NS[0];
    /// How far the senders' clock and the receivers' are ahead of this machine's.
    const SENDERS_NS: u64 = 7_200_000 * MS;
    const RECEIVERS_NS: u64 = 90_000_000 * MS;

    /// An agent that reads its clock after `there_ns` and whose answer takes `back_ns`.
    fn answer(site: &str, ahead_ns: u64, [there_ns, back_ns]: [u64; 2]) -> ClockAnswer {
        let asked_ns = 5_000 * MS;
        ClockAnswer {
            site: site.into(),
            asked_ns,
            answered_ns: asked_ns + there_ns + back_ns,
            reading: ClockReading {
                now_ns: asked_ns + there_ns + ahead_ns,
                boot: format!("kernel {ahead_ns}"),
            },
            slowest_ns: there_ns + back_ns,
        }
    }

    fn clocks(senders: Vec<ClockAnswer>, receivers: Vec<ClockAnswer>) -> Clocks {
        Clocks {
            senders,
            receivers,
            lead_ns: LEAD_NS,
            skipped_ns: 3 * MS,
            length_ns: 2_000 * MS,
        }
    }

    #[test]
    fn the_start_is_a_date_of_the_senders_clock() {
        let here = clocks(vec![answer("a", 0, [MS / 10, MS / 10])], Vec::new());
        let ready_ns = 6_000 * MS;
        let beginning = here.begin_after(ready_ns).unwrap();
        assert_eq!(beginning.sender_ns, ready_ns + LEAD_NS + MS / 5);
        assert_eq!(beginning.receiver, None);
        // Elsewhere, over a stream that takes 40 ms: by the better of two answers.
        let far = [[10 * MS, 30 * MS], [MS, MS]].map(|ways| answer("a", SENDERS_NS, ways));
        let there = clocks(far.into(), Vec::new());
        let beginning = there.begin_after(ready_ns).unwrap();
        let start_ns = ready_ns + LEAD_NS + 40 * MS;
        assert_eq!(beginning.sender_ns, start_ns + SENDERS_NS);
    }

    #[test]
    fn a_moment_is_translated_to_within_its_error() {
        for ways in [[MS, 0], [0, MS], [MS / 2, MS / 2]] {
            let answer = answer("a", SENDERS_NS, ways);
            let ns = answer.asked_ns + 4_000 * MS;
            let off_ns = answer.translated(ns).abs_diff(ns + SENDERS_NS);
            assert_eq!(answer.error_ns(ns), MS / 2 + MS / 5);
            assert!(off_ns <= answer.error_ns(ns), "{off_ns}");
        }
    }

    #[test]
    fn what_an_agent_dated_is_a_moment_here() {
        let answer = answer("a", SENDERS_NS, [MS, MS]);
        let clock = answer.clock();
        let (ns, now) = (answer.translated(now_ns()), Instant::now());
        for seconds in [0, 1] {
            let ago = Duration::from_secs(seconds);
            let moment = clock.moment(ns - ago.as_nanos() as u64);
            let off = (now - ago).max(moment) - (now - ago).min(moment);
            assert!(off < Duration::from_millis(200), "{off:?}");
        }
        assert!(clock.error(now) >= Duration::from_millis(1));
        let later = now + Duration::from_secs(100);
        assert!(clock.error(later) >= Duration::from_millis(6));
    }

    #[test]
    fn where_nobody_was_asked_it_is_this_machines_clock() {
        let beginning = Clocks::default().begin_after(9).unwrap();
        assert_eq!(beginning.sender_ns, 9);
    }

    #[test]
    fn senders_of_two_kernels_are_refused() {
        let ways = [MS / 10, MS / 10];
        let two = vec![answer("a", 0, ways), answer("b", SENDERS_NS, ways)];
        let error = clocks(two, Vec::new()).begin_after(0).unwrap_err();
        assert!(matches!(error, ClockError::Kernels { .. }), "{error}");
        // One that does not show which it is might be another.
        let mut unknown = answer("a", 0, ways);
        unknown.reading.boot.clear();
        let error = clocks(vec![unknown], Vec::new()).begin_after(0);
        assert!(matches!(error, Err(ClockError::Kernels { .. })));
    }

    #[test]
    fn senders_of_one_kernel_in_two_time_namespaces_are_refused() {
        let here = answer("a", 0, [MS / 10, MS / 10]);
        let mut shifted = answer("b", 0, [MS / 10, MS / 10]);
        shifted.reading.now_ns += 3_000 * MS;
        let error = clocks(vec![here.clone(), shifted], Vec::new()).begin_after(0);
        let Err(ClockError::Apart { apart_ns, .. }) = error else {
            panic!("{error:?}")
        };
        assert!(apart_ns.abs_diff(3_000 * MS) < 2 * MS);
        // A lopsided way looks like another clock, and is none.
        let lopsided = answer("b", 0, [0, 60 * MS]);
        clocks(vec![here, lopsided], Vec::new())
            .begin_after(0)
            .unwrap();
    }

    #[test]
    fn what_is_recorded_of_a_receiver_lies_within_the_slice() {
        let ready_ns = 6_000 * MS;
        let slice = (20 * MS, 23 * MS, 45 * MS);
        for [there, back] in [[MS, 0], [0, MS], [MS / 2, MS / 2]] {
            let receivers = vec![answer("r", RECEIVERS_NS, [there, back])];
            let senders = vec![answer("s", SENDERS_NS, [back, there])];
            let beginning = clocks(senders, receivers).begin_after(ready_ns).unwrap();
            let receiver = beginning.receiver.unwrap();
            assert_eq!(receiver.error_ns, MS + MS / 10);
            // What the senders' clock shows when the receiver's begins.
            let seen_ns = |ns: u64| receiver.start_ns + ns - RECEIVERS_NS + SENDERS_NS;
            let sent_ns = |ns: u64| beginning.sender_ns + ns;
            assert!(seen_ns(slice.1) >= sent_ns(slice.0));
            assert!(seen_ns(slice.2) <= sent_ns(slice.2));
        }
    }

    #[test]
    fn a_receiver_whose_clock_is_not_known_well_enough_is_refused() {
        let senders = vec![answer("s", SENDERS_NS, [MS / 10, MS / 10])];
        let receivers = vec![answer("r", RECEIVERS_NS, [2 * MS, MS])];
        let error = clocks(senders, receivers).begin_after(0).unwrap_err();
        let expected = ClockError::Vague {
            site: "r".into(),
            error_ns: MS / 10 + 3 * MS / 2 + MS / 10,
            room_ns: 3 * MS / 2,
        };
        assert_eq!(error, expected);
        assert!(error.to_string().contains("1.7 ms"), "{error}");
    }

    #[test]
    fn a_stream_that_takes_seconds_is_not_waited_for() {
        let senders = vec![answer("s", SENDERS_NS, [MS, 2_000 * MS])];
        let error = clocks(senders, Vec::new()).begin_after(0).unwrap_err();
        assert!(matches!(error, ClockError::Slow { .. }), "{error}");
    }
}
