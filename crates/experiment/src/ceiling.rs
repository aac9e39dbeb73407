//! Hard limits on what an experiment may ask for (S-5d).
//!
//! They are compiled in and no flag lifts them: a measuring tool must not be
//! of use as a weapon, and a slip of the keyboard must not fill a disk.

use std::time::Duration;

/// Requests per second over all connections.
pub const MAX_RATE: f64 = 5_000_000.0;
/// Concurrent connections of one workload.
pub const MAX_CONNECTIONS: u32 = 10_000;
/// Measured window of one trial.
pub const MAX_DURATION: Duration = Duration::from_secs(3600);
/// Warm-up of one trial.
pub const MAX_WARM_UP: Duration = Duration::from_secs(300);
/// Wait for outstanding answers. It is what histograms reach (D12): an answer
/// that is later could not be told apart.
pub const MAX_DRAIN: Duration = Duration::from_secs(60);
/// Shortest measured window: below it, starting up is all that one sees.
pub const MIN_DURATION: Duration = Duration::from_millis(10);
/// Bytes of the smallest request, response or datagram: sequence and content
/// mark need that much.
pub const MIN_MESSAGE: u32 = 16;
/// Bytes of the largest request or response over TCP.
pub const MAX_MESSAGE: u32 = 1 << 20;
/// Bytes of the largest UDP payload: 65,535 less the headers of IPv4 and UDP.
pub const MAX_DATAGRAM: u32 = 65_507;
/// Bytes of the largest HTTP body.
pub const MAX_BODY: u32 = 16 << 20;
/// Blocks of a plan.
pub const MAX_BLOCKS: u32 = 1_000;
/// Trials of a plan, repetitions not counted.
pub const MAX_TRIALS: usize = 100_000;
/// Repetitions of a trial that fails a gate.
pub const MAX_RETRIES: u32 = 20;
