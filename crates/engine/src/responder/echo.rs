//! `rr` and `crr`: a response for each request, after checking it.

use plumbline_experiment::{Workload, WorkloadKind};
use plumbline_record::ServeResult;

use super::streams::{Next, Service};
use crate::codec::{FixedFrame, FrameReader};
use crate::pattern::PayloadDirection;

/// Answers requests of a fixed size in their order.
pub(super) struct Echo {
    request: FixedFrame,
    response: FixedFrame,
    /// Closes after the first answer. The server closes first, so that
    /// TIME_WAIT is not on the client's side, where it would use up ports.
    once: bool,
}

impl Echo {
    pub(super) fn new(spec: &Workload) -> Self {
        Self {
            request: FixedFrame::new(PayloadDirection::Request, spec.request_size),
            response: FixedFrame::new(PayloadDirection::Response, spec.response_size),
            once: spec.kind == WorkloadKind::Crr,
        }
    }
}

impl Service for Echo {
    type Reader = FrameReader;

    #[inline]
    fn read(
        &mut self,
        reader: &mut FrameReader,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        seen: &mut ServeResult,
    ) -> Next {
        while !bytes.is_empty() {
            let (taken, message) = self.request.read(reader, bytes);
            bytes = &bytes[taken..];
            let Some(message) = message else {
                break;
            };
            if !message.intact {
                // Not answered: after a corrupt request nothing on this
                // connection can be trusted to be in step.
                seen.corrupt += 1;
                return Next::Close;
            }
            seen.requests += 1;
            let start = out.len();
            out.resize(start + self.response.size(), 0);
            self.response.write(message.seq, 0, &mut out[start..]);
            seen.bytes_sent += self.response.size() as u64;
            if self.once {
                return Next::Close;
            }
        }
        Next::Keep
    }
}
