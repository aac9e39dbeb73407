//! `kopeio-ipsec`: Kopeio's provider `ipsec` (kopeio/networking@a3e6bd8,
//! `pkg/routing/ipsec/ipsecrouting.go` and `encryption_strategy.go`; @9f2fee0,
//! `encapsulation_strategy.go`; @1539276, `cmd/networking-agent/options.go`).
//! There is no device and no route: policies send what goes between the subnets
//! of two nodes, or between a node and the other's subnet, through ESP in tunnel
//! mode from node to node. The cipher is AES in counter mode with a fixed key, and
//! ESP authenticates nothing; indexes are made of the two nodes' numbers, Kopeio's of
//! their subnets. Pods, attached by the CNI plugin `bridge`, keep the full MTU, as in
//! [`kopeio_vxlan`](super::kopeio_vxlan). IPv4 only.
//!
//! ESP is sent as it is here (`--ipsec-encapsulation=esp`); left to its default,
//! Kopeio puts it into UDP port 4500, for eight bytes more. Not modelled either:
//! states of AH, which it adds and no policy of its own uses; the policy that
//! spares UDP port 4500.

use std::net::{IpAddr, Ipv4Addr};

use plumbline_experiment::Family;
use plumbline_sys::netlink::{EspCipher, NetlinkError};

use super::kopeio_vxlan::BRIDGE;
use super::{About, Builtin, WireFormat, bridge, calico};
use crate::ipsec::Ipsec;
use crate::need::{Need, VETH};
use crate::{Hop, Journal, LabError, Topology};

/// IPsec's ESP with AES in counter mode.
static ESP: Need = Need::other(
    "needs CONFIG_XFRM_USER, CONFIG_INET_ESP and CONFIG_CRYPTO_CTR; \
     try `modprobe -a xfrm_user esp4`, or `--kernel uml`",
    |bench| bench.request(try_state),
);

fn try_state() -> Result<(), NetlinkError> {
    IPSEC.try_state(IpAddr::V4(Ipv4Addr::LOCALHOST))
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
.with_path_mtu(|topology| IPSEC.path_mtu(topology));

/// AES in counter mode (RFC 3686). The key, of 128 bits and a nonce of 32, protects nothing:
/// all nodes of all labs have it, as all nodes of all of Kopeio's clusters have one.
static IPSEC: Ipsec = Ipsec {
    cipher: EspCipher {
        name: "rfc3686(ctr(aes))",
        key: b"plumbline is no vpn!",
        check_bits: None,
    },
    between: |addressing, own, remote| {
        let pods = |number| (addressing.subnet(number), addressing.subnet_prefix());
        let host = |number| (addressing.node(number), addressing.host_prefix());
        vec![
            (pods(own), pods(remote)),
            (pods(own), host(remote)),
            (host(own), pods(remote)),
        ]
    },
};

fn attach(topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
    for node in &topology.nodes {
        // What the policies match has to have a route, of which every real
        // node has one.
        calico::default_route(topology, node, journal)?;
    }
    IPSEC.lay_on(topology, journal)?;
    let shape = bridge::attach(BRIDGE, topology, journal, topology.mtu)?;
    Ok(shape.hops(topology))
}
