//! The kernel datapath of Open vSwitch by generic netlink
//! (`linux/openvswitch.h`): a switch that has only the flows it is told of.

use std::net::Ipv4Addr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL};

use super::attribute::{attribute, find, nested};
use super::generic::{Command, Generic, named};
use super::raw::Verb;
use super::{Mac, NetlinkError};

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
const OVS_FLOW_ATTR_KEY: u16 = 1;
const OVS_FLOW_ATTR_ACTIONS: u16 = 2;
const OVS_FLOW_ATTR_MASK: u16 = 7;
const OVS_KEY_ATTR_IN_PORT: u16 = 3;
const OVS_KEY_ATTR_ETHERNET: u16 = 4;
const OVS_KEY_ATTR_TUNNEL: u16 = 16;
const OVS_TUNNEL_KEY_ATTR_ID: u16 = 0;
const OVS_TUNNEL_KEY_ATTR_IPV4_SRC: u16 = 1;
const OVS_TUNNEL_KEY_ATTR_IPV4_DST: u16 = 2;
const OVS_TUNNEL_KEY_ATTR_TOS: u16 = 3;
const OVS_TUNNEL_KEY_ATTR_TTL: u16 = 4;
const OVS_TUNNEL_KEY_ATTR_DONT_FRAGMENT: u16 = 5;
const OVS_ACTION_ATTR_OUTPUT: u16 = 1;
const OVS_ACTION_ATTR_SET: u16 = 3;

/// Nobody is told of packets without a flow: they are lost.
const NOBODY: [u8; 4] = [0; 4];
/// The TTL of encapsulated packets.
const TTL: u8 = 64;

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

/// A port of a datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatapathPort(u32);

impl DatapathPort {
    /// The device that has the datapath's own name, and leads to the namespace's
    /// IP stack.
    pub const LOCAL: Self = Self(0);
}

/// The outer header of packets in a VXLAN tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTunnel {
    /// VXLAN network identifier, 24 bits.
    pub id: u32,
    /// Where packets come from.
    pub source: Ipv4Addr,
    /// Where they go to.
    pub destination: Ipv4Addr,
}

/// What is done with the packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowAction {
    /// What follows sends them with this outer header, TTL 64, and the flag that
    /// forbids fragments.
    Tunnel(FlowTunnel),
    /// A copy is sent by this port.
    Output(DatapathPort),
}

