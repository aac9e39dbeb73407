//! Requests and their answers: HTTP, the floor, open loops, servers.

use super::super::point::{Goal, Metric, Point};
use super::super::stage::Stage;
use super::super::{ours, peers};
use super::{Bout, Reading, point};

/// A comparison that is there for ours alone.
fn nothing(_: &Stage<'_>) -> anyhow::Result<Reading> {
    Ok(Reading::new())
}

/// A client that is slower than the server hides in the rate what the server
/// can do; its own cost does not hide.
const SERVER_CPU: Point = point(
    "the same: server CPU per request",
    Metric::ServerCpuPerRequest,
    None,
);

pub(super) const REQUESTS: &[Bout] = &[
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
        name: "oha-spin",
        against: "oha",
        needs: &["nginx", "oha"],
        theirs: peers::oha,
        ours: ours::open_spinning,
        points: &[
            point(
                "HTTP at 5,000/s, spinning: p50",
                Metric::P50,
                Some(Goal::AtMost(0.6)),
            ),
            point(
                "HTTP at 5,000/s, spinning: p99",
                Metric::P99,
                Some(Goal::AtMost(0.6)),
            ),
            point(
                "HTTP at 5,000/s, spinning: p99.9",
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
        points: &[
            point(
                "server of 100 B, wrk as client: requests/s",
                Metric::Rate,
                Some(Goal::AtLeast(1.3)),
            ),
            SERVER_CPU,
        ],
    },
    Bout {
        name: "responder-h2load",
        against: "nginx",
        needs: &["nginx", "h2load"],
        theirs: peers::nginx_under_h2load,
        ours: ours::responder_under_h2load,
        points: &[
            point(
                "server of 100 B, h2load as client: requests/s",
                Metric::Rate,
                None,
            ),
            SERVER_CPU,
        ],
    },
    Bout {
        name: "responder-load",
        against: "nginx",
        needs: &["nginx"],
        theirs: ours::nginx_under_load,
        ours: ours::responder_under_load,
        points: &[
            point(
                "server of 100 B, `load` as client: requests/s",
                Metric::Rate,
                None,
            ),
            SERVER_CPU,
        ],
    },
    Bout {
        name: "timestamps",
        against: "without",
        needs: &[],
        theirs: ours::unstamped,
        ours: ours::stamped,
        points: &[
            point("rr at 5,000/s, 1 % stamped: p50", Metric::P50, None),
            point("rr at 5,000/s, 1 % stamped: p99", Metric::P99, None),
            point(
                "rr at 5,000/s, 1 % stamped: client CPU per request",
                Metric::CpuPerRequest,
                None,
            ),
            point(
                "rr at 5,000/s, 1 % stamped: server CPU per request",
                Metric::ServerCpuPerRequest,
                None,
            ),
        ],
    },
];
