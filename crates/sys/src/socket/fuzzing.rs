//! What fuzzing targets reach of control messages.

use super::control::each;
use super::errors::told;
use super::messages::train_segment;
use super::stamps::{departure, software_stamp};
use super::zero_copy::notice;

/// Reads bytes as the kernel might leave them in room for control messages: what they tell.
///
/// # Panics
///
/// When a message is longer than all of them, or what is read contradicts itself.
pub fn control_messages(bytes: &[u8]) -> Vec<&'static str> {
    let (mut length, mut is_notice) = (0, false);
    each(bytes, |level, kind, data| {
        length += data.len();
        if let Some(notice) = notice(level, kind, data) {
            assert!(data.len() >= 16, "{notice:?} of {} bytes", data.len());
            is_notice = true;
        }
    });
    assert!(length <= bytes.len(), "{length} of {}", bytes.len());
    let (stamp, departure) = (software_stamp(bytes), departure(bytes));
    assert!(departure.is_none_or(|it| stamp == Some(it.realtime_ns)));
    let is_too_long = told(bytes).is_some();
    assert!(!is_too_long || length > 0);
    let segment = train_segment(bytes);
    assert_ne!(segment, Some(0));
    let told = [
        ("zero copy", is_notice),
        ("stamp", stamp.is_some()),
        ("departure", departure.is_some()),
        ("too long", is_too_long),
        ("segment", segment.is_some()),
    ];
    let names = told.into_iter().filter(|(_, is_told)| *is_told);
    names.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::seed;

    #[test]
    fn everything_that_is_told_is_read_in_a_seed() {
        let seeds: [(&str, &[&str]); 7] = [
            ("zero-copy", &["zero copy"]),
            ("stamp", &["stamp"]),
            ("departure", &["stamp", "departure"]),
            ("too-long", &["too long"]),
            ("too-long-6", &["too long"]),
            ("segment", &["segment"]),
            ("cut", &[]),
        ];
        for (name, expected) in seeds {
            let seed = seed(&format!("control_messages/{name}"));
            assert_eq!(control_messages(&seed), expected, "{name}");
        }
    }
}
