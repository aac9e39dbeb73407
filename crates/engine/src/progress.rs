//! How far a load has come.

use std::sync::atomic::{AtomicU64, Ordering};

/// Running totals of a load, warm-up included, at most 10 ms old.
#[derive(Debug, Default)]
pub struct LoadProgress {
    completed: AtomicU64,
    errors: AtomicU64,
    bytes: AtomicU64,
}

impl LoadProgress {
    /// Requests answered, or writes taken.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Requests that failed.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Payload bytes, both ways.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, completed: u64, errors: u64, bytes: u64) {
        self.completed.fetch_add(completed, Ordering::Relaxed);
        self.errors.fetch_add(errors, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
