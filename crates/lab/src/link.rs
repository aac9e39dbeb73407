//! The rate and the distance of the link between nodes.
//!
//! Both are queueing disciplines of the nodes' uplinks, on what a node sends, so
//! that a packet meets each once on its way from node to node, with a router in
//! between or not. What stays on a node meets none.

use std::time::Duration;

use plumbline_experiment::Link;
use plumbline_sys::netlink::{Distance, Parent, TokenBucket};

use crate::error::LabError;
use crate::need::Need;
use crate::place::Place;
use crate::topology::{Topology, UPLINK};

/// Bytes of the largest packet that the stack hands to a device, headers
/// included. A bucket that holds it lets it pass whole, as a network card takes it.
const LARGEST_PACKET: u64 = 64 * 1024 + 512;
/// How much a bucket may let through at once: what a link carries in this time,
/// and never less than two packets of the MTU.
const BURST: Duration = Duration::from_micros(200);
/// How much may wait for a link: what it carries in this time, and never less
/// than four of the largest packets.
const QUEUE: Duration = Duration::from_millis(10);
/// Ethernet header and checksum.
const FRAME_BYTES: u64 = 18;
/// Packets on their way at once: 1 s of the smallest ones at a high rate.
const MOST_ON_THE_WAY: u32 = 1_000_000;

/// The queueing discipline that limits a rate.
static TOKEN_BUCKET: Need = Need::module("CONFIG_NET_SCH_TBF for a rate", "sch_tbf", |bench| {
    let bucket = TokenBucket {
        rate: 1_000_000,
        burst: 10_000,
        limit: 10_000,
    };
    let netlink = bench.netlink();
    bench.discipline(netlink.add_token_bucket(bench.parent, Parent::Root, &bucket))
});

/// The queueing discipline that delays and drops packets.
static NETEM: Need = Need::module(
    "CONFIG_NET_SCH_NETEM for delay and loss",
    "sch_netem",
    |bench| {
        let distance = Distance {
            delay: Duration::ZERO,
            loss: 0.0,
            limit: 1000,
        };
        let netlink = bench.netlink();
        bench.discipline(netlink.add_distance(bench.parent, Parent::Root, &distance))
    },
);

/// What a link needs of the kernel.
pub(crate) fn needs(link: &Link) -> Vec<&'static Need> {
    let rate = link.rate_bits.map(|_| &TOKEN_BUCKET);
    let distance = link.has_distance().then_some(&NETEM);
    rate.into_iter().chain(distance).collect()
}

impl Topology {
    /// Gives the nodes' uplinks what the link has.
    pub(crate) fn put_between_nodes(&self) -> Result<(), LabError> {
        let mut nodes = self.nodes.iter();
        nodes.try_for_each(|node| self.put_behind(node, UPLINK))
    }

    /// Gives a device that leads out of a node the rate and the distance of the link.
    /// They go with the namespace.
    pub(crate) fn put_behind(&self, node: &Place, device: &str) -> Result<(), LabError> {
        let link = self.link;
        let device = node.index(device)?;
        let mut parent = Parent::Root;
        if link.has_distance() {
            node.ask(|it| it.add_distance(device, parent, &distance(&link)))?;
            parent = Parent::Inside;
        }
        if let Some(bits) = link.rate_bits {
            let bucket = bucket(bits, self.mtu);
            node.ask(|it| it.add_token_bucket(device, parent, &bucket))?;
        }
        Ok(())
    }
}

fn distance(link: &Link) -> Distance {
    Distance {
        delay: Duration::from_nanos(link.delay_ns),
        loss: link.loss,
        limit: MOST_ON_THE_WAY,
    }
}

/// `bits` per second; `mtu` in bytes.
pub(crate) fn bucket(bits: u64, mtu: u32) -> TokenBucket {
    let rate = (bits / 8).max(1);
    let in_time = |time: Duration| {
        let bytes = u128::from(rate) * time.as_nanos() / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    let least = 2 * (u64::from(mtu) + FRAME_BYTES);
    let burst = in_time(BURST).clamp(least, LARGEST_PACKET.max(least));
    let limit = in_time(QUEUE).max(4 * LARGEST_PACKET) + burst;
    TokenBucket {
        rate,
        burst: u32::try_from(burst).unwrap_or(u32::MAX),
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_fits_its_link() {
        let fast = bucket(10_000_000_000, 1500);
        assert_eq!(fast.rate, 1_250_000_000);
        assert_eq!(u64::from(fast.burst), LARGEST_PACKET, "one large packet");
        assert_eq!(fast.limit, 12_500_000 + fast.burst, "10 ms of it");
        let slow = bucket(1_000_000, 1500);
        assert_eq!(slow.burst, 2 * 1518, "two packets of the MTU");
        assert!(u64::from(slow.limit) >= 4 * LARGEST_PACKET);
        let most = bucket(1_000_000_000_000, 65_535);
        assert!(u64::from(most.burst) >= 2 * (65_535 + FRAME_BYTES));
    }
}
