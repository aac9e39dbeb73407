//! Which comparisons there are, and what each is to reach.

use std::collections::BTreeMap;

use super::point::{Goal, Metric, Point};
use super::stage::Stage;
use super::{ours, peers};

/// What one run gave.
pub(super) type Reading = BTreeMap<Metric, f64>;

type Run = fn(&Stage<'_>) -> anyhow::Result<Reading>;

/// Two ways to do the same, run in turn.
#[derive(Debug)]
pub(super) struct Bout {
    /// What `--only` knows it by.
    pub(super) name: &'static str,
    /// The other side.
    pub(super) against: &'static str,
    /// Programs without which it cannot take place.
    pub(super) needs: &'static [&'static str],
    pub(super) theirs: Run,
    pub(super) ours: Run,
    pub(super) points: &'static [Point],
}

/// A comparison that is there for ours alone.
fn nothing(_: &Stage<'_>) -> anyhow::Result<Reading> {
    Ok(Reading::new())
}

const fn point(what: &'static str, metric: Metric, goal: Option<Goal>) -> Point {
    Point { what, metric, goal }
}

/// Bytes of request and response where the latency of one connection counts.
pub(super) const SMALL: u32 = 16;
/// Connections of the HTTP comparisons.
pub(super) const CONNECTIONS: u32 = 64;
/// Requests per second of the open loop, and its connections.
pub(super) const OPEN_RATE: u32 = 5_000;
pub(super) const OPEN_CONNECTIONS: u32 = 16;
/// Bytes of a datagram.
pub(super) const DATAGRAM: u32 = 64;
/// Many connections.
pub(super) const MANY: u32 = 15_000;

