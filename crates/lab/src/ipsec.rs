//! IPsec between the nodes of a lab: policies send what goes from a node's addresses to
//! another's through ESP in tunnel mode (RFC 4303), from node to node.

use std::net::IpAddr;
use std::sync::Arc;

use plumbline_sys::netlink::{
    EspCipher, EspPolicy, EspState, NetlinkError, PolicyDirection, XfrmSocket,
};

use crate::addressing::Addressing;
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;
use crate::topology::Topology;

const PRIORITY: u32 = 100;

/// Addresses of a node, and the length of their prefix in bits.
type Subnet = (IpAddr, u8);

/// How nodes encrypt what they send to each other.
pub(crate) struct Ipsec {
    /// The cipher and its key.
    pub(crate) cipher: EspCipher,
    /// What is encrypted between two nodes, of these numbers: addresses of the one, and of
    /// the other.
    pub(crate) between: fn(Addressing, u8, u8) -> Vec<(Subnet, Subnet)>,
}

/// The states of a node for what another one sends to it, and what it sends back.
pub(crate) struct Secured {
    xfrm: Arc<XfrmSocket>,
    states: [EspState; 2],
}

impl Secured {
    /// How many packets passed: those that came, and those that left.
    pub(crate) fn packets(&self) -> Result<[u64; 2], NetlinkError> {
        let [came, left] = &self.states;
        Ok([self.xfrm.packets(came)?, self.xfrm.packets(left)?])
    }
}

impl Ipsec {
    /// Adds what it needs for one direction, and takes it away again.
    ///
    /// # Errors
    ///
    /// [`NetlinkError::is_unsupported`] on a kernel without ESP or the cipher.
    pub(crate) fn try_state(&self, here: IpAddr) -> Result<(), NetlinkError> {
        let state = EspState {
            source: here,
            destination: here,
            spi: 1,
            cipher: self.cipher,
        };
        let xfrm = XfrmSocket::open()?;
        xfrm.add_state(&state)?;
        xfrm.delete_state(&state)
    }

    /// Gives all nodes states and policies for all others; what the first node has is given
    /// back, for each of the others.
    pub(crate) fn lay_on(
        &self,
        topology: &Topology,
        journal: &mut Journal,
    ) -> Result<Vec<Secured>, LabError> {
        let mut of_first = Vec::new();
        for (own, node) in topology.numbered() {
            let opened = node.namespace.run(XfrmSocket::open)?;
            let xfrm = Arc::new(opened.map_err(|error| node.failed(error))?);
            for remote in topology.remotes(own) {
                let states = self.secure(topology.addressing, own, remote, node, &xfrm, journal)?;
                if own == 1 {
                    let xfrm = Arc::clone(&xfrm);
                    of_first.push(Secured { xfrm, states });
                }
            }
        }
        Ok(of_first)
    }

    /// States and policies of node `own` for node `remote`.
    fn secure(
        &self,
        addressing: Addressing,
        own: u8,
        remote: u8,
        node: &Arc<Place>,
        xfrm: &Arc<XfrmSocket>,
        journal: &mut Journal,
    ) -> Result<[EspState; 2], LabError> {
        let states =
            [(remote, own), (own, remote)].map(|(from, to)| self.state(addressing, from, to));
        for state in &states {
            node.ask(|_| xfrm.add_state(state))?;
            let (xfrm, state) = (Arc::clone(xfrm), state.clone());
            journal.undo_request(node, move |_| xfrm.delete_state(&state));
        }
        for (here, there) in (self.between)(addressing, own, remote) {
            for direction in [
                PolicyDirection::In,
                PolicyDirection::Out,
                PolicyDirection::Forward,
            ] {
                let leaves = direction == PolicyDirection::Out;
                let (source, destination) = if leaves { (here, there) } else { (there, here) };
                let (from, to) = if leaves { (own, remote) } else { (remote, own) };
                let policy = EspPolicy {
                    direction,
                    source,
                    destination,
                    tunnel_source: addressing.node(from),
                    tunnel_destination: addressing.node(to),
                    priority: PRIORITY,
                };
                node.ask(|_| xfrm.add_policy(&policy))?;
                let xfrm = Arc::clone(xfrm);
                journal.undo_request(node, move |_| xfrm.delete_policy(&policy));
            }
        }
        Ok(states)
    }

    fn state(&self, addressing: Addressing, from: u8, to: u8) -> EspState {
        EspState {
            source: addressing.node(from),
            destination: addressing.node(to),
            spi: 0xc000_0000 | u32::from(from) << 16 | u32::from(to) << 2 | 1,
            cipher: self.cipher,
        }
    }

    /// The largest packet that passes: of the underlay's MTU come off the outer header (20
    /// or 40 bytes), ESP's own (8), its counter (8) and its check value; what is left is a
    /// multiple of four that ends with the length of the padding and the next header (RFC
    /// 4303, section 2).
    pub(crate) fn path_mtu(&self, topology: &Topology) -> u32 {
        let outer = topology.addressing.header_bytes();
        let check = self.cipher.check_bits.unwrap_or(0) / 8;
        ((topology.mtu - outer - 8 - 8 - check) & !3) - 2
    }
}
