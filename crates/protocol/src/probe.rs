//! Connections that are to be tried, and what came of them.

use std::net::SocketAddr;

use plumbline_record::ProbeSeries;
use serde::{Deserialize, Serialize};

/// What connections to try.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProbeOrder {
    /// The only address to connect to (S-5a).
    pub target: SocketAddr,
    /// How many to try in each second.
    pub rate: f64,
    /// How long each is waited for, nanoseconds.
    pub limit_ns: u64,
    /// For how long to try, unless stopped before, nanoseconds.
    pub length_ns: u64,
    /// CPUs to run on; empty for any.
    pub cpus: Vec<usize>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Probed {
    /// When the first was to be sent, by the agent's clock, nanoseconds.
    pub begun_ns: u64,
    /// All of them.
    pub series: ProbeSeries,
}
