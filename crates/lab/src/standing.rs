//! A path that stands: its endpoints, its devices, its counters.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_experiment::{Launch, Placement};
use plumbline_harness::{EventCommand, Leg, Path, PathSnapshot, PodLauncher, Site, TargetError};
use plumbline_record::{CniList, DeviceCounters, DeviceFingerprint, ProcessCpu, ProtocolCounters};
use plumbline_sys::ethtool;

use crate::agent::Launcher;
use crate::dressing::faults::{FaultSite, PathFault};
use crate::dressing::{BarePath, Dressed, Dressing, NeighbourEnd, NeighbourPair, tuning};
use crate::endpoint::{Endpoint, endpoints};
use crate::entrance::{Entrance, entrances};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::launch::LaunchSite;
use crate::network::{About, Network};
use crate::place::Place;
use crate::survive;
use crate::topology::{Topology, UPLINK};

/// A network between two endpoints. Dropping it takes it down;
/// [`take_down`](Self::take_down) does so too, and gives the errors.
pub struct StandingNetwork {
    network: &'static dyn Network,
    // Before the topology: what was done in the namespaces is undone while
    // they exist.
    journal: Journal,
    hops: Vec<Hop>,
    /// Places that the path crosses, each once, in its order.
    places: Vec<Arc<Place>>,
    client: Endpoint,
    server: Endpoint,
    /// The places of the path between both ends.
    between: Vec<Endpoint>,
    dressed: Dressed,
    beside: Vec<FurtherPair>,
    /// Whether a command of the user's was run on it: nobody knows what is left of it.
    is_disrupted: AtomicBool,
    topology: Topology,
}

impl StandingNetwork {
    /// Attaches the pods of a topology to a network. What fails half way is
    /// undone, and the topology dropped.
    pub fn attach(
        network: &'static dyn Network,
        topology: Topology,
        launcher: &Launcher,
    ) -> Result<Self, LabError> {
        let mut journal = Journal::default();
        // An error drops the journal, which undoes what is in it.
        let mut hops = network.attach(&topology, &mut journal)?;
        tuning::encryption::lead_through(&topology, &mut hops);
        tuning::lay_on(network.about(), &topology, &hops, &mut journal)?;
        for hop in &hops {
            hop.place.settle(&hop.device)?;
        }
        let (client, server) = endpoints(&topology, launcher);
        let mut places: Vec<Arc<Place>> = Vec::new();
        for hop in &hops {
            if !places.iter().any(|place| Arc::ptr_eq(place, &hop.place)) {
                places.push(Arc::clone(&hop.place));
            }
        }
        let ends = [&client.place, &server.place];
        let is_between = |it: &&Arc<Place>| !ends.iter().any(|end| Arc::ptr_eq(end, it));
        let waypoint = |place: &Arc<Place>| Endpoint {
            place: Arc::clone(place),
            address: topology.address_of(place),
            port: 0,
            launcher: launcher.clone(),
        };
        let between = places.iter().filter(is_between).map(waypoint).collect();
        Ok(Self {
            network,
            journal,
            hops,
            places,
            client,
            server,
            between,
            dressed: Dressed::default(),
            beside: Vec::new(),
            is_disrupted: AtomicBool::new(false),
            topology,
        })
    }

    /// Lays something on the path, which is bare. What fails half way is undone when the
    /// path is taken down.
    pub fn dress(&mut self, mut dressing: Dressing) -> Result<(), LabError> {
        dressing.policies = dressing.policies.by_own(self.about().enforcer);
        let bare = BarePath {
            topology: &self.topology,
            client: &self.client.place,
            server: &self.server.place,
            receiver: self.server.address,
        };
        self.dressed = dressing.put_on(bare, &mut self.journal)?;
        self.server.port = self.dressed.port;
        let beside = std::mem::take(&mut self.dressed.beside);
        self.beside = beside.into_iter().map(|it| self.further_pair(it)).collect();
        Ok(())
    }

    /// Plants a fault on the path, which goes when the path is taken down.
    ///
    /// # Errors
    ///
    /// [`LabError::Unsupported`] where the network has no place for it, or the kernel lacks
    /// what it takes.
    pub fn plant(&mut self, fault: &PathFault) -> Result<(), LabError> {
        let site = FaultSite {
            about: self.network.about(),
            topology: &self.topology,
            hops: &self.hops,
            client: &self.client.place,
            server: &self.server.place,
            addresses: [self.client.address, self.server.address],
            mtu: self.path_mtu()?,
        };
        fault.plant(&site, &mut self.journal)
    }

