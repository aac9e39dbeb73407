//! Where a sample of the requests spent their time (L-17).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Histogram;

/// The service times of a sample of the window's requests, cut into spans by
/// the kernel's time stamps. All spans of one request add up to its service
/// time.
///
/// Each request that was sampled is in exactly one of the counts; the
/// histograms hold the [`complete`](Self::complete) ones, and as a sample they
/// are for comparing spans, not for the percentiles of the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spans {
    /// Share of the requests that was to be sampled, 0 to 1.
    pub share: f64,
    /// Sampled requests whose every stamp is there.
    pub complete: u64,
    /// Sampled requests that got no good answer.
    pub unanswered: u64,
    /// Sampled requests of which the kernel left out a stamp: the path's
    /// device has no software stamps, or they were switched on just before.
    pub unstamped: u64,
    /// Sampled requests that went out in several writes, or whose answer was
    /// read together with a later one: a stamp may be of the other.
    pub shared: u64,
    /// Sampled requests during which the wall clock, which the stamps are of,
    /// was set.
    pub clock_set: u64,
    /// From before the send call to the device's queue (`TX_SCHED`): the
    /// sender's protocol stack.
    pub protocol: Histogram,
    /// From the device's queue to the device (`TX_SOFTWARE`).
    pub queue: Histogram,
    /// From the device to the arrival of the answer at the sender's side
    /// (`RX_SOFTWARE`): the network both ways, and the server.
    pub network_and_server: Histogram,
    /// From that arrival until the answer was read: the receiving protocol
    /// stack, and how long the sender took to wake up.
    pub wake_up: Histogram,
    /// The service time of these same requests.
    pub service_time: Histogram,
    /// How far the boundaries between the program's clock and the kernel's
    /// may be off, per request: both clocks were read that far apart.
    pub clock_error: Histogram,
}

impl Spans {
    /// Requests that were sampled.
    pub fn sampled(&self) -> u64 {
        let apart = [self.unanswered, self.unstamped, self.shared, self.clock_set];
        apart.into_iter().fold(self.complete, u64::saturating_add)
    }

    /// The spans in the order in which a request passes them, with the names
    /// that tables give them.
    pub fn in_order(&self) -> [(&'static str, &Histogram); 4] {
        [
            ("sender: protocol", &self.protocol),
            ("sender: queue", &self.queue),
            ("network and server", &self.network_and_server),
            ("wake-up", &self.wake_up),
        ]
    }

    /// Adds the sample of another worker of the same load.
    pub fn merge(&mut self, other: &Self) {
        self.complete += other.complete;
        self.unanswered += other.unanswered;
        self.unstamped += other.unstamped;
        self.shared += other.shared;
        self.clock_set += other.clock_set;
        self.protocol.merge(&other.protocol);
        self.queue.merge(&other.queue);
        self.network_and_server.merge(&other.network_and_server);
        self.wake_up.merge(&other.wake_up);
        self.service_time.merge(&other.service_time);
        self.clock_error.merge(&other.clock_error);
    }
}
