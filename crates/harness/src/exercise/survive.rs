//! A command that does something to a path: three kinds of traffic run on it before, while
//! and after it does.

mod forbidden;
mod traffic;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_experiment::{Arrival, Protocol, Survive, Timing, Workload, WorkloadKind};
use plumbline_protocol::{EnduredLoad, LoadOrder, Probed, Secret, ToAgent};
use plumbline_record::{
    FlowKind, FlowSeries, GateFailure, LateSpell, Observation, ProcessCpu, RequestSpell,
    SurviveObservation, Warning, What,
};
use plumbline_sys::clock::now_ns;

use super::order::{Done, Exercise, TrialOrder};
use crate::agent::TrialError;
use crate::clock::ClockAnswer;
use crate::error::TargetError;
use crate::path::Path;
use crate::proof::Least;
use crate::settings::Settings;
use crate::together::joined;
use forbidden::unenforced;
use traffic::{FlowTarget, SeenTraffic, TrafficFlow, TrafficFlows};

/// Traffic that is not recorded: what is first on a path is slow by itself.
const START: Duration = Duration::from_millis(200);

/// How much longer than all phases loads could run: they are stopped.
const SLACK: Duration = Duration::from_secs(30);

/// How many seconds' worth of new connections may be under way: somewhat longer than each
/// is waited for.
const UNDER_WAY_S: f64 = 2.0;

/// How often the controller tells agents that it lives while the command runs.
const TICK: Duration = Duration::from_millis(200);

/// The time in which what was intended is surely answered, on a path that is well.
const ANSWERED_NS: u64 = 50_000_000;

/// The share of the requests before the command that have to be answered in time.
const WELL: f64 = 0.5;

/// The tail of the senders' own lateness that is judged.
const LAG_QUANTILE: f64 = 0.99;

/// A command, and the traffic that goes on meanwhile.
pub(crate) struct SurviveExercise {
    pub(crate) task: Survive,
    pub(crate) timing: Timing,
}

/// When the command was begun and had ended, by this machine's clock.
struct Ran {
    begun_ns: u64,
    ended_ns: u64,
}

impl Exercise for SurviveExercise {
    /// What comes together with it does not wait for it. New pods begin with the command, and
    /// their ends are waited for when the traffic is over.
    fn run(&self, path: &dyn Path, mut order: TrialOrder<'_>) -> Result<Done, TrialError> {
        drop(order.others.take());
        let (task, given_up) = (self.task.launch(), AtomicBool::new(false));
        let launcher = task.as_ref().map(|it| path.launch(it, &given_up));
        let launcher = launcher.transpose()?;
        thread::scope(|scope| {
            let mut pods = None;
            let begin = || pods = launcher.map(|it| scope.spawn(it));
            let done = self.endure(path, &order, begin);
            given_up.store(done.is_err(), Ordering::SeqCst);
            let launched = pods.map(joined);
            let mut done = done?;
            if order.interrupted.load(Ordering::SeqCst) {
                return Err(TrialError::Interrupted);
            }
            if let What::Survive(seen) = &mut done.seen.what {
                seen.launched = launched.transpose()?;
            }
            Ok(done)
        })
    }

    fn judge(&self, seen: &Observation, _: &Settings) -> Vec<GateFailure> {
        let Some(seen) = seen.survive() else {
            return Vec::new();
        };
        let late = self.sent_late(seen).into_iter();
        let unwell = self.unwell(seen).into_iter();
        late.chain(unwell).chain(unenforced(seen)).collect()
    }

    fn distrust(&self, _: &Observation, _: &Settings) -> Vec<Warning> {
        Vec::new()
    }

    fn own_cpu(&self, _: &Observation) -> ProcessCpu {
        ProcessCpu::default()
    }
}

