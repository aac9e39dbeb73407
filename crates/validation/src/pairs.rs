//! The alternating runs of one comparison.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::bench::Bench;
use crate::bout::Bout;
use crate::error::ValidationError;
use crate::quantity::Readings;

pub(crate) struct BoutPairs {
    pub(crate) bout: &'static Bout,
    /// Theirs and ours, pair by pair.
    pub(crate) readings: Vec<(Readings, Readings)>,
    /// Why there are fewer than were asked for.
    pub(crate) error: Option<ValidationError>,
}

impl BoutPairs {
    /// Runs the pairs of one bout, first one side ahead, then the other, so that
    /// neither always finds the machine as the other left it (C-1).
    pub(crate) fn run(
        bench: &Bench<'_>,
        bout: &'static Bout,
        pairs: u32,
        stop: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Self {
        let mut done = Self {
            bout,
            readings: Vec::new(),
            error: None,
        };
        for pair in 0..pairs {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            say(&format!("{}: pair {} of {pairs}", bout.name, pair + 1));
            match one_pair(bench, bout, pair % 2 == 1) {
                Ok(pair) => done.readings.push(pair),
                Err(error) => {
                    say(&format!("{}: {error}", bout.name));
                    done.error = Some(error);
                    break;
                }
            }
        }
        done
    }
}

fn one_pair(
    bench: &Bench<'_>,
    bout: &Bout,
    ours_first: bool,
) -> Result<(Readings, Readings), ValidationError> {
    if ours_first {
        let ours = (bout.ours.run)(bench)?;
        return Ok(((bout.theirs.run)(bench)?, ours));
    }
    let theirs = (bout.theirs.run)(bench)?;
    Ok((theirs, (bout.ours.run)(bench)?))
}
