//! What works beside a path while that is measured: a load between a second pair of
//! endpoints, or work that sends nothing.

use std::time::Duration;

use plumbline_experiment::{NeighbourKind, Slice, Workload, WorkloadKind};
use plumbline_protocol::{FromAgent, ToAgent, Toil, ToilOrder, Toiled};
use plumbline_record::{LoadObservation, NeighbourRecord};

use super::agents::TrialAgents;
use super::load::{LoadExercise, cpu_in_window};
use super::order::{Done, Exercise, NeighbourExercise, TrialOrder};
use crate::agent::{ANSWER, Agent, TrialError};
use crate::path::Path;
use crate::settings::Settings;
use crate::target::Cpus;
use crate::together::Ticket;

/// How much longer than the load a neighbour works that takes no turns: the load may begin
/// a moment after it.
const BEYOND_NS: u64 = 200_000_000;

/// What work may take beyond its slices, to wait for their start and to report.
const SLACK: Duration = Duration::from_secs(20);

/// Bytes of the datagrams, and of requests and responses.
const SMALL: u32 = 64;

impl NeighbourExercise {
    /// Does it once, between the endpoints of a path of its own, and on any CPU: together
    /// with those that the ticket waits for, and in the slices of these.
    pub(crate) fn run(
        mut self,
        path: &dyn Path,
        ticket: Ticket<'_>,
        order: TrialOrder<'_>,
    ) -> Result<NeighbourRecord, TrialError> {
        let settings = Settings {
            cpus: Cpus::default(),
            ..order.settings.clone()
        };
        if order.slices.is_none() {
            self.timing.measure_ns += BEYOND_NS;
        }
        let sent = match self.alike.take() {
            Some(workload) => Ok(workload),
            None => workload(self.kind),
        };
        let toil = match sent {
            Ok(workload) => {
                let kind = workload.kind;
                let load = LoadExercise {
                    workload,
                    timing: self.timing,
                };
                let order = TrialOrder {
                    settings: &settings,
                    others: Some(ticket),
                    ..order
                };
                let Done { seen, .. } = load.run(path, order)?;
                let carried = seen.load().map(|seen| carried(kind, seen));
                return Ok(carried.unwrap_or_default());
            }
            Err(Sendless::Compute) => Toil::Compute,
            Err(Sendless::Rules) => Toil::Rules(self.family),
        };
        self.toil(toil, path, ticket, order)
    }

    fn toil(
        self,
        toil: Toil,
        path: &dyn Path,
        ticket: Ticket<'_>,
        mut order: TrialOrder<'_>,
    ) -> Result<NeighbourRecord, TrialError> {
        let interrupted = order.interrupted;
        let mut agent = Agent::start(path.client())?;
        agent.greet(ANSWER, interrupted)?;
        let mut agents = TrialAgents {
            client: &mut agent,
            receivers: Vec::new(),
            interrupted,
            // Whole windows are told by the one clock that is asked.
            is_far: path.is_on_two_machines() && order.slices.is_some(),
        };
        agents.tell_clocks(&ticket, false)?;
        let turns = order.slices.take().unwrap_or_else(|| vec![self.window()]);
        let length_ns = turns.last().map_or(0, |slice| slice.end_ns);
        let order = ToAgent::Toil(ToilOrder { toil, turns });
        agents.begin_turns(&order, ANSWER, ticket)?;
        let limit = Duration::from_nanos(length_ns) + SLACK;
        let Toiled {
            window_ns,
            done,
            cpu,
        } = match agents.hear(limit)? {
            FromAgent::Toiled(toiled) => toiled,
            other => return Err(agent.unexpected(&other)),
        };
        agent.end()?;
        Ok(NeighbourRecord {
            window_ns,
            done,
            cpu,
        })
    }

    /// The phases as one slice.
    fn window(&self) -> Slice {
        Slice {
            begin_ns: 0,
            open_ns: self.timing.warm_up_ns,
            end_ns: self.timing.warm_up_ns + self.timing.measure_ns,
        }
    }
}

/// Work without packets.
enum Sendless {
    Compute,
    Rules,
}

/// What a neighbour sends, as fast as it goes.
fn workload(kind: NeighbourKind) -> Result<Workload, Sendless> {
    let small = |kind| Workload {
        request_size: SMALL,
        ..Workload::of_kind(kind)
    };
    Ok(match kind {
        NeighbourKind::Bulk => Workload::of_kind(WorkloadKind::Stream),
        NeighbourKind::Packets => small(WorkloadKind::Datagram),
        NeighbourKind::Connections => small(WorkloadKind::Crr),
        NeighbourKind::PolicyChurn => return Err(Sendless::Rules),
        NeighbourKind::Cpu | NeighbourKind::None => return Err(Sendless::Compute),
    })
}

/// What it sent that arrived.
fn carried(kind: WorkloadKind, seen: &LoadObservation) -> NeighbourRecord {
    NeighbourRecord {
        window_ns: seen.load.window_ns,
        done: match kind {
            WorkloadKind::Stream => seen.load.bytes_sent,
            WorkloadKind::Datagram => seen.serve.datagrams.map_or(0, |it| it.received),
            _ => seen.load.completed,
        },
        cpu: cpu_in_window(seen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_neighbours_send_can_be_sent() {
        for kind in NeighbourKind::ALL {
            let sent = workload(*kind);
            assert_eq!(sent.is_ok(), kind.sends(), "{kind:?}");
            if let Ok(workload) = sent {
                workload.check().unwrap();
            }
        }
    }
}
