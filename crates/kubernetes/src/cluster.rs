//! One cluster: its nodes, and the pods of ours on them.

mod assemble;
mod dress;
mod seating;
mod settle;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;

use plumbline_experiment::{Ends, Family, HttpServer, Placement, Treatment};
use plumbline_harness::{Levels, Observer, TargetError};
use plumbline_protocol::{LookOrder, Sight};

use crate::choice::{ClusterLayout, Members, NodeFacts, choose};
use crate::dressing::{StandingDressing, Wardrobe};
use crate::error::ClusterError;
use crate::image;
use crate::launch;
use crate::manifest::{RunMark, word};
use crate::nodes;
use crate::path::ClusterPath;
use crate::route::{ClusterRoute, NEEDS_HOST_NETWORK};
use crate::seat::{PathKey, Seat};
use crate::session::ClusterConnection;
use crate::site::{Observers, PodSite, lock};
use crate::standing::StandingPods;
use crate::survive;

/// Nodes that are examined at the same time.
const AT_ONCE: usize = 16;

#[derive(Clone, Debug)]
pub(crate) struct ClusterOptions {
    /// File that names the cluster; the user's own configuration where there is
    /// none.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; the current one where there is none.
    pub(crate) context: Option<String>,
    pub(crate) layout: ClusterLayout,
    /// Names of the nodes; empty for a choice.
    pub(crate) nodes: Vec<String>,
    pub(crate) image: String,
    /// Whether pods may be in the nodes' networks, in a namespace that allows it.
    pub(crate) host_network: bool,
    /// Whether there is to be a pod on each node of a path from which programs may be loaded
    /// into its kernel.
    pub(crate) tracing: bool,
    /// Whether there is to be a pod on each node that sets what makes its figures steadier.
    pub(crate) tuning: bool,
    /// Whether a NetworkPolicy keeps all but the run's own pods from those that receive.
    pub(crate) policy: bool,
    /// Namespace that the pods go to; one of the run's own where there is none.
    pub(crate) namespace: Option<String>,
    /// User and machine that start the run; what it makes is marked with it.
    pub(crate) started_by: String,
    /// Set when the user wants to stop.
    pub(crate) interrupted: &'static AtomicBool,
}

/// Paths in a cluster. Between two nodes each path has pods of its own; where there are
/// many nodes, each of them has one pod, which sends in some trials and receives in
/// others. Dropping it removes all that it made.
pub(crate) struct Cluster {
    options: ClusterOptions,
    session: Arc<ClusterConnection>,
    members: Option<Members>,
    /// What the plan will ask for, so that all pods start side by side.
    planned: BTreeSet<PathKey>,
    standing: Mutex<StandingPods>,
    /// What the plan wants beside the paths, and what stands there.
    wardrobe: Wardrobe,
    dressing: StandingDressing,
    observers: Observers,
    /// The pods that have tuned their nodes, by their identities.
    tuned: Mutex<BTreeSet<String>>,
    /// Servers that have been reached through a service.
    reached: Mutex<BTreeSet<(PathKey, Seat)>>,
    /// Between the first two nodes, as they were made before the first trial.
    first: BTreeMap<PathKey, ClusterPath>,
    /// Why no packet gets through others of them.
    unreached: BTreeMap<PathKey, String>,
    /// Of each of many nodes.
    sights: Vec<Sight>,
    /// Whether the record says what the environment is: a policy that stands stays.
    is_recorded: bool,
}

impl Cluster {
    /// Reads the configuration; sends nothing to the cluster yet.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Configuration`].
    pub(crate) fn open(options: ClusterOptions) -> Result<Self, ClusterError> {
        let context = options.context.as_deref();
        let file = options.kubeconfig.as_deref();
        let session = Arc::new(ClusterConnection::open(file, context, options.interrupted)?);
        let standing = StandingPods::new(
            Arc::clone(&session),
            options.image.clone(),
            options.namespace.clone(),
            RunMark {
                run: word(),
                started_by: options.started_by.clone(),
                shares_namespace: options.namespace.is_some(),
            },
            options.policy,
        );
        Ok(Self {
            options,
            session,
            members: None,
            planned: BTreeSet::new(),
            standing: Mutex::new(standing),
            wardrobe: Wardrobe::default(),
            dressing: StandingDressing::default(),
            observers: Observers::default(),
            tuned: Mutex::default(),
            reached: Mutex::default(),
            first: BTreeMap::new(),
            unreached: BTreeMap::new(),
            sights: Vec::new(),
            is_recorded: false,
        })
    }

