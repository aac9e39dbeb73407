//! Which comparisons there are, and what each is to reach.

use plumbline_experiment::Protocol;

use crate::bout::{Bout, ComparedFigure, Contender, bout, figure, side};
use crate::peers::{client, h2load, nginx, oha, server_under, wrk};
use crate::quantity::Measurand::*;
use crate::quantity::Reach::*;
use crate::quantity::Readings;
use crate::size::{CONNECTIONS, MANY};
use crate::{ours, peers};

/// A client that is slower than the server hides in the rate what the server
/// can do; its own cost does not hide.
const SERVER_CPU: ComparedFigure =
    figure(ServerCpuPerRequest).called("the same: server CPU per request");

const BARE_CPU: ComparedFigure = figure(CpuPerRequest).called("{}: CPU per request");

/// Theirs lose messages on the way; ours are sent at a rate that loses none.
const LOSSLESS: ComparedFigure =
    figure(Rate).called("{}: messages/s (theirs arrived, ours lossless)");

/// Percentiles of which ours are to be at most 0.6 of theirs.
const TAIL: &[ComparedFigure] = &[
    figure(P50).reaching(AtMost(0.6)),
    figure(P99).reaching(AtMost(0.6)),
    figure(P999).reaching(AtMost(0.6)),
];

/// The other side of a comparison that has none.
const NOTHING: Contender = side(&[], |_| Ok(Readings::new()));

const WRK: Contender = side(&["nginx", "wrk"], |bench| client(bench, wrk));
const H2LOAD: Contender = side(&["nginx", "h2load"], |bench| client(bench, h2load));
const OHA: Contender = side(&["nginx", "oha"], |bench| client(bench, oha));
const BARE: Contender = side(&["nginx"], |bench| ours::bare(bench, "epoll"));
const BARE_URING: Contender = side(&["nginx"], |bench| ours::bare(bench, "uring"));
const HTTP: Contender = side(&["nginx"], |bench| ours::http(bench, "auto"));
const HTTP_URING: Contender = side(&["nginx"], |bench| ours::http(bench, "uring"));
const OPEN: Contender = side(&["nginx"], |bench| ours::open(bench, ""));
const OPEN_SPIN: Contender = side(&["nginx"], |bench| ours::open(bench, "--spin"));
const PING: Contender = side(&[], |bench| ours::ping(bench, Protocol::Tcp));
const STREAM: Contender = side(&[], |bench| ours::stream(bench, ""));
const TRAINS: Contender = side(&[], |bench| ours::lossless(bench, "--gso"));
const IPERF3_DATAGRAM: Contender = side(&["iperf3"], peers::iperf3_datagram);

