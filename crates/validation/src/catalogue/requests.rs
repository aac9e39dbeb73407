//! Requests and their answers: HTTP, the floor, open loops, servers.

use crate::bench::Bench;
use crate::bout::{Bout, ComparedFigure, figure};
use crate::error::ValidationError;
use crate::process::Transport;
use crate::quantity::Measurand::*;
use crate::quantity::Reach::*;
use crate::quantity::Readings;
use crate::{ours, peers};

/// The other side of a comparison that has none.
fn nothing(_: &Bench<'_>) -> Result<Readings, ValidationError> {
    Ok(Readings::new())
}

/// A client that is slower than the server hides in the rate what the server
/// can do; its own cost does not hide.
const SERVER_CPU: ComparedFigure =
    figure(ServerCpuPerRequest).called("the same: server CPU per request");

const BARE_CPU: ComparedFigure = figure(CpuPerRequest).called("{}: CPU per request");

pub(crate) const REQUESTS: &[Bout] = &[
    Bout {
        name: "wrk",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: |bench| peers::client(bench, peers::wrk),
        ours: |bench| ours::http(bench, "auto"),
        about: "HTTP, 64 connections",
        figures: &[
            figure(CpuPerRequest).reaching(AtMost(0.62)),
            figure(Rate).reaching(AtLeast(1.5)),
            figure(P50),
            figure(UserPerRequest).reaching(Ceiling(400.0)),
        ],
    },
    Bout {
        name: "wrk-uring",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: |bench| peers::client(bench, peers::wrk),
        ours: |bench| ours::http(bench, "uring"),
        about: "HTTP, 64 connections, io_uring",
        figures: &[
            figure(CpuPerRequest).reaching(AtMost(0.55)),
            figure(UserPerRequest).reaching(Ceiling(400.0)),
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
        about: "a bare loop of epoll_wait, read, write",
        figures: &[BARE_CPU, figure(Rate)],
    },
    Bout {
        name: "bare-wrk-uring",
        against: "wrk",
        needs: &["nginx", "wrk"],
        theirs: |bench| peers::client(bench, peers::wrk),
        ours: |bench| ours::bare(bench, "uring"),
        about: "a bare loop of io_uring",
        figures: &[BARE_CPU],
    },
    Bout {
        name: "bare",
        against: "bare loop",
        needs: &["nginx"],
        theirs: |bench| ours::bare(bench, "epoll"),
        ours: |bench| ours::http(bench, "auto"),
        about: "HTTP, 64 connections",
        figures: &[figure(CpuPerRequest).reaching(AtMost(1.05))],
    },
    Bout {
        name: "bare-uring",
        against: "bare loop",
        needs: &["nginx"],
        theirs: |bench| ours::bare(bench, "uring"),
        ours: |bench| ours::http(bench, "uring"),
        about: "HTTP, 64 connections, io_uring",
        figures: &[figure(CpuPerRequest).reaching(AtMost(1.05))],
    },
    Bout {
        name: "drivers",
        against: "epoll",
        needs: &["nginx"],
        theirs: |bench| ours::http(bench, "auto"),
        ours: |bench| ours::http(bench, "uring"),
        about: "HTTP, 64 connections, io_uring",
        figures: &[figure(CpuPerRequest)],
    },
    Bout {
        name: "h2load",
        against: "h2load",
        needs: &["nginx", "h2load"],
        theirs: |bench| peers::client(bench, peers::h2load),
        ours: |bench| ours::http(bench, "auto"),
        about: "HTTP, 64 connections",
        figures: &[figure(CpuPerRequest), figure(Rate)],
    },
    Bout {
        name: "floor",
        against: "floor",
        needs: &[],
        theirs: ours::floor,
        ours: |bench| ours::ping(bench, Transport::Tcp),
        about: "TCP, 16 B both ways",
        figures: &[figure(P50).reaching(AtMostOr(1.03, 1e3))],
    },
    Bout {
        name: "sockperf-tcp",
        against: "sockperf",
        needs: &["sockperf"],
        theirs: |bench| peers::sockperf_ping(bench, Transport::Tcp),
        ours: |bench| ours::ping(bench, Transport::Tcp),
        about: "TCP, 16 B both ways",
        figures: &[figure(P50).reaching(Within(2e3))],
    },
    Bout {
        name: "sockperf-udp",
        against: "sockperf",
        needs: &["sockperf"],
        theirs: |bench| peers::sockperf_ping(bench, Transport::Udp),
        ours: |bench| ours::ping(bench, Transport::Udp),
        about: "UDP, 16 B both ways",
        figures: &[figure(P50).reaching(Within(2e3))],
    },
    Bout {
        name: "netperf",
        against: "netperf",
        needs: &["netperf", "netserver"],
        theirs: peers::netperf,
        ours: |bench| ours::ping(bench, Transport::Tcp),
        about: "TCP, 16 B both ways",
        figures: &[figure(P50).reaching(Within(2e3))],
    },
    Bout {
        name: "oha",
        against: "oha",
        needs: &["nginx", "oha"],
        theirs: peers::oha,
        ours: |bench| ours::open(bench, &[]),
        about: "HTTP at 5,000/s",
        figures: &[
            figure(P50).reaching(AtMost(0.6)),
            figure(P99).reaching(AtMost(0.6)),
            figure(P999).reaching(AtMost(0.6)),
        ],
    },
    Bout {
        name: "oha-spin",
        against: "oha",
        needs: &["nginx", "oha"],
        theirs: peers::oha,
        ours: |bench| ours::open(bench, &["--spin"]),
        about: "HTTP at 5,000/s, spinning",
        figures: &[
            figure(P50).reaching(AtMost(0.6)),
            figure(P99).reaching(AtMost(0.6)),
            figure(P999).reaching(AtMost(0.6)),
        ],
    },
    Bout {
        name: "lag",
        against: "-",
        needs: &["nginx"],
        theirs: nothing,
        ours: |bench| ours::open(bench, &[]),
        about: "HTTP at 5,000/s, sleeping",
        figures: &[figure(LagP99).reaching(Ceiling(60e3))],
    },
    Bout {
        name: "lag-spin",
        against: "-",
        needs: &["nginx"],
        theirs: nothing,
        ours: |bench| ours::open(bench, &["--spin"]),
        about: "HTTP at 5,000/s, spinning",
        figures: &[figure(LagP99).reaching(Ceiling(5e3))],
    },
    Bout {
        name: "responder",
        against: "nginx",
        needs: &["nginx", "wrk"],
        theirs: |bench| peers::server_under(bench, peers::nginx(bench)?, peers::wrk),
        ours: |bench| ours::responder_under(bench, peers::wrk),
        about: "server of 100 B, wrk as client",
        figures: &[figure(Rate).reaching(AtLeast(1.3)), SERVER_CPU],
    },
    Bout {
        name: "responder-h2load",
        against: "nginx",
        needs: &["nginx", "h2load"],
        theirs: |bench| peers::server_under(bench, peers::nginx(bench)?, peers::h2load),
        ours: |bench| ours::responder_under(bench, peers::h2load),
        about: "server of 100 B, h2load as client",
        figures: &[figure(Rate), SERVER_CPU],
    },
    Bout {
        name: "responder-load",
        against: "nginx",
        needs: &["nginx"],
        theirs: |bench| peers::server_under(bench, peers::nginx(bench)?, ours::run_load),
        ours: |bench| ours::responder_under(bench, ours::run_load),
        about: "server of 100 B, `load` as client",
        figures: &[figure(Rate), SERVER_CPU],
    },
    Bout {
        name: "timestamps",
        against: "without",
        needs: &[],
        theirs: |bench| ours::at_rate(bench, &[]),
        ours: |bench| ours::at_rate(bench, &["--timestamps=1%"]),
        about: "rr at 5,000/s, 1 % stamped",
        figures: &[
            figure(P50),
            figure(P99),
            figure(CpuPerRequest),
            figure(ServerCpuPerRequest),
        ],
    },
];