    fn further_pair(&self, beside: NeighbourPair) -> FurtherPair {
        let launcher = &self.client.launcher;
        let endpoint = |end: NeighbourEnd| Endpoint {
            place: end.place,
            address: end.address,
            port: 0,
            launcher: launcher.clone(),
        };
        let ends = [&self.client.place, &self.server.place];
        let is_on_a_node = |hop: &&Hop| !ends.iter().any(|end| Arc::ptr_eq(end, &hop.place));
        let shared = self.hops.iter().filter(is_on_a_node);
        let shared = shared.filter(|_| beside.is_on_its_way);
        FurtherPair {
            shared: shared
                .map(|hop| (hop.place.name.clone(), hop.device.clone()))
                .collect(),
            client: endpoint(beside.client),
            server: endpoint(beside.server),
        }
    }

    /// The network.
    pub fn about(&self) -> &About {
        self.network.about()
    }

    /// The CNI configuration list that made the network, if one did.
    pub fn list(&self) -> Result<Option<CniList>, LabError> {
        self.network.list()
    }

    /// Nodes and pods.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The devices that every packet from client to server crosses, in order.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// The largest IP packet that passes between the endpoints, in bytes.
    pub fn path_mtu(&self) -> Result<u32, LabError> {
        let devices = self.devices()?;
        let least = devices.iter().map(|device| device.mtu).min();
        let least = least.unwrap_or(self.topology.mtu);
        let stated = match self.topology.placement {
            Placement::CrossNode => {
                let topology = &self.topology;
                (self.network.path_mtu(topology)).or_else(|| tuning::encryption::path_mtu(topology))
            }
            Placement::SameNode => None,
        };
        Ok(stated.map_or(least, |stated| stated.min(least)))
    }

    /// Where the client runs.
    pub fn client_place(&self) -> &Place {
        &self.client.place
    }

    /// Where the server runs.
    pub fn server_place(&self) -> &Place {
        &self.server.place
    }

    /// Undoes the network in reverse, without stopping at an error. The nodes
    /// and pods go when the value is dropped. Where a command of the user's was run, that
    /// something is not there to be undone is no error.
    pub fn take_down(&mut self) -> Vec<LabError> {
        let errors = self.journal.undo();
        match self.is_disrupted() {
            true => Vec::new(),
            false => errors,
        }
    }

    /// Whether a command of the user's was run on it.
    pub(crate) fn is_disrupted(&self) -> bool {
        self.is_disrupted.load(Ordering::SeqCst)
    }

    /// How to enter each namespace with `nsenter`.
    pub fn entrances(&self) -> Vec<Entrance> {
        entrances(&self.topology)
    }

    /// The devices of the path as they are set up.
    pub fn devices(&self) -> Result<Vec<DeviceFingerprint>, LabError> {
        let describe = |hop: &Hop| {
            let place = &hop.place;
            let link = place.link(&hop.device)?;
            let offloads = place
                .namespace
                .run(|| ethtool::active_features(&hop.device))?
                .map_err(|source| LabError::Counters {
                    place: place.name.clone(),
                    source,
                })?;
            // The kernel made the loopback device itself, so netlink has no
            // kind for it.
            let driver = if link.kind.is_empty() {
                link.name.clone()
            } else {
                link.kind
            };
            Ok(DeviceFingerprint {
                namespace: place.name.clone(),
                qdisc: self.discipline(hop, link.qdisc),
                device: link.name,
                driver,
                route_mtu: None,
                mtu: link.mtu,
                offloads,
            })
        };
        self.hops.iter().map(describe).collect()
    }

    /// A queueing discipline by its name, that of a link with what the link is,
    /// so that runs over different links can be distinguished.
    fn discipline(&self, hop: &Hop, name: String) -> String {
        let mut nodes = self.topology.nodes.iter();
        let is_on_a_node = nodes.any(|node| Arc::ptr_eq(node, &hop.place));
        match name.as_str() {
            "tbf" | "netem" if is_on_a_node && hop.device == UPLINK => {
                format!("{name} ({})", self.topology.link)
            }
            _ => name,
        }
    }

