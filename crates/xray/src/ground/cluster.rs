//! A cluster whose paths have, beside their ends, a place on each of their nodes where programs
//! may be loaded into its kernel.

use std::collections::BTreeMap;

use plumbline_experiment::{Ends, Link, Placement, Treatment, Workload};
use plumbline_harness::{Cpus, Observer, Path, Site, Target, TargetError, prepare};
use plumbline_protocol::{Followed, FollowedPart, TraceAnswer, TraceOrder, TracedPlace, Traces};

use super::port::AtPort;
use super::{Ground, RequestSample, demand};
use crate::account::TRACEPOINTS;
use crate::around::Surroundings;
use crate::error::XrayError;
use crate::load::TIMING;
use crate::order::XrayOrder;
use crate::view::Glimpse;

/// A cluster, and the agents that look into it.
pub(crate) struct ClusterGround<'a> {
    target: &'a mut dyn Target,
    by_node: bool,
    link: Link,
    observers: PlaceObservers,
}

impl<'a> ClusterGround<'a> {
    pub(crate) fn new(target: &'a mut dyn Target, order: XrayOrder) -> Self {
        Self {
            target,
            by_node: order.by_node,
            link: order.link,
            observers: PlaceObservers::default(),
        }
    }
}

/// An agent at each place that was looked at, by name.
#[derive(Default)]
struct PlaceObservers(BTreeMap<String, Observer>);

impl PlaceObservers {
    fn ask(&mut self, site: &dyn Site, order: TraceOrder) -> Result<TraceAnswer, XrayError> {
        let name = site.name();
        if !self.0.get(name).is_some_and(Observer::is_alive) {
            self.0.insert(name.to_owned(), Observer::start(site)?);
        }
        Ok(self.0[name].trace(order)?)
    }

    fn place(&mut self, site: &dyn Site) -> Result<TracedPlace, XrayError> {
        match self.ask(site, TraceOrder::Place)? {
            TraceAnswer::Place(place) => Ok(place),
            other => Err(unexpected(site, &other)),
        }
    }

    fn follow(&mut self, watch: &NodeWatch<'_>) -> Result<(), XrayError> {
        let order = TraceOrder::Follow(watch.followed.clone());
        match self.ask(watch.site, order)? {
            TraceAnswer::Follows => Ok(()),
            TraceAnswer::Lacks { needs } => Err(XrayError::Unsupported {
                needs: format!("on node {}: {needs}", watch.node),
            }),
            other => Err(unexpected(watch.site, &other)),
        }
    }

    fn seen(&mut self, watch: &NodeWatch<'_>) -> Result<Traces, XrayError> {
        match self.ask(watch.site, TraceOrder::Tell)? {
            TraceAnswer::Seen(traces) => Ok(traces),
            other => Err(unexpected(watch.site, &other)),
        }
    }
}

fn unexpected(site: &dyn Site, answer: &TraceAnswer) -> XrayError {
    let name = site.name();
    TargetError::Failed(format!("the agent on {name} said {answer:?}, unasked")).into()
}

/// What the agent on one node is to follow.
struct NodeWatch<'a> {
    site: &'a dyn Site,
    node: &'a str,
    followed: Followed,
}

/// The ends of a path and its nodes, as their kernels know them.
struct PathPlaces<'a> {
    /// Where programs may be loaded: on the sender's node and on the receiver's, which may be
    /// one.
    nodes: [(&'a dyn Site, &'a str, TracedPlace); 2],
    /// The sender's namespace and the receiver's.
    ends: [TracedPlace; 2],
    around: Surroundings,
}

impl<'a> PathPlaces<'a> {
    fn of(
        path: &'a dyn Path,
        names: &'a [String],
        observers: &mut PlaceObservers,
    ) -> Result<Self, XrayError> {
        if !path.further_servers().is_empty() {
            return Err(TargetError::Unsupported {
                what: "a path with several receivers".to_owned(),
                needs: "one with a receiver alone, such as cluster-ip: whose packets they are \
                        could not be told"
                    .to_owned(),
            }
            .into());
        }
        let sites = path.waypoints();
        let (Some(near), Some(far)) = (sites.first(), sites.last()) else {
            return Err(XrayError::Unsupported {
                needs: "places on the nodes of this path where programs may be loaded".to_owned(),
            });
        };
        let name = |at: usize| names.get(at).map_or("a node", String::as_str);
        let nodes = [(*near, name(0)), (*far, name(sites.len() - 1))];
        let places = [observers.place(*near)?, observers.place(*far)?];
        let mut around = Surroundings::default();
        for ((_, node), place) in nodes.iter().zip(&places) {
            around.add(node, false, place.namespace, place.devices.clone());
        }
        let sites: [&dyn Site; 2] = [path.client(), path.server()];
        let ends = [observers.place(sites[0])?, observers.place(sites[1])?];
        for ((site, end), (_, node)) in sites.iter().zip(&ends).zip(&nodes) {
            // The namespace of a cluster is one of a run, and says nothing here.
            let pod = site.name().rsplit('/').next().unwrap_or_default();
            let name = format!("{node}/{pod}");
            around.add(&name, true, end.namespace, end.devices.clone());
        }
        let [near, far] = nodes;
        let [here, there] = places;
        Ok(Self {
            nodes: [(near.0, near.1, here), (far.0, far.1, there)],
            ends,
            around,
        })
    }