    /// Which levels of a factor a pair of nodes has.
    pub(crate) fn pair_supports(factor: &str) -> Levels {
        match factor {
            "network" | "path" | "backends" | "planted" | "settings" => Levels::Any,
            "placement" => Levels::These(&["same-node"]),
            "family" => Levels::These(&["6"]),
            "services" | "endpoints" | "proxy" | "position" => Levels::Any,
            "policies" | "policy-position" | "selects" | "members" => Levels::Any,
            "peers" | "direction" => Levels::Any,
            "enforcer" => Levels::These(&["own"]),
            "neighbours" => Levels::These(&["bulk", "packets", "connections", "cpu"]),
            "share" => Levels::These(&["node", "link"]),
            "pairs" => Levels::Any,
            _ => Levels::Default,
        }
    }

    /// Whether two paths between a pair of nodes may take turns: all senders are on the
    /// first node, the receivers of one placement on one, and services and policies are on
    /// the nodes for all.
    pub(crate) fn pair_rotates(one: &Treatment, other: &Treatment) -> bool {
        let (one, other) = (&one.scene, &other.scene);
        one.placement == other.placement && one.has_rules_of(other)
    }

    /// Has all that it made deleted, and does not wait for it: what it is in goes next.
    pub(crate) fn release(&mut self) -> Vec<TargetError> {
        self.end(StandingPods::release)
    }

    fn end(&mut self, remove: fn(&mut StandingPods) -> Vec<ClusterError>) -> Vec<TargetError> {
        self.first.clear();
        self.observers.end();
        let errors = remove(&mut lock(&self.standing));
        errors.into_iter().map(TargetError::from).collect()
    }

    fn is_pair(&self) -> bool {
        self.options.layout == ClusterLayout::Pair
    }

    /// Chooses the nodes, unless that is done, and notes what will be asked for.
    ///
    /// # Errors
    ///
    /// A server that the image does not hold, or the first treatment whose path
    /// cannot be had on these nodes.
    pub(crate) fn plan(&mut self, treatments: &[Treatment]) -> Result<(), TargetError> {
        image::check_servers(treatments)?;
        // Before the first pod: some need no policy of the run's own.
        for treatment in treatments {
            self.wardrobe.add(treatment)?;
        }
        if self.wardrobe.has_policies {
            lock(&self.standing).leave_unguarded(
                "it would allow what the policies forbid that are measured, and they stand in its \
                 place",
            );
        }
        if treatments.iter().any(|it| it.task.pods().is_some()) {
            lock(&self.standing).leave_unguarded(
                "a new pod would wait until it acts, and its network is what is measured",
            );
        }
        if self.members.is_none() {
            self.members = Some(self.choose_nodes(treatments)?);
        }
        for treatment in treatments {
            let key = self.key(treatment)?;
            self.planned.insert(key);
            let neighbours = treatment.scene.neighbours;
            self.planned
                .extend((!neighbours.is_none()).then(|| key.beside(neighbours)));
        }
        Ok(())
    }

    fn choose_nodes(&self, treatments: &[Treatment]) -> Result<Members, ClusterError> {
        let may_be_hidden = self.is_pair() && self.options.namespace.is_some();
        let found = match nodes::all(&self.session) {
            Err(ClusterError::Forbidden { .. }) if may_be_hidden => return self.scout(treatments),
            found => found?,
        };
        let facts: Vec<_> = found.iter().map(nodes::facts).collect();
        choose(&facts, &self.options.nodes, self.options.layout)
    }