impl SurviveExercise {
    /// Lets the traffic go on before, while and after the command runs. `begin` is called when
    /// that begins. The packets of before the command are held against the path: afterwards it
    /// may be gone.
    fn endure(
        &self,
        path: &dyn Path,
        order: &TrialOrder<'_>,
        begin: impl FnOnce(),
    ) -> Result<Done, TrialError> {
        let [before, after] =
            [self.timing.warm_up_ns, self.timing.measure_ns].map(Duration::from_nanos);
        let mut flows = TrafficFlows::start(path, order.interrupted)?;
        let mut targets = Vec::new();
        for flow in &mut flows.all {
            targets.push(self.listen(flow, path, order)?);
        }
        if self.task.policy {
            let allowed: Vec<_> = targets.iter().map(FlowTarget::port).collect();
            flows.forbid_others(path, (self.task.rate, &allowed[..]), order.settings)?;
        }
        for (flow, target) in flows.all.iter_mut().zip(targets) {
            self.begin(flow, target, order)?;
        }
        let early = flows.clock()?;
        flows.let_pass(START)?;
        flows.try_forbidden(Duration::from_nanos(self.longest_ns()))?;
        flows.let_pass(before)?;
        let well_ns = now_ns().saturating_sub(ANSWERED_NS);
        let counted = path.snapshot()?;
        begin();
        let ran = self.run_command(path, &mut flows, after, order.interrupted)?;
        let traffic = flows.stop()?;
        let late = flows.clock()?;
        let (clock, clock_error_ns) = ClockAnswer::nearer(early, late, ran.begun_ns);
        let seen = observation(&self.task, &ran, (&clock, clock_error_ns), traffic);
        let new = seen.flow(FlowKind::New);
        let well_ns = clock
            .translated(well_ns)
            .saturating_sub(zero_ns(&clock, &ran, &seen));
        let answered = new.map_or(0, |it| it.in_time_before(well_ns));
        Ok(Done {
            seen: Observation {
                common: flows.end()?,
                what: What::Survive(Box::new(seen)),
            },
            least: Least::both_ways(answered),
            counted: Some(counted),
        })
    }

    /// Lets the receivers of a flow listen.
    fn listen(
        &self,
        flow: &mut TrafficFlow,
        path: &dyn Path,
        order: &TrialOrder<'_>,
    ) -> Result<FlowTarget, TrialError> {
        let workload = self.workload(flow.kind);
        let secret = Secret::random().map_err(|error| TargetError::Failed(error.to_string()))?;
        let serving = (&workload, secret);
        let address = flow
            .receivers
            .listen(path, serving, order.settings, order.interrupted)?;
        Ok(FlowTarget {
            workload,
            address,
            secret,
            congestion: path.congestion(),
        })
    }

    /// Lets its sender begin.
    fn begin(
        &self,
        flow: &mut TrafficFlow,
        target: FlowTarget,
        order: &TrialOrder<'_>,
    ) -> Result<(), TrialError> {
        flow.client.send(&ToAgent::Endure(LoadOrder {
            timing: Timing {
                warm_up_ns: START.as_nanos() as u64,
                measure_ns: self.longest_ns(),
                drain_ns: 0,
            },
            target: target.address,
            secret: target.secret,
            turns: None,
            seed: order.seed,
            cpus: order.settings.cpus.client.clone(),
            congestion: target.congestion,
            workload: target.workload,
        }))
    }

    /// The longest that all phases may take, and more.
    fn longest_ns(&self) -> u64 {
        let phases_ns = self.timing.warm_up_ns + self.task.limit_ns + self.timing.measure_ns;
        phases_ns + SLACK.as_nanos() as u64
    }

    /// What one kind of traffic is.
    fn workload(&self, kind: FlowKind) -> Workload {
        let (of, protocol) = match kind {
            FlowKind::Standing => (WorkloadKind::Rr, Protocol::Tcp),
            FlowKind::New => (WorkloadKind::Crr, Protocol::Tcp),
            FlowKind::Datagram => (WorkloadKind::Rr, Protocol::Udp),
        };
        let usual = Workload::of_kind(of);
        Workload {
            protocol,
            connections: match kind {
                FlowKind::Standing => self.task.connections,
                FlowKind::New => (self.task.rate * UNDER_WAY_S).ceil() as u32,
                FlowKind::Datagram => usual.connections,
            },
            arrival: Arrival::Constant {
                rate: self.task.rate,
            },
            ..usual
        }
    }

