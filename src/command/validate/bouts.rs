//! Which comparisons there are, and what each is to reach.

mod bulk;
mod requests;

use std::collections::BTreeMap;

use super::point::{Goal, Metric, Point};
use super::stage::Stage;

/// What one run gave.
pub(super) type Reading = BTreeMap<Metric, f64>;

type Run = fn(&Stage<'_>) -> anyhow::Result<Reading>;

/// Two ways to do the same, run in turn.
#[derive(Debug)]
pub(super) struct Bout {
    /// What `--only` knows it by.
    pub(super) name: &'static str,
    /// The other side.
    pub(super) against: &'static str,
    /// Programs without which it cannot take place.
    pub(super) needs: &'static [&'static str],
    pub(super) theirs: Run,
    pub(super) ours: Run,
    pub(super) points: &'static [Point],
}

impl Bout {
    /// Whether nobody is on the other side.
    pub(super) fn is_alone(&self) -> bool {
        self.against == "-"
    }
}

const fn point(what: &'static str, metric: Metric, goal: Option<Goal>) -> Point {
    Point { what, metric, goal }
}

/// Bytes of request and response where the latency of one connection counts.
pub(super) const SMALL: u32 = 16;
/// Connections of the HTTP comparisons.
pub(super) const CONNECTIONS: u32 = 64;
/// Requests per second of the open loop, and its connections.
pub(super) const OPEN_RATE: u32 = 5_000;
pub(super) const OPEN_CONNECTIONS: u32 = 16;
/// Bytes of a datagram.
pub(super) const DATAGRAM: u32 = 64;
/// Many connections.
pub(super) const MANY: u32 = 15_000;
/// Requests per second over few and over many: equal load, so that only the
/// number of connections differs (N-11). High enough that several requests
/// share a wake-up: at a low rate the wake-ups hide what the connections cost.
pub(super) const SCALE_RATE: u32 = 50_000;

/// All comparisons, in the order of the table.
pub(super) fn all() -> impl Iterator<Item = &'static Bout> {
    requests::REQUESTS.iter().chain(bulk::BULK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = all().map(|bout| bout.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
    }
}
