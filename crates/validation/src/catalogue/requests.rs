//! Requests and their answers: HTTP, the floor, open loops, servers.

use crate::bench::Bench;
use crate::bout::{Bout, Figure, figure};
use crate::error::ValidationError;
use crate::process::Transport;
use crate::quantity::{Quantity, Reach, Readings};
use crate::{ours, peers};

/// The other side of a comparison that has none.
fn nothing(_: &Bench<'_>) -> Result<Readings, ValidationError> {
    Ok(Readings::new())
}

/// A client that is slower than the server hides in the rate what the server
/// can do; its own cost does not hide.
const SERVER_CPU: Figure = figure(
    "the same: server CPU per request",
    Quantity::ServerCpuPerRequest,
    None,
);

pub(crate) const REQUESTS: &[Bout] = &[
    Bout {
        name: "wrk",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: |bench| peers::client(bench, peers::wrk),
        ours: |bench| ours::http(bench, "auto"),
        figures: &[
            figure(
                "HTTP, 64 connections: client CPU per request",
                Quantity::CpuPerRequest,
                Some(Reach::AtMost(0.62)),
            ),
            figure(
                "HTTP, 64 connections: requests/s",
                Quantity::Rate,
                Some(Reach::AtLeast(1.5)),
            ),
            figure("HTTP, 64 connections: p50", Quantity::P50, None),
            figure(
                "own user time per request",
                Quantity::UserPerRequest,
                Some(Reach::Ceiling(400.0)),
            ),
        ],
    },
    Bout {
        name: "wrk-uring",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: |bench| peers::client(bench, peers::wrk),
        ours: |bench| ours::http(bench, "uring"),
        figures: &[
            figure(
                "HTTP, 64 connections, io_uring: client CPU per request",
                Quantity::CpuPerRequest,
                Some(Reach::AtMost(0.55)),
            ),
            figure(
                "own user time per request",
                Quantity::UserPerRequest,
                Some(Reach::Ceiling(400.0)),
            ),
        ],
    },
    // What the kernel alone asks for: no client can come nearer to the goals
    // above than these two, which only wait, read and write.
    Bout {
        name: "bare-wrk",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: |bench| peers::client(bench, peers::wrk),
        ours: |bench| ours::bare(bench, "epoll"),
        figures: &[
            figure(
                "a bare loop of epoll_wait, read, write: CPU per request",
                Quantity::CpuPerRequest,
                None,
            ),
            figure(
                "a bare loop of epoll_wait, read, write: requests/s",
                Quantity::Rate,
                None,
            ),
        ],
    },
    Bout {
        name: "bare-wrk-uring",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: |bench| peers::client(bench, peers::wrk),
        ours: |bench| ours::bare(bench, "uring"),
        figures: &[figure(
            "a bare loop of io_uring: CPU per request",
            Quantity::CpuPerRequest,
            None,
        )],
    },
    Bout {
        name: "bare",
        against: "bare loop",
        needs: &["nginx"],
        theirs: |bench| ours::bare(bench, "epoll"),
        ours: |bench| ours::http(bench, "auto"),
        figures: &[figure(
            "HTTP, 64 connections: client CPU per request",
            Quantity::CpuPerRequest,
            Some(Reach::AtMost(1.05)),
        )],
    },
    Bout {
        name: "bare-uring",
        against: "bare loop",
        needs: &["nginx"],
        theirs: |bench| ours::bare(bench, "uring"),
        ours: |bench| ours::http(bench, "uring"),
        figures: &[figure(
            "HTTP, 64 connections, io_uring: client CPU per request",
            Quantity::CpuPerRequest,
            Some(Reach::AtMost(1.05)),
        )],
    },
    Bout {
        name: "drivers",
        against: "epoll",
        needs: &["nginx"],
        theirs: |bench| ours::http(bench, "auto"),
        ours: |bench| ours::http(bench, "uring"),
        figures: &[figure(
            "HTTP, 64 connections, io_uring: client CPU per request",
            Quantity::CpuPerRequest,
            None,
        )],
    },
    Bout {
        name: "h2load",
        against: "h2load",
        needs: &["nginx", "h2load"],
        theirs: |bench| peers::client(bench, peers::h2load),
        ours: |bench| ours::http(bench, "auto"),
        figures: &[
            figure(
                "HTTP, 64 connections: client CPU per request",
                Quantity::CpuPerRequest,
                None,
            ),
            figure("HTTP, 64 connections: requests/s", Quantity::Rate, None),
        ],
    },
    Bout {
        name: "floor",
        against: "floor",
        needs: &[],
        theirs: ours::floor,
        ours: |bench| ours::ping(bench, Transport::Tcp),
        figures: &[figure(
            "TCP, 16 B both ways: p50",
            Quantity::P50,
            Some(Reach::AtMostOr(1.03, 1e3)),
        )],
    },
    Bout {
        name: "sockperf-tcp",
        against: "sockperf",
        needs: &["sockperf"],
        theirs: |bench| peers::sockperf_ping(bench, Transport::Tcp),
        ours: |bench| ours::ping(bench, Transport::Tcp),
        figures: &[figure(
            "TCP, 16 B both ways: p50",
            Quantity::P50,
            Some(Reach::Within(2e3)),
        )],
    },
    Bout {
        name: "sockperf-udp",
        against: "sockperf",
        needs: &["sockperf"],
        theirs: |bench| peers::sockperf_ping(bench, Transport::Udp),
        ours: |bench| ours::ping(bench, Transport::Udp),
        figures: &[figure(
            "UDP, 16 B both ways: p50",
            Quantity::P50,
            Some(Reach::Within(2e3)),
        )],
    },
    Bout {
        name: "netperf",
        against: "netperf",
        needs: &["netperf", "netserver"],
        theirs: peers::netperf,
        ours: |bench| ours::ping(bench, Transport::Tcp),
        figures: &[figure(
            "TCP, 16 B both ways: p50",
            Quantity::P50,
            Some(Reach::Within(2e3)),
        )],
    },
    Bout {
        name: "oha",
        against: "oha",
        needs: &["nginx", "oha"],
        theirs: peers::oha,
        ours: |bench| ours::open(bench, &[]),
        figures: &[
            figure(
                "HTTP at 5,000/s: p50",
                Quantity::P50,
                Some(Reach::AtMost(0.6)),
            ),
            figure(
                "HTTP at 5,000/s: p99",
                Quantity::P99,
                Some(Reach::AtMost(0.6)),
            ),
            figure(
                "HTTP at 5,000/s: p99.9",
                Quantity::P999,
                Some(Reach::AtMost(0.6)),
            ),
        ],
    },
    Bout {
        name: "oha-spin",
        against: "oha",
        needs: &["nginx", "oha"],
        theirs: peers::oha,
        ours: |bench| ours::open(bench, &["--spin"]),
        figures: &[
            figure(
                "HTTP at 5,000/s, spinning: p50",
                Quantity::P50,
                Some(Reach::AtMost(0.6)),
            ),
            figure(
                "HTTP at 5,000/s, spinning: p99",
                Quantity::P99,
                Some(Reach::AtMost(0.6)),
            ),
            figure(
                "HTTP at 5,000/s, spinning: p99.9",
                Quantity::P999,
                Some(Reach::AtMost(0.6)),
            ),
        ],
    },
    Bout {
        name: "lag",
        against: "-",
        needs: &["nginx"],
        theirs: nothing,
        ours: |bench| ours::open(bench, &[]),
        figures: &[figure(
            "HTTP at 5,000/s, sleeping: send lag p99",
            Quantity::LagP99,
            Some(Reach::Ceiling(60e3)),
        )],
    },
    Bout {
        name: "lag-spin",
        against: "-",
        needs: &["nginx"],
        theirs: nothing,
        ours: |bench| ours::open(bench, &["--spin"]),
        figures: &[figure(
            "HTTP at 5,000/s, spinning: send lag p99",
            Quantity::LagP99,
            Some(Reach::Ceiling(5e3)),
        )],
    },
    Bout {
        name: "responder",
        against: "nginx",
        needs: &["nginx", "wrk"],
        theirs: |bench| peers::server_under(bench, peers::nginx(bench)?, peers::wrk),
        ours: |bench| ours::responder_under(bench, peers::wrk),
        figures: &[
            figure(
                "server of 100 B, wrk as client: requests/s",
                Quantity::Rate,
                Some(Reach::AtLeast(1.3)),
            ),
            SERVER_CPU,
        ],
    },
    Bout {
        name: "responder-h2load",
        against: "nginx",
        needs: &["nginx", "h2load"],
        theirs: |bench| peers::server_under(bench, peers::nginx(bench)?, peers::h2load),
        ours: |bench| ours::responder_under(bench, peers::h2load),
        figures: &[
            figure(
                "server of 100 B, h2load as client: requests/s",
                Quantity::Rate,
                None,
            ),
            SERVER_CPU,
        ],
    },
    Bout {
        name: "responder-load",
        against: "nginx",
        needs: &["nginx"],
        theirs: |bench| peers::server_under(bench, peers::nginx(bench)?, ours::run_load),
        ours: |bench| ours::responder_under(bench, ours::run_load),
        figures: &[
            figure(
                "server of 100 B, `load` as client: requests/s",
                Quantity::Rate,
                None,
            ),
            SERVER_CPU,
        ],
    },
    Bout {
        name: "timestamps",
        against: "without",
        needs: &[],
        theirs: |bench| ours::at_rate(bench, &[]),
        ours: |bench| ours::at_rate(bench, &["--timestamps=1%"]),
        figures: &[
            figure("rr at 5,000/s, 1 % stamped: p50", Quantity::P50, None),
            figure("rr at 5,000/s, 1 % stamped: p99", Quantity::P99, None),
            figure(
                "rr at 5,000/s, 1 % stamped: client CPU per request",
                Quantity::CpuPerRequest,
                None,
            ),
            figure(
                "rr at 5,000/s, 1 % stamped: server CPU per request",
                Quantity::ServerCpuPerRequest,
                None,
            ),
        ],
    },
];