    /// Counters of the path's devices and namespaces since they were made.
    pub fn counters(&self) -> Result<PathSnapshot, LabError> {
        let devices = self.hops.iter().map(device_counters);
        let protocols = self.places.iter().map(|place| protocol_counters(place));
        let forwarders = self.journal.cpu_time()?;
        Ok(PathSnapshot {
            devices: devices.collect::<Result<_, _>>()?,
            protocols: protocols.collect::<Result<_, _>>()?,
            rules: self.dressed.rules()?,
            forwarders: Some(ProcessCpu {
                user_ns: forwarders.user_ns,
                system_ns: forwarders.system_ns,
            }),
        })
    }
}

impl Path for StandingNetwork {
    fn server(&self) -> &dyn Site {
        &self.server
    }

    fn client(&self) -> &dyn Site {
        &self.client
    }

    fn waypoints(&self) -> Vec<&dyn Site> {
        self.between.iter().map(|it| it as &dyn Site).collect()
    }

    fn front(&self, listening: SocketAddr) -> SocketAddr {
        self.dressed.front.unwrap_or(listening)
    }

    fn snapshot(&self) -> Result<PathSnapshot, TargetError> {
        Ok(self.counters()?)
    }

    fn check_policies(&self) -> Result<Option<String>, TargetError> {
        let enforcement = self.dressed.enforcement.as_ref();
        Ok(enforcement.and_then(|it| it.check()))
    }

    fn legs(&self) -> Vec<Leg> {
        self.hops.iter().map(Hop::leg).collect()
    }

    fn launch<'p>(
        &'p self,
        launch: &'p Launch,
        interrupted: &'p AtomicBool,
    ) -> Result<PodLauncher<'p>, TargetError> {
        let site = LaunchSite {
            network: self.network,
            topology: &self.topology,
        };
        Ok(Box::new(move || Ok(site.launch(launch, interrupted)?)))
    }

    /// In the namespace of that name, or of the client's node.
    fn start_command(
        &self,
        command: &str,
        place: Option<&str>,
    ) -> Result<EventCommand, TargetError> {
        let topology = &self.topology;
        let pods = topology.pods.iter().map(|pod| &pod.place);
        let mut places = topology.nodes.iter().chain(&topology.router).chain(pods);
        let found = match place {
            None => places.next(),
            Some(name) => places.find(|it| it.name == name),
        };
        let found = found.ok_or_else(|| {
            let name = place.unwrap_or("a node");
            TargetError::Failed(format!("`{command}` has nowhere to run: no {name} here"))
        })?;
        self.is_disrupted.store(true, Ordering::SeqCst);
        let variables = survive::variables(self.entrances(), self.journal.forwarder_pids());
        EventCommand::start(command, &variables, Some(found.namespace.as_fd()))
    }

    fn neighbours(&self) -> Vec<Box<dyn Path + Send + '_>> {
        let boxed = |pair| Box::new(pair) as Box<dyn Path + Send + '_>;
        self.beside.iter().map(boxed).collect()
    }
}

/// The endpoints of a neighbour.
struct FurtherPair {
    client: Endpoint,
    server: Endpoint,
    /// Devices of the path that its packets cross too: those on the nodes.
    shared: Vec<(String, String)>,
}

/// Nothing is proved of it, and nothing counted on it, but by its own endpoints.
impl Path for FurtherPair {
    fn server(&self) -> &dyn Site {
        &self.server
    }

    fn client(&self) -> &dyn Site {
        &self.client
    }

    fn snapshot(&self) -> Result<PathSnapshot, TargetError> {
        Ok(PathSnapshot::default())
    }

    fn crossed_by_others(&self) -> Vec<(String, String)> {
        self.shared.clone()
    }

    fn legs(&self) -> Vec<Leg> {
        Vec::new()
    }
}

fn device_counters(hop: &Hop) -> Result<DeviceCounters, LabError> {
    let link = hop.place.link(&hop.device)?;
    let mut counters = plumbline_agent::device_counters(&hop.place.name, &link);
    if let Some(meter) = &hop.meter {
        meter(&mut counters)?;
    }
    Ok(counters)
}

fn protocol_counters(place: &Place) -> Result<ProtocolCounters, LabError> {
    let counters = place
        .namespace
        .run(|| plumbline_agent::protocol_counters(&place.name))?;
    counters.map_err(|source| LabError::Counters {
        place: place.name.clone(),
        source,
    })
}
