//! What treatments are compared on: the names that files and flags write, and
//! which of them count under which workload.
//!
//! It is declared here, before any data (C-10). How a metric is measured and shown
//! is a row of the registry in the crate `report` that refers to one of these.

use Traffic::{Bulk, Change, Closed, Launch, Open, Paced, Survive};

use crate::{Workload, WorkloadKind};

/// What a task offers, which decides what it is compared on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Requests at a rate of their own, answered or not.
    Open,
    /// Requests that wait for the answers to earlier ones.
    Closed,
    /// Bytes, as many as go through, which nobody answers.
    Bulk,
    /// Datagrams at a rate of their own, which nobody answers: they arrive or not.
    Paced,
    /// Connections that are tried while something changes, to see when it acts.
    Change,
    /// Pods that begin, and the first packets of each.
    Launch,
    /// Requests of all kinds while a command does something to the path.
    Survive,
}

impl Traffic {
    /// Whether it moves bytes rather than answers requests.
    pub fn is_bulk(self) -> bool {
        matches!(self, Traffic::Bulk | Traffic::Paced)
    }
}

/// A metric as experiment files know it.
#[derive(Debug, PartialEq, Eq)]
pub struct DeclaredMetric {
    /// The name in files, flags and every format. Rows may share a name when no
    /// workload has both.
    pub name: &'static str,
    /// The traffic for which it is one of the metrics that count.
    pub primary: &'static [Traffic],
    /// The traffic for which it is looked at as well.
    pub exploratory: &'static [Traffic],
    /// Whether it means nothing where connections are opened before the load.
    pub is_of_connecting: bool,
}

/// How much a metric weighs under a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Declared as one that counts, and judged among those alone.
    Primary,
    /// Judged among all, so that looking at more makes nothing easier to find.
    Exploratory,
}

impl DeclaredMetric {
    /// Its role under a kind of traffic, whose every request may open a connection of
    /// its own; `None` where it means nothing.
    pub fn role(&self, traffic: Traffic, connects: bool) -> Option<Role> {
        if self.is_of_connecting && !connects {
            return None;
        }
        if self.primary.contains(&traffic) {
            return Some(Role::Primary);
        }
        let is_exploratory = self.exploratory.contains(&traffic);
        is_exploratory.then_some(Role::Exploratory)
    }
}

const fn row(
    name: &'static str,
    primary: &'static [Traffic],
    exploratory: &'static [Traffic],
) -> DeclaredMetric {
    DeclaredMetric {
        name,
        primary,
        exploratory,
        is_of_connecting: false,
    }
}

/// Datagrams that were sent for each that arrived.
pub static LOSS: DeclaredMetric = row("loss", &[Paced], &[]);
/// Payload bits per second.
pub static BIT_RATE: DeclaredMetric = row("throughput", &[Bulk], &[Paced]);
/// Answered requests per second.
pub static REQUEST_RATE: DeclaredMetric = row("throughput", &[Closed], &[]);
/// Median latency of a trial. With so many requests outstanding it is the rate seen
/// from the other side (Little's law), so in a closed loop only one of them counts.
pub static P50: DeclaredMetric = row("p50", &[Open], &[Closed]);
/// Median time to open a connection. It is part of the latency of each request that
/// opens one, so it says where a difference comes from, and is none of its own.
pub static HANDSHAKE: DeclaredMetric = DeclaredMetric {
    is_of_connecting: true,
    ..row("handshake", &[], &[Open, Closed])
};
/// CPU time of the machines per request.
pub static CPU_PER_REQUEST: DeclaredMetric = row("cpu_per_request", &[Open], &[Closed]);
/// CPU time of the machines per byte of payload.
pub static CPU_PER_BYTE: DeclaredMetric = row("cpu_per_byte", &[Bulk, Paced], &[]);
/// CPU time of the processes that do the work, per request: the agents, what forwards
/// packets in user space, and the kernel's threads for soft interrupts. Counted in
/// nanoseconds, but interrupts that meet an idle CPU are nobody's.
pub static PROCESS_CPU_PER_REQUEST: DeclaredMetric =
    row("process_cpu_per_request", &[Open], &[Closed]);
