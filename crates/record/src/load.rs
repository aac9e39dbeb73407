//! What the two ends of a load saw.

use plumbline_experiment::{Arrival, Wait};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Histogram, ProcessCpu, Spans};

/// What the sender saw in the measured window.
///
/// A request belongs to the window in which it was *intended* to be sent
/// (D1, L-1); a closed loop intends a request when it sends it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadResult {
    /// Which event driver ran: `epoll` or `uring`.
    pub driver: String,
    /// Arrival process as run.
    pub arrival: Arrival,
    /// How the sender waited.
    pub wait: Wait,
    /// Seed of the arrival process.
    pub seed: u64,
    /// Length of the measured window in nanoseconds, as it was.
    pub window_ns: u64,
    /// Requests (messages for `datagram`) that the schedule intended in the
    /// window; for a closed loop and for bulk, those that were sent.
    pub planned: u64,
    /// Of these, how many were sent.
    pub sent: u64,
    /// Of these, how many were answered and verified. For bulk without
    /// answers, writes that the kernel took.
    pub completed: u64,
    /// Of these, how many were never answered; they are in the histograms as
    /// at least as late as when the trial ended (L-3).
    pub censored: u64,
    /// Errors by kind.
    pub errors: ErrorCounts,
    /// Payload bytes sent in the window.
    pub bytes_sent: u64,
    /// Payload bytes received in the window.
    pub bytes_received: u64,
    /// Received − intended, nanoseconds (D1). For a closed loop this equals
    /// the service time.
    pub latency: Histogram,
    /// Received − sent.
    pub service_time: Histogram,
    /// Sent − intended.
    pub send_lag: Histogram,
    /// The generator's own part of the lag: sent − the later of intended and
    /// the moment when a connection was free. Gate D2 reads this.
    pub generator_lag: Histogram,
    /// Time to connect, where connections are part of the workload (`crr`,
    /// `http` without keep-alive); otherwise of the connections opened before
    /// the window.
    pub connect: Histogram,
    /// Requests that had to wait for a free connection.
    pub waited_for_connection: u64,
    /// One entry per second of the window.
    pub seconds: Vec<SecondOfLoad>,
    /// Median latency of each of up to 100 equal slices of the window, in time
    /// order, nanoseconds. They tell how many independent samples the latencies
    /// are worth (L-8), and whether the window was stationary (L-10).
    pub slice_p50_ns: Vec<u64>,
    /// Of each of these slices, how many latencies lie beyond the p99 of the
    /// window. They tell how many independent samples that p99 is worth (L-21).
    /// Empty in records made before they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slice_tails: Vec<SliceTail>,
    /// CPU of the sending process over the window.
    pub cpu: ProcessCpu,
    /// Time within the window, summed over the sender's threads, in which they
    /// only looked for something to do: the polling before a deadline, or all
    /// of the waiting where they never sleep. It is in `cpu` too, and is the
    /// generator's cost, not the path's: subtract it. Nanoseconds; 0 in records
    /// made before it was counted.
    #[serde(default)]
    pub spin_ns: u64,
    /// CPU time within the window of the sender's busiest thread, without
    /// what it spun, nanoseconds (L-12); 0 in records made before it was
    /// counted.
    #[serde(default)]
    pub busiest_thread_ns: u64,
    /// The latencies as each sending thread saw them, where there are several
    /// (L-12): `latency` is all of them together, and must not hide one that
    /// saw another path than the rest. Empty with one thread, in bulk, and in
    /// records made before they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<Histogram>,
    /// How the requests were really spread (L-7); null where no schedule was
    /// kept, in bulk, and in records made before it was checked.
    #[serde(default)]
    pub arrivals: Option<ArrivalCheck>,
    /// `datagram`: most messages that the kernel was given as one train (UDP
    /// GSO), which crosses virtual devices as one packet; 1 when each was a
    /// packet of its own. 0 for other workloads, and in records made before it
    /// was noted.
    #[serde(default)]
    pub train: u32,
    /// `stream`: what became of sending without a copy, where it was asked for.
    #[serde(default)]
    pub zero_copy: Option<ZeroCopyCounts>,
    /// Where a sample of the requests spent their time; absent where none was
    /// to be stamped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Box<Spans>>,
}

impl LoadResult {
    /// How busy the sender's busiest thread was with its work, from 0 to 1;
    /// what lies far above 0.7 queues in the sender (L-12).
    pub fn busiest_thread(&self) -> f64 {
        self.busiest_thread_ns as f64 / self.window_ns.max(1) as f64
    }
}