    /// Leaves the choice of the nodes to the scheduler, where the account may not see them.
    fn scout(&self, treatments: &[Treatment]) -> Result<Members, ClusterError> {
        let keys: Vec<PathKey> = treatments.iter().flat_map(PathKey::of).collect();
        let crossing = keys.iter().find(|it| it.placement == Placement::CrossNode);
        let seats = match (crossing, keys.first()) {
            (Some(key), _) => Vec::from(<[Seat; 2]>::from(key.seats())),
            (None, first) => first.map(|key| key.seats().0).into_iter().collect(),
        };
        lock(&self.standing).guard(&seats)?;
        let nodes = lock(&self.standing).scout(&seats, &self.options.nodes)?;
        let names: Vec<&str> = nodes.iter().map(|node| &*node.name).collect();
        let remark = format!(
            "this account may not look at nodes, so whether {} are of one kind is known from their \
             kernels and CPUs only; give it the right that `plumbline manifest nodes` prints",
            names.join(" and ")
        );
        Ok(Members {
            nodes,
            remarks: vec![remark],
        })
    }

    fn members(&self) -> &[NodeFacts] {
        self.members.as_ref().map_or(&[], |members| &members.nodes)
    }

    /// What a treatment asks for, where these nodes have it.
    fn key(&self, treatment: &Treatment) -> Result<PathKey, TargetError> {
        let unsupported = |what: String, needs: String| TargetError::Unsupported { what, needs };
        let key = PathKey::of(treatment)?;
        let route = key.route;
        if matches!(route, ClusterRoute::ClusterIp { backends: 2.. }) && !self.is_pair() {
            return Err(unsupported(
                format!("the path `{}`", route.name()),
                "a run of one pair: with many nodes, one pod is behind each service".to_owned(),
            ));
        }
        if route.needs_host_network() && !self.options.host_network {
            return Err(unsupported(
                format!("the path `{}`", route.name()),
                NEEDS_HOST_NETWORK.to_owned(),
            ));
        }
        // What comes and goes is made for one pod and another.
        let task = &treatment.task;
        let is_of_pods = task.programming().is_some() || task.pods().is_some();
        if is_of_pods && route != ClusterRoute::Pod {
            return Err(unsupported(
                format!("`{}` on the path `{}`", task.name(), route.name()),
                "the path `pod`, from one pod to another: --network pod".to_owned(),
            ));
        }
        let is_foreign = task
            .load()
            .is_some_and(|it| it.server != HttpServer::Plumbline);
        if key.own.tcp_congestion_control.is_some() && is_foreign {
            return Err(unsupported(
                "tcp_congestion_control beside a server that chooses its own".to_owned(),
                "the server `plumbline`, whose sockets are the program's own".to_owned(),
            ));
        }
        if !key.own.buffers().is_empty() && (route.needs_host_network() || !self.is_pair()) {
            return Err(unsupported(
                format!("tcp_rmem or tcp_wmem on the path `{}`", route.name()),
                "two pods that each have a network of their own: --network pod, and no mesh"
                    .to_owned(),
            ));
        }
        launch::check(treatment)?;
        survive::check(treatment, route)?;
        self.check_nodes(key)?;
        Ok(key)
    }

    fn check_nodes(&self, key: PathKey) -> Result<(), TargetError> {
        let family = key.family;
        let nodes = match (key.placement, self.members()) {
            (Placement::CrossNode, [only]) => {
                return Err(TargetError::Unsupported {
                    what: "a path between nodes".to_owned(),
                    needs: format!(
                        "two ready nodes that take pods, and here is one ({}): see `kubectl get \
                         nodes`; --placement same-node needs no other",
                        only.name
                    ),
                });
            }
            (Placement::SameNode, [first, ..]) => std::slice::from_ref(first),
            (_, all) => all,
        };
        let has_none = |node: &&NodeFacts| !node.addresses.iter().any(|it| family.holds(*it));
        match nodes.iter().find(has_none) {
            None => Ok(()),
            Some(node) => Err(TargetError::Unsupported {
                what: format!("IPv{}", u8::from(family)),
                needs: format!("nodes that have such addresses; {} has none", node.name),
            }),
        }
    }

    fn seats_of(&self, key: PathKey, ends: Ends) -> (Seat, Seat) {
        if self.is_pair() {
            return key.seats();
        }
        key.members(ends.map(|end| end as u16))
    }

