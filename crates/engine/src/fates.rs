//! What became of each single request, in the order of their intended moments.

use plumbline_record::{LateSpell, RequestOutcome, RequestSpell};

/// Room for this many requests is taken before the load starts: for more of them memory is
/// taken while it runs, a handful of times.
const MOST: usize = 1 << 18;

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFate {
    /// No answer has come yet.
    Unanswered,
    /// The right answer came so many nanoseconds after the intended moment.
    Answered(u64),
    /// An error came.
    Failed,
}

/// All requests of a load at equal gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fates {
    /// With their intended moments, which rise.
    requests: Vec<(u64, RequestFate)>,
    /// The intended moments of those that were sent late through the sender's own fault, and
    /// how late.
    late: Vec<(u64, u64)>,
    /// Connections that were lost for good.
    pub(crate) broken: u64,
}

impl Fates {
    /// For about so many requests.
    pub(crate) fn expecting(requests: usize) -> Self {
        Self {
            requests: Vec::with_capacity(requests.min(MOST)),
            late: Vec::with_capacity(requests.min(MOST)),
            broken: 0,
        }
    }

    /// Notes how far a request is. One that has ended stays as it is.
    pub(crate) fn note(&mut self, intended: u64, fate: RequestFate) {
        // Nearly always the last, or one after it.
        let is_next = self.requests.last().is_none_or(|last| last.0 < intended);
        if is_next {
            return self.requests.push((intended, fate));
        }
        match self.requests.binary_search_by_key(&intended, |it| it.0) {
            Err(at) => self.requests.insert(at, (intended, fate)),
            Ok(at) => {
                let known = &mut self.requests[at].1;
                if *known == RequestFate::Unanswered {
                    *known = fate;
                }
            }
        }
    }

    /// Notes how much later than it could be a request was sent.
    #[inline]
    pub(crate) fn note_lag(&mut self, intended: u64, lag_ns: u64) {
        if lag_ns > LateSpell::LIMIT_NS {
            self.late.push((intended, lag_ns));
        }
    }

    /// The intended moment of the first.
    pub(crate) fn first(&self) -> Option<u64> {
        Some(self.requests.first()?.0)
    }

    /// Those that were sent late, by their intended moments since `from`.
    pub(crate) fn sent_late(&self, from: u64) -> Vec<LateSpell> {
        let late = self.late.iter();
        LateSpell::all(late.map(|(intended, lag_ns)| (intended - from, *lag_ns)))
    }

    /// Those together that fared alike, by their intended moments since `from`.
    pub(crate) fn spells(&self, from: u64) -> Vec<RequestSpell> {
        let fared = |fate| match fate {
            RequestFate::Unanswered => RequestOutcome::Unanswered,
            RequestFate::Answered(ns) => RequestOutcome::after(ns),
            RequestFate::Failed => RequestOutcome::Failed,
        };
        let alike = self
            .requests
            .chunk_by(|one, next| fared(one.1) == fared(next.1));
        let spell = |alike: &[(u64, RequestFate)]| RequestSpell {
            outcome: fared(alike[0].1),
            requests: alike.len() as u64,
            first_ns: alike[0].0 - from,
            last_ns: alike[alike.len() - 1].0 - from,
        };
        alike.map(spell).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_in_whatever_order_they_end() {
        let mut fates = Fates::expecting(4);
        // An error may be noted before the request is.
        fates.note(100, RequestFate::Failed);
        for intended in [100, 200, 300, 400] {
            fates.note(intended, RequestFate::Unanswered);
        }
        fates.note(300, RequestFate::Answered(7));
        fates.note(200, RequestFate::Answered(20_000_000));
        // It has ended.
        fates.note(300, RequestFate::Failed);
        let spells = fates.spells(fates.first().unwrap());
        let found: Vec<_> = spells
            .iter()
            .map(|it| (it.outcome, it.requests, it.first_ns, it.last_ns))
            .collect();
        let expected = [
            (RequestOutcome::Failed, 1, 0, 0),
            (RequestOutcome::After10Ms, 1, 100, 100),
            (RequestOutcome::InTime, 1, 200, 200),
            (RequestOutcome::Unanswered, 1, 300, 300),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn those_that_were_sent_late_are_told_apart() {
        let mut fates = Fates::expecting(0);
        for (at, lag) in [(5, 0), (6, 12), (7, 11), (8, 10)] {
            fates.note(at * 1_000_000, RequestFate::Unanswered);
            fates.note_lag(at * 1_000_000, lag * 1_000_000);
        }
        let late = LateSpell {
            requests: 2,
            first_ns: 1_000_000,
            last_ns: 2_000_000,
            longest_ns: 12_000_000,
        };
        assert_eq!(fates.sent_late(5_000_000), [late]);
    }

    #[test]
    fn those_that_fare_alike_are_one_spell() {
        let mut fates = Fates::expecting(0);
        for at in 0..10 {
            fates.note(at, RequestFate::Answered(at));
        }
        assert_eq!(fates.first(), Some(0));
        let spells = fates.spells(0);
        assert_eq!((spells.len(), spells[0].requests), (1, 10));
    }
}
