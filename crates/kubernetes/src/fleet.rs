//! Many nodes of a cluster, of which several pairs are measured at the same time.

mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use plumbline_agent::{LookOrder, Sight};
use plumbline_experiment::{Asked, Ends, Family, Placement, Scene, Treatment};
use plumbline_harness::{Fleet, Observer, Path, TargetError};
use plumbline_record::{IdleSample, Warning};

use crate::choice::NodeFacts;
use crate::cluster::ClusterOptions;
use crate::error::ClusterError;
use crate::members::{Members, members};
use crate::path::{ClusterPath, Observers, PodSite};
use crate::reach::{until_reached, until_told};
use crate::route::{self, NEEDS_HOST_NETWORK, Route, Seat};
use crate::session::Session;
use crate::standing::Standing;
use crate::{manifest, nodes};

/// Nodes that are looked at at the same time.
const AT_ONCE: usize = 16;

type Key = (Route, Placement, Family);

/// Paths between many nodes of a cluster. Each has one pod, which sends in some
/// trials and receives in others. Dropping it removes all that it made.
pub struct ClusterFleet {
    options: ClusterOptions,
    /// How many pairs; `None` for a mesh.
    pairs: Option<usize>,
    session: Arc<Session>,
    members: OnceLock<Members>,
    /// What the plan will ask for, so that all pods start side by side.
    planned: Mutex<BTreeSet<Route>>,
    standing: Mutex<Standing>,
    observers: Mutex<Observers>,
    /// Servers that have been reached through a service.
    reached: Mutex<BTreeSet<(Route, Seat, u8)>>,
    /// Between the first two nodes, for what needs one path only.
    first: BTreeMap<Key, ClusterPath>,
    /// Of each node, when all have been looked at.
    sights: Vec<Sight>,
}

impl ClusterFleet {
    /// Reads the configuration; says nothing to the cluster yet. `pairs` is how
    /// many pairs of nodes to use; `None` for a mesh of all.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Configuration`].
    pub fn open(options: ClusterOptions, pairs: Option<usize>) -> Result<Self, ClusterError> {
        let context = options.context.as_deref();
        let session = Arc::new(Session::open(
            options.kubeconfig.as_deref(),
            context,
            options.interrupted,
        )?);
        let standing = Standing::new(
            Arc::clone(&session),
            options.image.clone(),
            options.started_by.clone(),
        );
        Ok(Self {
            options,
            pairs,
            session,
            members: OnceLock::new(),
            planned: Mutex::default(),
            standing: Mutex::new(standing),
            observers: Mutex::default(),
            reached: Mutex::default(),
            first: BTreeMap::new(),
            sights: Vec::new(),
        })
    }

    /// The scenes that an experiment asks for, with what of them cannot be had.
    ///
    /// # Errors
    ///
    /// A sentence, for a word that is no route, or one that may not be had.
    pub fn scenes(&self, asked: &Asked<'_>) -> Result<(Vec<Scene>, Vec<Warning>), String> {
        route::asked(asked, self.options.host_network)
    }

    fn members(&self) -> Result<&Members, ClusterError> {
        if let Some(members) = self.members.get() {
            return Ok(members);
        }
        let found = nodes::all(&self.session)?;
        let facts: Vec<_> = found.iter().map(nodes::facts).collect();
        let chosen = members(&facts, &self.options.nodes, self.pairs)?;
        Ok(self.members.get_or_init(|| chosen))
    }

    fn node(&self, number: usize) -> Result<&NodeFacts, ClusterError> {
        let nodes = &self.members()?.nodes;
        let node = nodes.get(number);
        node.ok_or_else(|| ClusterError::Nodes(format!("there is no node number {number}")))
    }

    fn key(&self, treatment: &Treatment) -> Result<Key, TargetError> {
        let route = Route::of(&treatment.scene)?;
        if treatment.scene.placement == Placement::SameNode {
            return Err(TargetError::Unsupported {
                what: "placement `same-node`".to_owned(),
                needs: "a run of one pair: --mesh and --pairs measure between nodes".to_owned(),
            });
        }
        if matches!(route, Route::ClusterIp { backends: 2.. }) {
            return Err(TargetError::Unsupported {
                what: format!("the path `{}`", route.name()),
                needs: "a run of one pair: with many nodes, one pod is behind each service"
                    .to_owned(),
            });
        }
        if route.needs_host_network() && !self.options.host_network {
            return Err(TargetError::Unsupported {
                what: format!("the path `{}`", route.name()),
                needs: NEEDS_HOST_NETWORK.to_owned(),
            });
        }
        Ok((route, treatment.scene.placement, treatment.scene.family))
    }

    /// The pods of some nodes that the plan asks for.
    fn seats(&self, nodes: &[usize]) -> BTreeSet<Seat> {
        let planned = lock(&self.planned);
        let of_node = |&node: &usize| {
            let number = node as u16;
            let routes = planned.iter();
            routes.flat_map(move |route| <[Seat; 2]>::from(route.members([number; 2])))
        };
        nodes.iter().flat_map(of_node).collect()
    }

    /// Sees to it that the pods of some nodes run.
    fn seat(&self, nodes: &[usize]) -> Result<(), ClusterError> {
        let seats = self.seats(nodes);
        let members = self.members()?;
        let node_of = |seat: Seat| match seat {
            Seat::Member(number) | Seat::HostMember(number) => &members.nodes[number as usize],
            _ => &members.nodes[0],
        };
        let mut standing = lock(&self.standing);
        standing.refresh()?;
        standing.seat(&seats, node_of)?;
        lock(&self.observers).keep(&standing);
        Ok(())
    }

