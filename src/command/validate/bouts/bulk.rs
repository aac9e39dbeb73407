//! Bytes and messages in bulk, and connections in numbers.

use super::super::point::{Goal, Metric};
use super::super::{ours, peers};
use super::{Bout, point};

pub(super) const BULK: &[Bout] = &[
    Bout {
        name: "stream",
        against: "iperf3",
        needs: &["iperf3"],
        theirs: peers::iperf3_stream,
        ours: ours::stream,
        points: &[
            point(
                "TCP stream: rate",
                Metric::BitRate,
                Some(Goal::AtLeast(1.0)),
            ),
            point(
                "TCP stream: CPU of both ends per kB",
                Metric::CpuPerKilobyte,
                Some(Goal::AtMost(1.0)),
            ),
        ],
    },
    Bout {
        name: "stream-zerocopy",
        against: "with copies",
        needs: &[],
        theirs: ours::stream,
        ours: ours::stream_zero_copy,
        points: &[
            point("TCP stream, zero copy: rate", Metric::BitRate, None),
            point(
                "TCP stream, zero copy: CPU of both ends per kB",
                Metric::CpuPerKilobyte,
                None,
            ),
        ],
    },
    Bout {
        name: "datagram-iperf3",
        against: "iperf3",
        needs: &["iperf3"],
        theirs: peers::iperf3_datagram,
        ours: ours::datagram,
        points: &[point(
            "UDP, 64 B, ours by GSO: messages/s (theirs arrived, ours lossless)",
            Metric::Rate,
            Some(Goal::AtLeast(2.0)),
        )],
    },
    Bout {
        name: "datagram-sockperf",
        against: "sockperf",
        needs: &["sockperf"],
        theirs: peers::sockperf_datagram,
        ours: ours::datagram,
        points: &[point(
            "UDP, 64 B, ours by GSO: messages/s (theirs arrived, ours lossless)",
            Metric::Rate,
            Some(Goal::AtLeast(2.0)),
        )],
    },
    Bout {
        name: "packets-iperf3",
        against: "iperf3",
        needs: &["iperf3"],
        theirs: peers::iperf3_datagram,
        ours: ours::datagram_single,
        points: &[point(
            "UDP, 64 B, a packet each: messages/s (theirs arrived, ours lossless)",
            Metric::Rate,
            None,
        )],
    },
    Bout {
        name: "scale",
        against: "64 conns",
        needs: &[],
        theirs: ours::few_connections,
        ours: ours::many_connections,
        points: &[
            point(
                "15,000 connections at 50,000/s: client CPU per request",
                Metric::CpuPerRequest,
                Some(Goal::AtMost(1.3)),
            ),
            point(
                "15,000 connections: client memory of each",
                Metric::Memory,
                Some(Goal::Ceiling(1024.0)),
            ),
        ],
    },
    Bout {
        name: "scale-closed",
        against: "64 conns",
        needs: &[],
        theirs: ours::few_connections_closed,
        ours: ours::many_connections_closed,
        points: &[point(
            "15,000 connections, closed loop: client CPU per request",
            Metric::CpuPerRequest,
            None,
        )],
    },
];
