//! What bringing up each network's place took.

use plumbline_record::{SetUp, Trial};
use plumbline_stats::order::{self, MedianOfRuns};

use serde::Serialize;

use super::LEVEL;

/// What it took to bring up a network, over all the times that it was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetUpCost {
    /// The network, as the command knows it.
    pub network: String,
    /// How often it was tried.
    pub tried: usize,
    /// How often it came up.
    pub came_up: usize,
    /// From the start of the command to its end, nanoseconds, where it came up.
    #[serde(rename = "up_ns", serialize_with = "crate::spread::spread_as_pair")]
    pub took_ns: Option<MedianOfRuns>,
    /// From there until every path carried packets, nanoseconds.
    #[serde(serialize_with = "crate::spread::spread_as_pair")]
    pub paths_ns: Option<MedianOfRuns>,
    /// Logs of those that did not come up, in the run directory.
    pub failed: Vec<String>,
}

impl SetUpCost {
    fn new(network: &str, all: &[&SetUp]) -> Self {
        let own: Vec<&SetUp> = all
            .iter()
            .copied()
            .filter(|it| it.network == network)
            .collect();
        let up: Vec<&SetUp> = own.iter().copied().filter(|it| it.came_up).collect();
        let took: Vec<f64> = up.iter().map(|it| it.took_ns as f64).collect();
        let paths = up.iter().filter_map(|it| it.paths_ns);
        let paths: Vec<f64> = paths.map(|ns| ns as f64).collect();
        Self {
            network: network.to_owned(),
            tried: own.len(),
            came_up: up.len(),
            took_ns: order::median_of_runs(&took, LEVEL),
            paths_ns: order::median_of_runs(&paths, LEVEL),
            failed: own
                .iter()
                .filter(|it| !it.came_up)
                .map(|it| it.log.clone())
                .collect(),
        }
    }
}

/// Of each network that was brought up for the run, the quickest first; those
/// that never came up last.
pub(super) fn costs(trials: &[Trial]) -> Vec<SetUpCost> {
    let all: Vec<&SetUp> = trials.iter().filter_map(Trial::set_up).collect();
    let mut networks: Vec<&str> = all.iter().map(|it| it.network.as_str()).collect();
    networks.sort_unstable();
    networks.dedup();
    let mut costs: Vec<SetUpCost> = networks
        .into_iter()
        .map(|network| SetUpCost::new(network, &all))
        .collect();
    let median = |one: &SetUpCost| one.took_ns.map_or(f64::INFINITY, |it| it.median);
    costs.sort_by(|a, b| median(a).total_cmp(&median(b)));
    costs
}