    fn site(&self, seat: Seat, family: Family, port: u16) -> Result<PodSite, ClusterError> {
        let standing = lock(&self.standing);
        let pod = standing.pod(seat);
        let Some((pod, address)) = pod.and_then(|pod| Some((pod, pod.address(family)?))) else {
            return Err(ClusterError::Pod {
                pod: seat.name().into_owned(),
                message: format!(
                    "it has no IPv{} address; does the cluster's network have this family?",
                    u8::from(family)
                ),
            });
        };
        let session = Arc::clone(&self.session);
        Ok(PodSite::new(session, pod, seat, address, port))
    }

    /// Makes a path of pods that run, and sees that it leads to its server.
    fn build(&self, treatment: &Treatment, ends: Ends) -> Result<ClusterPath, TargetError> {
        let (route, _, family) = self.key(treatment)?;
        let mut are_seated = true;
        let mut path = until_told(&self.session, || {
            if !std::mem::take(&mut are_seated) {
                self.seat(&ends)?;
            }
            self.assemble(route, family, ends)
        })?;
        let (_, server) = route.members(ends.map(|end| end as u16));
        let key = (route, server, u8::from(family));
        if route.is_service() && !lock(&self.reached).contains(&key) {
            until_reached(&self.session, &mut path, treatment)?;
            lock(&self.reached).insert(key);
        }
        Ok(path)
    }

    fn assemble(
        &self,
        route: Route,
        family: Family,
        ends: Ends,
    ) -> Result<ClusterPath, ClusterError> {
        let (client, server) = route.members(ends.map(|end| end as u16));
        let port = if route.is_service() {
            manifest::PORT
        } else {
            0
        };
        let front = self.front(route, server, family, ends[1])?;
        let client = self.site(client, family, 0)?;
        let site = self.site(server, family, port)?;
        let mut observers = lock(&self.observers).some([&client, &site]);
        let path = ClusterPath::new(client, vec![site], front.map(Into::into), &mut observers)?;
        lock(&self.observers).add(observers);
        Ok(path)
    }

    /// What stands before a server, if the route has it.
    fn front(
        &self,
        route: Route,
        server: Seat,
        family: Family,
        node: usize,
    ) -> Result<Option<(std::net::IpAddr, u16)>, ClusterError> {
        if !route.is_service() {
            return Ok(None);
        }
        let wants_port = lock(&self.planned).contains(&Route::NodePort);
        let front = lock(&self.standing).front(server, family, wants_port)?;
        if route != Route::NodePort {
            return Ok(Some((front.cluster_ip, manifest::PORT)));
        }
        let addresses = &self.node(node)?.addresses;
        let address = addresses.iter().copied().find(|it| family.holds(*it));
        match (address, front.node_port) {
            (Some(address), Some(port)) => Ok(Some((address, port))),
            _ => Err(ClusterError::Refused {
                what: "give the service a port of the nodes".to_owned(),
                message: "one number for TCP and UDP, and a node of this family, are needed"
                    .to_owned(),
            }),
        }
    }

    fn observer(&self, node: usize) -> Result<Arc<Observer>, TargetError> {
        let seats = self.seats(&[node]);
        let Some(&seat) = seats.first() else {
            return Err(TargetError::Failed("no path was asked for yet".to_owned()));
        };
        // Any family: an observer is reached by exec.
        let site = self
            .site(seat, Family::V4, 0)
            .or_else(|_| self.site(seat, Family::V6, 0))?;
        let mut own = lock(&self.observers).some([&site, &site]);
        let observer = own.at(&site)?;
        lock(&self.observers).add(own);
        Ok(observer)
    }

    /// Looks at every node, some at a time.
    fn look_at_all(&self) -> Result<Vec<Sight>, TargetError> {
        let numbers: Vec<usize> = (0..self.members()?.nodes.len()).collect();
        let mut sights = Vec::new();
        for some in numbers.chunks(AT_ONCE) {
            let look = |&node: &usize| self.observer(node)?.look(LookOrder::default());
            let seen = thread::scope(|scope| {
                let threads: Vec<_> = some.iter().map(|node| scope.spawn(|| look(node))).collect();
                let joined = threads.into_iter().map(|thread| {
                    let result = thread.join();
                    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                });
                joined.collect::<Result<Vec<Sight>, TargetError>>()
            })?;
            sights.extend(seen);
        }
        Ok(sights)
    }
}

impl Fleet for ClusterFleet {
    fn nodes(&self) -> Vec<String> {
        let members = self.members.get();
        let nodes = members.iter().flat_map(|members| &members.nodes);
        nodes.map(|node| node.name.clone()).collect()
    }

    /// Also when only some are, as nodes that are containers of one machine.
    fn is_one_kernel(&self) -> bool {
        let boots = self.sights.iter().map(|sight| &sight.boot);
        let boots: Vec<&String> = boots.filter(|boot| !boot.is_empty()).collect();
        let distinct: BTreeSet<&String> = boots.iter().copied().collect();
        distinct.len() < boots.len()
    }

    fn ready(&self, nodes: &[usize]) -> Result<(), TargetError> {
        Ok(self.seat(nodes)?)
    }

    fn path_between(
        &self,
        treatment: &Treatment,
        ends: Ends,
    ) -> Result<Box<dyn Path + Send>, TargetError> {
        Ok(Box::new(self.build(treatment, ends)?))
    }

    fn rest(&self, node: usize, length: Duration) -> Result<IdleSample, TargetError> {
        // An observer may have been lost with an API server that is back, which
        // only the question shows.
        let rest = || self.observer(node)?.rest(length);
        rest().or_else(|_| rest())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
