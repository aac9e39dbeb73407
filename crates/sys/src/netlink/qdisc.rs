//! Queueing disciplines that give a device the rate and delay of a link.

use std::time::Duration;

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};

use super::attribute::attribute;
use super::socket::Verb;
use super::{NetlinkError, NetlinkSocket};

const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_NETEM_LATENCY64: u16 = 10;
/// `TC_LINKLAYER_ETHERNET`: no table of rates is needed.
const LINKLAYER_ETHERNET: u8 = 1;

/// Where a discipline goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// To the device itself.
    Root,
    /// Inside the discipline at the root.
    Inside,
}

/// A token bucket (tc-tbf(8)): sends at most at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Bytes per second.
    pub rate: u64,
    /// Bytes that may be sent at once after a pause.
    pub burst: u32,
    /// Bytes that may wait; more are dropped.
    pub limit: u32,
}

/// A delay and a loss (tc-netem(8)): packets arrive later, or not at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// How much later.
    pub delay: Duration,
    /// Share of packets that are lost at random, 0 to 1.
    pub loss: f64,
    /// Packets that may be on their way at once; more are dropped.
    pub limit: u32,
}

impl NetlinkSocket {
    /// Limits the rate of a device.
    ///
    /// # Errors
    ///
    /// [`NetlinkError::is_gone`] on a kernel without `tbf`: it looks for a
    /// discipline of this name and finds none.
    pub fn add_token_bucket(
        &self,
        device: u32,
        parent: Parent,
        bucket: &TokenBucket,
    ) -> Result<(), NetlinkError> {
        // struct tc_tbf_qopt: rate, peakrate (struct tc_ratespec, 12 bytes
        // each), limit, buffer, mtu.
        let mut parameters = vec![0, LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
        // A value that does not fit is in the 64-bit attribute.
        let rate = u32::try_from(bucket.rate).unwrap_or(u32::MAX);
        parameters.extend(rate.to_ne_bytes());
        parameters.extend([0; 12]);
        parameters.extend(bucket.limit.to_ne_bytes());
        parameters.extend([0; 8]);
        let mut options = attribute(TCA_TBF_PARMS, &parameters);
        if bucket.rate > u64::from(u32::MAX) {
            options.extend(attribute(TCA_TBF_RATE64, &bucket.rate.to_ne_bytes()));
        }
        options.extend(attribute(TCA_TBF_BURST, &bucket.burst.to_ne_bytes()));
        self.add_discipline(device, parent, "tbf", options)
    }

    /// Adds delay and loss to a device.
    ///
    /// # Errors
    ///
    /// As [`add_token_bucket`](Self::add_token_bucket), for `netem`.
    pub fn add_distance(
        &self,
        device: u32,
        parent: Parent,
        distance: &Distance,
    ) -> Result<(), NetlinkError> {
        // struct tc_netem_qopt: latency (in ticks; the 64-bit attribute
        // outranks it), limit, loss, gap, duplicate, jitter.
        let mut options = vec![0; 4];
        options.extend(distance.limit.to_ne_bytes());
        let loss = (distance.loss.clamp(0.0, 1.0) * f64::from(u32::MAX)).round();
        options.extend((loss as u32).to_ne_bytes());
        options.extend([0; 12]);
        let delay = i64::try_from(distance.delay.as_nanos()).unwrap_or(i64::MAX);
        options.extend(attribute(TCA_NETEM_LATENCY64, &delay.to_ne_bytes()));
        self.add_discipline(device, parent, "netem", options)
    }

    /// Gives a device a discipline by its name, as it is where nothing more is said of it.
    ///
    /// # Errors
    ///
    /// As [`add_token_bucket`](Self::add_token_bucket), for that discipline.
    pub fn add_named_discipline(
        &self,
        device: u32,
        kind: &'static str,
    ) -> Result<(), NetlinkError> {
        self.add_discipline(device, Parent::Root, kind, Vec::new())
    }

    /// Gives a device back its original discipline, and removes everything
    /// inside the current one.
    pub fn delete_discipline(&self, device: u32) -> Result<(), NetlinkError> {
        let mut message = TcMessage::with_index(device as i32);
        message.header.parent = TcHandle::ROOT;
        let verb = Verb::new("delete discipline", format!("of device {device}"));
        self.execute(verb, RouteNetlinkMessage::DelQueueDiscipline(message), 0)
    }

    fn add_discipline(
        &self,
        device: u32,
        parent: Parent,
        kind: &'static str,
        options: Vec<u8>,
    ) -> Result<(), NetlinkError> {
        let mut message = TcMessage::with_index(device as i32);
        // The root's handle is 1:, and what is inside hangs on its class 1:1.
        let (handle, parent) = match parent {
            Parent::Root => (1, TcHandle::ROOT),
            Parent::Inside => (2, TcHandle { major: 1, minor: 1 }),
        };
        message.header.handle = TcHandle {
            major: handle,
            minor: 0,
        };
        message.header.parent = parent;
        message.attributes = vec![TcAttribute::Kind(kind.into())];
        if !options.is_empty() {
            let options = TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options));
            message.attributes.push(options);
        }
        let verb = Verb::new("add discipline", format!("{kind} to device {device}"));
        self.execute(
            verb,
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }
}
