//! A path between two pods: its sites, its counters, its proof.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plumbline_agent::{LookOrder, Sight};
use plumbline_harness::{AgentLink, Observer, Path, PathSnapshot, Site, TargetError};
use plumbline_record::{DeviceCounters, Floor, IdleSample};

use crate::ClusterError;
use crate::exec;
use crate::route::Seat;
use crate::session::Session;
use crate::standing::{Running, Standing};

/// A pod in which agents are started.
#[derive(Clone)]
pub(crate) struct PodSite {
    session: Arc<Session>,
    seat: Seat,
    uid: String,
    namespace: String,
    name: String,
    address: IpAddr,
    port: u16,
}

impl PodSite {
    pub(crate) fn new(
        session: Arc<Session>,
        pod: &Running,
        seat: Seat,
        address: IpAddr,
        port: u16,
    ) -> Self {
        Self {
            session,
            seat,
            uid: pod.uid.clone(),
            namespace: pod.namespace.clone(),
            name: format!("{}/{}", pod.namespace, seat.name()),
            address,
            port,
        }
    }

    fn stands_in(&self, standing: &Standing) -> bool {
        standing
            .pod(self.seat)
            .is_some_and(|pod| pod.uid == self.uid)
    }
}

impl Site for PodSite {
    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> IpAddr {
        self.address
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn start_agent(&self) -> Result<AgentLink, TargetError> {
        let link = exec::start(&self.session, &self.namespace, self.seat.name(), &["agent"])?;
        Ok(link)
    }
}

/// One agent in each pod that stays and answers what the pod and its node
/// look like. By seat, with the pod that it is in.
#[derive(Default)]
pub(crate) struct Observers(BTreeMap<Seat, (String, Arc<Observer>)>);

impl Observers {
    fn at(&mut self, site: &PodSite) -> Result<Arc<Observer>, TargetError> {
        if let Some((_, observer)) = self.0.get(&site.seat).filter(|it| it.1.is_alive()) {
            return Ok(Arc::clone(observer));
        }
        let observer = Arc::new(Observer::start(site)?);
        self.0
            .insert(site.seat, (site.uid.clone(), Arc::clone(&observer)));
        Ok(observer)
    }

    /// Lets go of those whose pods are no more.
    pub(crate) fn keep(&mut self, standing: &Standing) {
        self.0
            .retain(|seat, (uid, _)| standing.pod(*seat).is_some_and(|pod| pod.uid == *uid));
    }

    /// Ends all. Their pods are deleted next, so that a bad end says nothing.
    pub(crate) fn end(&mut self) {
        self.0.clear();
    }
}

/// One end of a path.
struct End {
    site: PodSite,
    observer: Arc<Observer>,
    sight: Sight,
    /// By which packets to the other end leave, and those from there arrive.
    device: String,
}

impl End {
    fn new(
        site: PodSite,
        towards: IpAddr,
        observers: &mut Observers,
    ) -> Result<Self, ClusterError> {
        let observer = observers.at(&site)?;
        let sight = observer.look(LookOrder {
            towards: vec![towards],
            devices: Vec::new(),
        })?;
        let Some(Some(way)) = sight.ways.first() else {
            return Err(ClusterError::Pod {
                pod: site.name.clone(),
                message: format!("it has no route to {towards}"),
            });
        };
        let device = way.device.clone();
        Ok(Self {
            site,
            observer,
            sight,
            device,
        })
    }
}

/// Two pods and what joins them.
pub(crate) struct ClusterPath {
    client: End,
    server: End,
    /// What stands before the server.
    front: Option<SocketAddr>,
}

impl ClusterPath {
    pub(crate) fn new(
        client: PodSite,
        server: PodSite,
        front: Option<SocketAddr>,
        observers: &mut Observers,
    ) -> Result<Self, ClusterError> {
        let (near, far) = (client.address, server.address);
        let dialled = front.map_or(far, |front| front.ip());
        Ok(Self {
            client: End::new(client, dialled, observers)?,
            server: End::new(server, near, observers)?,
            front,
        })
    }

