//! A path between two pods: its sites, its counters, its proof.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use plumbline_experiment::{
    CongestionControl, Family, Launch, Neighbours, ProgrammedObject, Protocol,
};
use plumbline_harness::{
    Cpus, EventCommand, Leg, Observer, Path, PathSnapshot, PodLauncher, Programmable, Side, Site,
    StandingPolicy, TargetError,
};
use plumbline_protocol::{LookOrder, Sight};
use plumbline_record::{DeviceCounters, Floor, NodeRules};

use crate::ClusterError;
use crate::enforcement::ClusterEnforcement;
use crate::launch::{LaunchEnd, PreparedLaunch};
use crate::manifest::{NEXT_PORT, PORT, RunMark};
use crate::programmable::{ClusterProgrammable, PodConfinement, PodPair};
use crate::site::{Observers, PodSite};
use crate::standing::StandingPods;

#[derive(Clone)]
struct End {
    site: PodSite,
    observer: Arc<Observer>,
    sight: Sight,
    /// By which packets to the other end may leave, and those from there
    /// arrive. One in a pod; a node that sees the other's pod as that pod or,
    /// masqueraded, as its node may have two.
    devices: Vec<String>,
}

impl End {
    fn new(
        site: PodSite,
        towards: Vec<IpAddr>,
        observers: &Observers,
    ) -> Result<Self, ClusterError> {
        let observer = observers.at(&site)?;
        let peer = towards[0];
        let sight = observer.look(LookOrder {
            towards,
            devices: Vec::new(),
            kube_proxy: site.seat.is_host(),
        })?;
        let mut devices: Vec<String> = Vec::new();
        for way in sight.ways.iter().flatten() {
            if !devices.contains(&way.device) {
                devices.push(way.device.clone());
            }
        }
        if devices.is_empty() {
            return Err(ClusterError::Pod {
                pod: site.name,
                message: format!("it has no route to {peer}"),
            });
        }
        Ok(Self {
            site,
            observer,
            sight,
            devices,
        })
    }

    /// Each with its pod.
    fn named_devices(&self) -> Vec<(String, String)> {
        let namespace = self.site.seat.pod();
        let named = |device: &String| (namespace.clone(), device.clone());
        self.devices.iter().map(named).collect()
    }
}

/// The addresses by which one end may know the other.
fn known_as(of: &PodSite, front: Option<IpAddr>, by: &PodSite) -> Vec<IpAddr> {
    let mut known = vec![front.unwrap_or(of.address)];
    if by.seat.is_host() && !of.seat.is_host() {
        known.extend(of.node_address());
    }
    known
}

/// One end of a path, which can listen and connect.
pub(crate) struct EndProbe {
    /// Its node.
    pub(crate) node: String,
    pub(crate) address: IpAddr,
    pub(crate) observer: Arc<Observer>,
}

/// Pods and what joins them: a client, and a server or several.
#[derive(Clone)]
pub(crate) struct ClusterPath {
    client: End,
    server: End,
    /// Servers that share what comes to `front`.
    further: Vec<End>,
    /// What stands before the servers: before their first receivers, and before the next.
    front: Option<[SocketAddr; 2]>,
    /// Shows whether policies act, where some stand that are measured.
    enforcement: Option<ClusterEnforcement>,
    /// On each of its nodes a place in the node's network that has to stand, where there is one.
    nodes: Vec<(PodSite, Arc<Observer>)>,
    /// Whether it is counted how many connections these track.
    counts_connections: bool,
    /// On each of its nodes a place from which programs may be loaded into the kernel; none
    /// unless that is allowed.
    tracers: Vec<PodSite>,
    /// How the sockets of its ends have TCP find its rate.
    congestion: Option<CongestionControl>,
    /// The path of each neighbour.
    beside: Vec<ClusterPath>,
    /// Of the run.
    mark: RunMark,
    /// The address of a service that comes and goes.
    reserved: Arc<Mutex<Option<IpAddr>>>,
}