/// All comparisons, in the order of the table.
pub(super) const ALL: &[Bout] = &[
    Bout {
        name: "wrk",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: peers::wrk,
        ours: ours::http,
        points: &[
            point(
                "HTTP, 64 connections: client CPU per request",
                Metric::CpuPerRequest,
                Some(Goal::AtMost(0.62)),
            ),
            point(
                "HTTP, 64 connections: requests/s",
                Metric::Rate,
                Some(Goal::AtLeast(1.5)),
            ),
            point("HTTP, 64 connections: p50", Metric::P50, None),
            point(
                "own user time per request",
                Metric::UserPerRequest,
                Some(Goal::Ceiling(400.0)),
            ),
        ],
    },
    Bout {
        name: "wrk-uring",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: peers::wrk,
        ours: ours::http_by_uring,
        points: &[
            point(
                "HTTP, 64 connections, io_uring: client CPU per request",
                Metric::CpuPerRequest,
                Some(Goal::AtMost(0.55)),
            ),
            point(
                "own user time per request",
                Metric::UserPerRequest,
                Some(Goal::Ceiling(400.0)),
            ),
        ],
    },
    // What the kernel alone asks for: no client can come nearer to the goals
    // above than these two, which only wait, read and write.
    Bout {
        name: "bare-wrk",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: peers::wrk,
        ours: ours::bare_epoll,
        points: &[
            point(
                "a bare loop of epoll_wait, read, write: CPU per request",
                Metric::CpuPerRequest,
                None,
            ),
            point(
                "a bare loop of epoll_wait, read, write: requests/s",
                Metric::Rate,
                None,
            ),
        ],
    },
    Bout {
        name: "bare-wrk-uring",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: peers::wrk,
        ours: ours::bare_uring,
        points: &[point(
            "a bare loop of io_uring: CPU per request",
            Metric::CpuPerRequest,
            None,
        )],
    },
    Bout {
        name: "bare",
        against: "bare loop",
        needs: &["nginx"],
        theirs: ours::bare_epoll,
        ours: ours::http,
        points: &[point(
            "HTTP, 64 connections: client CPU per request",
            Metric::CpuPerRequest,
            Some(Goal::AtMost(1.05)),
        )],
    },
    Bout {
        name: "bare-uring",
        against: "bare loop",
        needs: &["nginx"],
        theirs: ours::bare_uring,
        ours: ours::http_by_uring,
        points: &[point(
            "HTTP, 64 connections, io_uring: client CPU per request",
            Metric::CpuPerRequest,
            Some(Goal::AtMost(1.05)),
        )],
    },
    Bout {
        name: "drivers",
        against: "epoll",
        needs: &["nginx"],
        theirs: ours::http,
        ours: ours::http_by_uring,
        points: &[point(
            "HTTP, 64 connections, io_uring: client CPU per request",
            Metric::CpuPerRequest,
            None,
        )],
    },
    Bout {
        name: "h2load",
        against: "h2load",
        needs: &["nginx", "h2load"],
        theirs: peers::h2load,
        ours: ours::http,
        points: &[
            point(
                "HTTP, 64 connections: client CPU per request",
                Metric::CpuPerRequest,
                None,
            ),
            point("HTTP, 64 connections: requests/s", Metric::Rate, None),
        ],
    },
    Bout {
        name: "floor",
        against: "floor",
        needs: &[],
        theirs: ours::floor,
        ours: ours::ping_tcp,
        points: &[point(
            "TCP, 16 B both ways: p50",
            Metric::P50,
            Some(Goal::AtMostOr(1.03, 1e3)),
        )],
    },
    Bout {
        name: "sockperf-tcp",
        against: "sockperf",
        needs: &["sockperf"],
        theirs: peers::sockperf_tcp,
        ours: ours::ping_tcp,
        points: &[point(
            "TCP, 16 B both ways: p50",
            Metric::P50,
            Some(Goal::Within(2e3)),
        )],
    },
    Bout {
        name: "sockperf-udp",
        against: "sockperf",
        needs: &["sockperf"],
        theirs: peers::sockperf_udp,
        ours: ours::ping_udp,
        points: &[point(
            "UDP, 16 B both ways: p50",
            Metric::P50,
            Some(Goal::Within(2e3)),
        )],
    },
    Bout {
        name: "netperf",
        against: "netperf",
        needs: &["netperf", "netserver"],
        theirs: peers::netperf,
        ours: ours::ping_tcp,
        points: &[point(
            "TCP, 16 B both ways: p50",
            Metric::P50,
            Some(Goal::Within(2e3)),
        )],
    },
    Bout {
        name: "oha",
        against: "oha",
        needs: &["nginx", "oha"],
        theirs: peers::oha,
        ours: ours::open,
        points: &[
            point("HTTP at 5,000/s: p50", Metric::P50, Some(Goal::AtMost(0.6))),
            point("HTTP at 5,000/s: p99", Metric::P99, Some(Goal::AtMost(0.6))),
            point(
                "HTTP at 5,000/s: p99.9",
                Metric::P999,
                Some(Goal::AtMost(0.6)),
            ),
        ],
    },
    Bout {
        name: "lag",
        against: "-",
        needs: &["nginx"],
        theirs: nothing,
        ours: ours::open,
        points: &[point(
            "HTTP at 5,000/s, sleeping: send lag p99",
            Metric::LagP99,
            Some(Goal::Ceiling(60e3)),
        )],
    },
    Bout {
        name: "lag-spin",
        against: "-",
        needs: &["nginx"],
        theirs: nothing,
        ours: ours::open_spinning,
        points: &[point(
            "HTTP at 5,000/s, spinning: send lag p99",
            Metric::LagP99,
            Some(Goal::Ceiling(5e3)),
        )],
    },
    Bout {
        name: "responder",
        against: "nginx",
        needs: &["nginx", "wrk"],
        theirs: peers::nginx_under_wrk,
        ours: ours::responder_under_wrk,
        points: &[point(
            "server of 100 B, wrk as client: requests/s",
            Metric::Rate,
            Some(Goal::AtLeast(1.3)),
        )],
    },
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
        name: "datagram-iperf3",
        against: "iperf3",
        needs: &["iperf3"],
        theirs: peers::iperf3_datagram,
        ours: ours::datagram,
        points: &[point(
            "UDP, 64 B: messages/s (theirs arrived, ours lossless)",
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
            "UDP, 64 B: messages/s (theirs arrived, ours lossless)",
            Metric::Rate,
            Some(Goal::AtLeast(2.0)),
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
                "15,000 connections: CPU per request",
                Metric::CpuPerRequest,
                Some(Goal::AtMost(1.3)),
            ),
            point(
                "15,000 connections: memory of each",
                Metric::Memory,
                Some(Goal::Ceiling(1024.0)),
            ),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = ALL.iter().map(|bout| bout.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