/// All comparisons, in the order of the table: name, against what, what both do,
/// theirs, ours, and the figures that count.
#[rustfmt::skip] // a table reads better
pub(crate) const ALL: &[Bout] = &[
    bout("wrk", "wrk", "HTTP, 64 connections", WRK, HTTP,
        &[figure(CpuPerRequest).reaching(AtMost(0.62)), figure(Rate).reaching(AtLeast(1.5)), figure(P50),
          figure(UserPerRequest).reaching(Ceiling(400.0))]),
    bout("wrk-uring", "wrk", "HTTP, 64 connections, io_uring", WRK, HTTP_URING,
        &[figure(CpuPerRequest).reaching(AtMost(0.55)), figure(UserPerRequest).reaching(Ceiling(400.0))]),
    // What the kernel alone costs: no client can come nearer to the goals above
    // than these two, which only wait, read and write.
    bout("bare-wrk", "wrk", "a bare loop of epoll_wait, read, write", WRK, BARE, &[BARE_CPU, figure(Rate)]),
    bout("bare-wrk-uring", "wrk", "a bare loop of io_uring", WRK, BARE_URING, &[BARE_CPU]),
    bout("bare", "bare loop", "HTTP, 64 connections", BARE, HTTP, &[figure(CpuPerRequest).reaching(AtMost(1.05))]),
    bout("bare-uring", "bare loop", "HTTP, 64 connections, io_uring", BARE_URING, HTTP_URING,
        &[figure(CpuPerRequest).reaching(AtMost(1.05))]),
    bout("drivers", "epoll", "HTTP, 64 connections, io_uring", HTTP, HTTP_URING, &[figure(CpuPerRequest)]),
    bout("h2load", "h2load", "HTTP, 64 connections", H2LOAD, HTTP, &[figure(CpuPerRequest), figure(Rate)]),
    bout("floor", "floor", "TCP, 16 B both ways", side(&[], ours::floor), PING,
        &[figure(P50).reaching(AtMostOr(1.03, 1e3))]),
    bout("sockperf-tcp", "sockperf", "TCP, 16 B both ways",
        side(&["sockperf"], |bench| peers::sockperf_ping(bench, Protocol::Tcp)),
        PING,
        &[figure(P50).reaching(Within(2e3))]),
    bout("sockperf-udp", "sockperf", "UDP, 16 B both ways",
        side(&["sockperf"], |bench| peers::sockperf_ping(bench, Protocol::Udp)),
        side(&[], |bench| ours::ping(bench, Protocol::Udp)),
        &[figure(P50).reaching(Within(2e3))]),
    bout("netperf", "netperf", "TCP, 16 B both ways", side(&["netperf", "netserver"], peers::netperf), PING,
        &[figure(P50).reaching(Within(2e3))]),
    bout("oha", "oha", "HTTP at 5,000/s", OHA, OPEN, TAIL),
    bout("oha-spin", "oha", "HTTP at 5,000/s, spinning", OHA, OPEN_SPIN, TAIL),
    bout("lag", "-", "HTTP at 5,000/s, sleeping", NOTHING, OPEN, &[figure(LagP99).reaching(Ceiling(60e3))]),
    bout("lag-spin", "-", "HTTP at 5,000/s, spinning", NOTHING, OPEN_SPIN, &[figure(LagP99).reaching(Ceiling(5e3))]),
    bout("responder", "nginx", "server of 100 B, wrk as client",
        side(&["nginx", "wrk"], |bench| server_under(bench, nginx, wrk)),
        side(&["wrk"], |bench| server_under(bench, ours::responder, wrk)),
        &[figure(Rate).reaching(AtLeast(1.3)), SERVER_CPU]),
    bout("responder-h2load", "nginx", "server of 100 B, h2load as client",
        side(&["nginx", "h2load"], |bench| server_under(bench, nginx, h2load)),
        side(&["h2load"], |bench| server_under(bench, ours::responder, h2load)),
        &[figure(Rate), SERVER_CPU]),
    bout("responder-load", "nginx", "server of 100 B, `load` as client",
        side(&["nginx"], |bench| server_under(bench, nginx, ours::run_load)),
        side(&[], |bench| server_under(bench, ours::responder, ours::run_load)),
        &[figure(Rate), SERVER_CPU]),
    bout("timestamps", "without", "rr at 5,000/s, 1 % stamped",
        side(&[], |bench| ours::at_rate(bench, "")),
        side(&[], |bench| ours::at_rate(bench, "--timestamps=1%")),
        &[figure(P50), figure(P99), figure(CpuPerRequest), figure(ServerCpuPerRequest)]),
    // Bytes and messages in bulk, and connections in numbers.
    bout("stream", "iperf3", "TCP stream", side(&["iperf3"], peers::iperf3_stream), STREAM,
        &[figure(BitRate).reaching(AtLeast(1.0)), figure(CpuPerKilobyte).reaching(AtMost(1.0))]),
    bout("stream-zerocopy", "with copies", "TCP stream, zero copy",
        STREAM,
        side(&[], |bench| ours::stream(bench, "--zerocopy")),
        &[figure(BitRate), figure(CpuPerKilobyte)]),
    bout("datagram-iperf3", "iperf3", "UDP, 64 B, ours by GSO", IPERF3_DATAGRAM, TRAINS,
        &[LOSSLESS.reaching(AtLeast(2.0))]),
    bout("datagram-sockperf", "sockperf", "UDP, 64 B, ours by GSO",
        side(&["sockperf"], peers::sockperf_datagram),
        TRAINS,
        &[LOSSLESS.reaching(AtLeast(2.0))]),
    bout("packets-iperf3", "iperf3", "UDP, 64 B, a packet each",
        IPERF3_DATAGRAM,
        side(&[], |bench| ours::lossless(bench, "")),
        &[LOSSLESS]),
    bout("scale", "64 conns", "15,000 connections at 50,000/s",
        side(&[], ours::few_connections),
        side(&[], ours::many_connections),
        &[figure(CpuPerRequest).reaching(AtMost(1.3)), figure(Memory).reaching(Ceiling(1024.0))]),
    bout("scale-closed", "64 conns", "15,000 connections, closed loop",
        side(&[], |bench| ours::connections_closed(bench, CONNECTIONS)),
        side(&[], |bench| ours::connections_closed(bench, MANY)),
        &[figure(CpuPerRequest)]),
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
