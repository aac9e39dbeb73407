//! Payload that its receiver can check.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Bytes of the sequence number at the head of every message.
pub(crate) const SEQUENCE: usize = 8;
/// How many different contents there are.
const SHIFTS: usize = 256;

/// Which way a payload goes. The contents differ, so that a request that comes
/// back as its own answer (a short-circuited path) is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadDirection {
    Request,
    Response,
}

/// Prepared random bytes. The content of message `seq` is a stretch of them
/// whose start depends on `seq`, so that checking is one comparison.
#[derive(Debug)]
pub(crate) struct Pattern {
    bytes: Vec<u8>,
}

impl Pattern {
    /// A pattern for contents of at most `size` bytes. Both ends make the same.
    pub(crate) fn new(direction: PayloadDirection, size: usize) -> Self {
        let mut bytes = vec![0; size + SHIFTS];
        ChaCha8Rng::seed_from_u64(direction as u64).fill_bytes(&mut bytes);
        Self { bytes }
    }

    /// The content of message `seq` from its byte `from` on, `length` bytes.
    #[inline]
    pub(crate) fn content(&self, seq: u64, from: usize, length: usize) -> &[u8] {
        // The top byte of a multiplication by 2^64 / φ differs between
        // neighbours and does not repeat at a period of 256.
        let shift = (seq.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize;
        &self.bytes[shift + from..][..length]
    }
}
