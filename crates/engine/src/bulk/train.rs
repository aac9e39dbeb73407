//! Trains of datagrams, which the kernel cuts up (UDP GSO).

use plumbline_sys::socket::TRAIN_MESSAGES;

/// Most bytes of a train: as many as one datagram could hold.
const TRAIN_BYTES: usize = 65_507;

/// Most messages of `size` bytes that make up one train.
pub(crate) fn train_of(size: u32) -> u32 {
    (TRAIN_BYTES as u32 / size).clamp(1, TRAIN_MESSAGES as u32)
}
