//! How long a run went on, by the dates of its trials.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::Trial;

/// The time that trials took by the clock, with what lay between them: of each part of a run
/// from the start of its first trial to the end of its last one. What was set up before the
/// first trial does not count, nor do lines without a date.
pub fn spent(trials: &[Trial]) -> Duration {
    let dated = trials.iter().filter(|trial| trial.set_up().is_none());
    // Trials that took turns began together, and each has its share of the time.
    let mut took = BTreeMap::<_, i128>::new();
    for trial in dated {
        if let Ok(started) = trial.started.parse::<Timestamp>() {
            let turns = (trial.session, started.as_nanosecond(), &trial.pair);
            *took.entry(turns).or_default() += i128::from(trial.took_ns);
        }
    }
    let mut parts = BTreeMap::<u32, (i128, i128)>::new();
    for ((session, start, _), took) in took {
        let (_, end) = parts.entry(session).or_insert((start, start));
        *end = (*end).max(start + took);
    }
    let spent: i128 = parts.values().map(|(start, end)| end - start).sum();
    Duration::from_nanos(u64::try_from(spent).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodePair, TrialStatus};

    const SECOND: u64 = 1_000_000_000;

    fn trial(session: u32, second: u32, took_ns: u64) -> Trial {
        Trial {
            block: 0,
            position: 0,
            treatment: 0,
            pair: None,
            attempt: 0,
            session,
            build: None,
            started: format!("2026-01-01T12:00:{second:02}.5Z"),
            took_ns,
            status: TrialStatus::Valid,
            warnings: Vec::new(),
            observation: None,
        }
    }

    #[test]
    fn what_lies_between_trials_is_spent_and_what_lies_between_parts_is_not() {
        assert_eq!(spent(&[]), Duration::ZERO);
        let first = [trial(0, 1, SECOND), trial(0, 4, SECOND)];
        assert_eq!(spent(&first), Duration::from_secs(4));
        let both = [&first[..], &[trial(1, 30, SECOND), trial(1, 31, SECOND)]].concat();
        assert_eq!(spent(&both), Duration::from_secs(6));
    }

    #[test]
    fn turns_share_their_time_and_pairs_run_at_once() {
        let turns = [trial(0, 1, SECOND), trial(0, 1, SECOND)];
        assert_eq!(spent(&turns), Duration::from_secs(2));
        let of_pair = |client: &str| Trial {
            pair: Some(NodePair {
                client: client.to_owned(),
                server: "c".to_owned(),
            }),
            ..trial(0, 1, SECOND)
        };
        assert_eq!(spent(&[of_pair("a"), of_pair("b")]), Duration::from_secs(1));
    }

    /// Records come from anywhere.
    #[test]
    fn no_date_makes_it_fail() {
        let dated = |started: &str| Trial {
            started: started.to_owned(),
            ..trial(0, 0, u64::MAX)
        };
        assert_eq!(spent(&[dated(""), dated("today")]), Duration::ZERO);
        let ages = [
            dated("-009999-01-02T00:00:00Z"),
            dated("9999-12-30T00:00:00Z"),
        ];
        assert_eq!(spent(&ages), Duration::from_nanos(u64::MAX));
    }
}
