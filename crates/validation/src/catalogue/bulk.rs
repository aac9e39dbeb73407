//! Bytes and messages in bulk, and connections in numbers.

use crate::bout::{Bout, figure};
use crate::quantity::{Quantity, Reach};
use crate::size::{CONNECTIONS, MANY};
use crate::{ours, peers};

pub(crate) const BULK: &[Bout] = &[
    Bout {
        name: "stream",
        against: "iperf3",
        needs: &["iperf3"],
        theirs: peers::iperf3_stream,
        ours: |bench| ours::stream(bench, &[]),
        figures: &[
            figure(
                "TCP stream: rate",
                Quantity::BitRate,
                Some(Reach::AtLeast(1.0)),
            ),
            figure(
                "TCP stream: CPU of both ends per kB",
                Quantity::CpuPerKilobyte,
                Some(Reach::AtMost(1.0)),
            ),
        ],
    },
    Bout {
        name: "stream-zerocopy",
        against: "with copies",
        needs: &[],
        theirs: |bench| ours::stream(bench, &[]),
        ours: |bench| ours::stream(bench, &["--zerocopy"]),
        figures: &[
            figure("TCP stream, zero copy: rate", Quantity::BitRate, None),
            figure(
                "TCP stream, zero copy: CPU of both ends per kB",
                Quantity::CpuPerKilobyte,
                None,
            ),
        ],
    },
    Bout {
        name: "datagram-iperf3",
        against: "iperf3",
        needs: &["iperf3"],
        theirs: peers::iperf3_datagram,
        ours: |bench| ours::lossless(bench, &["--gso"]),
        figures: &[figure(
            "UDP, 64 B, ours by GSO: messages/s (theirs arrived, ours lossless)",
            Quantity::Rate,
            Some(Reach::AtLeast(2.0)),
        )],
    },
    Bout {
        name: "datagram-sockperf",
        against: "sockperf",
        needs: &["sockperf"],
        theirs: peers::sockperf_datagram,
        ours: |bench| ours::lossless(bench, &["--gso"]),
        figures: &[figure(
            "UDP, 64 B, ours by GSO: messages/s (theirs arrived, ours lossless)",
            Quantity::Rate,
            Some(Reach::AtLeast(2.0)),
        )],
    },
    Bout {
        name: "packets-iperf3",
        against: "iperf3",
        needs: &["iperf3"],
        theirs: peers::iperf3_datagram,
        ours: |bench| ours::lossless(bench, &[]),
        figures: &[figure(
            "UDP, 64 B, a packet each: messages/s (theirs arrived, ours lossless)",
            Quantity::Rate,
            None,
        )],
    },
    Bout {
        name: "scale",
        against: "64 conns",
        needs: &[],
        theirs: ours::few_connections,
        ours: ours::many_connections,
        figures: &[
            figure(
                "15,000 connections at 50,000/s: client CPU per request",
                Quantity::CpuPerRequest,
                Some(Reach::AtMost(1.3)),
            ),
            figure(
                "15,000 connections: client memory of each",
                Quantity::Memory,
                Some(Reach::Ceiling(1024.0)),
            ),
        ],
    },
    Bout {
        name: "scale-closed",
        against: "64 conns",
        needs: &[],
        theirs: |bench| ours::connections_closed(bench, CONNECTIONS),
        ours: |bench| ours::connections_closed(bench, MANY),
        figures: &[figure(
            "15,000 connections, closed loop: client CPU per request",
            Quantity::CpuPerRequest,
            None,
        )],
    },
];