impl ClusterPath {
    /// # Panics
    ///
    /// Without a server.
    pub(crate) fn new(
        client: PodSite,
        servers: Vec<PodSite>,
        front: Option<[SocketAddr; 2]>,
        mark: RunMark,
        observers: &Observers,
    ) -> Result<Self, ClusterError> {
        let before = front.map(|[first, _]| first.ip());
        let to_server = known_as(&servers[0], before, &client);
        let mut ends = Vec::new();
        for server in servers {
            let to_client = known_as(&client, None, &server);
            ends.push(End::new(server, to_client, observers)?);
        }
        let server = ends.remove(0);
        Ok(Self {
            client: End::new(client, to_server, observers)?,
            server,
            further: ends,
            front,
            enforcement: None,
            nodes: Vec::new(),
            counts_connections: false,
            tracers: Vec::new(),
            congestion: None,
            beside: Vec::new(),
            mark,
            reserved: Arc::default(),
        })
    }

    /// The same path, whose packets can be followed from these places on its nodes, the
    /// sender's first.
    pub(crate) fn traced_from(self, tracers: Vec<PodSite>) -> Self {
        Self { tracers, ..self }
    }

    /// The same path, which is nothing without these places on its nodes; the connections that
    /// the nodes track are counted from there if that is asked for.
    pub(crate) fn held_by(
        self,
        places: Vec<PodSite>,
        counts_connections: bool,
        observers: &Observers,
    ) -> Result<Self, ClusterError> {
        let mut nodes = Vec::new();
        for site in places {
            let observer = observers.at(&site)?;
            nodes.push((site, observer));
        }
        Ok(Self {
            nodes,
            counts_connections,
            ..self
        })
    }

    /// The same path, whose ends choose this for their sockets.
    pub(crate) fn controlled(self, congestion: Option<CongestionControl>) -> Self {
        Self { congestion, ..self }
    }

    /// The same path under policies: its receiver listens on the port that they allow.
    pub(crate) fn guarded(&self, enforcement: ClusterEnforcement) -> Self {
        let mut guarded = self.clone();
        guarded.server.site.port = PORT;
        guarded.enforcement = Some(enforcement);
        guarded
    }

    /// The same path with these neighbours, for which there is one other path. Those that
    /// send nothing work at its receiver.
    pub(crate) fn among(self, neighbours: Neighbours, mut other: Self) -> Self {
        if !neighbours.send() {
            std::mem::swap(&mut other.client, &mut other.server);
        }
        Self {
            beside: vec![other; neighbours.number() as usize],
            ..self
        }
    }

    /// Connections to its receivers that show whether policies on these act.
    pub(crate) fn enforcement(&self, is_guarded: bool) -> ClusterEnforcement {
        let mut enforcement = ClusterEnforcement::from(Arc::clone(&self.client.observer));
        for End { site, observer, .. } in self.ends().skip(1) {
            let address = (site.address, PORT).into();
            enforcement.attempt(&site.name, Arc::clone(observer), address, is_guarded);
        }
        enforcement
    }

    /// The IP version of its ends.
    pub(crate) fn family(&self) -> Family {
        match self.server.site.address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    /// Its client and its first server.
    pub(crate) fn probes(&self) -> [EndProbe; 2] {
        [&self.client, &self.server].map(|end| EndProbe {
            node: end.site.pod.node.clone(),
            address: end.site.address,
            observer: Arc::clone(&end.observer),
        })
    }

    /// Whether its ends are on two nodes.
    pub(crate) fn crosses_nodes(&self) -> bool {
        self.ends().any(|end| end.site.seat.is_far())
    }

    /// All of them, the client first.
    fn ends(&self) -> impl Iterator<Item = &End> {
        [&self.client, &self.server]
            .into_iter()
            .chain(&self.further)
    }

    /// Whether all pods are the ones that run now, and can be asked.
    pub(crate) fn stands_in(&self, standing: &StandingPods) -> bool {
        let has_ends = self
            .ends()
            .all(|end| end.site.stands_in(standing) && end.observer.is_alive());
        let mut nodes = self.nodes.iter();
        has_ends
            && nodes.all(|(site, observer)| site.stands_in(standing) && observer.is_alive())
            && self.tracers.iter().all(|site| site.stands_in(standing))
    }

    /// What was seen of the machines of client and server.
    pub(crate) fn machines(&self) -> (&Sight, &Sight) {
        (&self.client.sight, &self.server.sight)
    }

    /// What was seen of each pod, with its name.
    pub(crate) fn sights(&self) -> impl Iterator<Item = (&Sight, Cow<'static, str>)> {
        self.ends().map(|end| (&end.sight, end.site.seat.name()))
    }

    /// The addresses of the sender's node that packets may come from.
    pub(crate) fn sender_addresses(&self) -> Vec<IpAddr> {
        let End { site, sight, .. } = &self.client;
        let mut addresses = site.pod.node_addresses.clone();
        if site.seat.is_host() {
            addresses.extend(sight.ways.iter().flatten().filter_map(|way| way.source));
        }
        addresses
    }

    /// Its client and its first server, and where things are made for them.
    fn pair(&self) -> PodPair<'_> {
        let site = &self.client.site;
        PodPair {
            session: &site.session,
            namespace: &site.pod.namespace,
            mark: &self.mark,
            client: site.seat,
            server: self.server.site.seat,
        }
    }

