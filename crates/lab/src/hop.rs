//! The devices of a path, and the proof that packets crossed them.

use std::sync::Arc;

use plumbline_harness::PathSnapshot;
use plumbline_record::DeviceCounters;

use crate::error::LabError;
use crate::place::Place;

/// The most packets that the kernel merges into one on the way (GRO): 64 UDP
/// datagrams (`UDP_GRO_CNT_MAX`), or the packets of one poll, 64 (`NAPI_POLL_WEIGHT`).
const MOST_MERGED: u64 = 64;

/// A device that every packet from client to server crosses.
#[derive(Clone, Debug)]
pub struct Hop {
    /// Where it is.
    pub place: Arc<Place>,
    /// Its name there.
    pub device: String,
    /// Whether the device sends (as opposed to receives) what goes from client
    /// to server.
    pub sends: bool,
    /// Counts its packets in place of the kernel's own counters.
    pub meter: Option<Arc<dyn Meter>>,
}

/// What a device carried since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
}

/// Counts what a device carries where not every kernel does: before 6.8 what
/// eBPF puts straight into a pod's device was in none of its counters.
pub trait Meter: std::fmt::Debug + Send + Sync {
    /// What the device carried until now.
    fn carried(&self) -> Result<Carried, LabError>;
}

impl Hop {
    /// A device that sends what goes from client to server.
    pub fn sends(place: &Arc<Place>, device: &str) -> Self {
        Self {
            place: Arc::clone(place),
            device: device.into(),
            sends: true,
            meter: None,
        }
    }

    /// A device that receives what goes from client to server.
    pub fn receives(place: &Arc<Place>, device: &str) -> Self {
        Self {
            sends: false,
            ..Self::sends(place, device)
        }
    }

    /// With a meter in place of the kernel's counters.
    pub fn metered(mut self, meter: Arc<dyn Meter>) -> Self {
        self.meter = Some(meter);
        self
    }
}

/// Packets of one direction that a device carried between two snapshots.
fn moved(before: &DeviceCounters, after: &DeviceCounters, sent: bool) -> u64 {
    if sent {
        after.tx_packets.saturating_sub(before.tx_packets)
    } else {
        after.rx_packets.saturating_sub(before.rx_packets)
    }
}

/// Says what is wrong when the devices of `hops` did not carry at least
/// `packets` packets from client to server, or when what came back to
/// the client did not come over them.
///
/// The way back has no count of its own to compare with: a bulk transfer is
/// answered by few packets, datagrams by none. So what the client's device
/// received is compared with what the other devices carried, allowing for
/// packets merged in between.
pub(crate) fn prove(
    hops: &[Hop],
    before: &PathSnapshot,
    after: &PathSnapshot,
    packets: u64,
) -> Option<String> {
    if before.devices.len() != hops.len() || after.devices.len() != hops.len() {
        return Some("the counters are not those of this path".into());
    }
    let pairs = || hops.iter().zip(before.devices.iter().zip(&after.devices));
    for (hop, (before, after)) in pairs() {
        let carried = moved(before, after, hop.sends);
        if carried < packets {
            return Some(short(hop, carried, packets, "to the server"));
        }
    }
    let mut backwards =
        pairs().map(|(hop, (before, after))| (hop, moved(before, after, !hop.sends)));
    let (_, returned) = backwards.next()?;
    let least = returned / MOST_MERGED;
    backwards
        .find(|(_, carried)| *carried < least)
        .map(|(hop, carried)| short(hop, carried, least, "back to the client"))
}

fn short(hop: &Hop, carried: u64, expected: u64, way: &str) -> String {
    format!(
        "`{}` in {} carried {carried} packets {way}, at least {expected} were expected: \
         traffic did not take the path of this network",
        hop.device, hop.place.name
    )
}
