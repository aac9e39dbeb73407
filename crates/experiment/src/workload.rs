//! What the load does: kind, sizes, connections, arrivals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shape of the traffic. What is known about each kind stands in one
/// [table](crate::Kind).
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// The next request leaves when the previous answer has arrived. Labelled as
    /// such, and never compared with an open loop.
    #[default]
    Closed,
}

impl Arrival {
    /// Intended requests per second; `None` for a closed loop.
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
pub enum HttpServer {
    /// The responder of this program.
    #[default]
    Plumbline,
    /// nginx, which must be installed where the receiver runs.
    Nginx,
}

/// The I/O mechanism of the sender. Streams and datagrams always use readiness:
/// each of their calls already carries many messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DriverChoice {
    /// Plumbline chooses.
    #[default]
    Auto,
    /// Readiness, and one system call per message.
    Epoll,
    /// io_uring (Linux 6.1 or later); an error where it is not allowed.
    Uring,
}

/// One workload with every value resolved. Which fields matter depends on
/// [`kind`](Self::kind); validation refuses any that would be ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Name in tables, unique within an experiment; the kind unless given.
    pub name: String,
    /// The shape of the traffic.
    pub kind: WorkloadKind,
    /// Transport. Only `rr` has a choice; `datagram` is always UDP.
    pub protocol: Protocol,
    /// Bytes of a request (`rr`, `crr`) or of a message (`datagram`), at least 16;
    /// 0 where the kind has none.
    pub request_size: u32,
    /// Bytes of a response (`rr`, `crr`), at least 16, or of a body (`http`); 0
    /// where the kind has none.
    pub response_size: u32,
    /// Concurrent connections (sockets for UDP).
    pub connections: u32,
    /// When requests are due. `stream` is always `closed`.
    pub arrival: Arrival,
    /// `http`: keep connections open between requests.
    pub keep_alive: bool,
    /// `http`: what answers.
    #[serde(default)]
    pub server: HttpServer,
    /// How the sender waits.
    pub wait: Wait,
    /// The sender's I/O mechanism (`rr`, `crr`, `http`). The result says which
    /// one ran.
    #[serde(default)]
    pub driver: DriverChoice,
    /// `stream`: let the kernel send from the sender's own pages
    /// (`MSG_ZEROCOPY`).
    #[serde(default)]
    pub zero_copy: bool,
    /// Share of the requests that the kernel timestamps on their way, 0 to 1, so
    /// that their time can be split (L-17); 0 is none. For `rr`, and for `http`
    /// that keeps its connections open.
    #[serde(default, skip_serializing_if = "is_none_stamped")]
    pub timestamps: f64,
    /// How long our responder computes before it answers each request (`rr`, `crr`,
    /// `http`), nanoseconds: a known cost, to test what a comparison finds.
    #[serde(default, skip_serializing_if = "is_none")]
    pub think_ns: u64,
}

/// Keeps records without a known cost as they were before there was one.
fn is_none(length_ns: &u64) -> bool {
    *length_ns == 0
}

/// Keeps records without timestamps as they were before timestamps existed.
fn is_none_stamped(share: &f64) -> bool {
    *share == 0.0
}
