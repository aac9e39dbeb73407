//! What `plumbline load` and `plumbline serve` print: a load without a run.

mod json;
mod live;
mod search;
mod serve;
mod text;
mod warning;
mod window;

use std::net::SocketAddr;
use std::time::Duration;

use plumbline_experiment::{Arrival, Workload};

pub use json::json;
pub use live::Totals;
pub use search::Search;
pub use serve::served;
pub use text::{floor, text};

/// What a load is about to do.
pub fn headline(workload: &Workload, target: SocketAddr, measure: Duration) -> String {
    let connections = match workload.connections {
        1 => "1 connection".to_owned(),
        n => format!("{n} connections"),
    };
    let load = match workload.arrival {
        Arrival::Closed if workload.kind.is_answered() => "closed loop".to_owned(),
        Arrival::Closed => "as fast as it goes".to_owned(),
        Arrival::Constant { rate } => format!("{rate}/s at equal gaps"),
        Arrival::Poisson { rate } => format!("{rate}/s, Poisson arrivals"),
    };
    format!(
        "{} to {target}: {connections}, {load}, {:.1} s",
        workload.name,
        measure.as_secs_f64()
    )
}

#[cfg(test)]
mod tests;
