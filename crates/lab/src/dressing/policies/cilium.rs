//! `cilium`: two programs at tc for each pod, and the maps that they ask. They look for the
//! connection in a map, first as one that the packet answers. An answer passes. All else is
//! asked of policies, every packet of it: the peer's address has an identity, by a map of
//! prefixes, and the identity with protocol and port an entry in the map of the pod's
//! policies, or those have one with the port for anybody. That map is one of prefixes too
//! since version 1.16; it was a hash before. However many policies there are, a packet costs
//! two look-ups there, and one to count it for the entry that decided.
//!
//! What was read in cilium/cilium, and is done here: `bpf/lib/conntrack.h`@0019dc5 (both
//! look-ups, life times, and for a new connection a second entry, for errors that belong to
//! it), `bpf/lib/policy.h`@010e7c2, `bpf/lib/eps.h`@045dd2c; the order in which they are asked,
//! `bpf/bpf_lxc.c`@d7be955.
//!
//! An identity is that of all pods with the same labels, so each policy has one here for all
//! of its peers that it names by labels. Each address (`ipBlock`) has one of its own, and an
//! entry. Every node knows those of all pods. A pod that no policy restricts has an entry that
//! allows everything, and pays for the same look-ups.
//!
//! Cilium runs the programs at the node's end of a pod's veth, or has the one that delivers a
//! packet call them. Here they are at the pod's end, which all packets of the pod pass on any
//! network, those of Cilium too. Each pod has maps of its own, where identities and connections
//! are in maps of the node there, and the map of connections is smaller: the oldest of 32,768
//! goes when there is no room. Not modelled: fragments, and other protocols than TCP, which
//! pass.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plumbline_sys::bpf::{BpfError, BpfObject, ObjectFile};

use super::guarded_pod::{GuardedPod, Peers};
use crate::addressing::octets;
use crate::dressing::dressed::RuleCount;

static OBJECT: &ObjectFile<[u8]> = &ObjectFile(*include_bytes!("../../../bpf/cilium_policy.o"));

/// What the map of a pod's policies holds, beside the entry for the way that is open.
pub(super) const MOST_ENTRIES: u32 = 16_384 - 1;
/// Smaller numbers are for what is no pod.
const FIRST_IDENTITY: u32 = 10_001;
/// Addresses have identities that a node gives by itself (`pkg/identity/numericidentity.go`).
const FIRST_OF_ADDRESSES: u32 = (1 << 24) + 1;
const TCP: u8 = 6;
/// Bits of an identity's key before the address, which are always compared.
const STATIC_BITS: u32 = 32;
/// Bits of a policy's key before its protocol and port, and of those.
const PEER_BITS: u32 = 40;
const PORT_BITS: u8 = 24;

/// Loads the programs of a pod, and fills their maps. `all` are the pods of each node.
pub(super) fn load(
    pod: &GuardedPod,
    all: &[Vec<GuardedPod>],
    port: u16,
) -> Result<(BpfObject, RuleCount), BpfError> {
    let mut object = BpfObject::load(&OBJECT.0, &[])?;
    let identities = identities(all);
    for (address, identity) in &identities {
        let mut key = [0; 20];
        key[4..].copy_from_slice(&octets(*address));
        let bits = match address {
            IpAddr::V4(_) => {
                key[3] = 1;
                32
            }
            IpAddr::V6(_) => {
                key[3] = 2;
                128
            }
        };
        let identity = identity.to_ne_bytes();
        object.set_prefix("identities", STATIC_BITS + bits, key, identity)?;
    }
    let entries = entries(pod, port);
    for entry in &entries {
        let value = [0, entry.prefix_bits, 0, 0];
        let bits = PEER_BITS + u32::from(entry.prefix_bits);
        object.set_prefix("policies", bits, entry.key, value)?;
    }
    let count = RuleCount {
        elements: (identities.len() + entries.len()) as u64,
        ..RuleCount::default()
    };
    Ok((object, count))
}

/// The identities of all peers of all policies.
fn identities(all: &[Vec<GuardedPod>]) -> BTreeMap<IpAddr, u32> {
    let lists = all
        .iter()
        .flatten()
        .flat_map(|it| [&it.ingress, &it.egress]);
    let allowed = lists.flat_map(|policies| allowed(policies));
    let peers = allowed.flat_map(|(identity, peers)| peers.iter().map(move |it| (*it, identity)));
    peers.collect()
}

/// Whom policies allow, in their order, each identity with its peers.
fn allowed(policies: &[Peers]) -> Vec<(u32, &[IpAddr])> {
    let mut of_addresses = FIRST_OF_ADDRESSES..;
    let mut allowed = Vec::new();
    for (identity, peers) in (FIRST_IDENTITY..).zip(policies) {
        let addresses = peers.by_address().chunks(1).zip(&mut of_addresses);
        allowed.extend(addresses.map(|(address, identity)| (identity, address)));
        if !peers.by_labels().is_empty() {
            allowed.push((identity, peers.by_labels()));
        }
    }
    allowed
}

