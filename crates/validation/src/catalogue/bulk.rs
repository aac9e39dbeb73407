//! Bytes and messages in bulk, and connections in numbers.

use crate::bout::{Bout, ComparedFigure, figure};
use crate::quantity::Measurand::*;
use crate::quantity::Reach::*;
use crate::size::{CONNECTIONS, MANY};
use crate::{ours, peers};

/// Theirs lose messages on the way; ours are sent at a rate that loses none.
const LOSSLESS: ComparedFigure =
    figure(Rate).called("{}: messages/s (theirs arrived, ours lossless)");

pub(crate) const BULK: &[Bout] = &[
    Bout {
        name: "stream",
        against: "iperf3",
        needs: &["iperf3"],
        theirs: peers::iperf3_stream,
        ours: |bench| ours::stream(bench, &[]),
        about: "TCP stream",
        figures: &[
            figure(BitRate).reaching(AtLeast(1.0)),
            figure(CpuPerKilobyte).reaching(AtMost(1.0)),
        ],
    },
    Bout {
        name: "stream-zerocopy",
        against: "with copies",
        needs: &[],
        theirs: |bench| ours::stream(bench, &[]),
        ours: |bench| ours::stream(bench, &["--zerocopy"]),
        about: "TCP stream, zero copy",
        figures: &[figure(BitRate), figure(CpuPerKilobyte)],
    },
    Bout {
        name: "datagram-iperf3",
        against: "iperf3",
        needs: &["iperf3"],
        theirs: peers::iperf3_datagram,
        ours: |bench| ours::lossless(bench, &["--gso"]),
        about: "UDP, 64 B, ours by GSO",
        figures: &[LOSSLESS.reaching(AtLeast(2.0))],
    },
    Bout {
        name: "datagram-sockperf",
        against: "sockperf",
        needs: &["sockperf"],
        theirs: peers::sockperf_datagram,
        ours: |bench| ours::lossless(bench, &["--gso"]),
        about: "UDP, 64 B, ours by GSO",
        figures: &[LOSSLESS.reaching(AtLeast(2.0))],
    },
    Bout {
        name: "packets-iperf3",
        against: "iperf3",
        needs: &["iperf3"],
        theirs: peers::iperf3_datagram,
        ours: |bench| ours::lossless(bench, &[]),
        about: "UDP, 64 B, a packet each",
        figures: &[LOSSLESS],
    },
    Bout {
        name: "scale",
        against: "64 conns",
        needs: &[],
        theirs: ours::few_connections,
        ours: ours::many_connections,
        about: "15,000 connections at 50,000/s",
        figures: &[
            figure(CpuPerRequest).reaching(AtMost(1.3)),
            figure(Memory).reaching(Ceiling(1024.0)),
        ],
    },
    Bout {
        name: "scale-closed",
        against: "64 conns",
        needs: &[],
        theirs: |bench| ours::connections_closed(bench, CONNECTIONS),
        ours: |bench| ours::connections_closed(bench, MANY),
        about: "15,000 connections, closed loop",
        figures: &[figure(CpuPerRequest)],
    },
];
