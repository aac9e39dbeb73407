//! A histogram that was read: only the counters that are not zero.
//!
//! A run of 1,000 trials holds 5,000 histograms. With all 27,648 counters each
//! (D12) they would need 1.1 GB; what trials count needs a hundredth of it.

use super::shape::{DIGITS, HIGHEST_NS, HistogramError};

/// Bytes of the V2 header: cookie, length of the counters, offset and digits
/// of 4 bytes each, then lowest and highest value and a ratio of 8, big-endian.
const HEADER: usize = 40;
/// HDR V2, without compression.
const COOKIE: u32 = 0x1c84_9313;
/// With 3 digits, each power of two above 2,048 has 1,024 counters.
const HALF: usize = 1024;
/// Counters from 1 ns to 60 s: 2,048 to 2,048 ns and 1,024 for each of 25
/// doublings above.
const COUNTERS: usize = 27 * HALF;
/// The counter of 60 s. Those above it would be added to it when all are written again.
const LAST: usize = 25 * HALF + (HIGHEST_NS >> 25) as usize;
/// Most values of a histogram: a million in each second for two years. The histograms of all
/// trials that a plan may have still add up to a number that HDR can write.
const MOST: u64 = 1 << 46;

/// Counters that are not zero, in rising order.
#[derive(Clone, Debug)]
pub(super) struct Sparse {
    counters: Vec<(u32, u64)>,
    total: u64,
}

impl Sparse {
    /// Reads HDR V2 of our range and precision, and refuses all else before it
    /// could ask for memory (S-7).
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, HistogramError> {
        let wrong = |what: &str| HistogramError::Format(what.to_owned());
        if bytes.get(..4) != Some(&COOKIE.to_be_bytes()) {
            return Err(wrong("it does not begin as one"));
        }
        if !has_our_shape(bytes) {
            return Err(wrong("another range or precision"));
        }
        let mut rest = bytes.get(HEADER..).unwrap_or_default();
        let length = u32::try_from(rest.len()).map(u32::to_be_bytes);
        if bytes.len() < HEADER || length.ok().as_ref().map(|l| &l[..]) != bytes.get(4..8) {
            return Err(wrong("its length is not what it says"));
        }
        let mut sparse = Self {
            counters: Vec::new(),
            total: 0,
        };
        let mut index = 0usize;
        while !rest.is_empty() {
            let word = varint(&mut rest).ok_or_else(|| wrong("it is cut off"))?;
            // Zigzag: a negative number skips as many counters that are zero.
            let number = (word >> 1).cast_signed() ^ -((word & 1).cast_signed());
            let step = if number < 0 { number.unsigned_abs() } else { 1 };
            let next = usize::try_from(step)
                .ok()
                .and_then(|step| index.checked_add(step))
                .filter(|next| *next <= COUNTERS)
                .ok_or_else(|| wrong("it has too many counters"))?;
            if number > 0 {
                if index > LAST {
                    return Err(wrong("it counts values above its range"));
                }
                // The sum of two numbers of 63 bits.
                sparse.total += number.unsigned_abs();
                if sparse.total > MOST {
                    return Err(wrong("it counts more values than there can be"));
                }
                // Below COUNTERS, which fits.
                sparse.counters.push((index as u32, number.unsigned_abs()));
            }
            index = next;
        }
        Ok(sparse)
    }

    /// How many values were counted.
    pub(super) fn len(&self) -> u64 {
        self.total
    }

    /// Highest value of each bucket with its count.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counters.iter().map(|&(index, count)| {
            let (lowest, width) = range(index);
            (lowest + width - 1, count)
        })
    }

    /// The value at quantile `q`, as the dense form gives it.
    pub(super) fn value_at(&self, q: f64) -> u64 {
        let wanted = ((q.clamp(0.0, 1.0) * self.total as f64).ceil() as u64).max(1);
        let mut passed = 0;
        for &(index, count) in &self.counters {
            passed += count;
            if passed >= wanted {
                let (lowest, width) = range(index);
                return if q <= 0.0 { lowest } else { lowest + width - 1 };
            }
        }
        0
    }

    /// The mean, each value taken as the middle of its bucket.
    pub(super) fn mean(&self) -> f64 {
        let total = self.total as f64;
        self.counters.iter().fold(0.0, |mean, &(index, count)| {
            let (lowest, width) = range(index);
            mean + (lowest + width / 2) as f64 * count as f64 / total
        })
    }

    /// How many values are in buckets that begin at or below `ns`.
    pub(super) fn count_at_or_below(&self, ns: u64) -> u64 {
        self.counters
            .iter()
            .take_while(|(index, _)| range(*index).0 <= ns)
            .map(|(_, count)| count)
            .sum()
    }
}

/// Whether the header names our range and precision.
fn has_our_shape(bytes: &[u8]) -> bool {
    bytes.get(8..12) == Some(&[0; 4])
        && bytes.get(12..16) == Some(&u32::from(DIGITS).to_be_bytes())
        && bytes.get(16..24) == Some(&1u64.to_be_bytes())
        && bytes.get(24..32) == Some(&HIGHEST_NS.to_be_bytes())
}

/// Lowest value of a counter, and how many values share it.
fn range(index: u32) -> (u64, u64) {
    let half = HALF as u32;
    // The first 2,048 counters hold one value each.
    let doublings = (index / half).saturating_sub(1);
    let within = index - doublings * half;
    (u64::from(within) << doublings, 1 << doublings)
}

/// LEB128 with at most 9 bytes, the ninth taken whole, as HDR writes it.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if shift == 56 {
            return Some(value | u64::from(byte) << shift);
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
