//! The link between the nodes of a lab: its rate, its distance, its MTU.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::MTUS;
use crate::section::{FileSection, text};
use crate::tree::SpannedValue;
use crate::{SpecError, bit_rate, typed};

/// Longest delay, one way.
const MAX_DELAY: Duration = Duration::from_secs(10);
/// Ethernet's.
const DEFAULT_MTU: u32 = 1500;

/// The link between the nodes of a lab. The default is a veth pair as it is: as
/// fast as the CPU, no distance, MTU 1500.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Link {
    /// Bits per second that it carries each way; `None` for no limit.
    pub rate_bits: Option<u64>,
    /// How much later packets arrive, one way, in nanoseconds.
    pub delay_ns: u64,
    /// Share of packets that it loses each way at random, 0 to 1.
    pub loss: f64,
    /// MTU in bytes.
    pub mtu: u32,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            rate_bits: None,
            delay_ns: 0,
            loss: 0.0,
            mtu: DEFAULT_MTU,
        }
    }
}

impl Link {
    /// Whether nothing was asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it delays or loses packets.
    pub fn has_distance(&self) -> bool {
        self.delay_ns > 0 || self.loss > 0.0
    }

    /// Whether everything is within what a file may ask for.
    pub(crate) fn is_possible(&self) -> bool {
        self.rate_bits.is_none_or(bit_rate::is_possible)
            && u128::from(self.delay_ns) <= MAX_DELAY.as_nanos()
            && (0.0..1.0).contains(&self.loss)
            && MTUS.contains(&self.mtu)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate_bits {
            None => write!(f, "no limit of rate")?,
            Some(rate) => f.write_str(&bit_rate::in_words(rate))?,
        }
        if self.delay_ns > 0 {
            write!(f, ", {} µs each way", self.delay_ns as f64 / 1e3)?;
        }
        if self.loss > 0.0 {
            write!(f, ", {} % lost each way", self.loss * 100.0)?;
        }
        write!(f, ", MTU {}", self.mtu)
    }
}

pub(crate) fn read(root: &FileSection<'_>) -> Result<Link, SpecError> {
    let Some(section) = root.section("link", "[link]")? else {
        return Ok(Link::default());
    };
    section.refuse_unknown(crate::keys::LINK)?;
    let delay = section.duration("delay", Duration::ZERO..=MAX_DELAY)?;
    Ok(Link {
        rate_bits: section
            .get("rate")
            .map(|it| bit_rate::read("rate", it))
            .transpose()?,
        // At most ten seconds.
        delay_ns: delay.map_or(0, |delay| delay.as_nanos() as u64),
        loss: section.get("loss").map_or(Ok(0.0), loss)?,
        mtu: section.whole("mtu", MTUS)?.unwrap_or(DEFAULT_MTU),
    })
}

fn loss(value: &SpannedValue) -> Result<f64, SpecError> {
    let (written, place) = text("loss", value)?;
    match typed::percent(written) {
        Some(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err(SpecError::at(
            place,
            format!("`loss` is \"{written}\", which is not a share of packets"),
            "write a percentage from 0 to below 100, such as \"0.1%\"",
        )),
    }
}
