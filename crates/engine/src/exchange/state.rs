//! What an exchange holds, and by which rules it goes.

use std::io;
use std::net::{IpAddr, SocketAddr};

use plumbline_experiment::CongestionControl;

use super::line::ClientConnection;
use super::stamps::Stamps;
use crate::codec::Codec;
use crate::flights::Flights;
use crate::idle::Idle;
use crate::recorder::Recorder;
use crate::secret::Secret;

/// What distinguishes the members of the family.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Where to.
    pub(crate) target: SocketAddr,
    /// Where from, in turn; empty lets the kernel choose.
    pub(crate) sources: Vec<IpAddr>,
    /// How TCP finds the rate of the path.
    pub(crate) congestion: Option<CongestionControl>,
    /// Connections of this worker.
    pub(crate) lines: usize,
    /// Datagrams: answers may be lost or come in any order.
    pub(crate) udp: bool,
    /// Each request opens a connection of its own.
    pub(crate) fresh: bool,
    /// Requests may follow each other on a line before the answers arrive.
    pub(crate) pipelined: bool,
    /// The next request leaves when the last answer has arrived.
    pub(crate) closed: bool,
    /// Whatever breaks, the load goes on with what is left: broken connections are not
    /// replaced, each has its turn, and answers that may never come are given up.
    pub(crate) endures: bool,
    /// What is shown on each connection as soon as it is open.
    pub(crate) shown: Option<Secret>,
    /// Connections opened per second by this worker.
    pub(crate) ramp: Option<f64>,
    /// Most requests that may be out at once.
    pub(crate) flights: usize,
    /// First sequence number.
    pub(crate) first: u64,
    /// Which requests the kernel should time-stamp, if any.
    pub(crate) stamped: Option<Stamped>,
}

/// A sample of the requests for the kernel to time-stamp (L-17).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamped {
    /// The share of them, up to 1.
    pub(crate) share: f64,
    /// The seed of the load and the number of this worker: what is chosen
    /// follows from them.
    pub(crate) seed: u64,
    pub(crate) worker: usize,
}

/// The client's side of all request and answer workloads.
pub(crate) struct Exchange<C: Codec> {
    pub(super) codec: C,
    pub(super) rules: Rules,
    pub(super) lines: Vec<ClientConnection<C::Reader>>,
    pub(super) idle: Idle,
    /// Lines that had their turn and may have more to be read.
    pub(super) unread: Idle,
    pub(super) flights: Flights,
    pub(super) recorder: Recorder,
    pub(super) stamps: Option<Stamps>,
    /// The line that was last chosen in turn.
    pub(super) cursor: usize,
    /// Lines that have begun to open, and how many of these are open: used
    /// before the load starts.
    pub(super) begun: usize,
    pub(super) opened: usize,
    /// When preparing began, and when it last made progress.
    pub(super) preparing_since: u64,
    pub(super) progressed: u64,
    /// Lines that the tick must look after.
    pub(super) troubled: usize,
    pub(super) running: bool,
    /// The end of the slice that the load is in; 0 before the first.
    pub(super) until: u64,
    /// Why the first connections could not be opened.
    pub(super) fatal: Option<io::Error>,
}

impl<C: Codec> Exchange<C> {
    pub(crate) fn new(codec: C, rules: Rules, recorder: Recorder) -> Self {
        Self {
            codec,
            lines: (0..rules.lines)
                .map(|_| ClientConnection::default())
                .collect(),
            idle: Idle::new(rules.lines),
            unread: Idle::new(rules.lines),
            flights: Flights::new(rules.flights, rules.lines, rules.first),
            stamps: rules
                .stamped
                .map(|it| Stamps::new(it.share, rules.lines, !rules.udp, it.seed, it.worker)),
            rules,
            recorder,
            cursor: 0,
            begun: 0,
            opened: 0,
            preparing_since: 0,
            progressed: 0,
            troubled: 0,
            running: false,
            until: 0,
            fatal: None,
        }
    }
}