    /// Whether both pods are the ones that run now, and can be asked.
    pub(crate) fn stands_in(&self, standing: &Standing) -> bool {
        [&self.client, &self.server]
            .iter()
            .all(|end| end.site.stands_in(standing) && end.observer.is_alive())
    }

    pub(crate) fn sights(&self) -> [(&Sight, &str); 2] {
        [
            (&self.client.sight, self.client.site.seat.name()),
            (&self.server.sight, self.server.site.seat.name()),
        ]
    }

    fn has_one_kernel(&self) -> bool {
        let (here, there) = (&self.client.sight.boot, &self.server.sight.boot);
        !here.is_empty() && here == there
    }

    /// Nodes that are namespaces of one machine, as those of kind are: their
    /// load is counted once, and each disturbs the other.
    pub(crate) fn is_one_kernel_posing_as_two(&self) -> bool {
        self.server.site.seat.is_far() && self.has_one_kernel()
    }

    /// The CPUs for client and server. On one kernel they are kept apart where
    /// there are two; on two machines the kernel may choose.
    pub(crate) fn cpus(&self) -> (Vec<usize>, Vec<usize>) {
        let all = &self.client.sight.cpus;
        match (all.first(), all.last()) {
            (Some(&first), Some(&last)) if first != last && self.has_one_kernel() => {
                (vec![first], vec![last])
            }
            _ => (Vec::new(), Vec::new()),
        }
    }

    pub(crate) fn floor(
        &self,
        client: Vec<usize>,
        server: Vec<usize>,
    ) -> Result<Option<Floor>, TargetError> {
        self.client.observer.floor(client, server)
    }

    /// The machines without load: summed where there are two.
    pub(crate) fn rest(&self, length: Duration) -> Result<IdleSample, TargetError> {
        if !self.is_on_two_machines() {
            return self.client.observer.rest(length);
        }
        std::thread::scope(|scope| {
            let there = scope.spawn(|| self.server.observer.rest(length));
            let here = self.client.observer.rest(length)?;
            let there = there
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(IdleSample {
                busy_ns: here.busy_ns + there.busy_ns,
                capacity_ns: here.capacity_ns + there.capacity_ns,
            })
        })
    }
}

impl Path for ClusterPath {
    fn server(&self) -> &dyn Site {
        &self.server.site
    }

    fn client(&self) -> &dyn Site {
        &self.client.site
    }

    fn is_on_two_machines(&self) -> bool {
        self.server.site.seat.is_far() && !self.has_one_kernel()
    }

    fn front(&self, listening: SocketAddr) -> SocketAddr {
        self.front.unwrap_or(listening)
    }

    fn snapshot(&mut self) -> Result<PathSnapshot, TargetError> {
        let mut snapshot = PathSnapshot::default();
        for end in [&self.client, &self.server] {
            let seen = end.observer.count(vec![end.device.clone()])?;
            let namespace = end.site.seat.name();
            if snapshot
                .protocols
                .iter()
                .any(|it| it.namespace == namespace)
            {
                // Both ends in the network of one node.
                continue;
            }
            let named = |counters: DeviceCounters| DeviceCounters {
                namespace: namespace.to_owned(),
                ..counters
            };
            snapshot.devices.extend(seen.devices.into_iter().map(named));
            let mut protocol = seen.protocol;
            protocol.namespace = namespace.to_owned();
            snapshot.protocols.push(protocol);
        }
        Ok(snapshot)
    }

    /// The device of each end has to have carried the packets: what lies
    /// between them is the cluster's own, and not to be looked into from pods.
    fn check_path(
        &self,
        before: &PathSnapshot,
        after: &PathSnapshot,
        packets: u64,
    ) -> Option<String> {
        after.devices.iter().find_map(|late| {
            let early = before
                .devices
                .iter()
                .find(|it| it.namespace == late.namespace && it.device == late.device)?;
            let seen = late.since(early);
            let carried = seen.rx_packets + seen.tx_packets;
            (carried < packets).then(|| {
                format!(
                    "{} of {} carried {carried} packets where at least {packets} had to pass: the \
                     traffic took another way",
                    late.device, late.namespace
                )
            })
        })
    }
}
