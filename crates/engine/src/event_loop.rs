//! The one event loop. Every workload and every driver runs in it.

use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_sys::clock::{now_ns, sleep_until_ns};
use plumbline_sys::cpu::thread_time_ns;

use crate::EngineError;
use crate::driver::{Driver, Event};
use crate::recorder::Recorder;
use crate::schedule::Schedule;
use crate::window::{Edge, Window};

/// Longest time between two looks at the stop flag and the workload's clocks.
const TICK_NS: u64 = 10_000_000;
/// Longest sleep between slices, when nothing is outstanding: others have the machine.
const REST_NS: u64 = 50_000_000;
/// Most requests sent before arrived answers are looked at again.
const BURST: usize = 256;

/// What to send, and how to judge what comes back.
pub(crate) trait LoadClient<D: Driver> {
    /// Opens connections; true when all are open. Called until then.
    fn prepare(&mut self, io: &mut D, now: u64) -> Result<bool, EngineError>;

    /// The load is about to start; the recorder has its window.
    fn begin(&mut self) {}

    /// A slice begins, which ends at `until`. A closed loop sends its first requests.
    fn slice_begins(&mut self, io: &mut D, until: u64);

    /// The recorded part of a slice was to begin at `at`, which has just passed.
    fn recording_begins(&mut self, _io: &mut D, _at: u64) {}

    /// The recorded part of a slice was to end at `at`, and the slice with it.
    fn recording_ends(&mut self, _io: &mut D, _at: u64) {}

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

    /// Called every 10 ms: reopens, gives up.
    fn tick(&mut self, _io: &mut D, _now: u64) {}

    /// Whether any answers are outstanding.
    fn busy(&self) -> bool;

    /// The load has ended: everything outstanding is given up.
    fn end(&mut self, io: &mut D, now: u64);

    /// The accounts.
    fn recorder(&mut self) -> &mut Recorder;

    /// Gives up the accounts. Allocates nothing: other workers may still measure.
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
    while now_ns() < window.start() {
        poll(io, workload, now_ns(), window.start())?;
    }
    workload.recorder().window = window.clone();
    workload.begin();
    let mut course = Course::default();
    let mut next_tick = window.start() + TICK_NS;
    loop {
        let now = now_ns();
        if stop.load(Ordering::Relaxed) {
            window.cut(now);
            workload.recorder().window = window.clone();
        }
        course.pass_edges(io, workload, &window, now);
        let blocked = send_due(io, workload, schedule.as_mut(), &window, now);
        let more = workload.flush(io, now);
        if now >= next_tick {
            workload.recorder().publish();
            workload.tick(io, now);
            next_tick = now + TICK_NS;
        }
        let due = schedule.as_ref().map(Schedule::next);
        let due = due.filter(|&due| due < window.close());
        let done = now >= window.close() && due.is_none() && !more && !workload.busy();
        if done || now >= window.end {
            break;
        }
        let edge = course.next_edge(&window);
        if course.rests && !blocked && !more && !workload.busy() {
            // What wakes late does so in the part of a slice that is not recorded.
            sleep_until_ns(edge.min(now + REST_NS));
            continue;
        }
        let wake = match due {
            _ if more => now,
            // Requests that are due but blocked cannot go out before the next
            // event.
            Some(due) if !blocked => due.min(next_tick),
            _ => next_tick,
        };
        poll(io, workload, now, wake.min(edge))?;
    }
    let now = now_ns();
    course.pass_edges(io, workload, &window, now);
    let spent = course.spent;
    let seen = &mut workload.recorder().seen;
    seen.spin_ns = spent.spun;
    seen.busiest_thread_ns = spent.cpu.saturating_sub(spent.spun);
    workload.end(io, now);
    if let Some(schedule) = &mut schedule {
        give_up_unsent(workload.recorder(), schedule, &window, now);
    }
    workload.recorder().publish();
    Ok(())
}

/// How far a worker is in its slices, and what it has spent in their recorded parts.
#[derive(Default)]
struct Course {
    /// Number of the next edge.
    next: usize,
    /// Whether a slice has ended and the next one has not begun.
    rests: bool,
    /// What had been spent when this recorded part began.
    opened: Option<TimeSpent>,
    spent: TimeSpent,
}

/// Time spent, nanoseconds: polling without result, and CPU of this thread.
#[derive(Clone, Copy, Default)]
struct TimeSpent {
    spun: u64,
    cpu: u64,
}

impl TimeSpent {
    fn take(io: &impl Driver) -> Self {
        Self {
            spun: io.spun_ns(),
            cpu: thread_time_ns(),
        }
    }
}

impl Course {
    /// Does what is to be done at the edges that have been passed. The loop wakes at
    /// each, so no spin reaches across them.
    #[inline]
    fn pass_edges<D: Driver>(
        &mut self,
        io: &mut D,
        workload: &mut impl LoadClient<D>,
        window: &Window,
        now: u64,
    ) {
        while let Some((at, edge)) = window.edge(self.next)
            && at <= now
        {
            self.next += 1;
            match edge {
                Edge::Begins { until } => {
                    self.rests = false;
                    workload.slice_begins(io, until);
                }
                Edge::Opens => {
                    self.opened = Some(TimeSpent::take(io));
                    workload.recording_begins(io, at);
                }
                Edge::Closes => {
                    self.close(io);
                    workload.recording_ends(io, at);
                }
                Edge::Ends => self.rests = true,
            }
        }
    }

    fn close(&mut self, io: &impl Driver) {
        self.rests = true;
        if let Some(opened) = self.opened.take() {
            let closed = TimeSpent::take(io);
            self.spent.spun += closed.spun - opened.spun;
            self.spent.cpu += closed.cpu - opened.cpu;
        }
    }

    /// The next moment at which the loop must look again whatever happens.
    #[inline]
    fn next_edge(&self, window: &Window) -> u64 {
        window.edge(self.next).map_or(window.end, |(at, _)| at)
    }
}

/// Sends what is due, at most a burst of it. True when something is due that
/// no connection can take. Nothing intended after the window is sent.
fn send_due<D: Driver>(
    io: &mut D,
    workload: &mut impl LoadClient<D>,
    schedule: Option<&mut Schedule>,
    window: &Window,
    now: u64,
) -> bool {
    let Some(schedule) = schedule else {
        return false;
    };
    for _ in 0..BURST {
        let intended = schedule.next();
        if intended > now || intended >= window.close() {
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
fn give_up_unsent(recorder: &mut Recorder, schedule: &mut Schedule, window: &Window, now: u64) {
    while schedule.next() < window.close() {
        recorder.planned(schedule.next());
        recorder.censored(schedule.next(), None, now);
        schedule.advance();
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