    fn has_one_kernel(&self) -> bool {
        let (here, there) = (&self.client.sight.boot, &self.server.sight.boot);
        !here.is_empty() && here == there
    }

    /// Whether the nodes are namespaces of one machine, as those of kind are: their
    /// load is counted once, and each disturbs the other.
    pub(crate) fn is_one_kernel_posing_as_two(&self) -> bool {
        self.server.site.seat.is_far() && self.has_one_kernel()
    }

    /// The CPUs for client and server. On one kernel they are kept apart where
    /// there are two; on two machines the kernel may choose.
    pub(crate) fn cpus(&self) -> Cpus {
        if !self.has_one_kernel() {
            return Cpus::default();
        }
        Cpus::apart(&self.client.sight.cpus)
    }

    pub(crate) fn floor(&self, cpus: Cpus) -> Result<Option<Floor>, TargetError> {
        self.client.observer.floor(cpus)
    }
}

impl Path for ClusterPath {
    fn server(&self) -> &dyn Site {
        &self.server.site
    }

    fn further_servers(&self) -> Vec<&dyn Site> {
        let sites = self.further.iter().map(|end| &end.site as &dyn Site);
        sites.collect()
    }

    fn client(&self) -> &dyn Site {
        &self.client.site
    }

    fn waypoints(&self) -> Vec<&dyn Site> {
        self.tracers.iter().map(|site| site as &dyn Site).collect()
    }

    fn is_on_two_machines(&self) -> bool {
        self.crosses_nodes() && !self.has_one_kernel()
    }

    fn front(&self, listening: SocketAddr) -> SocketAddr {
        match self.front {
            Some([_, next]) if listening.port() == NEXT_PORT => next,
            Some([first, _]) => first,
            None => listening,
        }
    }

    fn congestion(&self) -> Option<CongestionControl> {
        self.congestion
    }

    fn check_policies(&self) -> Result<Option<String>, TargetError> {
        let enforcement = self.enforcement.as_ref();
        enforcement.map_or(Ok(None), ClusterEnforcement::check)
    }

    fn snapshot(&self) -> Result<PathSnapshot, TargetError> {
        let mut snapshot = PathSnapshot::default();
        for end in self.ends() {
            let seen = end.observer.count(end.devices.clone())?;
            let namespace = end.site.seat.pod();
            if snapshot
                .protocols
                .iter()
                .any(|it| it.namespace == namespace)
            {
                // Both ends in the network of one node.
                continue;
            }
            let named = |counters: DeviceCounters| DeviceCounters {
                namespace: namespace.clone(),
                ..counters
            };
            snapshot.devices.extend(seen.devices.into_iter().map(named));
            let mut protocol = seen.protocol;
            protocol.namespace = namespace;
            snapshot.protocols.push(protocol);
        }
        for (site, observer) in &self.nodes {
            // Fails where it is gone.
            let tracked = observer.count(Vec::new())?.tracked;
            let tracked = tracked.filter(|_| self.counts_connections);
            snapshot.rules.extend(tracked.map(|it| NodeRules {
                namespace: site.pod.node.clone(),
                ..it
            }));
        }
        Ok(snapshot)
    }

    /// On the machine of the caller. What is left of the cluster then is measured next.
    fn start_command(
        &self,
        command: &str,
        place: Option<&str>,
    ) -> Result<EventCommand, TargetError> {
        if let Some(place) = place {
            return Err(TargetError::Unsupported {
                what: format!("`{command}` in {place}"),
                needs: "a lab: in a cluster only you run commands in pods and nodes".to_owned(),
            });
        }
        let ends = [("1", &self.client), ("2", &self.server)];
        let node = |(number, end): (&str, &End)| {
            (format!("PLUMBLINE_NODE{number}"), end.site.pod.node.clone())
        };
        let variables = ends.map(node);
        EventCommand::start(command, &variables, None)
    }

