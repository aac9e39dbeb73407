//! How long before a deadline a sleep must end.

/// Bounds of the margin. Where wake-ups are later than the upper one, meeting
/// every deadline would cost more than it is worth.
const LEAST_NS: u64 = 1_000;
const MOST_NS: u64 = 80_000;
/// Share of the wake-ups that the margin covers, in hundredths.
const COVERED: u64 = 90;
/// How far one late wake-up moves the margin, per hundredth.
const STEP_NS: u64 = 10;

/// Follows a quantile of how late this thread wakes, by stochastic
/// approximation (Robbins and Monro, 1951): a wake-up later than the estimate
/// raises it, any other lowers it, in such proportion that both balance at the
/// quantile. No history is kept, and one disturbance moves it by 0.9 µs only.
#[derive(Debug)]
pub(super) struct Margin {
    ns: u64,
}

impl Margin {
    /// Starts at the quantile of a few delays measured beforehand.
    pub(super) fn calibrated(late: &mut [u64]) -> Self {
        late.sort_unstable();
        let at = (late.len() * COVERED as usize / 100).min(late.len() - 1);
        Self {
            ns: late[at].clamp(LEAST_NS, MOST_NS),
        }
    }

    /// The margin in nanoseconds.
    #[inline]
    pub(super) fn ns(&self) -> u64 {
        self.ns
    }

    /// The thread woke `late` nanoseconds after it should have. A delay beyond
    /// all margins means that something else had the CPU: there is nothing to
    /// learn from it, and polling more would only take more of that CPU.
    #[inline]
    pub(super) fn observe(&mut self, late: u64) {
        if late > MOST_NS {
            return;
        }
        let ns = if late > self.ns {
            self.ns + COVERED * STEP_NS
        } else {
            self.ns.saturating_sub((100 - COVERED) * STEP_NS)
        };
        self.ns = ns.clamp(LEAST_NS, MOST_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays that are equally likely anywhere up to `most`.
    fn uniform(most: u64) -> impl Iterator<Item = u64> {
        (0_u64..).map(move |i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % most)
    }

    #[test]
    fn the_margin_settles_at_the_quantile() {
        let mut margin = Margin::calibrated(&mut [20_000; 8]);
        uniform(50_000).take(5_000).for_each(|l| margin.observe(l));
        assert!((40_000..50_000).contains(&margin.ns()), "{}", margin.ns());
        uniform(10_000).take(5_000).for_each(|l| margin.observe(l));
        assert!((8_000..11_000).contains(&margin.ns()), "{}", margin.ns());
    }

    #[test]
    fn a_busy_cpu_teaches_nothing() {
        let mut margin = Margin::calibrated(&mut [20_000; 8]);
        (0..1_000).for_each(|_| margin.observe(3_000_000));
        assert_eq!(margin.ns(), 20_000);
    }

    #[test]
    fn the_margin_keeps_its_bounds() {
        let mut margin = Margin::calibrated(&mut [0; 8]);
        assert_eq!(margin.ns(), LEAST_NS);
        (0..1_000).for_each(|_| margin.observe(MOST_NS));
        assert_eq!(margin.ns(), MOST_NS);
        assert_eq!(Margin::calibrated(&mut [1 << 40; 24]).ns(), MOST_NS);
    }
}
