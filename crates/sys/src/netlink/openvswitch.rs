//! The kernel datapath of Open vSwitch by generic netlink
//! (`linux/openvswitch.h`): a switch that has only the flows that were added to
//! it.

mod flow;
mod port;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL};

use super::NetlinkError;
use super::attribute::{attribute, find, named, nested};
use super::generic::{Generic, GenericFamily};
use super::raw::Verb;

pub use flow::{Flow, FlowAction, FlowTunnel};
pub use port::DatapathPort;

const OVS_DATAPATH_VERSION: u8 = 2;
const OVS_DP_CMD_NEW: u8 = 1;
const OVS_DP_CMD_DEL: u8 = 2;
const OVS_DP_ATTR_NAME: u16 = 1;
const OVS_DP_ATTR_UPCALL_PID: u16 = 2;
const OVS_DP_ATTR_USER_FEATURES: u16 = 5;
const OVS_DP_F_UNALIGNED: u32 = 1 << 0;
const OVS_DP_F_VPORT_PIDS: u32 = 1 << 1;

const OVS_VPORT_VERSION: u8 = 1;
const OVS_VPORT_CMD_NEW: u8 = 1;
const OVS_VPORT_TYPE_NETDEV: u32 = 1;
const OVS_VPORT_TYPE_VXLAN: u32 = 4;
const OVS_VPORT_ATTR_PORT_NO: u16 = 1;
const OVS_VPORT_ATTR_TYPE: u16 = 2;
const OVS_VPORT_ATTR_NAME: u16 = 3;
const OVS_VPORT_ATTR_OPTIONS: u16 = 4;
const OVS_VPORT_ATTR_UPCALL_PID: u16 = 5;
const OVS_TUNNEL_ATTR_DST_PORT: u16 = 1;

const OVS_FLOW_VERSION: u8 = 1;
const OVS_FLOW_CMD_NEW: u8 = 1;

/// Packets without a flow are reported to no one and lost.
const NOBODY: [u8; 4] = [0; 4];

/// A datapath of the network namespace in which it was made. It stays until it
/// is [deleted](Self::delete).
#[derive(Debug)]
pub struct Datapath {
    socket: Generic,
    datapath: GenericFamily,
    vport: GenericFamily,
    flow: GenericFamily,
    name: String,
    /// The index of its own device, which names it.
    device: [u8; 4],
}

impl Datapath {
    /// Makes a datapath without flows in the network namespace of the calling
    /// thread, with a device of its name.
    ///
    /// # Errors
    ///
    /// [`NetlinkError::is_gone`] on a kernel without Open vSwitch.
    pub fn create(name: &str) -> Result<Self, NetlinkError> {
        let socket = Generic::open()?;
        let mut datapath = Self {
            datapath: socket.family("ovs_datapath", OVS_DATAPATH_VERSION)?,
            vport: socket.family("ovs_vport", OVS_VPORT_VERSION)?,
            flow: socket.family("ovs_flow", OVS_FLOW_VERSION)?,
            socket,
            name: name.into(),
            device: [0; 4],
        };
        let features = OVS_DP_F_UNALIGNED | OVS_DP_F_VPORT_PIDS;
        let attributes = [
            named(OVS_DP_ATTR_NAME, name),
            attribute(OVS_DP_ATTR_UPCALL_PID, &NOBODY),
            attribute(OVS_DP_ATTR_USER_FEATURES, &features.to_ne_bytes()),
        ];
        let command = (OVS_DP_CMD_NEW, NLM_F_ACK | NLM_F_ECHO);
        let mut device = None;
        let verb = datapath.verb("add", "datapath");
        datapath.exchange(verb, datapath.datapath, command, &attributes, |answer| {
            device = answer.first_chunk().copied();
        })?;
        datapath.device = device.ok_or_else(|| datapath.numberless("datapath"))?;
        Ok(datapath)
    }

    /// Deletes it with its ports and flows. Devices that were made ports of it
    /// stay, others go.
    pub fn delete(&self) -> Result<(), NetlinkError> {
        let (verb, command) = (self.verb("delete", "datapath"), (OVS_DP_CMD_DEL, NLM_F_ACK));
        self.exchange(verb, self.datapath, command, &[], |_| {})
    }

    /// Makes a device of the namespace a port.
    pub fn add_device(&self, name: &str) -> Result<DatapathPort, NetlinkError> {
        self.add_port(name, OVS_VPORT_TYPE_NETDEV, &[])
    }

    /// Makes a port, and a device of its name, that sends and receives VXLAN by
    /// this UDP port, with the outer header of the flow.
    pub fn add_vxlan(&self, name: &str, port: u16) -> Result<DatapathPort, NetlinkError> {
        let port = attribute(OVS_TUNNEL_ATTR_DST_PORT, &port.to_ne_bytes());
        self.add_port(name, OVS_VPORT_TYPE_VXLAN, &[port])
    }

    fn add_port(
        &self,
        name: &str,
        kind: u32,
        options: &[Vec<u8>],
    ) -> Result<DatapathPort, NetlinkError> {
        let attributes = [
            named(OVS_VPORT_ATTR_NAME, name),
            attribute(OVS_VPORT_ATTR_TYPE, &kind.to_ne_bytes()),
            nested(OVS_VPORT_ATTR_OPTIONS, options),
            attribute(OVS_VPORT_ATTR_UPCALL_PID, &NOBODY),
        ];
        let command = (OVS_VPORT_CMD_NEW, NLM_F_ACK | NLM_F_ECHO);
        let what = format!("port `{name}` to datapath");
        let mut number = None;
        let verb = self.verb("add", &what);
        self.exchange(verb, self.vport, command, &attributes, |answer| {
            let found = answer
                .get(OVS_HEADER_BYTES..)
                .and_then(|attributes| find(attributes, OVS_VPORT_ATTR_PORT_NO));
            number = found.and_then(|bytes| Some(u32::from_ne_bytes(bytes.try_into().ok()?)));
        })?;
        let number = number.ok_or_else(|| self.numberless(&what))?;
        Ok(DatapathPort(number))
    }

    /// Adds a flow, which must not be there yet.
    pub fn add_flow(&self, flow: &Flow) -> Result<(), NetlinkError> {
        let command = (OVS_FLOW_CMD_NEW, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
        let verb = self.verb("add", "a flow to");
        self.exchange(verb, self.flow, command, &flow.attributes(), |_| {})
    }

    /// `each` gets answers from their `struct ovs_header` on.
    fn exchange(
        &self,
        verb: Verb,
        family: GenericFamily,
        command: (u8, u16),
        attributes: &[Vec<u8>],
        each: impl FnMut(&[u8]),
    ) -> Result<(), NetlinkError> {
        let mut body = self.device.to_vec();
        body.extend(attributes.concat());
        self.socket.exchange(verb, family, command, &body, each)
    }

    fn verb(&self, action: &'static str, what: &str) -> Verb {
        Verb::new(action, format!("{what} `{}`", self.name))
    }

    fn numberless(&self, what: &str) -> NetlinkError {
        self.verb("add", what).garbled("it has no number")
    }
}

/// struct ovs_header: dp_ifindex.
const OVS_HEADER_BYTES: usize = 4;
