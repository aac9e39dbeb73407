//! Set-up cost as a table: what it took to bring up each network's cluster, or to change
//! what is laid on the nodes of one.

use crate::analysis::{SetUpCost, Summary};
use crate::figures::{self, Table};
use crate::{describe, number};

/// What the table shows, in words.
pub(crate) const ABOUT: &str = "What was made anew between trials. Medians with their 95 % interval. A cluster: \
    the command that brings it up, and from there until pods ran and every path carried packets. Services and \
    policies: until the API server had answered all requests, and from there until they acted on both nodes.";

/// A row for each network; `None` where nothing was brought up for the run.
pub(crate) fn table(summary: &Summary) -> Option<Table> {
    let row = |of: &SetUpCost| {
        vec![
            describe::clean(&of.network),
            figures::spread(of.took_ns, number::duration),
            figures::spread(of.paths_ns, number::duration),
            format!("{} of {}", of.came_up, of.tried),
        ]
    };
    (!summary.set_ups.is_empty()).then(|| Table {
        head: figures::head(["what", "made", "ready after", "came up"]),
        rows: summary.set_ups.iter().map(row).collect(),
    })
}

/// Where the words of commands are that brought nothing up: a line for each
/// network that did not always come up.
pub(crate) fn failures(summary: &Summary) -> Vec<String> {
    let failing = summary.set_ups.iter().filter(|it| !it.failed.is_empty());
    let line = |of: &SetUpCost| {
        let logs: Vec<String> = of.failed.iter().map(|log| describe::clean(log)).collect();
        let network = describe::clean(&of.network);
        format!(
            "{network} did not come up every time: see {}",
            logs.join(", ")
        )
    };
    failing.map(line).collect()
}