    /// The pods of some nodes that the plan asks for; of a pair, all.
    fn planned_seats(&self, nodes: &[usize]) -> BTreeSet<Seat> {
        let mut seats = BTreeSet::new();
        if self.options.tuning && !self.is_pair() {
            seats.extend(nodes.iter().map(|node| Seat::Tuner(*node as u16)));
        }
        for &key in &self.planned {
            if self.is_pair() {
                let (client, server) = self.seats_of(key, [0, 1]);
                seats.insert(client);
                seats.extend(server.together());
                if self.options.tracing {
                    seats.extend(key.tracers());
                }
                seats.extend(self.wardrobe.has_others.then_some(Seat::Beside));
                seats.extend(self.node_seats(key));
                continue;
            }
            for &node in nodes {
                seats.extend(<[Seat; 2]>::from(self.seats_of(key, [node; 2])));
            }
        }
        seats
    }

    /// The pods in the networks of a path's nodes that have to stand while it is measured,
    /// because they tune these, or see how many connections they track.
    fn node_seats(&self, key: PathKey) -> Vec<Seat> {
        let is_seen = self.options.host_network && self.wardrobe.is_used();
        let seats = match self.options.tuning {
            true => [Seat::Tuner(0), Seat::Tuner(1)],
            false => [Seat::HostClient, Seat::HostServer],
        };
        let wanted = match key.placement {
            _ if !self.is_pair() || !self.options.tuning && !is_seen => 0,
            Placement::SameNode => 1,
            Placement::CrossNode => 2,
        };
        seats[..wanted].to_vec()
    }

    fn node_of(&self, seat: Seat) -> &NodeFacts {
        let nodes = self.members();
        match seat {
            Seat::Member(number) | Seat::HostMember(number) | Seat::Tuner(number) => {
                &nodes[number as usize]
            }
            seat => nodes.get(1).filter(|_| seat.is_far()).unwrap_or(&nodes[0]),
        }
    }

    /// The endpoint in a pod that runs.
    fn site(&self, seat: Seat, family: Family, port: u16) -> Result<PodSite, ClusterError> {
        let standing = lock(&self.standing);
        let pod = standing.pod(seat);
        let address = pod.and_then(|pod| Some((pod, pod.address(family)?)));
        let Some((pod, address)) = address else {
            return Err(ClusterError::Pod {
                pod: seat.name().into_owned(),
                message: format!(
                    "it has no IPv{} address; does the cluster's network support this IP version?",
                    u8::from(family)
                ),
            });
        };
        let session = Arc::clone(&self.session);
        Ok(PodSite::new(session, pod, seat, address, port))
    }

    fn observer(&self, seat: Seat) -> Result<Arc<Observer>, TargetError> {
        // Any family: an observer is reached by exec.
        let site = self
            .site(seat, Family::V4, 0)
            .or_else(|_| self.site(seat, Family::V6, 0))?;
        self.observers.at(&site)
    }

    /// Examines all of many nodes.
    fn look_at_all(&self) -> Result<Vec<Sight>, TargetError> {
        self.of_each_node(|node| {
            let seats = self.planned_seats(&[node]);
            match seats.first() {
                Some(&seat) => self.observer(seat)?.look(LookOrder::default()),
                None => Err(TargetError::Failed("no path was asked for yet".to_owned())),
            }
        })
    }

    /// Asks something of each of many nodes, of some at a time.
    fn of_each_node<T: Send>(
        &self,
        ask: impl Fn(usize) -> Result<T, TargetError> + Sync,
    ) -> Result<Vec<T>, TargetError> {
        let numbers: Vec<usize> = (0..self.members().len()).collect();
        let (ask, mut all) = (&ask, Vec::new());
        for some in numbers.chunks(AT_ONCE) {
            let answers = thread::scope(|scope| {
                let asked = some.iter().map(|&node| scope.spawn(move || ask(node)));
                let threads: Vec<_> = asked.collect();
                let joined = threads.into_iter().map(|thread| {
                    let result = thread.join();
                    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                });
                joined.collect::<Result<Vec<T>, TargetError>>()
            })?;
            all.extend(answers);
        }
        Ok(all)
    }
}
