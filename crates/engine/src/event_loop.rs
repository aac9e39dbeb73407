//! The one event loop. Every workload and every driver runs in it.

use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_sys::clock::now_ns;
use plumbline_sys::cpu::thread_time_ns;

use crate::EngineError;
use crate::driver::{Driver, Event};
use crate::recorder::Recorder;
use crate::schedule::Schedule;
use crate::window::Window;

/// Longest time between two looks at the stop flag and the workload's clocks.
const TICK_NS: u64 = 10_000_000;
/// Most requests sent before arrived answers are looked at again.
const BURST: usize = 256;

/// What to send, and how to judge what comes back.
pub(crate) trait LoadClient<D: Driver> {
    /// Opens connections; true when all are open. Called until then.
    fn prepare(&mut self, io: &mut D, now: u64) -> Result<bool, EngineError>;

    /// The load starts. A closed loop sends its first requests.
    fn begin(&mut self, io: &mut D, window: Window);

    /// A request is due. False when no connection can take it now: it stays
    /// due, and is charged from its intended time all the same.
    fn dispatch(&mut self, io: &mut D, intended: u64) -> bool;

    /// All that is due has been dispatched. True when there is more to do
    /// without waiting.
    fn flush(&mut self, _io: &mut D, _now: u64) -> bool {
        false
    }

    /// An event on a connection.
    fn event(&mut self, io: &mut D, event: Event);

    /// Called every 10 ms: reopens, gives up, publishes.
    fn tick(&mut self, io: &mut D, now: u64);

    /// Whether any answers are outstanding.
    fn busy(&self) -> bool;

    /// The load has ended: everything outstanding is given up.
    fn end(&mut self, io: &mut D, now: u64);

    /// The accounts.
    fn recorder(&mut self) -> &mut Recorder;

    /// Gives up the accounts.
    fn finish(self) -> Recorder;
}

/// Opens the connections. False when asked to stop by either flag.
pub(crate) fn prepare<D: Driver>(
    io: &mut D,
    workload: &mut impl LoadClient<D>,
    stop: [&AtomicBool; 2],
) -> Result<bool, EngineError> {
    loop {
        if stop.iter().any(|stop| stop.load(Ordering::Relaxed)) {
            return Ok(false);
        }
        let now = now_ns();
        if workload.prepare(io, now)? {
            return Ok(true);
        }
        poll(io, workload, now, now + TICK_NS / 10)?;
    }
}

/// Runs a load from its start to the end of its drain.
pub(crate) fn drive<D: Driver>(
    io: &mut D,
    workload: &mut impl LoadClient<D>,
    mut schedule: Option<Schedule>,
    mut window: Window,
    stop: &AtomicBool,
) -> Result<(), EngineError> {
    while now_ns() < window.start {
        poll(io, workload, now_ns(), window.start)?;
    }
    workload.begin(io, window);
    let mut spent = Spent::default();
    let mut next_tick = window.start + TICK_NS;
    loop {
        let now = now_ns();
        if stop.load(Ordering::Relaxed) {
            window.cut(now);
            workload.recorder().window = window;
        }
        spent.look(window, now, io);
        let blocked = send_due(io, workload, schedule.as_mut(), window, now);
        let more = workload.flush(io, now);
        if now >= next_tick {
            workload.tick(io, now);
            next_tick = now + TICK_NS;
        }
        let due = schedule.as_ref().map(Schedule::next);
        let due = due.filter(|&due| due < window.close);
        let done = now >= window.close && due.is_none() && !more && !workload.busy();
        if done || now >= window.end {
            break;
        }
        let wake = match due {
            _ if more => now,
            // Requests that are due but blocked cannot go out before the next
            // event.
            Some(due) if !blocked => due.min(next_tick),
            _ => next_tick,
        };
        poll(io, workload, now, wake.min(next_boundary(window, now)))?;
    }
    let now = now_ns();
    spent.look(window, now, io);
    let spent = spent.within();
    workload.recorder().spin_ns = spent.spun;
    workload.recorder().busy_ns = spent.cpu.saturating_sub(spent.spun);
    workload.end(io, now);
    if let Some(schedule) = &mut schedule {
        give_up_unsent(workload.recorder(), schedule, window, now);
    }
    workload.recorder().publish();
    Ok(())
}

/// What a worker had spent when the window opened and when it closed.
#[derive(Default)]
struct Spent {
    open: Option<TimeSpent>,
    close: Option<TimeSpent>,
}

/// Time spent so far, nanoseconds: polling without result, and CPU of this
/// thread.
#[derive(Clone, Copy, Default)]
struct TimeSpent {
    spun: u64,
    cpu: u64,
}

impl Spent {
    /// Looks at driver and clock if a boundary has been passed. The loop wakes
    /// at both, so no spin reaches across them.
    fn look(&mut self, window: Window, now: u64, io: &impl Driver) {
        let reading = || TimeSpent {
            spun: io.spun_ns(),
            cpu: thread_time_ns(),
        };
        if now >= window.open && self.open.is_none() {
            self.open = Some(reading());
        }
        if now >= window.close && self.close.is_none() {
            self.close = Some(reading());
        }
    }

    /// The time spent in between.
    fn within(&self) -> TimeSpent {
        let (open, close) = (
            self.open.unwrap_or_default(),
            self.close.unwrap_or_default(),
        );
        TimeSpent {
            spun: close.spun.saturating_sub(open.spun),
            cpu: close.cpu.saturating_sub(open.cpu),
        }
    }
}

/// Sends what is due, at most a burst of it. True when something is due that
/// no connection can take. Nothing intended after the window is sent.
fn send_due<D: Driver>(
    io: &mut D,
    workload: &mut impl LoadClient<D>,
    schedule: Option<&mut Schedule>,
    window: Window,
    now: u64,
) -> bool {
    let Some(schedule) = schedule else {
        return false;
    };
    for _ in 0..BURST {
        let intended = schedule.next();
        if intended > now || intended >= window.close {
            return false;
        }
        if !workload.dispatch(io, intended) {
            return true;
        }
        workload.recorder().planned(intended);
        schedule.advance();
    }
    false
}

/// Requests that were due in the window but never found a connection count as
/// planned and as censored (L-3).
fn give_up_unsent(recorder: &mut Recorder, schedule: &mut Schedule, window: Window, now: u64) {
    while schedule.next() < window.close {
        recorder.planned(schedule.next());
        recorder.censored(schedule.next(), None, now);
        schedule.advance();
    }
}

/// The next moment at which the loop must look again whatever happens.
fn next_boundary(window: Window, now: u64) -> u64 {
    if now < window.open {
        window.open
    } else if now < window.close {
        window.close
    } else {
        window.end
    }
}

fn poll<D: Driver>(
    io: &mut D,
    workload: &mut impl LoadClient<D>,
    now: u64,
    until: u64,
) -> Result<(), EngineError> {
    let events = io
        .wait(now, until)
        .map_err(EngineError::system("waiting for the sockets"))?;
    for index in 0..events {
        let event = io.event(index);
        workload.event(io, event);
    }
    Ok(())
}
