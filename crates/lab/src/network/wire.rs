//! What a network puts on the wire between nodes, as a packet capture shows it.

use plumbline_experiment::Family;

/// The packets that the underlay carries when pods on different nodes talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFormat {
    /// The endpoints' own packets.
    Plain,
    /// UDP between nodes to this port, with the endpoints' packets inside.
    Udp {
        /// Destination port, both ways.
        port: u16,
    },
    /// Packets between nodes of this protocol (IANA's number: 47 GRE, 50 ESP),
    /// with the endpoints' packets inside.
    IpProtocol(u8),
    /// Packets between nodes with the endpoints' packets right behind the outer
    /// header: protocol 4, or 41 for IPv6.
    IpInIp,
}

impl WireFormat {
    /// The protocol number in the header of packets between nodes; `None` where
    /// the endpoints' packets travel as they are.
    pub fn protocol(self, family: Family) -> Option<u8> {
        match (self, family) {
            (Self::Plain, _) => None,
            (Self::Udp { .. }, _) => Some(17),
            (Self::IpProtocol(number), _) => Some(number),
            (Self::IpInIp, Family::V4) => Some(4),
            (Self::IpInIp, Family::V6) => Some(41),
        }
    }
}