/// CPU time of the processes that do the work, per byte of payload.
pub static PROCESS_CPU_PER_BYTE: DeclaredMetric = row("process_cpu_per_byte", &[Bulk, Paced], &[]);
/// 99th percentile of a trial's latency.
pub static P99: DeclaredMetric = row("p99", &[], &[Open, Closed]);

/// From the API server's answer to a change until no connection is treated as before it.
pub static LAST_WRONG: DeclaredMetric = row("last_wrong", &[Change], &[]);
/// From there until the first connection that is treated as it should be after the change.
pub static FIRST_RIGHT: DeclaredMetric = row("first_right", &[Change], &[]);

/// From the intended start of a pod until packets have passed to and from it: of the
/// pods of a trial the median.
pub static NETWORK_UP: DeclaredMetric = row("network_up", &[Launch], &[]);
/// The same of the slowest pod of a trial.
pub static SLOWEST_UP: DeclaredMetric = row("slowest_up", &[], &[Launch]);
/// What the network takes to attach a pod to it.
pub static ATTACH: DeclaredMetric = row("attach", &[], &[Launch]);
/// From there until packets have passed both ways.
pub static FIRST_PACKETS: DeclaredMetric = row("first_packets", &[], &[Launch]);
/// From the intended end of a pod until its devices are gone and its address is free.
pub static RELEASE: DeclaredMetric = row("release", &[], &[Launch]);

/// The longest time for which requests on standing connections were not answered in time.
pub static GAP_STANDING: DeclaredMetric = row("gap_standing", &[Survive], &[]);
/// The same of requests that open a connection each.
pub static GAP_NEW: DeclaredMetric = row("gap_new", &[Survive], &[]);
/// The same of datagrams.
pub static GAP_DATAGRAM: DeclaredMetric = row("gap_datagram", &[Survive], &[]);
/// From the beginning of the command until traffic was well again.
pub static WELL_AGAIN: DeclaredMetric = row("well_again", &[], &[Survive]);

/// All of them, in the order in which comparisons are listed.
pub static DECLARED: [&DeclaredMetric; 21] = [
    &LOSS,
    &BIT_RATE,
    &REQUEST_RATE,
    &P50,
    &HANDSHAKE,
    &CPU_PER_REQUEST,
    &CPU_PER_BYTE,
    &PROCESS_CPU_PER_REQUEST,
    &PROCESS_CPU_PER_BYTE,
    &P99,
    &LAST_WRONG,
    &FIRST_RIGHT,
    &NETWORK_UP,
    &SLOWEST_UP,
    &ATTACH,
    &FIRST_PACKETS,
    &RELEASE,
    &GAP_STANDING,
    &GAP_NEW,
    &GAP_DATAGRAM,
    &WELL_AGAIN,
];

/// The names that `[limits]` may bound, each once.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for declared in DECLARED {
        if !names.contains(&declared.name) {
            names.push(declared.name);
        }
    }
    names
}

impl Workload {
    /// What it offers.
    pub fn traffic(&self) -> Traffic {
        match self.arrival.rate() {
            Some(_) if self.kind == WorkloadKind::Datagram => Traffic::Paced,
            _ if !self.kind.is_answered() => Traffic::Bulk,
            Some(_) => Traffic::Open,
            None => Traffic::Closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_traffic_has_metrics_that_count_and_each_name_once() {
        for (traffic, counting) in [
            (Traffic::Open, 3),
            (Traffic::Closed, 1),
            (Traffic::Bulk, 3),
            (Traffic::Paced, 3),
            (Traffic::Change, 2),
            (Traffic::Launch, 1),
            (Traffic::Survive, 3),
        ] {
            let of_traffic = DECLARED
                .iter()
                .filter(|one| one.role(traffic, true).is_some());
            let mut names: Vec<&str> = of_traffic.map(|one| one.name).collect();
            let primary = DECLARED.iter().filter(|one| one.primary.contains(&traffic));
            assert_eq!(primary.count(), counting, "{traffic:?}");
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{traffic:?}: {names:?}");
        }
    }

    #[test]
    fn opening_connections_is_looked_at_only_where_requests_do() {
        for traffic in [Traffic::Open, Traffic::Closed] {
            assert_eq!(HANDSHAKE.role(traffic, true), Some(Role::Exploratory));
            assert_eq!(HANDSHAKE.role(traffic, false), None);
        }
        assert_eq!(HANDSHAKE.role(Traffic::Bulk, true), None);
    }
}
