//! The proof that packets took the path: one for all targets.

use plumbline_record::DeviceCounters;

use crate::snapshot::PathSnapshot;

/// The most packets that the kernel merges into one on the way (GRO): 64 UDP
/// datagrams (`UDP_GRO_CNT_MAX`), or the packets of one poll, 64 (`NAPI_POLL_WEIGHT`).
const MOST_MERGED: u64 = 64;

/// The fewest packets that can have carried what was sent and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Least {
    /// From client to server.
    pub to_server: u64,
    /// From server to client.
    pub to_client: u64,
}

impl Least {
    /// Packets to the server, of whose answers nothing is known.
    pub fn one_way(to_server: u64) -> Self {
        Self {
            to_server,
            to_client: 0,
        }
    }

    /// As many each way.
    pub fn both_ways(packets: u64) -> Self {
        Self {
            to_server: packets,
            to_client: packets,
        }
    }
}

/// What a device does with packets that go from client to server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It sends them, and receives what comes back.
    Sends,
    /// It receives them, and sends what goes back.
    Receives,
    /// One of the two, where eBPF may hide the other: before Linux 6.8 what it put
    /// straight into a device was in none of its counters, and what it takes from a
    /// device on the way out never is.
    Either,
}

/// A stretch of a path whose packets are counted: by one device, or by several
/// that share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Namespace and name of each device.
    pub devices: Vec<(String, String)>,
    /// What they do with packets to the server.
    pub side: Side,
    /// Whether they carry packets of this path only, so that whatever came back to
    /// the client must have crossed every such leg.
    pub is_private: bool,
}

impl Leg {
    /// Packets to the server and to the client between two snapshots; `None` when
    /// these do not have all of its devices.
    fn carried(&self, before: &PathSnapshot, after: &PathSnapshot) -> Option<Least> {
        let (mut sent, mut received) = (0, 0);
        for device in &self.devices {
            let (early, late) = (found(before, device)?, found(after, device)?);
            let moved = late.since(early);
            sent += moved.tx_packets;
            received += moved.rx_packets;
        }
        let (to_server, to_client) = match self.side {
            Side::Sends => (sent, received),
            Side::Receives => (received, sent),
            Side::Either => (sent + received, sent + received),
        };
        Some(Least {
            to_server,
            to_client,
        })
    }

    fn short(&self, carried: u64, least: u64, way: &str) -> String {
        let names = self.devices.iter();
        let names: Vec<String> = names
            .map(|(place, device)| format!("`{device}` in {place}"))
            .collect();
        format!(
            "{} carried {carried} packets {way}, at least {least} were expected: traffic did not \
             take the path of this network",
            names.join(" and ")
        )
    }
}

fn found<'a>(
    snapshot: &'a PathSnapshot,
    (namespace, device): &(String, String),
) -> Option<&'a DeviceCounters> {
    let mut devices = snapshot.devices.iter();
    devices.find(|it| it.namespace == *namespace && it.device == *device)
}

/// Says what is wrong when a leg did not carry at least as many packets as it
/// must have, or when what came back to the client did not come over all of them.
///
/// A bulk transfer is answered by few packets, datagrams by none, so for the way
/// back `least` may be 0. Where nobody else uses the devices, what the client's
/// received is compared with what the others carried, allowing for packets merged
/// in between.
pub(crate) fn prove(
    legs: &[Leg],
    before: &PathSnapshot,
    after: &PathSnapshot,
    least: Least,
) -> Option<String> {
    let carried: Option<Vec<Least>> = legs.iter().map(|leg| leg.carried(before, after)).collect();
    let carried = match carried {
        Some(carried) if !carried.is_empty() => carried,
        _ => return Some("the counters are not those of this path".to_owned()),
    };
    let returned = carried.first().filter(|_| legs[0].is_private);
    let returned = returned.map_or(0, |first| first.to_client / MOST_MERGED);
    let all = || legs.iter().zip(&carried);
    let lost = all().find(|(_, carried)| carried.to_server < least.to_server);
    if let Some((leg, carried)) = lost {
        return Some(leg.short(carried.to_server, least.to_server, "to the server"));
    }
    all().find_map(|(leg, carried)| {
        let back = if leg.is_private { returned } else { 0 };
        let back = back.max(least.to_client);
        let is_short = carried.to_client < back;
        is_short.then(|| leg.short(carried.to_client, back, "back to the client"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["client", "server"];

    fn legs(is_private: bool) -> Vec<Leg> {
        let leg = |(name, side): (&str, Side)| Leg {
            devices: vec![(name.to_owned(), "eth0".to_owned())],
            side,
            is_private,
        };
        let sides = [Side::Sends, Side::Receives];
        NAMES.into_iter().zip(sides).map(leg).collect()
    }

    /// By device: sent and received.
    fn snapshot(counts: [(u64, u64); 2]) -> PathSnapshot {
        let device = |(namespace, (tx_packets, rx_packets)): (&str, (u64, u64))| DeviceCounters {
            namespace: namespace.into(),
            device: "eth0".into(),
            tx_packets,
            rx_packets,
            ..DeviceCounters::default()
        };
        PathSnapshot {
            devices: NAMES.into_iter().zip(counts).map(device).collect(),
            ..PathSnapshot::default()
        }
    }

    fn wrong(legs: &[Leg], counts: [(u64, u64); 2]) -> Option<String> {
        let least = Least {
            to_server: 1000,
            to_client: 500,
        };
        prove(
            legs,
            &snapshot([(100, 10), (10, 50)]),
            &snapshot(counts),
            least,
        )
    }

    #[test]
    fn every_device_must_have_carried_the_load_and_its_answers() {
        let legs = legs(false);
        assert_eq!(wrong(&legs, [(1100, 510), (510, 1050)]), None);
        for (counts, says) in [
            (
                [(1099, 510), (510, 1050)],
                "`eth0` in client carried 999 packets to",
            ),
            (
                [(1100, 509), (510, 1050)],
                "client carried 499 packets back",
            ),
            (
                [(1100, 510), (510, 60)],
                "`eth0` in server carried 10 packets to",
            ),
            ([(1100, 510), (10, 1050)], "server carried 0 packets back"),
        ] {
            let said = wrong(&legs, counts).unwrap();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn what_came_back_crossed_every_device_that_nobody_else_uses() {
        let counts = [(1100, 64_010), (1_009, 1050)];
        assert_eq!(wrong(&legs(false), counts), None);
        let said = wrong(&legs(true), counts).unwrap();
        assert!(said.contains("server carried 999 packets back"), "{said}");
        assert!(said.contains("at least 1000"), "{said}");
    }

    #[test]
    fn where_one_direction_may_be_uncounted_either_will_do() {
        let either = |mut legs: Vec<Leg>| {
            legs.iter_mut().for_each(|leg| leg.side = Side::Either);
            legs
        };
        let counts = [(1100, 10), (1010, 50)];
        assert!(wrong(&legs(false), counts).is_some());
        assert_eq!(wrong(&either(legs(false)), counts), None);
        assert!(wrong(&either(legs(false)), [(1099, 10), (1010, 50)]).is_some());
    }

    #[test]
    fn counters_of_another_path_prove_nothing() {
        let least = Least::default();
        let none = PathSnapshot::default();
        assert!(prove(&legs(false), &none, &none, least).is_some());
        let some = snapshot([(1, 1), (1, 1)]);
        assert!(prove(&[], &some, &some, least).is_some());
        assert_eq!(prove(&legs(true), &some, &some, least), None);
    }
}
