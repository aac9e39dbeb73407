//! One line for each second of a load.

use std::time::{Duration, Instant};

use crate::number;

/// The running totals at one moment.
pub struct Totals {
    /// When they were read.
    pub at: Instant,
    /// Requests that were answered, or messages sent.
    pub completed: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

impl Totals {
    /// What happened since `last`, warm-up included; errors in all.
    pub fn line(&self, last: &Self, elapsed: Duration, bulk: bool) -> String {
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
        let reading = |seconds, completed, bytes| Totals {
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
