//! When the paths of a lab are made anew.

/// How many times as long as it took to make them paths stand at least.
const LEAST_TIMES: u64 = 10;

/// How long it took to make all paths, and when that ended, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Renewal {
    took: u64,
    ended: u64,
}

impl Renewal {
    /// Paths were made, and those before them taken down, between two moments.
    pub(crate) fn between(began: u64, ended: u64) -> Self {
        Self {
            took: ended.saturating_sub(began),
            ended,
        }
    }

    /// Whether making them again `now` takes less than a tenth of the time.
    pub(crate) fn is_due(self, now: u64) -> bool {
        now.saturating_sub(self.ended) >= self.took.saturating_mul(LEAST_TIMES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_ten_times_as_long_as_it_took_to_make_them() {
        let renewal = Renewal::between(1_000, 1_300);
        assert!(!renewal.is_due(1_300));
        assert!(!renewal.is_due(4_299));
        assert!(renewal.is_due(4_300));
    }
}