/// An entry that allows.
#[derive(Debug, PartialEq, Eq)]
struct PolicyEntry {
    /// As `struct policy_key` in `bpf/cilium_policy.c`, without its length.
    key: [u8; 8],
    /// How many bits of protocol and port count.
    prefix_bits: u8,
}

/// What the map of a pod's policies holds.
fn entries(pod: &GuardedPod, port: u16) -> Vec<PolicyEntry> {
    let mut entries = Vec::new();
    for (is_egress, policies) in [(false, &pod.ingress), (true, &pod.egress)] {
        if policies.is_empty() {
            entries.push(PolicyEntry {
                key: policy_key(0, is_egress, 0, 0),
                prefix_bits: 0,
            });
        }
        let allowed = allowed(policies).into_iter();
        entries.extend(allowed.map(|(identity, _)| PolicyEntry {
            key: policy_key(identity, is_egress, TCP, port),
            prefix_bits: PORT_BITS,
        }));
    }
    entries
}

fn policy_key(identity: u32, is_egress: bool, protocol: u8, port: u16) -> [u8; 8] {
    let [a, b, c, d] = identity.to_ne_bytes();
    let [high, low] = port.to_be_bytes();
    [a, b, c, d, u8::from(is_egress), protocol, high, low]
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use plumbline_experiment::{Family, Policies, PolicyPeers};

    use super::*;
    use crate::addressing::Addressing;
    use crate::dressing::policies::guarded_pod::peers;

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(198, 19, 64, last).into()
    }

    fn pod(policies: u8) -> GuardedPod {
        GuardedPod {
            address: address(255),
            device: "eth0".to_owned(),
            ingress: (0..policies)
                .map(|it| Peers::of_labels(vec![address(2 * it), address(2 * it + 1)]))
                .collect(),
            egress: Vec::new(),
        }
    }

    #[test]
    fn each_policy_has_an_entry() {
        let entries = entries(&pod(3), 8080);
        let keys: Vec<_> = entries.iter().map(|it| it.key).collect();
        let [first, second, third, sends] = keys[..] else {
            panic!("one for each, and one for what the pod sends: {entries:?}");
        };
        assert_eq!(second[4..], [0, 6, 0x1f, 0x90]);
        assert_eq!(second[..4], (FIRST_IDENTITY + 1).to_ne_bytes());
        assert!(first != second && second != third);
        assert_eq!(sends, [0, 0, 0, 0, 1, 0, 0, 0]);
        let bits: Vec<_> = entries.iter().map(|it| it.prefix_bits).collect();
        assert_eq!(bits, [24, 24, 24, 0]);
    }

    /// But not the other end of the path, which is named by labels.
    #[test]
    fn each_address_has_an_identity_and_an_entry() {
        let addressing = Addressing::new(Family::V4);
        let policies = Policies {
            count: 3,
            members: 2,
            peers: PolicyPeers::Addresses,
            ..Policies::default()
        };
        let far = addressing.pod(1, 0);
        let pod = GuardedPod {
            ingress: peers(&policies, far, addressing),
            ..pod(0)
        };
        let entries = entries(&pod, 8080);
        let keys: Vec<_> = entries.iter().map(|it| it.key).collect();
        let local = |number: u32| policy_key((1 << 24) + number, false, TCP, 8080);
        let own = policy_key(FIRST_IDENTITY + 2, false, TCP, 8080);
        let sends = policy_key(0, true, 0, 0);
        assert_eq!(
            keys,
            [1, 2, 3, 4, 5]
                .map(local)
                .into_iter()
                .chain([own, sends])
                .collect::<Vec<_>>()
        );
        let identities = identities(&[vec![pod]]);
        assert_eq!(identities.len(), 6);
        assert_eq!(identities[&addressing.stranger(0)], (1 << 24) + 1);
        assert_eq!(identities[&addressing.stranger(4)], (1 << 24) + 5);
        assert_eq!(identities[&far], FIRST_IDENTITY + 2);
    }

    #[test]
    fn a_pod_without_policies_may_do_anything() {
        let anything = |is_egress| PolicyEntry {
            key: [0, 0, 0, 0, is_egress, 0, 0, 0],
            prefix_bits: 0,
        };
        assert_eq!(entries(&pod(0), 8080), [anything(0), anything(1)]);
    }

    /// Also one whose policies are on another node.
    #[test]
    fn every_peer_has_the_identity_of_its_policy() {
        let identities = identities(&[vec![pod(0)], vec![pod(1), pod(3)]]);
        assert_eq!(identities.len(), 2 * 3);
        assert_eq!(identities[&address(4)], identities[&address(5)]);
        assert_eq!(identities[&address(5)], FIRST_IDENTITY + 2);
        assert_eq!(identities[&address(0)], FIRST_IDENTITY);
    }
}
