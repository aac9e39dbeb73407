//! A start at the same moment, for trials that run side by side.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use plumbline_sys::clock::now_ns;

use crate::agent::TrialError;
use crate::clock::{Beginning, ClockError, Clocks};

/// How often a trial that waits looks after its agents: well within their lease.
const TICK: Duration = Duration::from_millis(200);

/// Where trials wait for each other. Unlike [`std::sync::Barrier`] it opens also
/// when some of them never come.
pub(crate) struct Start {
    awaited: Mutex<Awaited>,
    open: Condvar,
}

struct Awaited {
    /// How many have neither come nor given up.
    left: usize,
    /// When the last of them did, by the monotonic clock.
    since_ns: u64,
    /// What those that take turns said of their clocks.
    clocks: Clocks,
}

/// All that are awaited have come or given up.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// Since this moment of the monotonic clock.
    since_ns: u64,
    /// The clocks of those that came.
    clocks: Clocks,
}

impl Gathered {
    /// When the slices begin in which they take turns.
    pub(crate) fn begin(&self) -> Result<Beginning, ClockError> {
        self.clocks.begin_after(self.since_ns)
    }
}

impl Start {
    pub(crate) fn of(trials: usize) -> Self {
        Self::in_turns(trials, Clocks::default())
    }

    /// Of trials that take turns; `clocks` says for what.
    pub(crate) fn in_turns(trials: usize, clocks: Clocks) -> Self {
        let awaited = Awaited {
            left: trials,
            since_ns: 0,
            clocks,
        };
        Self {
            awaited: Mutex::new(awaited),
            open: Condvar::new(),
        }
    }

    /// One for each trial: whoever drops it is not waited for.
    pub(crate) fn ticket(&self) -> Ticket<'_> {
        Ticket(self)
    }

    fn awaited(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_less(&self) {
        let mut awaited = self.awaited();
        awaited.left = awaited.left.saturating_sub(1);
        if awaited.left == 0 {
            awaited.since_ns = now_ns();
            self.open.notify_all();
        }
    }

    /// Waits at most a tick for all to come.
    fn open_soon(&self) -> Option<Gathered> {
        let waited = self
            .open
            .wait_timeout_while(self.awaited(), TICK, |awaited| awaited.left > 0);
        let (awaited, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (awaited.left == 0).then(|| Gathered {
            since_ns: awaited.since_ns,
            clocks: awaited.clocks.clone(),
        })
    }
}

/// What a thread gave; its panic goes on here.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let result = thread.join();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The right to be waited for.
pub(crate) struct Ticket<'a>(&'a Start);

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.0.one_less();
    }
}

impl<'a> Ticket<'a> {
    /// The same for one more, who comes beside the holder of this.
    pub(crate) fn another(&self) -> Self {
        self.0.awaited().left += 1;
        Self(self.0)
    }

    /// Tells what agents said of their clocks.
    pub(crate) fn tell(&self, tell: impl FnOnce(&mut Clocks)) {
        tell(&mut self.0.awaited().clocks);
    }

    /// Waits until every other has come or given up, and calls `meanwhile` every
    /// now and then. What it gives is the same for all. There is no limit of its own:
    /// each step before it has one.
    pub(crate) fn wait_for_all(
        self,
        interrupted: &AtomicBool,
        mut meanwhile: impl FnMut() -> Result<(), TrialError>,
    ) -> Result<Gathered, TrialError> {
        let start: &'a Start = self.0;
        drop(self);
        loop {
            if let Some(gathered) = start.open_soon() {
                return Ok(gathered);
            }
            if interrupted.load(Ordering::SeqCst) {
                return Err(TrialError::Interrupted);
            }
            meanwhile()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn nobody_starts_before_the_last_has_come() {
        let start = Start::of(3);
        let came = Mutex::new(Vec::new());
        let never = AtomicBool::new(false);
        thread::scope(|scope| {
            for delay in [0, 30, 90] {
                let ticket = start.ticket();
                let (came, never) = (&came, &never);
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(delay));
                    let before = Instant::now();
                    ticket.wait_for_all(never, || Ok(())).unwrap();
                    came.lock().unwrap().push((before, Instant::now()));
                });
            }
        });
        let came = came.into_inner().unwrap();
        let last = came.iter().map(|(before, _)| *before).max().unwrap();
        assert!(came.iter().all(|(_, after)| *after >= last));
    }

    #[test]
    fn one_more_is_waited_for_too() {
        let start = Start::of(1);
        let (first, never) = (start.ticket(), AtomicBool::new(false));
        let second = first.another();
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                first
                    .wait_for_all(&never, || Ok(()))
                    .map(|_| Instant::now())
            });
            thread::sleep(Duration::from_millis(30));
            let came = Instant::now();
            drop(second);
            assert!(waits.join().unwrap().unwrap() >= came);
        });
    }

    #[test]
    fn one_that_gives_up_holds_nobody_back() {
        let start = Start::of(2);
        drop(start.ticket());
        let never = AtomicBool::new(false);
        start.ticket().wait_for_all(&never, || Ok(())).unwrap();
    }

    #[test]
    fn whoever_waits_can_be_stopped_and_looks_after_its_agents() {
        let start = Start::of(2);
        let stop = AtomicBool::new(false);
        let result = start.ticket().wait_for_all(&stop, || {
            stop.store(true, Ordering::SeqCst);
            Ok(())
        });
        assert!(matches!(result, Err(TrialError::Interrupted)));
    }
}
