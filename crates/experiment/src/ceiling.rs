//! Hard limits on what an experiment, or `plumbline load`, may ask for (S-5d).
//!
//! They are compiled in and no flag lifts them: a measuring tool must not serve
//! as a weapon, and a slip of the keyboard must not fill a disk.

use std::time::Duration;

/// Requests per second over all connections.
pub const MAX_RATE: f64 = 5_000_000.0;
/// Concurrent connections of one workload: more than the ports of three addresses.
pub const MAX_CONNECTIONS: u32 = 100_000;
/// Sockets that datagrams are sent from: as many flows as the receiver distinguishes.
pub const MAX_FLOWS: u32 = 4_096;
/// Measured window of one trial, or of a load.
pub const MAX_DURATION: Duration = Duration::from_secs(24 * 3600);
/// Warm-up of one trial, or of a load.
pub const MAX_WARM_UP: Duration = Duration::from_secs(300);
/// Wait for outstanding answers. Histograms reach no further (D12), so later answers
/// would all look the same.
pub const MAX_DRAIN: Duration = Duration::from_secs(60);
/// Time that a responder computes before each answer: a longer one measures nothing else.
pub const MAX_THINK: Duration = Duration::from_secs(1);
/// Shortest measured window: a shorter one shows nothing but the start.
pub const MIN_DURATION: Duration = Duration::from_millis(10);
/// Bytes of the smallest request, response or datagram: room for its sequence
/// number and the mark of its content.
pub const MIN_MESSAGE: u32 = 16;
/// Bytes of the largest request or response over TCP, an HTTP body included.
pub const MAX_MESSAGE: u32 = 16 << 20;
/// Bytes of the largest UDP payload: 65,535 less the headers of IPv4 and UDP.
pub const MAX_DATAGRAM: u32 = 65_507;
/// Services on the nodes of a path.
pub const MAX_SERVICES: u32 = 100_000;
/// Endpoints of each service.
pub const MAX_ENDPOINTS: u32 = 1_000;
/// Endpoints of all services: more rules than a kernel takes in a minute.
pub const MAX_ALL_ENDPOINTS: u64 = 500_000;
/// Policies on the nodes of a path.
pub const MAX_POLICIES: u32 = 10_000;
/// Peers of each policy.
pub const MAX_MEMBERS: u32 = 10_000;
/// Pairs of endpoints that work at once.
pub const MAX_PAIRS: u32 = 32;
/// MTUs that a link may have, in bytes: what the smallest packet of IPv4 needs,
/// and the most that the kernel gives a veth. A network may need more.
pub(crate) const MTUS: std::ops::RangeInclusive<u32> = 576..=65_535;
/// Blocks of a plan, but for one that ends when its limits are decided: there, its budget and
/// [`MAX_TRIALS`] bound them.
pub const MAX_BLOCKS: u32 = 1_000;
/// The largest overhead that may be allowed, as a fraction.
pub const MAX_LIMIT: f64 = 1_000.0;
/// The longest budget of time: a week.
pub const MAX_BUDGET: Duration = Duration::from_secs(7 * 24 * 3600);
/// Trials of a plan, not counting repetitions.
pub const MAX_TRIALS: usize = 100_000;
/// Levels of one factor.
pub(crate) const MAX_LEVELS: usize = 1_000;
/// Combinations of the levels of all factors but the network and those of workloads, and
/// of networks with their variants and paths.
pub(crate) const MAX_SETTINGS: usize = 10_000;
/// Repetitions of a trial that fails a gate.
pub const MAX_RETRIES: u32 = 20;
