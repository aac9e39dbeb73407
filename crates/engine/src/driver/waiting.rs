//! When to sleep and when to poll.

use std::cmp::Ordering;
use std::io;

use plumbline_experiment::Wait;
use plumbline_sys::clock::now_ns;

use super::margin::Margin;

/// A sleep shorter than this is not worth its two context switches.
const SHORTEST_SLEEP_NS: u64 = 3_000;
/// A gap between two polls that is this many times as long as usual holds something
/// else: a soft interrupt, or another program on this CPU.
const LONGEST_GAP: u64 = 2;
/// Sleeps of the calibration, and the length of each.
const CALIBRATION_SLEEPS: usize = 24;
const CALIBRATION_NS: u64 = 50_000;

/// How a driver waits for its sockets, whatever call it waits with.
///
/// Every method takes that call as `poll`: it takes how many nanoseconds it may
/// sleep (0 for not at all) and gives the number of events.
#[derive(Debug)]
pub(super) struct Waiting {
    style: WaitStyle,
    polling: Polling,
}

/// What polling without result has cost. The time between two polls is the cost of one
/// where nothing came between them; of a longer time only what is usual counts.
#[derive(Debug, Default)]
struct Polling {
    /// The median of the gaps, nanoseconds: it goes up by a 32nd after a longer one and
    /// down after a shorter one.
    usual_ns: u64,
    spun_ns: u64,
}

impl Polling {
    #[inline]
    fn count(&mut self, gap_ns: u64) {
        if self.usual_ns == 0 {
            self.usual_ns = gap_ns;
        }
        let is_polling = gap_ns <= LONGEST_GAP * self.usual_ns;
        self.spun_ns += if is_polling { gap_ns } else { self.usual_ns };
        let step = self.usual_ns / 32 + 1;
        match gap_ns.cmp(&self.usual_ns) {
            Ordering::Greater => self.usual_ns += step,
            Ordering::Less => self.usual_ns -= step.min(self.usual_ns),
            Ordering::Equal => {}
        }
    }
}

#[derive(Debug)]
enum WaitStyle {
    /// Sleeps for as long as allowed: for callers without deadlines.
    Relaxed,
    /// Sleeps until shortly before the deadline, then polls.
    Punctual(Margin),
    /// Never sleeps.
    Spinning,
}

impl Waiting {
    /// Waits without regard to deadlines.
    pub(super) fn relaxed() -> Self {
        Self {
            style: WaitStyle::Relaxed,
            polling: Polling::default(),
        }
    }

    /// Waits so as to meet deadlines. [`Wait::Block`] begins with a few sleeps
    /// on the calling thread, to learn how late it wakes.
    pub(super) fn punctual(
        wait: Wait,
        mut poll: impl FnMut(u64) -> io::Result<usize>,
    ) -> io::Result<Self> {
        let style = match wait {
            Wait::Spin => WaitStyle::Spinning,
            Wait::Block => {
                let mut late = [0; CALIBRATION_SLEEPS];
                for delay in &mut late {
                    let start = now_ns();
                    poll(CALIBRATION_NS)?;
                    *delay = (now_ns() - start).saturating_sub(CALIBRATION_NS);
                }
                WaitStyle::Punctual(Margin::calibrated(&mut late))
            }
        };
        Ok(Self {
            style,
            polling: Polling::default(),
        })
    }

    /// Waits until something happens or the clock reaches `until`; `now` is a
    /// recent reading. May return early with nothing.
    #[inline]
    pub(super) fn wait(
        &mut self,
        now: u64,
        until: u64,
        mut poll: impl FnMut(u64) -> io::Result<usize>,
    ) -> io::Result<usize> {
        match &mut self.style {
            WaitStyle::Relaxed => poll(until.saturating_sub(now)),
            // Remaining work comes first, whatever the time.
            _ if until <= now => poll(0),
            WaitStyle::Spinning => self.spin(until, poll),
            WaitStyle::Punctual(margin) => {
                // Sending may have taken many microseconds since `now`.
                let wake = until.saturating_sub(margin.ns());
                let sleep = wake.saturating_sub(now_ns());
                if sleep < SHORTEST_SLEEP_NS {
                    return self.spin(until, poll);
                }
                let events = poll(sleep)?;
                let woke = now_ns();
                if woke >= wake {
                    margin.observe(woke - wake);
                    if events == 0 && woke < until {
                        return self.spin(until, poll);
                    }
                }
                Ok(events)
            }
        }
    }

