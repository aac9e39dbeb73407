//! `weave-fastdp`: Weave's bridge, and the kernel datapath of Open vSwitch that
//! carries its frames to other nodes by VXLAN, as Weave does by default
//! (weaveworks/weave@039750a, `net/bridge.go`, `bridgedFastdpImpl`: the far end
//! `vethwe-datapath`, an MTU of 1376 whatever the underlay's is; @006262e,
//! `router/fastdp.go`: ports and flows; weaveworks/go-odp@35bbf4d, @114880f,
//! @08899db, `odp`: the messages). The VXLAN port is Weave's own plus one, 6784.
//!
//! A flow is two hardware addresses and the port that frames come in at, with
//! the outer header where that is VXLAN: the network identifier is made of the
//! short names of both nodes. Weave learns addresses and makes a flow when its
//! first frame comes to its program; the lab knows them all and makes the same
//! flows before. Frames to everybody go to the node's own stack too, as there.
//! Not modelled: the expiry of flows, heartbeats, encryption by IPsec.

use std::sync::Arc;

use plumbline_experiment::Enforcer;
use plumbline_sys::netlink::{Datapath, DatapathPort, Flow, FlowAction, FlowTunnel, Mac};

use super::{About, Builtin, WireFormat, bridge, weave};
use crate::need::{Need, PROBE, VETH};
use crate::{Hop, Journal, LabError, Place, Topology, UPLINK};

/// The kernel datapath of Open vSwitch, with VXLAN.
static OPEN_VSWITCH: Need = Need::other(
    "needs CONFIG_OPENVSWITCH and CONFIG_OPENVSWITCH_VXLAN; try `modprobe openvswitch`, \
     or `--kernel uml`",
    |bench| {
        bench.open(|| {
            let datapath = Datapath::create(PROBE)?;
            let added = datapath.add_vxlan("probe-vxlan", PORT);
            added.and(datapath.delete())
        })
    },
);

pub(super) static NETWORK: Builtin = About {
    name: "weave-fastdp",
    aliases: &["weave"],
    summary: "a bridge on each node, an Open vSwitch datapath with VXLAN between nodes",
    needs: &[&VETH, &bridge::DRIVER, &OPEN_VSWITCH],
    wire: WireFormat::Udp { port: PORT },
    families: weave::FAMILIES,
    enforcer: Enforcer::WeaveNpc,
    ..About::PLAIN
}
.attached_by(attach);

const PORT: u16 = 6784;
const DATAPATH: &str = "datapath";
/// The far end of the pair, a port of the datapath.
const INSIDE: &str = "vethwe-datapath";
const TUNNEL: &str = "vxlan-6784";
/// What a cloud's underlay of 1460 bytes leaves below VXLAN and ESP.
const MTU: u32 = 1376;
/// What VXLAN over IPv4 takes, in bytes.
const OVERHEAD: u32 = 50;
const EVERYBODY: Mac = [0xff; 6];

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    // With an underlay below 1426 bytes, Weave has to be configured with its MTU.
    let mtu = MTU.min(topology.mtu.saturating_sub(OVERHEAD));
    weave::attach(topology, journal, mtu, INSIDE)?;
    for (own, node) in topology.numbered() {
        let switch = Switch::make(node, mtu, journal)?;
        for remote in topology.remotes(own) {
            switch.join(topology, own, remote)?;
        }
    }
    Ok(weave::shape(INSIDE).tunnel(TUNNEL).hops(topology))
}

/// A node's datapath with its ports.
struct Switch<'a> {
    node: &'a Place,
    datapath: Arc<Datapath>,
    bridge: DatapathPort,
    vxlan: DatapathPort,
}

impl<'a> Switch<'a> {
    fn make(node: &'a Arc<Place>, mtu: u32, journal: &mut Journal) -> Result<Self, LabError> {
        let datapath = journal.datapath(node, DATAPATH)?;
        let device = node.index(DATAPATH)?;
        node.ask(|netlink| netlink.set_link_mtu(device, mtu))?;
        let bridge = node.ask(|_| datapath.add_device(INSIDE))?;
        let vxlan = node.ask(|_| datapath.add_vxlan(TUNNEL, PORT))?;
        node.bring_up(DATAPATH)?;
        Ok(Self {
            node,
            datapath,
            bridge,
            vxlan,
        })
    }

    /// Makes the flows between the stations of this node and those of another.
    fn join(&self, topology: &Topology, own: u8, remote: u8) -> Result<(), LabError> {
        let (there, back) = (tunnel(topology, own, remote), tunnel(topology, remote, own));
        let (near, far) = (stations(topology, own)?, stations(topology, remote)?);
        let mut flows = Vec::new();
        for station in &near {
            flows.extend(far.iter().map(|other| self.sends(*station, *other, there)));
            flows.push(self.sends(*station, EVERYBODY, there));
        }
        for station in &far {
            flows.extend(near.iter().map(|own| self.receives(*station, *own, back)));
            flows.push(self.receives(*station, EVERYBODY, back));
        }
        for flow in &flows {
            self.node.ask(|_| self.datapath.add_flow(flow))?;
        }
        Ok(())
    }

    fn sends(&self, source: Mac, destination: Mac, tunnel: FlowTunnel) -> Flow {
        let mut actions = to_own_stack(destination);
        actions.extend([FlowAction::Tunnel(tunnel), FlowAction::Output(self.vxlan)]);
        Flow {
            port: self.bridge,
            tunnel: None,
            source,
            destination,
            actions,
        }
    }

    fn receives(&self, source: Mac, destination: Mac, tunnel: FlowTunnel) -> Flow {
        let mut actions = to_own_stack(destination);
        actions.push(FlowAction::Output(self.bridge));
        Flow {
            port: self.vxlan,
            tunnel: Some(tunnel),
            source,
            destination,
            actions,
        }
    }
}

/// The datapath's own device is a port like others, and gets what all get.
fn to_own_stack(destination: Mac) -> Vec<FlowAction> {
    match destination {
        EVERYBODY => vec![FlowAction::Output(DatapathPort::LOCAL)],
        _ => Vec::new(),
    }
}

/// The hardware addresses behind a node: its bridge's and its pods'.
fn stations(topology: &Topology, number: u8) -> Result<Vec<Mac>, LabError> {
    let mut stations = vec![weave::name(number)];
    for pod in &topology.pods {
        if topology.home_number(pod) == number {
            stations.push(pod.place.mac(UPLINK)?);
        }
    }
    Ok(stations)
}

/// The outer header of what one node sends another. A node's short name, twelve
/// bits that the nodes agree on, is its number here.
fn tunnel(topology: &Topology, from: u8, to: u8) -> FlowTunnel {
    FlowTunnel {
        id: u32::from(from) | u32::from(to) << 12,
        source: topology.addressing.node_v4(from),
        destination: topology.addressing.node_v4(to),
    }
}
