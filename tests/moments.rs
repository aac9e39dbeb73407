//! When to kill what is killed at any moment.
//!
//! The moments are random, from a seed that is printed;
//! `PLUMBLINE_TEST_SEED=N` repeats them. `PLUMBLINE_TEST_KILLS=N` kills so many times as
//! often.

use std::io::Write as _;
use std::time::{Duration, SystemTime};

/// Random moments of one test (xorshift64).
pub(crate) struct Moments {
    test: &'static str,
    state: u64,
}

impl Moments {
    pub(crate) fn new(test: &'static str) -> Self {
        let seed = match std::env::var("PLUMBLINE_TEST_SEED") {
            Ok(seed) => seed.parse().expect("PLUMBLINE_TEST_SEED is a number"),
            Err(_) => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                now.unwrap().as_nanos() as u64
            }
        };
        say(&format!("{test}: PLUMBLINE_TEST_SEED={seed}"));
        let state = seed | 1;
        Self { test, state }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// How the mark of each run of this test begins.
    pub(crate) fn marks(&self) -> String {
        format!("{}-{}-", self.test, std::process::id())
    }

    /// A moment from now to `limit`.
    pub(crate) fn within(&mut self, limit: Duration) -> Duration {
        Duration::from_nanos(self.next() % (limit.as_nanos() as u64).max(1))
    }
}

/// How often to kill where it is so often usually.
pub(crate) fn times(usual: usize) -> usize {
    let more = std::env::var("PLUMBLINE_TEST_KILLS");
    usual
        * more.map_or(1, |it| {
            it.parse().expect("PLUMBLINE_TEST_KILLS is a number")
        })
}

/// To the real standard error: the test harness would swallow `eprintln`.
pub(crate) fn say(text: &str) {
    let line = format!("{text}\n");
    let mut stderr = std::io::stderr();
    stderr.write_all(line.as_bytes()).expect("it is open");
}
