//! How large the loads are that are compared.

/// Bytes of request and response where the latency of one connection counts.
pub(crate) const SMALL: u32 = 16;
/// Connections of the HTTP comparisons.
pub(crate) const CONNECTIONS: u32 = 64;
/// Requests per second of the open loop, and its connections.
pub(crate) const OPEN_RATE: u32 = 5_000;
pub(crate) const OPEN_CONNECTIONS: u32 = 16;
pub(crate) const DATAGRAM: u32 = 64;
pub(crate) const MANY: u32 = 15_000;
/// Requests per second over few and over many: equal load, so that only the
/// number of connections differs (N-11). High enough that several requests
/// share a wake-up: at a low rate the wake-ups hide what the connections cost.
pub(crate) const SCALE_RATE: u32 = 50_000;
