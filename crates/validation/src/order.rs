//! What to compare, and how often.

use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_experiment::{Family, Placement};
use plumbline_lab::Lab;

use crate::bench::Bench;
use crate::bout::Bout;
use crate::catalogue;
use crate::comparisons::Comparisons;
use crate::error::{OrderError, ValidationError};
use crate::pairs::BoutPairs;

/// What to compare, and how often.
#[derive(Debug)]
pub struct ValidationOptions {
    bouts: Vec<&'static Bout>,
    pairs: u32,
    seconds: u32,
}

impl ValidationOptions {
    /// The comparisons of these names, all without a name; so many alternating
    /// pairs of each, every run of so many seconds.
    ///
    /// # Errors
    ///
    /// An unknown name, or nothing to measure.
    pub fn new(only: &[String], pairs: u32, seconds: u32) -> Result<Self, OrderError> {
        if pairs == 0 || seconds == 0 {
            return Err(OrderError::Nothing);
        }
        let known: Vec<&str> = catalogue::ALL.iter().map(|bout| bout.name).collect();
        if let Some(name) = only.iter().find(|name| !known.contains(&name.as_str())) {
            let name = name.clone();
            return Err(OrderError::Unknown { name, known });
        }
        let named = |bout: &&Bout| only.is_empty() || only.iter().any(|name| name == bout.name);
        Ok(Self {
            bouts: catalogue::ALL.iter().filter(named).collect(),
            pairs,
            seconds,
        })
    }

    /// Compares, on a path of this lab; `say` hears how far it is. A comparison
    /// that fails is part of the result, and the next one is made.
    ///
    /// # Errors
    ///
    /// No path or no bench to compare on.
    pub fn run(
        &self,
        lab: &mut Lab,
        stop: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<Comparisons, ValidationError> {
        let standing = lab.stand("host", Placement::CrossNode, Family::V4)?;
        let bench = Bench::new(standing, self.seconds)?;
        if bench.shares_a_cpu() {
            say(
                "client and server share the only CPU: every figure holds the other side's work too",
            );
        }
        let mut comparisons = Comparisons::default();
        for &bout in &self.bouts {
            if let Some(program) = bout.missing() {
                comparisons.missing.push((bout, program));
            } else if !stop.load(Ordering::SeqCst) {
                comparisons.add(BoutPairs::run(&bench, bout, self.pairs, stop, say));
            }
        }
        comparisons.is_interrupted = stop.load(Ordering::SeqCst);
        if comparisons.is_interrupted {
            say("interrupted: not all that was asked for was compared");
        }
        Ok(comparisons)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let order = |only: &[&str], pairs| {
            let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
            ValidationOptions::new(&only, pairs, 1)
        };
        assert_eq!(order(&["stream", "wrk"], 1).unwrap().bouts.len(), 2);
        assert_eq!(order(&[], 1).unwrap().bouts.len(), catalogue::ALL.len());
        assert_eq!(order(&[], 0).unwrap_err(), OrderError::Nothing);
        let error = order(&["wrk", "wrkk"], 1).unwrap_err().to_string();
        assert!(error.starts_with("--only wrkk: "), "{error}");
    }
}
