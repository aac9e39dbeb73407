//! How long an agent waits for its controller.

use std::time::{Duration, Instant};

/// An agent that hears nothing for this long stops its load and ends (S-5e).
pub const LEASE: Duration = Duration::from_secs(3);

/// The last part of a lease, which begins anew where the rest ran out: on a machine that stood
/// still meanwhile, as a virtual one does that its host pauses, both sides wake up late, and
/// the controller gets this long to say so.
const LAST_PART: Duration = Duration::from_millis(200);

/// When the controller was heard last.
pub(crate) struct Lease {
    heard: Instant,
    is_last_part: bool,
}

impl Lease {
    pub(crate) fn new() -> Self {
        Self {
            heard: Instant::now(),
            is_last_part: false,
        }
    }

    /// The controller was heard.
    pub(crate) fn renew(&mut self) {
        *self = Self::new();
    }

    /// How long to wait for it now, of a lease of this length.
    pub(crate) fn wait(&self, length: Duration) -> Duration {
        match self.is_last_part {
            true => LAST_PART,
            false => (length - LAST_PART).saturating_sub(self.heard.elapsed()),
        }
    }

    /// It was not heard for [as long as that](Self::wait): whether the lease has ended.
    pub(crate) fn runs_out(&mut self) -> bool {
        std::mem::replace(&mut self.is_last_part, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_after_the_last_part_and_begins_anew_with_each_word() {
        let mut lease = Lease::new();
        let most = LEASE - LAST_PART;
        assert!(lease.wait(LEASE) <= most && lease.wait(LEASE) > most / 2);
        assert!(!lease.runs_out());
        assert_eq!(lease.wait(LEASE), LAST_PART);
        lease.renew();
        assert!(lease.wait(LEASE) > LAST_PART);
        assert!(!lease.runs_out());
        assert!(lease.runs_out());
    }
}
