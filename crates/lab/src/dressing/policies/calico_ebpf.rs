//! `calico-ebpf`: Calico's eBPF mode (projectcalico/calico: `felix/bpf-gpl/conntrack.h`@036c024
//! and, for the program of policies, what `policy_program.rs` names). Two programs at tc for
//! each pod look for the packet's connection in a map, where both ways are one. What belongs
//! to none is described in a map of the CPU, and handed to the program of the pod's policies.
//! That asks them one after the other: the protocol, a look-up of the address in a map of all
//! sets or a comparison with one, the port. One that fits hands the packet to the program that enters its connection.
//!
//! A pod that no policy restricts has the profile of its namespace, which allows everything:
//! a program that asks nothing.
//!
//! Felix runs the programs at the node's end of a pod's veth; here they are at the pod's
//! end, which all packets of the pod pass on any network. Each pod has maps of its own, where
//! sets and connections are in maps of the node there, and the map of connections is smaller:
//! the oldest of 32,768 goes when there is no room. Not modelled: services, routes by eBPF, the
//! check of a packet's source address, fragments, and other protocols than TCP, which pass.

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use plumbline_experiment::Family;
use plumbline_sys::bpf::{BpfError, BpfObject, ObjectFile};

use super::guarded_pod::GuardedPod;
use super::policy_program::{Allowed, MapNumbers, PART, PeerEnd, PortRule, parts, unrestricted};
use crate::dressing::dressed::RuleCount;

static OBJECT: &ObjectFile<[u8]> = &ObjectFile(*include_bytes!("../../../bpf/calico_policy.o"));

/// Where the parts of a program begin in the array of parts, as in `bpf/calico_policy.c`.
const TO_POD: u32 = 0;
const FROM_POD: u32 = 32;
/// Rules of one direction. With the jump to the first part and that to what allows, the kernel
/// follows no more jumps between parts either.
pub(super) const MOST_RULES: u32 = (FROM_POD - TO_POD) * PART as u32;
/// Bits of a member's key that hold the number of its set.
const SET_BITS: u32 = 64;

/// Loads the programs of a pod, makes that of its policies, and fills their maps.
pub(super) fn load(
    pod: &GuardedPod,
    _: &[Vec<GuardedPod>],
    port: u16,
) -> Result<(BpfObject, RuleCount), BpfError> {
    let mut object = BpfObject::load(&OBJECT.0, &[])?;
    let mut count = RuleCount::default();
    let mut sets = 0;
    let family = match pod.address {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    };
    for (index, end, policies) in [
        (TO_POD, PeerEnd::Source, &pod.ingress),
        (FROM_POD, PeerEnd::Destination, &pod.egress),
    ] {
        let mut rules = Vec::new();
        for peers in policies {
            if !peers.by_labels().is_empty() {
                // Numbered from 1, through both directions.
                sets += 1;
                fill(&mut object, sets, peers.by_labels())?;
                count.elements += peers.by_labels().len() as u64;
                let to = Allowed::Set(sets);
                rules.push(PortRule { to, port });
            }
            let addresses = peers.by_address().iter().copied().map(Allowed::Address);
            rules.extend(addresses.map(|to| PortRule { to, port }));
        }
        install(&mut object, &rules, end, family, index)?;
        count.rules += rules.len() as u64;
    }
    object.set_program("programs", 0, "allowed")?;
    Ok((object, count))
}

/// Puts peers into a set. A key is the number of the set, the address, a port and a protocol,
/// which are not compared.
fn fill(object: &mut BpfObject, set: u64, peers: &[IpAddr]) -> Result<(), BpfError> {
    let value = 1_u32.to_ne_bytes();
    peers.iter().try_for_each(|peer| match peer {
        IpAddr::V4(address) => {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&set.to_be_bytes());
            key[8..12].copy_from_slice(&address.octets());
            object.set_prefix("sets_v4", SET_BITS + 32, key, value)
        }
        IpAddr::V6(address) => {
            let mut key = [0; 28];
            key[..8].copy_from_slice(&set.to_be_bytes());
            key[8..24].copy_from_slice(&address.octets());
            object.set_prefix("sets_v6", SET_BITS + 128, key, value)
        }
    })
}

/// Makes the program of one direction, and puts its parts into the array from this position on.
fn install(
    object: &mut BpfObject,
    rules: &[PortRule],
    end: PeerEnd,
    family: Family,
    index: u32,
) -> Result<(), BpfError> {
    let number = |map| object.map_fd(map).map(|it| it.as_raw_fd());
    let maps = MapNumbers {
        state: number("state")?,
        sets: number(match family {
            Family::V4 => "sets_v4",
            Family::V6 => "sets_v6",
        })?,
        programs: number("programs")?,
        policies: number("policies")?,
    };
    let made = match rules {
        [] => vec![unrestricted(maps)],
        rules => parts(rules, end, family, maps, index),
    };
    let mut placed = (index..).zip(made);
    placed.try_for_each(|(index, part)| object.add_program("policies", index, &part))
}
