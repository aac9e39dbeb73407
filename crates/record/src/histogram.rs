//! A latency histogram: HDR, 3 significant digits, 1 ns to 60 s (D12, L-20).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// Largest value kept apart, in nanoseconds; beyond it counts as overflow.
const HIGHEST_NS: u64 = 60_000_000_000;
/// Significant decimal digits.
const DIGITS: u8 = 3;

/// A mergeable histogram of durations in nanoseconds with the exact maximum.
///
/// Values above 60 s are counted in the topmost bucket and in
/// [`overflow`](Self::overflow); the exact maximum is kept all the same.
/// Recording does not allocate.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    max_ns: u64,
    overflow: u64,
}

/// A histogram that could not be read or joined.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("a histogram is not base64: {0}; the file was changed or cut")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not an HDR V2 histogram of our shape.
    #[error("a histogram is not HDR V2 with 3 digits from 1 ns to 60 s: {0}")]
    Format(String),
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let buckets = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
            .expect("1 ns to 60 s at 3 digits is a valid shape");
        Self {
            buckets,
            max_ns: 0,
            overflow: 0,
        }
    }

    /// Counts one duration. 0 counts as 1 ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts the same duration `n` times.
    #[inline]
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if ns > HIGHEST_NS {
            self.overflow += n;
        }
        if ns > self.max_ns && n > 0 {
            self.max_ns = ns;
        }
        self.buckets.saturating_record_n(ns.clamp(1, HIGHEST_NS), n);
    }

    /// Adds all of another histogram (L-15: for the pooled curve only).
    pub fn merge(&mut self, other: &Self) {
        self.buckets
            .add(&other.buckets)
            .expect("all our histograms have one shape");
        self.max_ns = self.max_ns.max(other.max_ns);
        self.overflow += other.overflow;
    }

    /// How many durations were counted.
    pub fn len(&self) -> u64 {
        self.buckets.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The duration at quantile `q` (0 to 1), in nanoseconds, within 0.1 %;
    /// 0 when empty. Whether there are enough samples is for `stats` to say (D4).
    pub fn value_at(&self, q: f64) -> u64 {
        if self.is_empty() {
            0
        } else {
            self.buckets.value_at_quantile(q).min(self.max_ns.max(1))
        }
    }

    /// The exact maximum in nanoseconds; 0 when empty.
    pub fn max(&self) -> u64 {
        self.max_ns
    }

    /// The mean in nanoseconds, within 0.1 %; 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.is_empty() {
            0.0
        } else {
            self.buckets.mean()
        }
    }

    /// How many durations were above 60 s.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// The number of durations at or below `ns`.
    pub fn count_at_or_below(&self, ns: u64) -> u64 {
        self.buckets.count_between(0, ns.clamp(1, HIGHEST_NS))
    }

    /// Non-empty buckets in rising order: highest duration of the bucket in
    /// nanoseconds, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets
            .iter_recorded()
            .map(|b| (b.value_iterated_to(), b.count_at_value()))
    }

    fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.buckets, &mut bytes)
            .expect("writing to memory does not fail");
        STANDARD.encode(bytes)
    }

    fn decode(text: &str, max_ns: u64, overflow: u64) -> Result<Self, HistogramError> {
        let bytes = STANDARD.decode(text)?;
        if !has_our_shape(&bytes) {
            return Err(HistogramError::Format("another range or precision".into()));
        }
        let buckets: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| HistogramError::Format(format!("{e:?}")))?;
        Ok(Self {
            buckets,
            max_ns,
            overflow,
        })
    }
}

/// Whether the header asks for our range and precision. Looked at first, since
/// the decoder makes whatever size a header asks for (S-7).
fn has_our_shape(bytes: &[u8]) -> bool {
    // The V2 header: cookie, length and offset of 4 bytes each, then digits
    // (4), lowest (8) and highest value (8), all big-endian.
    let digits = bytes.get(12..16);
    let lowest = bytes.get(16..24);
    let highest = bytes.get(24..32);
    digits == Some(&u32::from(DIGITS).to_be_bytes())
        && lowest == Some(&1u64.to_be_bytes())
        && highest == Some(&HIGHEST_NS.to_be_bytes())
}

/// The stored form: base64 of HDR V2, the exact maximum beside it.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Histogram")]
struct Stored {
    /// Base64 of the HdrHistogram V2 encoding (uncompressed), values in nanoseconds.
    hdr_v2: String,
    /// Number of values counted.
    count: u64,
    /// Exact maximum in nanoseconds.
    max_ns: u64,
    /// Values above 60 s.
    overflow: u64,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = Stored {
            hdr_v2: self.encode(),
            count: self.len(),
            max_ns: self.max_ns,
            overflow: self.overflow,
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let histogram = Self::decode(&stored.hdr_v2, stored.max_ns, stored.overflow)
            .map_err(serde::de::Error::custom)?;
        if histogram.len() != stored.count {
            return Err(serde::de::Error::custom(format!(
                "a histogram holds {} values but says {}",
                histogram.len(),
                stored.count
            )));
        }
        Ok(histogram)
    }
}

impl schemars::JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Stored::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Stored::json_schema(generator)
    }
}
