//! What the devices of the path saw (N-1, N-3, N-13).

use plumbline_experiment::Task;
use plumbline_record::{DeviceCounters, LoadObservation, Observation, ProtocolCounters};

use serde::Serialize;

use super::rates::total;

/// Packets and faults over all kept trials of a treatment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Packets {
    /// The device that carried most packets, such as `node1 eth0`.
    pub device: Option<String>,
    /// Mean size on it in bytes; above the MTU, packets were sent in bundles
    /// that no wire would carry (N-1).
    pub mean_size_bytes: Option<f64>,
    /// Mean size of those that came from the sender; of a stream, data.
    pub mean_sent_bytes: Option<f64>,
    /// Mean size of those that went to the sender; of a stream, acknowledgements.
    pub mean_received_bytes: Option<f64>,
    /// Packets per second on it within the window, both ways: packets for each
    /// request or byte that the receiver saw, times the window's rate of these.
    pub per_second: Option<f64>,
    /// Packets that any device of the path dropped in the whole trials, or a
    /// receive queue in the windows.
    pub dropped: u64,
    /// Times within the windows that a receive queue ran out of its budget
    /// with packets left.
    pub squeezed: u64,
    /// TCP segments sent again, in the whole trials like all that follow.
    pub retransmitted: u64,
    /// Times that TCP waited for its retransmission timer, 200 ms or more.
    pub timeouts: u64,
    /// Datagrams that found a full socket buffer.
    pub buffer_errors: u64,
    /// Wrong checksums.
    pub checksum_errors: u64,
}

impl Packets {
    pub(crate) fn new(task: &Task, kept: &[&Observation]) -> Self {
        let of_devices = |count: fn(&DeviceCounters) -> u64| -> u64 {
            total(kept.iter().flat_map(|one| &one.common.devices).map(count))
        };
        let of_protocols = |count: fn(&ProtocolCounters) -> u64| -> u64 {
            total(kept.iter().flat_map(|one| &one.common.protocols).map(count))
        };
        let softnet = total(kept.iter().map(|one| one.common.softnet.dropped));
        let busiest = busiest_device(kept);
        let [from_sender, to_sender] = busiest
            .as_ref()
            .map_or([None; 2], |it| mean_by_direction(task, it));
        Self {
            mean_size_bytes: busiest.as_ref().and_then(|it| {
                let bytes = it.rx_bytes.saturating_add(it.tx_bytes);
                mean(bytes, packets_of(it))
            }),
            mean_sent_bytes: from_sender,
            mean_received_bytes: to_sender,
            per_second: busiest
                .as_ref()
                .and_then(|device| packets_per_second(kept, device)),
            device: busiest.map(|device| format!("{} {}", device.namespace, device.device)),
            dropped: of_devices(|device| device.rx_dropped.saturating_add(device.tx_dropped))
                .saturating_add(softnet),
            squeezed: total(kept.iter().map(|one| one.common.softnet.squeezed)),
            retransmitted: of_protocols(|protocol| protocol.tcp_retransmits),
            timeouts: of_protocols(|protocol| protocol.tcp_timeouts),
            buffer_errors: of_protocols(|protocol| {
                protocol
                    .udp_receive_buffer_errors
                    .saturating_add(protocol.udp_send_buffer_errors)
            }),
            checksum_errors: of_protocols(|protocol| protocol.checksum_errors),
        }
    }
}

/// The device with most packets, its counters summed over all trials.
fn busiest_device(kept: &[&Observation]) -> Option<DeviceCounters> {
    let mut sums: Vec<DeviceCounters> = Vec::new();
    for device in kept.iter().flat_map(|one| &one.common.devices) {
        match sums.iter_mut().find(|sum| is_same(sum, device)) {
            Some(sum) => {
                sum.rx_packets = sum.rx_packets.saturating_add(device.rx_packets);
                sum.tx_packets = sum.tx_packets.saturating_add(device.tx_packets);
                sum.rx_bytes = sum.rx_bytes.saturating_add(device.rx_bytes);
                sum.tx_bytes = sum.tx_bytes.saturating_add(device.tx_bytes);
            }
            None => sums.push(device.clone()),
        }
    }
    sums.into_iter().max_by_key(packets_of)
}

/// Mean size of what came from the sender, and of what went to it. No record says on
/// which side of the path a device is, but most bytes go where the larger payload does:
/// to the receiver, or where answers are larger, to the sender.
fn mean_by_direction(task: &Task, device: &DeviceCounters) -> [Option<f64>; 2] {
    let is_answer_larger = task
        .load()
        .is_some_and(|load| load.kind.is_answered() && load.response_size > load.request_size);
    let mut ways = [
        (device.tx_bytes, device.tx_packets),
        (device.rx_bytes, device.rx_packets),
    ];
    ways.sort_by_key(|&(bytes, _)| std::cmp::Reverse(bytes));
    if is_answer_larger {
        ways.reverse();
    }
    ways.map(|(bytes, packets)| mean(bytes, packets))
}

/// Devices are counted over whole trials, so each trial counts by the share of
/// what it carried that belongs to its window.
fn packets_per_second(kept: &[&Observation], device: &DeviceCounters) -> Option<f64> {
    let (mut packets, mut window_ns) = (0.0, 0.0);
    for observation in kept {
        let mut devices = observation.common.devices.iter();
        let found = devices.find(|one| is_same(one, device));
        let load = observation.load();
        let share = load.and_then(LoadObservation::window_share);
        if let (Some(found), Some(load), Some(share)) = (found, load, share) {
            packets += packets_of(found) as f64 * share;
            window_ns += load.load.window_ns as f64;
        }
    }
    (window_ns > 0.0).then(|| packets * 1e9 / window_ns)
}

fn mean(bytes: u64, packets: u64) -> Option<f64> {
    (packets > 0).then(|| bytes as f64 / packets as f64)
}

fn is_same(one: &DeviceCounters, other: &DeviceCounters) -> bool {
    one.namespace == other.namespace && one.device == other.device
}

fn packets_of(device: &DeviceCounters) -> u64 {
    device.rx_packets.saturating_add(device.tx_packets)
}