    /// Polls until something happens or the clock reaches `until`. The last
    /// poll, which finds something, is not counted: it is part of the work.
    #[inline]
    fn spin(
        &mut self,
        until: u64,
        mut poll: impl FnMut(u64) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut last = now_ns();
        loop {
            // At least once: answers must not starve where requests are late.
            let events = poll(0)?;
            if events > 0 {
                return Ok(events);
            }
            let now = now_ns();
            self.polling.count(now - last);
            if now >= until {
                return Ok(0);
            }
            last = now;
        }
    }

    /// Nanoseconds spent polling without result so far.
    pub(super) fn spun_ns(&self) -> u64 {
        self.polling.spun_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tries::in_time;

    #[test]
    fn a_spin_is_counted_and_never_sleeps() {
        let mut waiting = Waiting::punctual(Wait::Spin, |_| panic!("nothing to learn")).unwrap();
        let start = now_ns();
        let until = start + 2_000_000;
        let events = waiting.wait(start, until, |sleep| {
            assert_eq!(sleep, 0);
            Ok(0)
        });
        assert_eq!(events.unwrap(), 0);
        let took = now_ns() - start;
        assert!(took >= 2_000_000);
        assert!(waiting.spun_ns() <= took);
        // Polls of 20 ns each: what is not counted is time off the CPU.
        assert!(waiting.spun_ns() > 0);
    }

    #[test]
    fn what_comes_between_two_polls_is_not_polling() {
        let mut polling = Polling::default();
        // The first one is interrupted, and every tenth serves a soft interrupt.
        polling.count(50_000);
        for number in 0..10_000 {
            polling.count(if number % 10 == 0 { 12_000 } else { 400 });
        }
        let before = polling.spun_ns;
        for number in 0..1_000 {
            polling.count(if number % 10 == 0 { 12_000 } else { 400 });
        }
        let spun = polling.spun_ns - before;
        assert!((380_000..=440_000).contains(&spun), "{spun}");
        // A slower clock, or another call: that is usual soon.
        (0..1_000).for_each(|_| polling.count(3_000));
        assert!((2_800..=3_200).contains(&polling.usual_ns));
    }

    #[test]
    fn what_comes_during_a_spin_is_given_at_once() {
        let mut waiting = Waiting::punctual(Wait::Spin, |_| Ok(0)).unwrap();
        let start = now_ns();
        let mut polls = 0;
        let events = waiting.wait(start, start + 60_000_000_000, |_| {
            polls += 1;
            Ok(if polls < 3 { 0 } else { 2 })
        });
        assert_eq!((events.unwrap(), polls), (2, 3));
    }

    #[test]
    fn a_punctual_wait_sleeps_until_its_margin_and_polls_the_rest() {
        // A machine that wakes 40 µs late from every sleep.
        let doze = |ns: u64| {
            let wake = now_ns() + ns + 40_000;
            while ns > 0 && now_ns() < wake {}
            Ok(0)
        };
        let sleeps = || {
            let mut waiting = Waiting::punctual(Wait::Block, doze).unwrap();
            let start = now_ns();
            let mut slept = Vec::new();
            let until = start + 300_000;
            waiting
                .wait(start, until, |ns| {
                    slept.push(ns);
                    doze(ns)
                })
                .unwrap();
            assert!(slept[1..].iter().all(|&ns| ns == 0), "{slept:?}");
            assert!(now_ns() >= until);
            slept[0]
        };
        let is_until_margin = |slept: &u64| (210_000..=261_000).contains(slept);
        let slept = in_time(sleeps, is_until_margin);
        assert!(is_until_margin(&slept), "{slept}");
    }

    #[test]
    fn a_relaxed_wait_sleeps_for_all_of_it() {
        let mut waiting = Waiting::relaxed();
        let events = waiting.wait(1_000, 51_000, |sleep| {
            assert_eq!(sleep, 50_000);
            Ok(1)
        });
        assert_eq!((events.unwrap(), waiting.spun_ns()), (1, 0));
    }
}
