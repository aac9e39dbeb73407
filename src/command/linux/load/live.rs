//! What a person is told beside the results of a load.

use std::io::IsTerminal as _;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_engine::{LoadPlan, LoadProgress};
use plumbline_experiment::WorkloadKind;
use plumbline_record::Floor;
use plumbline_report::load::Totals;

use crate::progress::say;

const EVERY: Duration = Duration::from_secs(1);

/// What this generator measures where there is no network (L-13). A load goes on
/// without it.
pub(super) fn floor(cpus: &[usize], interrupted: &AtomicBool) -> Option<Floor> {
    plumbline_engine::floor(cpus, &[], interrupted).unwrap_or_else(|error| {
        say(&format!(
            "the generator's own round trip was not measured: {error}"
        ));
        None
    })
}

/// Runs a load, and reports on it once a second where standard error is a terminal.
pub(super) fn shown_while<T>(plan: &LoadPlan, live: &LoadProgress, run: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return run();
    }
    let bulk = plan.workload.kind == WorkloadKind::Stream;
    thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            let start = Instant::now();
            let mut last = take(live);
            loop {
                match ended.recv_timeout(last.at + EVERY - Instant::now().min(last.at + EVERY)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
                let next = take(live);
                anstream::eprintln!("{}", next.line(&last, next.at - start, bulk));
                last = next;
            }
        });
        let result = run();
        // Hanging up ends the watching thread.
        drop(running);
        result
    })
}

fn take(live: &LoadProgress) -> Totals {
    Totals {
        at: Instant::now(),
        completed: live.completed(),
        errors: live.errors(),
        bytes: live.bytes(),
    }
}
