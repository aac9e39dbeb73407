//! When requests are due (L-1, L-6).

use plumbline_experiment::Arrival;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::window::Window;

/// The moments at which one worker's requests are intended, in rising order.
///
/// The whole sequence follows from rate, seed and the slices in which the load
/// runs; nothing that happens meanwhile can move it. It is computed one step ahead rather than
/// stored, which is the same plan without its memory.
#[derive(Debug)]
pub(crate) struct Schedule {
    window: Window,
    next: u64,
    spacing: Spacing,
}

#[derive(Debug)]
enum Spacing {
    /// Arrival `k` of this worker is arrival `k * stride + offset` of all
    /// workers together, so that the gaps of the whole are equal too.
    Constant {
        gap_ns: f64,
        stride: u64,
        index: u64,
    },
    /// Independent exponential gaps. Merged, the workers' processes are again
    /// Poisson at the sum of their rates.
    Poisson {
        gap_ns: f64,
        elapsed_ns: f64,
        random: Box<ChaCha8Rng>,
    },
}

impl Schedule {
    /// The share of worker `worker` of `workers` in an arrival process that
    /// goes on while the load runs; `None` for a closed loop.
    pub(crate) fn new(
        arrival: Arrival,
        seed: u64,
        worker: usize,
        workers: usize,
        window: Window,
    ) -> Option<Self> {
        let spacing = match arrival {
            Arrival::Closed => return None,
            Arrival::Constant { rate } => Spacing::Constant {
                gap_ns: 1e9 / rate,
                stride: workers as u64,
                index: worker as u64,
            },
            Arrival::Poisson { rate } => {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream(worker as u64);
                Spacing::Poisson {
                    gap_ns: 1e9 * workers as f64 / rate,
                    elapsed_ns: 0.0,
                    random: Box::new(random),
                }
            }
        };
        let mut schedule = Self {
            next: window.start(),
            window,
            spacing,
        };
        if matches!(schedule.spacing, Spacing::Poisson { .. }) {
            schedule.advance();
        } else {
            schedule.place();
        }
        Some(schedule)
    }

    /// When the next request is due, in nanoseconds of the monotonic clock.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Goes on to the request after the next.
    #[inline]
    pub(crate) fn advance(&mut self) {
        match &mut self.spacing {
            Spacing::Constant { index, stride, .. } => *index += *stride,
            Spacing::Poisson {
                gap_ns,
                elapsed_ns,
                random,
            } => {
                // 53 random bits make a uniform number in [0, 1).
                let uniform = (random.next_u64() >> 11) as f64 * (-53_f64).exp2();
                *elapsed_ns -= *gap_ns * (-uniform).ln_1p();
            }
        }
        self.place();
    }

    fn place(&mut self) {
        let elapsed_ns = match &self.spacing {
            // From the index, not by adding gaps, so that rounding does not
            // add up.
            Spacing::Constant { gap_ns, index, .. } => *index as f64 * gap_ns,
            Spacing::Poisson { elapsed_ns, .. } => *elapsed_ns,
        };
        self.next = self.window.clock_at(elapsed_ns.round() as u64);
    }
}

#[cfg(test)]
mod tests;
