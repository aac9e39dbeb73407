//! `kopeio-ipsec`: Kopeio's provider `ipsec` (kopeio/networking@a3e6bd8,
//! `pkg/routing/ipsec/ipsecrouting.go` and `encryption_strategy.go`; @9f2fee0,
//! `encapsulation_strategy.go`; @1539276, `cmd/networking-agent/options.go`).
//! There is no device and no route: policies send what goes between the subnets
//! of two nodes, or between a node and the other's subnet, through ESP in tunnel
//! mode from node to node. The cipher is AES in counter mode with a fixed key, and
//! ESP authenticates nothing; indexes are made of the two subnets. Pods, attached
//! by the CNI plugin `bridge`, keep the full MTU, as in
//! [`kopeio_vxlan`](super::kopeio_vxlan). IPv4 only.
//!
//! ESP is sent as it is here (`--ipsec-encapsulation=esp`); left to its default,
//! Kopeio puts it into UDP port 4500, for eight bytes more. Not modelled either:
//! states of AH, which it adds and no policy of its own uses; the policy that
//! spares UDP port 4500.

use std::net::Ipv4Addr;
use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::netlink::{EspPolicy, EspState, NetlinkError, PolicyDirection, XfrmSocket};

use super::kopeio_vxlan::BRIDGE;
use super::{About, Builtin, WireFormat, bridge, calico};
use crate::need::{Need, VETH};
use crate::{Addressing, Hop, Journal, LabError, Place, Topology};

/// IPsec's ESP with AES in counter mode.
static ESP: Need = Need::other(
    "needs CONFIG_XFRM_USER, CONFIG_INET_ESP and CONFIG_CRYPTO_CTR; \
     try `modprobe -a xfrm_user esp4`, or `--kernel uml`",
    |bench| bench.request(try_state),
);

/// Adds what ESP needs for one direction, and takes it away again.
fn try_state() -> Result<(), NetlinkError> {
    let state = EspState {
        source: Ipv4Addr::LOCALHOST.into(),
        destination: Ipv4Addr::LOCALHOST.into(),
        spi: 1,
        cipher: CIPHER,
        key: KEY.to_vec(),
    };
    let xfrm = XfrmSocket::open()?;
    xfrm.add_state(&state)?;
    xfrm.delete_state(&state)
}

pub(super) static NETWORK: Builtin = About {
    name: "kopeio-ipsec",
    summary: "a bridge on each node, ESP in tunnel mode between nodes, full MTU in the pods",
    needs: &[&VETH, &bridge::DRIVER, &ESP],
    wire: WireFormat::IpProtocol(50),
    families: &[Family::V4],
    ..About::PLAIN
}
.attached_by(attach)
.with_path_mtu(path_mtu);

/// AES in counter mode for ESP (RFC 3686), as the kernel names it.
const CIPHER: &str = "rfc3686(ctr(aes))";
/// A key of 128 bits and a nonce of 32. It protects nothing: all nodes of all
/// labs have it, as all nodes of all of Kopeio's clusters have one.
const KEY: [u8; 20] = *b"plumbline is no vpn!";
const PRIORITY: u32 = 100;

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    for (own, node) in topology.numbered() {
        // What the policies match has to have a route, of which every real
        // node has one.
        calico::default_route(topology, node, journal)?;
        let opened = node.namespace.run(XfrmSocket::open)?;
        let xfrm = Arc::new(opened.map_err(|error| node.failed(error))?);
        for remote in topology.remotes(own) {
            secure(topology.addressing, own, remote, node, &xfrm, journal)?;
        }
    }
    let shape = bridge::attach(BRIDGE, topology, journal, topology.mtu)?;
    Ok(shape.hops(topology))
}

/// Of the underlay's MTU come off the outer header (20), ESP's own (8) and
/// its counter (8); what is left is a multiple of four that ends with the
/// length of the padding and the next header (RFC 4303, section 2).
fn path_mtu(topology: &Topology) -> u32 {
    ((topology.mtu - 20 - 8 - 8) & !3) - 2
}

/// States and policies of node `own` for node `remote`.
fn secure(
    addressing: Addressing,
    own: u8,
    remote: u8,
    node: &Arc<Place>,
    xfrm: &Arc<XfrmSocket>,
    journal: &mut Journal,
) -> Result<(), LabError> {
    for (from, to) in [(remote, own), (own, remote)] {
        let state = state(addressing, from, to);
        node.ask(|_| xfrm.add_state(&state))?;
        let xfrm = Arc::clone(xfrm);
        journal.undo_request(node, move |_| xfrm.delete_state(&state));
    }
    let pods = |number| (addressing.subnet(number), addressing.subnet_prefix());
    let host = |number| (addressing.node(number), addressing.host_prefix());
    let pairs = [
        (pods(own), pods(remote)),
        (pods(own), host(remote)),
        (host(own), pods(remote)),
    ];
    for (here, there) in pairs {
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
    Ok(())
}

fn state(addressing: Addressing, from: u8, to: u8) -> EspState {
    EspState {
        source: addressing.node(from),
        destination: addressing.node(to),
        spi: 0xc000_0000 | numeral(addressing, from) << 16 | numeral(addressing, to) << 2 | 1,
        cipher: CIPHER,
        key: KEY.to_vec(),
    }
}

/// The last 14 bits of a subnet's prefix.
fn numeral(addressing: Addressing, number: u8) -> u32 {
    let after = 32 - u32::from(addressing.subnet_prefix());
    (addressing.subnet_v4(number).to_bits() >> after) & 0x3fff
}
