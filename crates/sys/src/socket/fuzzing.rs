//! What fuzzing targets reach of control messages.

use super::control::each;
use super::errors::told;
use super::messages::train_segment;
use super::stamps::{departure, software_stamp};
use super::zero_copy::notice;

/// Reads bytes as the kernel might leave them in room for control messages: the lengths
/// of their data.
///
/// # Panics
///
/// When a message is longer than all of them, or what is read contradicts itself.
pub fn control_messages(bytes: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    each(bytes, |level, kind, data| {
        lengths.push(data.len());
        if let Some(notice) = notice(level, kind, data) {
            assert!(data.len() >= 16, "{notice:?} of {} bytes", data.len());
        }
    });
    if let Some(stamp) = departure(bytes) {
        assert_eq!(software_stamp(bytes), Some(stamp.realtime_ns));
    }
    assert!(told(bytes).is_none() || !lengths.is_empty());
    assert_ne!(train_segment(bytes), Some(0));
    lengths
}