    /// Runs the command to its end, and lets the traffic go on for so long. One that fails
    /// or takes too long ends the trial, and with it the traffic.
    fn run_command(
        &self,
        path: &dyn Path,
        flows: &mut TrafficFlows<'_>,
        after: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Ran, TrialError> {
        let limit = Duration::from_nanos(self.task.limit_ns);
        let (since, begun_ns) = (Instant::now(), now_ns());
        let mut command = path.start_command(&self.task.during, None)?;
        let mut lost = None;
        while !command.has_ended(TICK.min(limit))? {
            if since.elapsed() > limit {
                return Err(command.took_too_long(limit).into());
            }
            if interrupted.load(Ordering::SeqCst) {
                return Err(TrialError::Interrupted);
            }
            // What takes an end of the path away, such as a reboot, is not cut off half-way.
            lost = lost.or_else(|| flows.let_pass(Duration::ZERO).err());
        }
        lost.map_or(Ok(()), Err)?;
        let ended_ns = now_ns();
        // What it has left to work goes on as long as the traffic does.
        flows.let_pass(after)?;
        Ok(Ran { begun_ns, ended_ns })
    }

    /// A sender that is late itself makes late what is not (D2). What it could not send in time
    /// since the command began is what the command does, and voids nothing: only what was late
    /// by then counts.
    fn sent_late(&self, seen: &SurviveObservation) -> Option<GateFailure> {
        let until_ns = seen.earliest_ns().saturating_sub(LateSpell::LIMIT_NS);
        let gap_ns = self.task.gap_ns().max(1);
        let may_be_late = ((until_ns / gap_ns) as f64 * (1.0 - LAG_QUANTILE)) as u64;
        let of_flows = seen.flows.iter().map(|it| &it.sent_late);
        let mut all = of_flows.chain(seen.forbidden.iter().map(|it| &it.sent_late));
        let lag_ns = all.find_map(|late| {
            let before = late
                .iter()
                .map(|it| (it.longest_ns, it.before(until_ns, gap_ns)));
            let mut before: Vec<(u64, u64)> = before.collect();
            before.sort_unstable_by(|one, other| other.cmp(one));
            let mut left = may_be_late;
            before.into_iter().find_map(|(lag_ns, requests)| {
                let is_beyond = requests > left;
                left = left.saturating_sub(requests);
                is_beyond.then_some(lag_ns)
            })
        })?;
        Some(GateFailure::SendLag {
            quantile: LAG_QUANTILE,
            lag_ns,
            limit_ns: LateSpell::LIMIT_NS,
        })
    }

    /// What was not well before the command says nothing of it.
    fn unwell(&self, seen: &SurviveObservation) -> Option<GateFailure> {
        let wanted = seen.begun_ns.min(self.timing.warm_up_ns) / self.task.gap_ns().max(1);
        let is_unwell =
            |it: &&FlowSeries| (it.in_time_before(seen.begun_ns) as f64) < wanted as f64 * WELL;
        let flow = seen.flows.iter().find(is_unwell)?;
        let before = flow.in_time_before(seen.begun_ns);
        let kind = match flow.kind {
            FlowKind::Standing => "requests on standing connections",
            FlowKind::New => "new connections",
            FlowKind::Datagram => "datagrams",
        };
        Some(GateFailure::Unwell {
            detail: format!("{before} of about {wanted} {kind} were answered within 10 ms"),
        })
    }
}

/// The moment by the senders' clock that an observation's times are since.
fn zero_ns(clock: &ClockAnswer, ran: &Ran, seen: &SurviveObservation) -> u64 {
    clock.translated(ran.begun_ns).saturating_sub(seen.begun_ns)
}

/// What was seen, all of it by the senders' clock since the first request of all.
fn observation(
    task: &Survive,
    ran: &Ran,
    (clock, clock_error_ns): (&ClockAnswer, u64),
    (endured, probed): SeenTraffic,
) -> SurviveObservation {
    let begun = endured.iter().map(|(_, it)| it.begun_ns);
    let begun = begun.chain(probed.iter().map(|it| it.begun_ns)).min();
    let zero_ns = begun.unwrap_or_default();
    let flow = |(kind, of): (FlowKind, Box<EnduredLoad>)| {
        let since_ns = of.begun_ns - zero_ns;
        let spell = |it: RequestSpell| RequestSpell {
            first_ns: it.first_ns + since_ns,
            last_ns: it.last_ns + since_ns,
            ..it
        };
        FlowSeries {
            kind,
            gap_ns: task.gap_ns(),
            connections: match kind {
                FlowKind::Standing => task.connections.into(),
                FlowKind::New | FlowKind::Datagram => 0,
            },
            broken: of.broken,
            lag: of.lag,
            sent_late: of.sent_late.iter().map(|it| it.later(since_ns)).collect(),
            latency: of.latency,
            spells: of.spells.into_iter().map(spell).collect(),
        }
    };
    let in_trial = |ns| clock.translated(ns).saturating_sub(zero_ns);
    SurviveObservation {
        begun_ns: in_trial(ran.begun_ns),
        ended_ns: in_trial(ran.ended_ns),
        clock_error_ns,
        flows: endured.into_iter().map(flow).collect(),
        forbidden: probed.map(|it| {
            let Probed { begun_ns, series } = *it;
            series.later(begun_ns - zero_ns)
        }),
        launched: None,
    }
}

#[cfg(test)]
mod tests;
