//! Which frames a datapath handles, and how.

use std::net::Ipv4Addr;

use super::port::DatapathPort;
use crate::netlink::Mac;
use crate::netlink::attribute::{attribute, nested};

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

/// The TTL of encapsulated packets.
const TTL: u8 = 64;

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
    /// The next action sends them with this outer header, TTL 64, and the flag
    /// that forbids fragments.
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

impl Flow {
    /// Key, mask and actions. What the mask leaves out may be anything.
    pub(super) fn attributes(&self) -> [Vec<u8>; 3] {
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
            // The kernel requires a TTL in the key, but need not match it.
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
    use crate::netlink::attribute::find;

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
