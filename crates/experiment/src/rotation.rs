//! Slices of time, in which treatments take turns.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::Timing;

/// The first part of a slice, nanoseconds: load is sent but not recorded, while
/// caches and queues become those of this treatment.
const SKIPPED_NS: u64 = 3_000_000;
/// Length of a slice where an experiment says nothing, nanoseconds. Longer ones gain
/// nothing, not even for bulk (docs/method.md, "Calibration").
pub(crate) const SLICE_NS: u64 = 25_000_000;
/// Lengths of slices that may be asked for.
pub(crate) const SLICES: RangeInclusive<Duration> =
    Duration::from_nanos(2 * SKIPPED_NS)..=Duration::from_secs(10);

/// A slice of time in which one treatment has the machine. Nanoseconds after the
/// start that all treatments share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Load is sent from here on.
    pub begin_ns: u64,
    /// From here on it is recorded; the same as the end where none of it is.
    pub open_ns: u64,
    /// Here it ends.
    pub end_ns: u64,
}

impl Slice {
    /// How much of it is recorded, nanoseconds.
    pub fn recorded_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.open_ns)
    }
}

/// When each of some treatments has the machine: every rotation holds each of them
/// once, in random order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The slices of each member, in time order.
    pub members: Vec<Vec<Slice>>,
    /// Length of one slice, nanoseconds.
    pub slice_ns: u64,
    /// The part of it that is not recorded.
    pub skipped_ns: u64,
}

impl Rotation {
    /// A rotation of `members` in which the recorded parts of each add up to the
    /// window of `timing`, after as many unrecorded slices as make its warm-up. No slice
    /// is longer than `slice_ns`. The order follows from `seed`.
    pub fn new(members: usize, slice_ns: u64, timing: Timing, seed: u64) -> Self {
        let TurnSlices {
            slice_ns,
            warm_up,
            recorded,
        } = TurnSlices::of(slice_ns, timing);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // Arrivals are drawn from the streams before it.
        random.set_stream(u64::MAX / 2);
        let mut rotation = Self {
            members: vec![Vec::new(); members],
            slice_ns,
            skipped_ns: SKIPPED_NS,
        };
        let mut order: Vec<usize> = (0..members).collect();
        let mut begin_ns = 0;
        for number in 0..warm_up + recorded {
            order.shuffle(&mut random);
            for &member in &order {
                let end_ns = begin_ns + slice_ns;
                let is_warm_up = number < warm_up;
                rotation.members[member].push(Slice {
                    begin_ns,
                    open_ns: if is_warm_up {
                        end_ns
                    } else {
                        begin_ns + SKIPPED_NS
                    },
                    end_ns,
                });
                begin_ns = end_ns;
            }
        }
        rotation
    }

    /// How long the rotation takes that [`new`](Self::new) makes of so many members.
    pub(crate) fn duration(members: usize, slice_ns: u64, timing: Timing) -> Duration {
        let slices = TurnSlices::of(slice_ns, timing);
        let number = (slices.warm_up + slices.recorded).saturating_mul(members as u64);
        Duration::from_nanos(slices.slice_ns.saturating_mul(number))
    }

    /// From the start to the end of the last slice, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        let last = self.members.iter().filter_map(|slices| slices.last());
        last.map(|slice| slice.end_ns).max().unwrap_or(0)
    }
}

/// The slices of one member.
struct TurnSlices {
    /// Length of each, nanoseconds.
    slice_ns: u64,
    /// How many of them are its warm-up.
    warm_up: u64,
    /// How many are recorded.
    recorded: u64,
}

impl TurnSlices {
    /// No slice is longer than `slice_ns`.
    fn of(slice_ns: u64, timing: Timing) -> Self {
        let most_ns = slice_ns.saturating_sub(SKIPPED_NS).max(1);
        let recorded = timing.measure_ns.div_ceil(most_ns).max(1);
        let slice_ns = SKIPPED_NS + timing.measure_ns.div_ceil(recorded);
        Self {
            slice_ns,
            warm_up: timing.warm_up_ns.div_ceil(slice_ns),
            recorded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const TIMING: Timing = Timing {
        warm_up_ns: 60 * MS,
        measure_ns: 350 * MS,
        drain_ns: 100 * MS,
    };

    #[test]
    fn every_rotation_holds_each_member_once_without_gap_or_overlap() {
        let rotation = Rotation::new(5, SLICE_NS, TIMING, 7);
        let mut all: Vec<(u64, u64, usize)> = Vec::new();
        for (member, slices) in rotation.members.iter().enumerate() {
            all.extend(slices.iter().map(|it| (it.begin_ns, it.end_ns, member)));
        }
        all.sort_unstable();
        assert_eq!(all[0].0, 0);
        assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0));
        assert_eq!(all.last().map(|it| it.1), Some(rotation.length_ns()));
        let foretold = Rotation::duration(5, SLICE_NS, TIMING).as_nanos();
        assert_eq!(foretold, u128::from(rotation.length_ns()));
        let orders: Vec<Vec<usize>> = all
            .chunks(5)
            .map(|chunk| chunk.iter().map(|it| it.2).collect())
            .collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
        }
        assert!(orders.windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn the_recorded_parts_are_the_window_and_the_first_slices_the_warm_up() {
        for slice_ns in [SLICE_NS, 2 * SLICE_NS, 8 * MS] {
            let rotation = Rotation::new(3, slice_ns, TIMING, 1);
            assert!(rotation.slice_ns <= slice_ns);
            for slices in &rotation.members {
                let recorded: u64 = slices.iter().map(Slice::recorded_ns).sum();
                assert!(recorded.abs_diff(TIMING.measure_ns) < slices.len() as u64);
                let warm_up = slices.iter().take_while(|it| it.recorded_ns() == 0);
                assert!(warm_up.count() as u64 * rotation.slice_ns >= TIMING.warm_up_ns);
                let later = slices.iter().filter(|it| it.recorded_ns() > 0);
                for slice in later {
                    assert_eq!(slice.open_ns - slice.begin_ns, rotation.skipped_ns);
                }
            }
        }
    }

    #[test]
    fn the_order_follows_from_the_seed() {
        let with = |seed| Rotation::new(4, SLICE_NS, TIMING, seed);
        assert_eq!(with(3), with(3));
        assert_ne!(with(3), with(4));
    }
}