/// Frames between two hardware addresses that come in at one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Where they come in.
    pub port: DatapathPort,
    /// The outer header that they came with; `None` when any will do.
    pub tunnel: Option<FlowTunnel>,
    /// Their source.
    pub source: Mac,
    /// Their destination.
    pub destination: Mac,
    /// What is done with them, in order.
    pub actions: Vec<FlowAction>,
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
    /// this UDP port, with whatever outer header a flow says.
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
        let command = Command {
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
        let command = Command {
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
        command: Command,
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
    fn datapath(self, command: u8, flags: u16) -> Command {
        Command {
            family: self.datapath,
            version: OVS_DATAPATH_VERSION,
            command,
            flags: NLM_F_ACK | flags,
        }
    }
}

impl Flow {
    /// Key, mask and actions. What the mask leaves out may be anything.
    fn attributes(&self) -> [Vec<u8>; 3] {
        let ethernet = [self.source, self.destination].concat();
        let mut key = vec![
            attribute(OVS_KEY_ATTR_IN_PORT, &self.port.0.to_ne_bytes()),
            attribute(OVS_KEY_ATTR_ETHERNET, &ethernet),
        ];
        let mut mask = vec![
            attribute(OVS_KEY_ATTR_IN_PORT, &[0xff; 4]),
            attribute(OVS_KEY_ATTR_ETHERNET, &[0xff; 12]),
        ];
        if let Some(tunnel) = self.tunnel {
            // The kernel wants a TTL in the key, and need not look at it.
            let mut fields = tunnel.attributes();
            fields.push(attribute(OVS_TUNNEL_KEY_ATTR_TTL, &[TTL]));
            key.push(nested(OVS_KEY_ATTR_TUNNEL, &fields));
            let exactly = [
                attribute(OVS_TUNNEL_KEY_ATTR_ID, &[0xff; 8]),
                attribute(OVS_TUNNEL_KEY_ATTR_IPV4_SRC, &[0xff; 4]),
                attribute(OVS_TUNNEL_KEY_ATTR_IPV4_DST, &[0xff; 4]),
                attribute(OVS_TUNNEL_KEY_ATTR_TTL, &[0]),
            ];
            mask.push(nested(OVS_KEY_ATTR_TUNNEL, &exactly));
        }
        let actions: Vec<_> = self.actions.iter().map(FlowAction::attribute).collect();
        [
            nested(OVS_FLOW_ATTR_KEY, &key),
            nested(OVS_FLOW_ATTR_MASK, &mask),
            nested(OVS_FLOW_ATTR_ACTIONS, &actions),
        ]
    }
}

impl FlowTunnel {
    fn attributes(self) -> Vec<Vec<u8>> {
        vec![
            attribute(OVS_TUNNEL_KEY_ATTR_ID, &u64::from(self.id).to_be_bytes()),
            attribute(OVS_TUNNEL_KEY_ATTR_IPV4_SRC, &self.source.octets()),
            attribute(OVS_TUNNEL_KEY_ATTR_IPV4_DST, &self.destination.octets()),
        ]
    }
}

impl FlowAction {
    fn attribute(&self) -> Vec<u8> {
        match self {
            Self::Output(port) => attribute(OVS_ACTION_ATTR_OUTPUT, &port.0.to_ne_bytes()),
            Self::Tunnel(tunnel) => {
                let mut fields = tunnel.attributes();
                fields.extend([
                    attribute(OVS_TUNNEL_KEY_ATTR_TOS, &[0]),
                    attribute(OVS_TUNNEL_KEY_ATTR_TTL, &[TTL]),
                    attribute(OVS_TUNNEL_KEY_ATTR_DONT_FRAGMENT, &[]),
                ]);
                let header = nested(OVS_KEY_ATTR_TUNNEL, &fields);
                nested(OVS_ACTION_ATTR_SET, &[header])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_written_as_the_kernel_reads_it() {
        let tunnel = FlowTunnel {
            id: 0x2001,
            source: Ipv4Addr::new(198, 18, 0, 1),
            destination: Ipv4Addr::new(198, 18, 0, 2),
        };
        let flow = Flow {
            port: DatapathPort(3),
            tunnel: Some(tunnel),
            source: [2, 0, 0, 0, 0, 1],
            destination: [2, 0, 0, 0, 0, 2],
            actions: vec![
                FlowAction::Output(DatapathPort::LOCAL),
                FlowAction::Tunnel(tunnel),
            ],
        };
        let bytes = flow.attributes().concat();
        let key = find(&bytes, OVS_FLOW_ATTR_KEY).expect("a key");
        assert_eq!(
            find(key, OVS_KEY_ATTR_ETHERNET),
            Some(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..])
        );
        let outer = find(key, OVS_KEY_ATTR_TUNNEL).expect("an outer header");
        let id = find(outer, OVS_TUNNEL_KEY_ATTR_ID);
        assert_eq!(id, Some(&[0, 0, 0, 0, 0, 0, 0x20, 0x01][..]));
        let mask = find(&bytes, OVS_FLOW_ATTR_MASK).expect("a mask");
        let outer = find(mask, OVS_KEY_ATTR_TUNNEL).expect("an outer header");
        assert_eq!(find(outer, OVS_TUNNEL_KEY_ATTR_TTL), Some(&[0][..]));
        let actions = find(&bytes, OVS_FLOW_ATTR_ACTIONS).expect("actions");
        assert_eq!(find(actions, OVS_ACTION_ATTR_OUTPUT), Some(&[0; 4][..]));
        let set = find(actions, OVS_ACTION_ATTR_SET).expect("an outer header");
        let outer = find(set, OVS_KEY_ATTR_TUNNEL).expect("an outer header");
        let source = find(outer, OVS_TUNNEL_KEY_ATTR_IPV4_SRC);
        assert_eq!(source, Some(&[198, 18, 0, 1][..]));
    }
}
