//! Payload that its receiver can check.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::secret::Secret;

/// Bytes of the sequence number at the head of every message.
pub(crate) const SEQUENCE: usize = 8;
/// Bytes of a mark.
pub(crate) const MARK: usize = 6;
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
    mark: Option<[u8; MARK]>,
}

impl Pattern {
    /// A pattern for contents of at most `size` bytes. Both ends make the same; with
    /// a secret, nobody else can.
    pub(crate) fn new(direction: PayloadDirection, size: usize, secret: Option<Secret>) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(direction as u64);
        let mut mark = None;
        if let Some(secret) = secret {
            let mut seed = [0; 32];
            seed[..Secret::LENGTH].copy_from_slice(secret.bytes());
            seed[Secret::LENGTH] = direction as u8;
            random = ChaCha8Rng::from_seed(seed);
            let mut bytes = [0; MARK];
            random.fill_bytes(&mut bytes);
            mark = Some(bytes);
        }
        let mut bytes = vec![0; size + SHIFTS];
        random.fill_bytes(&mut bytes);
        Self { bytes, mark }
    }

    /// Bytes that follow from the secret and from nothing else, if there is one.
    pub(crate) fn mark(&self) -> Option<[u8; MARK]> {
        self.mark
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
