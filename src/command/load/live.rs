//! One line per second on a terminal, while a load runs.

use std::io::IsTerminal as _;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_engine::{LoadPlan, Progress};
use plumbline_experiment::WorkloadKind;
use plumbline_report::number;

const EVERY: Duration = Duration::from_secs(1);

/// Runs a load, and meanwhile tells on standard error how it goes if people
/// are watching. The watching thread wakes once a second.
pub(super) fn shown_while<T>(plan: &LoadPlan, progress: &Progress, run: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return run();
    }
    let bulk = plan.workload.kind == WorkloadKind::Stream;
    thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            let start = Instant::now();
            let mut last = Reading::take(progress);
            loop {
                match ended.recv_timeout(last.at + EVERY - Instant::now().min(last.at + EVERY)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
                let next = Reading::take(progress);
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

/// The running totals at one moment.
struct Reading {
    at: Instant,
    completed: u64,
    errors: u64,
    bytes: u64,
}

impl Reading {
    fn take(progress: &Progress) -> Self {
        Self {
            at: Instant::now(),
            completed: progress.completed(),
            errors: progress.errors(),
            bytes: progress.bytes(),
        }
    }

    /// What happened since `last`, warm-up included; errors in all.
    fn line(&self, last: &Self, elapsed: Duration, bulk: bool) -> String {
        let seconds = (self.at - last.at).as_secs_f64();
        let rate = if bulk {
            number::plain(&number::bit_rate(
                (self.bytes - last.bytes) as f64 * 8.0 / seconds,
            ))
        } else {
            format!(
                "{} req/s",
                number::count((self.completed - last.completed) as f64 / seconds)
            )
        };
        format!(
            "{:>4.0} s  {rate:>14}  {} errors",
            elapsed.as_secs_f64(),
            self.errors
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_the_last_second() {
        let start = Instant::now();
        let reading = |seconds, completed, bytes| Reading {
            at: start + Duration::from_secs(seconds),
            completed,
            errors: 3,
            bytes,
        };
        let (last, next) = (reading(1, 1_000, 0), reading(2, 6_500, 125_000_000));
        let elapsed = Duration::from_secs(2);
        assert_eq!(
            next.line(&last, elapsed, false),
            "   2 s     5,500 req/s  3 errors"
        );
        assert_eq!(
            next.line(&last, elapsed, true),
            "   2 s     1.00 Gbit/s  3 errors"
        );
    }
}
