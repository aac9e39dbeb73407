//! Where networks stand that are looked into, and what looks at their packets there.

mod cluster;
mod lab;
mod port;

use plumbline_experiment::{Link, Treatment, Workload};
use plumbline_harness::{Cpus, Demand, Path};

use crate::error::XrayError;
use crate::view::Glimpse;
pub(crate) use cluster::ClusterGround;
pub(crate) use lab::LabGround;

/// Which requests of a trial are followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSample {
    /// One in so many; none where it is 0 (tracepoints only).
    pub(crate) one_in: u64,
    /// Those that took longer are left out, nanoseconds.
    pub(crate) longest_ns: u64,
}

/// What is asked of a target: these treatments over a link, in no order of trials.
fn demand(treatments: &[Treatment], link: Link) -> Demand<'_> {
    Demand {
        treatments,
        first: &[],
        link,
    }
}

/// Where networks stand that are looked into, and what looks at their packets there.
pub(crate) trait Ground {
    /// Has the networks of these treatments made; of none, sees that there is what no network can
    /// do without.
    fn prepare(&mut self, treatments: &[Treatment]) -> Result<(), XrayError>;

    /// Where the ends run, once a network stands.
    fn cpus(&self) -> Cpus;

    /// The share of requests that is followed, one in so many, where this is asked for.
    fn one_in(&self, asked: u64) -> u64;

    /// What looks, by its name in results.
    fn by(&self) -> &'static str;

    /// The load as it is while somebody looks.
    fn stamped(&self, workload: &Workload) -> Workload;

    /// Does some work on the path of a treatment while nobody looks. Its receiver listens on a
    /// port, unless the path has one of its own.
    fn alone<T>(
        &mut self,
        treatment: &Treatment,
        port: u16,
        work: impl FnOnce(&dyn Path) -> T,
    ) -> Result<T, XrayError>;

    /// The same while requests are followed; gives what was seen.
    fn watched<T>(
        &mut self,
        treatment: &Treatment,
        port: u16,
        sample: RequestSample,
        work: impl FnOnce(&dyn Path) -> T,
    ) -> Result<(T, Glimpse), XrayError>;
}
