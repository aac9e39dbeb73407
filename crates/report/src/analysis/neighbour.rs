//! What the neighbours of a treatment did.

use plumbline_experiment::{NeighbourKind, Treatment, WorkloadKind};
use plumbline_record::Observation;
use plumbline_stats::order::MedianOfRuns;

use super::rates::over_trials;

/// What the neighbours of a treatment did in each second, over its trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// What they do.
    pub kind: NeighbourKind,
    /// How much of it a second: bits of payload, datagrams that arrived, requests that were
    /// answered, rules added or removed, or CPUs kept busy.
    pub per_second: MedianOfRuns,
    /// CPUs that their processes used.
    pub cpus: MedianOfRuns,
}

/// What neighbours of a treatment are like: those that do as its path does, by what that
/// sends.
pub(crate) fn likeness(treatment: &Treatment) -> NeighbourKind {
    let neighbours = treatment.scene.neighbours;
    let load = treatment.task.load().filter(|_| neighbours.are_alike());
    match load.map(|load| load.kind) {
        None => neighbours.kind,
        Some(WorkloadKind::Stream) => NeighbourKind::Bulk,
        Some(WorkloadKind::Datagram) => NeighbourKind::Packets,
        Some(_) => NeighbourKind::Connections,
    }
}

impl Neighbour {
    /// `None` without a trial beside a neighbour.
    pub(crate) fn new(kind: NeighbourKind, kept: &[&Observation]) -> Option<Self> {
        let unit = match kind {
            NeighbourKind::Bulk => 8e9,
            NeighbourKind::Cpu => 1.0,
            _ => 1e9,
        };
        Some(Self {
            kind,
            per_second: over_trials(kept, |one| {
                let did = one.common.neighbour.filter(|it| it.window_ns > 0)?;
                Some(did.done as f64 * unit / did.window_ns as f64)
            })?,
            cpus: over_trials(kept, |one| {
                let did = one.common.neighbour.filter(|it| it.window_ns > 0)?;
                let busy_ns = did.cpu.user_ns as f64 + did.cpu.system_ns as f64;
                Some(busy_ns / did.window_ns as f64)
            })?,
        })
    }

    /// What is counted, as keys of JSON have it.
    pub fn unit(&self) -> &'static str {
        match self.kind {
            NeighbourKind::Bulk => "bits",
            NeighbourKind::Packets => "datagrams",
            NeighbourKind::Connections => "requests",
            NeighbourKind::PolicyChurn => "rules",
            NeighbourKind::Cpu | NeighbourKind::None => "cpus",
        }
    }
}

#[cfg(test)]
mod tests {
    use plumbline_record::{Common, NeighbourRecord, ProcessCpu, SetUp, What};

    use super::*;

    fn beside(neighbour: Option<NeighbourRecord>) -> Observation {
        Observation {
            common: Common {
                neighbour,
                ..Common::default()
            },
            what: What::SetUp(Box::new(SetUp {
                network: String::new(),
                took_ns: 0,
                paths_ns: None,
                came_up: true,
                log: String::new(),
                fingerprint: None,
            })),
        }
    }

    #[test]
    fn what_was_done_is_divided_by_the_time_that_it_took() {
        let did = beside(Some(NeighbourRecord {
            window_ns: 500_000_000,
            done: 1_000_000_000,
            cpu: ProcessCpu {
                user_ns: 200_000_000,
                system_ns: 200_000_000,
            },
        }));
        for (kind, per_second) in [
            (NeighbourKind::Bulk, 16e9),
            (NeighbourKind::Packets, 2e9),
            (NeighbourKind::Cpu, 2.0),
        ] {
            let seen = Neighbour::new(kind, &[&did]).unwrap();
            assert_eq!(seen.per_second.median, per_second, "{kind:?}");
            assert_eq!(seen.cpus.median, 0.8);
        }
        let alone = beside(None);
        assert_eq!(Neighbour::new(NeighbourKind::None, &[&alone]), None);
    }
}
