//! `rr` and `crr`: a response for each request, after checking it.

use plumbline_experiment::{Workload, WorkloadKind};
use plumbline_record::ServeResult;

use super::service::{RequestStep, Service};
use crate::codec::{FixedFrame, FrameReader};
use crate::pattern::PayloadDirection;

/// Most bytes of a response that are made at once.
const PIECE: usize = 128 << 10;

/// Answers requests of a fixed size in their order.
pub(super) struct Echo {
    request: FixedFrame,
    response: FixedFrame,
    scratch: Vec<u8>,
    /// Closes after the first answer. The server closes first, so that
    /// TIME_WAIT is not on the client's side, where it would use up ports.
    once: bool,
}

impl Echo {
    pub(super) fn new(spec: &Workload) -> Self {
        Self {
            request: FixedFrame::new(PayloadDirection::Request, spec.request_size, None),
            response: FixedFrame::new(PayloadDirection::Response, spec.response_size, None),
            scratch: vec![0; PIECE.min(spec.response_size as usize)],
            once: spec.kind == WorkloadKind::Crr,
        }
    }
}

impl Service for Echo {
    type Reader = FrameReader;
    /// The number of the request.
    type Answer = u64;

    #[inline]
    fn read(
        &mut self,
        reader: &mut FrameReader,
        bytes: &[u8],
        seen: &mut ServeResult,
    ) -> (usize, RequestStep<u64>) {
        let (taken, message) = self.request.read(reader, bytes);
        let step = match message {
            None => RequestStep::More,
            Some(message) if !message.intact => {
                // Not answered: after a corrupt request nothing on this
                // connection can be trusted to be in step.
                seen.corrupt += 1;
                RequestStep::Wrong
            }
            Some(message) => {
                seen.requests += 1;
                seen.bytes_sent += self.response.size() as u64;
                if self.once {
                    RequestStep::Last(message.seq)
                } else {
                    RequestStep::Answer(message.seq)
                }
            }
        };
        (taken, step)
    }

    #[inline]
    fn piece(&mut self, seq: u64, from: usize) -> &[u8] {
        let length = self.scratch.len().min(self.response.size() - from);
        let piece = &mut self.scratch[..length];
        self.response.write(seq, from, piece);
        piece
    }
}
