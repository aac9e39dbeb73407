//! `stream`: reads bytes and checks a sample of them.

use plumbline_record::ServeResult;

use super::service::{RequestStep, Service};
use crate::bulk::PERIOD;
use crate::pattern::{Pattern, PayloadDirection};

/// Bytes compared at the start of each read. TCP's own checksum guards the
/// rest; this finds a wrong or short-circuited path, and a shift in the stream.
const SAMPLE: usize = 64;

/// Reads everything, answers nothing.
pub(super) struct Sink {
    pattern: Pattern,
}

impl Sink {
    pub(super) fn new() -> Self {
        Self {
            pattern: Pattern::new(PayloadDirection::Request, PERIOD, None),
        }
    }
}

impl Service for Sink {
    /// Bytes of the stream so far.
    type Reader = u64;
    type Answer = ();

    #[inline]
    fn read(
        &mut self,
        position: &mut u64,
        bytes: &[u8],
        seen: &mut ServeResult,
    ) -> (usize, RequestStep<()>) {
        let from = (*position % PERIOD as u64) as usize;
        let length = bytes.len().min(SAMPLE).min(PERIOD - from);
        *position += bytes.len() as u64;
        if bytes[..length] == *self.pattern.content(0, from, length) {
            return (bytes.len(), RequestStep::More);
        }
        seen.corrupt += 1;
        (bytes.len(), RequestStep::Wrong)
    }

    fn piece(&mut self, (): (), _: usize) -> &[u8] {
        &[]
    }
}
