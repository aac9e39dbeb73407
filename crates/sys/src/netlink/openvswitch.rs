//! The kernel datapath of Open vSwitch by generic netlink
//! (`linux/openvswitch.h`): a switch that has only the flows that were added to
//! it.

mod flow;
mod port;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL};

use super::NetlinkError;
use super::attribute::{attribute, find, nested};
use super::generic::{Generic, GenericCommand, named};
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
    families: Families,
    name: String,
    /// The index of its own device, which names it.
    device: [u8; 4],
}

/// The numbers of the three families.
#[derive(Clone, Copy, Debug)]
struct Families {
    datapath: u16,
    vport: u16,
    flow: u16,
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
        let families = Families {
            datapath: socket.family("ovs_datapath")?,
            vport: socket.family("ovs_vport")?,
            flow: socket.family("ovs_flow")?,
        };
        let mut datapath = Self {
            socket,
            families,
            name: name.into(),
            device: [0; 4],
        };
        let features = OVS_DP_F_UNALIGNED | OVS_DP_F_VPORT_PIDS;
        let attributes = [
            named(OVS_DP_ATTR_NAME, name),
            attribute(OVS_DP_ATTR_UPCALL_PID, &NOBODY),
            attribute(OVS_DP_ATTR_USER_FEATURES, &features.to_ne_bytes()),
        ];
        let command = datapath.families.datapath(OVS_DP_CMD_NEW, NLM_F_ECHO);
        let mut device = None;
        datapath.exchange("add", "datapath", command, &attributes, |answer| {
            device = answer.first_chunk().copied();
        })?;
        datapath.device = device.ok_or_else(|| datapath.garbled("datapath"))?;
        Ok(datapath)
    }

    /// Deletes it with its ports and flows. Devices that were made ports of it
    /// stay, others go.
    pub fn delete(&self) -> Result<(), NetlinkError> {
        let command = self.families.datapath(OVS_DP_CMD_DEL, 0);
        self.exchange("delete", "datapath", command, &[], |_| {})
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
        let command = GenericCommand {
            family: self.families.vport,
            version: OVS_VPORT_VERSION,
            command: OVS_VPORT_CMD_NEW,
            flags: NLM_F_ACK | NLM_F_ECHO,
        };
        let what = format!("port `{name}` to datapath");
        let mut number = None;
        self.exchange("add", &what, command, &attributes, |answer| {
            let found = answer
                .get(OVS_HEADER_BYTES..)
                .and_then(|attributes| find(attributes, OVS_VPORT_ATTR_PORT_NO));
            number = found.and_then(|bytes| Some(u32::from_ne_bytes(bytes.try_into().ok()?)));
        })?;
        let number = number.ok_or_else(|| self.garbled(&what))?;
        Ok(DatapathPort(number))
    }

    /// Adds a flow, which must not be there yet.
    pub fn add_flow(&self, flow: &Flow) -> Result<(), NetlinkError> {
        let command = GenericCommand {
            family: self.families.flow,
            version: OVS_FLOW_VERSION,
            command: OVS_FLOW_CMD_NEW,
            flags: NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
        };
        self.exchange("add", "a flow to", command, &flow.attributes(), |_| {})
    }

    /// `each` gets answers from their `struct ovs_header` on.
    fn exchange(
        &self,
        action: &'static str,
        what: &str,
        command: GenericCommand,
        attributes: &[Vec<u8>],
        each: impl FnMut(&[u8]),
    ) -> Result<(), NetlinkError> {
        let verb = Verb::new(action, format!("{what} `{}`", self.name));
        let mut body = self.device.to_vec();
        body.extend(attributes.concat());
        self.socket.exchange(verb, command, &body, each)
    }

    fn garbled(&self, what: &str) -> NetlinkError {
        NetlinkError::Garbled {
            action: "add",
            object: format!("{what} `{}`", self.name),
            detail: "it has no number".into(),
        }
    }
}

/// struct ovs_header: dp_ifindex.
const OVS_HEADER_BYTES: usize = 4;

impl Families {
    fn datapath(self, command: u8, flags: u16) -> GenericCommand {
        GenericCommand {
            family: self.datapath,
            version: OVS_DATAPATH_VERSION,
            command,
            flags: NLM_F_ACK | flags,
        }
    }
}
