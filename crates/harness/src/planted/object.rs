//! A made-up thing that decides whether connections succeed.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plumbline_experiment::ObjectChange;
use plumbline_protocol::{FromAgent, ProbeOrder, Probed};
use plumbline_record::{ProbeOutcome, ProbeSeries, ProbeSpell};
use plumbline_sys::clock::now_ns;

use crate::error::TargetError;
use crate::path::{Programmable, StandingPolicy};

/// A made-up thing that decides whether connections succeed. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct PlantedObject {
    /// How much later than it is decided a change acts.
    pub(crate) delay: Duration,
    /// How many changes act at all.
    pub(crate) acts: usize,
    /// From when on it is there or not, nanoseconds of this machine's clock.
    changes: Arc<Mutex<Vec<(u64, bool)>>>,
}

impl Default for PlantedObject {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            acts: usize::MAX,
            changes: Arc::default(),
        }
    }
}

/// What a policy forbids gets through while it is there.
impl StandingPolicy for PlantedObject {}

impl Programmable for PlantedObject {
    fn address(&self) -> SocketAddr {
        ([198, 18, 0, 1], 4000).into()
    }

    fn change(&self, change: ObjectChange) -> Result<(), TargetError> {
        let mut changes = self.changes.lock().unwrap();
        if changes.len() < self.acts {
            let at_ns = now_ns() + self.delay.as_nanos() as u64;
            changes.push((at_ns, change == ObjectChange::Add));
        }
        Ok(())
    }
}

impl PlantedObject {
    /// The same, whose changes act so much later than they are decided.
    pub(super) fn later(&self, delay: Duration) -> Self {
        Self {
            delay,
            ..self.clone()
        }
    }

    fn is_there(&self, at_ns: u64) -> bool {
        let changes = self.changes.lock().unwrap();
        let last = changes.iter().rfind(|(since_ns, _)| *since_ns <= at_ns);
        last.is_some_and(|(_, is_there)| *is_there)
    }

    /// What a probe sees that is sent in a span of time, by a clock that is ahead.
    pub(super) fn probed(&self, order: &ProbeOrder, span: [u64; 2], ahead_ns: u64) -> FromAgent {
        let [begun_ns, end_ns] = span;
        let gap_ns = (1e9 / order.rate) as usize;
        let mut spells: Vec<ProbeSpell> = Vec::new();
        for at_ns in (begun_ns..end_ns).step_by(gap_ns) {
            let outcome = if self.is_there(at_ns) {
                ProbeOutcome::Opened
            } else {
                ProbeOutcome::Refused
            };
            let ns = at_ns - begun_ns;
            match spells.last_mut().filter(|last| last.outcome == outcome) {
                Some(last) => {
                    last.probes += 1;
                    last.last_ns = ns;
                }
                None => spells.push(ProbeSpell {
                    outcome,
                    probes: 1,
                    first_ns: ns,
                    last_ns: ns,
                }),
            }
        }
        FromAgent::Probed(Box::new(Probed {
            begun_ns: begun_ns + ahead_ns,
            series: ProbeSeries {
                limit_ns: order.limit_ns,
                sent: spells.iter().map(|it| it.probes).sum(),
                widest_gap_ns: gap_ns as u64,
                spells,
                ..ProbeSeries::default()
            },
        }))
    }
}