/// The gaps between requests as they were sent, held against the schedule (L-7).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalCheck {
    /// Gaps that were looked at, at most 5,000 for each thread.
    pub gaps: u64,
    /// By how much a gap differed from the intended one, 99th percentile,
    /// nanoseconds.
    pub gap_error_p99_ns: u64,
    /// Poisson arrivals: the statistic A² of Anderson and Darling; 3.86 is
    /// exceeded by chance once in a hundred.
    pub anderson_darling: Option<f64>,
    /// Poisson arrivals: the largest error of the share of gaps below any
    /// length, from 0 to 1 (Kolmogorov and Smirnov).
    pub distance: Option<f64>,
}

/// Writes that the kernel was to send without a copy (`MSG_ZEROCOPY`), over the
/// whole life of a load, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZeroCopyCounts {
    /// Writes of which the kernel has told what it did.
    pub told: u64,
    /// Of these, how many it copied all the same. It does wherever packets stay
    /// on the machine that sends them: loopback, veth, bridges.
    pub copied: u64,
}

/// The latencies of one slice of the measured window beyond the p99 of the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SliceTail {
    /// All latencies of the slice.
    pub samples: u64,
    /// Of these, how many lie beyond.
    pub beyond: u64,
}

/// One second of the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecondOfLoad {
    /// Requests completed that were intended in this second.
    pub completed: u64,
    /// Errors.
    pub errors: u64,
    /// Payload bytes sent and received.
    pub bytes: u64,
    /// Median latency, nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: u64,
    /// Maximum, nanoseconds.
    pub max_ns: u64,
}

/// Errors by what went wrong. None of these requests is counted as completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorCounts {
    /// Connections refused, unreachable or otherwise not made.
    pub connect: u64,
    /// Connections that the other side closed or reset with a request open.
    pub closed: u64,
    /// Answers that were not what was asked for: sequence, content or size.
    pub corrupt: u64,
    /// HTTP answers with a status other than 2xx, or that are not HTTP.
    pub protocol: u64,
    /// Sends that the kernel refused.
    pub send: u64,
}

impl ErrorCounts {
    /// All errors together.
    pub fn total(&self) -> u64 {
        let others = [self.closed, self.corrupt, self.protocol, self.send];
        // Numbers from a file or from an agent may be any.
        others.into_iter().fold(self.connect, u64::saturating_add)
    }

    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        self.connect += other.connect;
        self.closed += other.closed;
        self.corrupt += other.corrupt;
        self.protocol += other.protocol;
        self.send += other.send;
    }
}

/// What the receiver saw over its whole life, warm-up and drain included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServeResult {
    /// What answered: `plumbline`, or another server with its version, such as
    /// `nginx/1.22.1`; empty in runs made before there was another.
    #[serde(default)]
    pub server: String,
    /// Connections accepted.
    pub connections: u64,
    /// Requests answered.
    pub requests: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Requests whose content was wrong.
    pub corrupt: u64,
    /// `datagram`: what arrived of the measured window.
    pub datagrams: Option<DatagramCounts>,
    /// Connections closed at once, because there were as many as there may be, or the
    /// process may not have more files open.
    #[serde(default)]
    pub turned_away: u64,
    /// Connections and datagrams that came without the secret of the load: dropped,
    /// and in none of the other counts.
    #[serde(default)]
    pub strangers: u64,
}

impl ServeResult {
    /// Adds what another receiver saw, which received side by side with this one.
    pub fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.requests += other.requests;
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
        self.corrupt += other.corrupt;
        self.turned_away += other.turned_away;
        self.strangers += other.strangers;
        self.datagrams = match (self.datagrams, other.datagrams) {
            (Some(ours), Some(theirs)) => Some(DatagramCounts {
                received: ours.received + theirs.received,
                bytes: ours.bytes + theirs.bytes,
                duplicated: ours.duplicated + theirs.duplicated,
                reordered: ours.reordered + theirs.reordered,
                missing: ours.missing + theirs.missing,
                span_ns: ours.span_ns.max(theirs.span_ns),
                pauses_ns: ours.pauses_ns.min(theirs.pauses_ns),
            }),
            (ours, theirs) => ours.or(theirs),
        };
    }
}

/// Datagrams by sequence number, counted at the receiver (N-13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DatagramCounts {
    /// Different messages of the measured window that arrived.
    pub received: u64,
    /// Payload bytes of these.
    pub bytes: u64,
    /// Arrived more than once.
    pub duplicated: u64,
    /// Arrived after a later one.
    pub reordered: u64,
    /// Never arrived, although a later one did. Messages lost after the last
    /// one that arrived are not here: only the sender knows of them.
    #[serde(default)]
    pub missing: u64,
    /// First to last arrival of the window's messages, nanoseconds.
    pub span_ns: u64,
    /// Of this, how much lay between two arrivals more than 2 ms apart; 0 in runs made
    /// before it was counted.
    #[serde(default)]
    pub pauses_ns: u64,
}