    fn programmable(
        &self,
        object: ProgrammedObject,
        listening: SocketAddr,
    ) -> Result<Box<dyn Programmable + '_>, TargetError> {
        let pair = self.pair();
        let made = match object {
            ProgrammedObject::Service => {
                ClusterProgrammable::service(pair, listening, &self.reserved)
            }
            ProgrammedObject::Policy => ClusterProgrammable::policy(pair, listening),
        };
        Ok(Box::new(made?))
    }

    fn confine(
        &self,
        allowed: &[(Protocol, SocketAddr)],
    ) -> Result<Box<dyn StandingPolicy + '_>, TargetError> {
        Ok(Box::new(PodConfinement::new(self.pair(), allowed)?))
    }

    fn neighbours(&self) -> Vec<Box<dyn Path + Send + '_>> {
        let boxed = |path| Box::new(path) as Box<dyn Path + Send + '_>;
        self.beside.iter().map(boxed).collect()
    }

    fn launch<'p>(
        &'p self,
        task: &'p Launch,
        interrupted: &'p AtomicBool,
    ) -> Result<PodLauncher<'p>, TargetError> {
        let ends = [&self.client, &self.server].map(|end| LaunchEnd {
            site: &end.site,
            observer: &end.observer,
        });
        let prepared = PreparedLaunch::new(task, ends, &self.mark, interrupted)?;
        Ok(Box::new(move || Ok(prepared.run()?)))
    }

    /// What goes from pod to pod crosses the networks of their nodes.
    fn crossed_by_others(&self) -> Vec<(String, String)> {
        let in_nodes = self.ends().filter(|end| end.site.seat.is_host());
        in_nodes.flat_map(End::named_devices).collect()
    }

    /// The devices of each end, those of several servers together. What lies between
    /// them belongs to the cluster and cannot be seen from pods.
    fn legs(&self) -> Vec<Leg> {
        let servers = std::iter::once(&self.server).chain(&self.further);
        let (client, server) = (&self.client, &self.server);
        // Both ends in the network of one node have the same devices.
        let others = servers.filter(|end| end.site.seat != client.site.seat);
        let others: Vec<_> = others.flat_map(End::named_devices).collect();
        let sides = [
            (
                client.named_devices(),
                client,
                counted(Side::Sends, client, server),
            ),
            (others, server, counted(Side::Receives, server, client)),
        ];
        let leg = |(devices, end, side): (_, &End, _)| Leg {
            devices,
            side,
            is_private: end.site.seat.is_private(),
        };
        let used = sides
            .into_iter()
            .filter(|(devices, ..)| !devices.is_empty());
        used.map(leg).collect()
    }
}

/// What the devices of an end count for certain.
fn counted(side: Side, end: &End, other: &End) -> Side {
    let is_host = [end, other].map(|it| it.site.seat.is_host());
    if counts_both_ways(is_host, &end.sight.fingerprint.kernel) {
        side
    } else {
        Side::Either
    }
}

/// Whether the devices of an end count packets both ways on a kernel, given whether
/// it and the other end are in the networks of their nodes. Between two nodes'
/// networks nothing is redirected. Into a pod, eBPF may redirect packets past the
/// device's counters before Linux 6.8. On a node, it may take packets to a pod from
/// a device before that counts them, with any kernel.
fn counts_both_ways([end_is_host, other_is_host]: [bool; 2], kernel: &str) -> bool {
    if end_is_host {
        return other_is_host;
    }
    let mut numbers = kernel.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    number().zip(number()) >= Some((6, 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_counts_both_ways_from_linux_6_8_on() {
        for (kernel, counts) in [
            ("5.15.0-91-generic", false),
            ("6.1.0-13-amd64", false),
            ("6.7.12", false),
            ("6.8.0-31-generic", true),
            ("6.12", true),
            ("6.10.3", true),
            ("7.0.0-rc1", true),
            ("", false),
            ("unknown", false),
        ] {
            for other_is_host in [false, true] {
                let seen = counts_both_ways([false, other_is_host], kernel);
                assert_eq!(seen, counts, "{kernel}");
            }
        }
    }

    #[test]
    fn a_node_counts_both_ways_to_a_node_only() {
        for kernel in ["5.15.0", "6.12.0"] {
            assert!(counts_both_ways([true, true], kernel));
            assert!(!counts_both_ways([true, false], kernel));
        }
    }
}
