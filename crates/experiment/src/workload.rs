//! What the load does: kind, sizes, connections, arrivals.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::{MAX_BODY, MAX_DATAGRAM, MAX_MESSAGE, MIN_MESSAGE};

/// The shape of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Request and response over connections that stay open.
    Rr,
    /// Connect, request, response, close: a new connection per request.
    Crr,
    /// TCP bulk: as many bytes as the path carries.
    Stream,
    /// UDP bulk by message size; loss is counted at the receiver (N-13).
    Datagram,
    /// HTTP/1.1 GET of a body of fixed size.
    Http,
}

/// The transport under `rr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// When requests are due (L-1, L-4, L-6).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "process", rename_all = "lowercase")]
pub enum Arrival {
    /// Open loop, equal gaps.
    Constant {
        /// Requests per second over all connections.
        rate: f64,
    },
    /// Open loop, exponential gaps from a recorded seed.
    Poisson {
        /// Requests per second over all connections.
        rate: f64,
    },
    /// The next request leaves when the last answer is there. Labelled so, and
    /// never compared with an open loop.
    Closed,
}

impl Arrival {
    /// Requests per second that the schedule intends; `None` for a closed loop.
    pub fn rate(self) -> Option<f64> {
        match self {
            Self::Constant { rate } | Self::Poisson { rate } => Some(rate),
            Self::Closed => None,
        }
    }
}

/// How the sender waits for the next deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Sleep in the kernel until the deadline: costs little CPU.
    #[default]
    Block,
    /// Never sleep: costs one CPU, and sends within a microsecond or two.
    Spin,
}

/// What answers `http`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Server {
    /// The responder of this program.
    #[default]
    Plumbline,
    /// nginx, where it is installed; else the responder, with a warning.
    Nginx,
}

/// What moves the bytes of requests and answers at the sender. Streams and
/// datagrams always go by readiness: their calls carry many messages each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// The better one for the workload, of those that the kernel allows.
    #[default]
    Auto,
    /// Readiness, and a system call for each message.
    Epoll,
    /// io_uring (Linux 6.1); an error where it is not allowed.
    Uring,
}

/// One workload with every value resolved. Which fields count depends on
/// [`kind`](Self::kind); validation refuses those that would be ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Name in tables, unique within an experiment; the kind unless given.
    pub name: String,
    /// The shape of the traffic.
    pub kind: WorkloadKind,
    /// Transport; `udp` is for `rr` only, `datagram` is always UDP.
    pub protocol: Protocol,
    /// Bytes of a request (`rr`, `crr`), or of a message (`datagram`); at least 16.
    pub request_size: u32,
    /// Bytes of a response (`rr`, `crr`, `http` body); at least 16 but for `http`.
    pub response_size: u32,
    /// Concurrent connections (sockets for UDP).
    pub connections: u32,
    /// When requests are due. `stream` is always `closed`.
    pub arrival: Arrival,
    /// `http`: keep connections open between requests.
    pub keep_alive: bool,
    /// `http`: what answers.
    #[serde(default)]
    pub server: Server,
    /// How the sender waits.
    pub wait: Wait,
    /// What moves the sender's bytes (`rr`, `crr`, `http`). The result says
    /// which one ran.
    #[serde(default)]
    pub driver: Driver,
    /// `stream`: let the kernel send from the sender's own pages
    /// (`MSG_ZEROCOPY`).
    #[serde(default)]
    pub zero_copy: bool,
    /// Share of the requests that the kernel stamps on their way, 0 to 1, so
    /// that their time can be split (L-17); 0 stamps none. For `rr`, and for
    /// `http` that keeps its connections.
    #[serde(default, skip_serializing_if = "is_none_stamped")]
    pub timestamps: f64,
}

/// A record without stamps looks as it did before there were any.
fn is_none_stamped(share: &f64) -> bool {
    *share == 0.0
}

impl Workload {
    /// What request and response size may be, in bytes; 0 where the kind has none.
    pub(crate) fn size_bounds(&self) -> (RangeInclusive<u32>, RangeInclusive<u32>) {
        size_bounds(self.kind, self.protocol)
    }
}

/// Bounds of request and response size in bytes; only 0 where the kind has none.
pub(crate) fn size_bounds(
    kind: WorkloadKind,
    protocol: Protocol,
) -> (RangeInclusive<u32>, RangeInclusive<u32>) {
    let message = match protocol {
        Protocol::Tcp => MIN_MESSAGE..=MAX_MESSAGE,
        Protocol::Udp => MIN_MESSAGE..=MAX_DATAGRAM,
    };
    match kind {
        WorkloadKind::Rr | WorkloadKind::Crr => (message.clone(), message),
        WorkloadKind::Datagram => (message, 0..=0),
        WorkloadKind::Http => (0..=0, 1..=MAX_BODY),
        WorkloadKind::Stream => (0..=0, 0..=0),
    }
}

impl Workload {
    /// The workload of a kind as it is when nothing else is said: 64 B both
    /// ways, messages of 1 KiB, bodies of 1 KiB; 16 connections, or one stream;
    /// a closed loop, for a rate has no default. A size is 0 where the kind has none.
    pub fn of_kind(kind: WorkloadKind) -> Self {
        let (request_size, response_size) = match kind {
            WorkloadKind::Rr | WorkloadKind::Crr => (64, 64),
            WorkloadKind::Datagram => (1024, 0),
            WorkloadKind::Http => (0, 1024),
            WorkloadKind::Stream => (0, 0),
        };
        Self {
            name: kind.as_str().to_owned(),
            kind,
            protocol: if kind == WorkloadKind::Datagram {
                Protocol::Udp
            } else {
                Protocol::Tcp
            },
            request_size,
            response_size,
            connections: if kind == WorkloadKind::Stream { 1 } else { 16 },
            arrival: Arrival::Closed,
            keep_alive: kind == WorkloadKind::Http,
            server: Server::Plumbline,
            wait: Wait::Block,
            driver: Driver::Auto,
            zero_copy: false,
            timestamps: 0.0,
        }
    }
}
