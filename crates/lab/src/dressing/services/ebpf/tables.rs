//! What the eBPF programs of services look up. The layout of keys and values is that of
//! `bpf/services.h`.

use std::net::SocketAddr;

use plumbline_sys::bpf::{BpfError, BpfObject};

use crate::addressing::octets;
use crate::dressing::dressed::RuleCount;
use crate::dressing::services::service_set::ServiceSet;
use crate::ebpf;
use crate::error::LabError;

/// Entries that Cilium has room for where nobody says otherwise (`bpf-lb-map-max`).
const ROOM: u64 = 65_536;
/// The number of the one backend: Cilium gives equal addresses one number, and all
/// endpoints are the receiver.
const BACKEND: u32 = 1;
const TCP: u8 = 6;

/// Loads an object file, and writes services and their endpoints into its maps.
pub(super) fn load(
    file: &[u8],
    constants: &[(&str, u32)],
    set: &ServiceSet,
) -> Result<BpfObject, BpfError> {
    let room = services(set).max(ROOM) as u32;
    let rooms = [("services", room), ("frontends", room)];
    let mut object = BpfObject::load_sized(file, constants, &rooms)?;
    object.set("backends", BACKEND.to_ne_bytes(), address(set.receiver()))?;
    for number in set.numbers() {
        let asked = set.service(number);
        let frontend = service(0, number, set.endpoints());
        object.set("services", service_key(asked, 0), frontend)?;
        for slot in 1..=set.endpoints() {
            let endpoint = service(BACKEND, number, 0);
            object.set("services", service_key(asked, slot), endpoint)?;
        }
    }
    Ok(object)
}

/// How many entries there are, with so many of other maps.
pub(super) fn count(set: &ServiceSet, others: u64) -> RuleCount {
    RuleCount {
        elements: services(set) + 1 + others,
        ..RuleCount::default()
    }
}

/// What stops the proxy of these services.
pub(super) fn refused(set: &ServiceSet, error: BpfError) -> LabError {
    ebpf::refused(error, |needs| set.unsupported(needs))
}

/// Entries of the map of services: one for each, and one for each endpoint.
fn services(set: &ServiceSet) -> u64 {
    u64::from(set.count()) + set.all_endpoints()
}

fn service_key(asked: SocketAddr, slot: u32) -> [u8; 24] {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&octets(asked.ip()));
    key[16..18].copy_from_slice(&asked.port().to_be_bytes());
    // No service has more than 1,000.
    key[18..20].copy_from_slice(&(slot as u16).to_ne_bytes());
    key[20] = TCP;
    key
}

fn service(backend: u32, number: u32, backends: u32) -> [u8; 12] {
    let mut value = [0; 12];
    value[..4].copy_from_slice(&backend.to_ne_bytes());
    value[4..8].copy_from_slice(&number.to_ne_bytes());
    value[8..10].copy_from_slice(&(backends as u16).to_ne_bytes());
    value
}

/// An address with its port, as values have it.
pub(super) fn address(of: SocketAddr) -> [u8; 20] {
    let mut value = [0; 20];
    value[..16].copy_from_slice(&octets(of.ip()));
    value[16..18].copy_from_slice(&of.port().to_be_bytes());
    value
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::Family;

    use super::*;
    use crate::dressing::services::service_set::tests::set;

    #[test]
    fn keys_and_values_are_laid_out_as_the_programs_read_them() {
        let v4 = set(2, 3, Family::V4);
        let key = service_key(v4.service(1), 2);
        assert_eq!(key[..4], [10, 96, 0, 2]);
        assert_eq!(key[4..16], [0; 12]);
        // The port as in packets, the slot as the machine has numbers.
        assert_eq!(key[16..], [0, 80, 2, 0, 6, 0, 0, 0]);
        let v6 = address(set(1, 1, Family::V6).service(0));
        assert_eq!(v6[..6], [0xfd, 0, 0, 0x10, 0, 0x96]);
        assert_eq!(v6[15..], [1, 0, 80, 0, 0]);
        let value = service(1, 0x0102, 3);
        assert_eq!(value, [1, 0, 0, 0, 2, 1, 0, 0, 3, 0, 0, 0]);
    }

    /// As many as Cilium has for them, and one backend.
    #[test]
    fn a_service_has_an_entry_and_each_endpoint_one() {
        for services in [1, 10, 100] {
            for endpoints in [1, 3] {
                let set = set(services, endpoints, Family::V4);
                let entries = u64::from(services * (1 + endpoints) + 1);
                assert_eq!(count(&set, 0).elements, entries);
                assert_eq!(count(&set, 7).elements, entries + 7);
                assert_eq!((count(&set, 0).rules, count(&set, 0).chains), (0, 0));
            }
        }
    }
}
