//! A path that stands: its endpoints, its devices, its counters.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use plumbline_experiment::Placement;
use plumbline_harness::{AgentLink, Leg, Path, PathSnapshot, Site, TargetError};
use plumbline_record::{CniList, DeviceCounters, DeviceFingerprint, ProcessCpu, ProtocolCounters};
use plumbline_sys::{ethtool, namespace};

use crate::agent::Launcher;
use crate::dressing::{BarePath, Dressed, Dressing};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::network::{About, Network};
use crate::place::Place;
use crate::topology::Topology;

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
    dressed: Dressed,
    topology: Topology,
}

/// How to enter one of the namespaces of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrance {
    /// `node1`, `pod2`, `router`.
    pub name: String,
    /// The address of an endpoint or node; `None` for the router.
    pub address: Option<IpAddr>,
    /// A command line that starts a shell inside, as long as this process lives.
    pub command: String,
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
        let hops = network.attach(&topology, &mut journal)?;
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
        Ok(Self {
            network,
            journal,
            hops,
            places,
            client,
            server,
            dressed: Dressed::default(),
            topology,
        })
    }

    /// Lays something on the path, which is bare. What fails half way is undone when the
    /// path is taken down.
    pub fn dress(&mut self, dressing: Dressing) -> Result<(), LabError> {
        let bare = BarePath {
            topology: &self.topology,
            client: &self.client.place,
            server: &self.server.place,
            receiver: self.server.address,
        };
        self.dressed = dressing.put_on(bare, &mut self.journal)?;
        self.server.port = self.dressed.port;
        Ok(())
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
            Placement::CrossNode => self.network.path_mtu(&self.topology),
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
    /// and pods go when the value is dropped.
    pub fn take_down(&mut self) -> Vec<LabError> {
        self.journal.undo()
    }

    /// How to enter each namespace with `nsenter`.
    pub fn entrances(&self) -> Vec<Entrance> {
        let pid = std::process::id();
        let user = if namespace::in_user_namespace() {
            format!(" -t {pid} -U --preserve-credentials")
        } else {
            String::new()
        };
        let entrance = |place: &Place, address| {
            let fd = place.namespace.as_raw_fd();
            Entrance {
                name: place.name.clone(),
                address,
                command: format!("nsenter{user} --net=/proc/{pid}/fd/{fd}"),
            }
        };
        let topology = &self.topology;
        let addressing = topology.addressing;
        let nodes = topology
            .numbered()
            .map(|(number, node)| entrance(node, Some(addressing.node(number))));
        let pods = topology
            .pods
            .iter()
            .map(|pod| entrance(&pod.place, Some(pod.reached_by())));
        let router = topology.router.iter().map(|router| entrance(router, None));
        nodes.chain(pods).chain(router).collect()
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
                qdisc: self.discipline(link.qdisc),
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
    fn discipline(&self, name: String) -> String {
        match name.as_str() {
            "tbf" | "netem" => format!("{name} ({})", self.topology.link),
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

    fn front(&self, listening: SocketAddr) -> SocketAddr {
        self.dressed.front.unwrap_or(listening)
    }

    fn snapshot(&self) -> Result<PathSnapshot, TargetError> {
        Ok(self.counters()?)
    }

    fn check_policies(&self) -> Option<String> {
        self.dressed.enforcement.as_ref()?.check()
    }

    fn legs(&self) -> Vec<Leg> {
        self.hops.iter().map(Hop::leg).collect()
    }
}

struct Endpoint {
    place: Arc<Place>,
    address: IpAddr,
    /// Where a receiver has to listen; 0 for any port.
    port: u16,
    launcher: Launcher,
}

impl Site for Endpoint {
    fn name(&self) -> &str {
        &self.place.name
    }

    fn address(&self) -> IpAddr {
        self.address
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn start_agent(&self) -> Result<AgentLink, TargetError> {
        self.launcher.start(&self.place)
    }
}

/// The client and the server: the pods, or the nodes where there are none.
fn endpoints(topology: &Topology, launcher: &Launcher) -> (Endpoint, Endpoint) {
    let endpoint = |place: &Arc<Place>, address| Endpoint {
        place: Arc::clone(place),
        address,
        port: 0,
        launcher: launcher.clone(),
    };
    if let [client, server, ..] = &topology.pods[..] {
        return (
            endpoint(&client.place, client.reached_by()),
            endpoint(&server.place, server.reached_by()),
        );
    }
    let far = match topology.placement {
        Placement::CrossNode => 1,
        Placement::SameNode => 0,
    };
    let on = |node: usize| {
        let address = topology.addressing.node(node as u8 + 1);
        endpoint(&topology.nodes[node], address)
    };
    (on(0), on(far))
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