    /// Who is to follow what: the whole way where both ends are on one kernel, else each node a
    /// half. The halves of one kernel are kept apart by their namespaces.
    fn watches(
        &self,
        path: &AtPort<'_>,
        sample: RequestSample,
        by_node: bool,
    ) -> Vec<NodeWatch<'a>> {
        let [near, far] = &self.nodes;
        let whole = Followed {
            part: FollowedPart::Whole,
            client: self.ends[0].namespace,
            port: path.asked_port(),
            server: self.ends[1].namespace,
            listening: path.listening_port(),
            one_in: sample.one_in,
            longest_ns: sample.longest_ns,
            warm_up_ns: TIMING.warm_up_ns,
            inside: Vec::new(),
        };
        let is_one_kernel = near.2.boot == far.2.boot;
        let is_one_node = near.2.namespace == far.2.namespace && is_one_kernel;
        let watch = |at: usize, followed| NodeWatch {
            site: self.nodes[at].0,
            node: self.nodes[at].1,
            followed,
        };
        if is_one_node || is_one_kernel && !by_node {
            return vec![watch(0, whole)];
        }
        let half = |at: usize, part| {
            let inside = match is_one_kernel {
                true => vec![self.nodes[at].2.namespace, self.ends[at].namespace],
                false => Vec::new(),
            };
            let followed = Followed {
                part,
                inside,
                ..whole.clone()
            };
            watch(at, followed)
        };
        vec![
            half(0, FollowedPart::Sender),
            half(1, FollowedPart::Receiver),
        ]
    }
}

/// Two nodes, or one where both ends are on it.
fn ends(treatment: &Treatment) -> Ends {
    match treatment.scene.placement {
        Placement::CrossNode => [0, 1],
        Placement::SameNode => [0, 0],
    }
}

impl Ground for ClusterGround<'_> {
    fn prepare(&mut self, treatments: &[Treatment]) -> Result<(), XrayError> {
        // What a cluster can do without is known once it is asked for something.
        if treatments.is_empty() {
            return Ok(());
        }
        prepare(self.target, &demand(treatments, self.link))?;
        self.target.begin_block(0);
        for treatment in treatments {
            self.target.ready(treatment, &ends(treatment))?;
        }
        Ok(())
    }

    fn cpus(&self) -> Cpus {
        self.target.cpus()
    }

    fn one_in(&self, asked: u64) -> u64 {
        asked
    }

    fn by(&self) -> &'static str {
        TRACEPOINTS
    }

    fn stamped(&self, workload: &Workload) -> Workload {
        workload.clone()
    }

    fn alone<T>(
        &mut self,
        treatment: &Treatment,
        port: u16,
        work: impl FnOnce(&dyn Path) -> T,
    ) -> Result<T, XrayError> {
        let path = self.target.stage(treatment, ends(treatment))?;
        Ok(work(&AtPort::new(&*path, port)))
    }

    fn watched<T>(
        &mut self,
        treatment: &Treatment,
        port: u16,
        sample: RequestSample,
        work: impl FnOnce(&dyn Path) -> T,
    ) -> Result<(T, Glimpse), XrayError> {
        let names = self.target.nodes();
        let path = self.target.stage(treatment, ends(treatment))?;
        let observers = &mut self.observers;
        let places = PathPlaces::of(&*path, &names, observers)?;
        let path = AtPort::new(&*path, port);
        let watches = places.watches(&path, sample, self.by_node);
        for watch in &watches {
            observers.follow(watch)?;
        }
        let done = work(&path);
        let seen = watches.iter().map(|watch| observers.seen(watch));
        let seen: Vec<Traces> = seen.collect::<Result<_, _>>()?;
        let around = &places.around;
        let glimpse = match <[Traces; 2]>::try_from(seen) {
            Ok(halves) => Glimpse::halves(&halves, around),
            Err(whole) => Glimpse::whole(&whole[0], around),
        };
        Ok((done, glimpse))
    }
}
