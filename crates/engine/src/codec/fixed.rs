//! Messages of a fixed size: a sequence number and a known content.

use super::{Answer, Codec, DecodeStep, Quality};
use crate::LoadPlan;
use crate::pattern::{Pattern, PayloadDirection, SEQUENCE};
use crate::secret::Secret;

/// Most bytes of a request that are made at once.
const PIECE: usize = 128 << 10;

/// One kind of message: its size and its contents.
#[derive(Debug)]
pub(crate) struct FixedFrame {
    size: usize,
    pattern: Pattern,
}

/// How far one message has been read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameReader {
    got: u32,
    corrupt: bool,
    seq: [u8; SEQUENCE],
}

/// A complete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Framed {
    pub(crate) seq: u64,
    /// Whether the content is the one that belongs to the number.
    pub(crate) intact: bool,
}

impl FixedFrame {
    /// Messages of `size` bytes, at least twice [`SEQUENCE`], whose content follows
    /// from the secret if there is one.
    pub(crate) fn new(direction: PayloadDirection, size: u32, secret: Option<Secret>) -> Self {
        let size = size as usize;
        Self {
            size,
            pattern: Pattern::new(direction, size, secret),
        }
    }

    /// Whether a message that is not intact comes from somebody who knows the secret,
    /// by the first bytes of its content. Without a secret everybody does.
    pub(crate) fn is_marked(&self, bytes: &[u8]) -> bool {
        if self.pattern.mark().is_none() {
            return true;
        }
        let Some((number, content)) = bytes.split_first_chunk::<SEQUENCE>() else {
            return false;
        };
        let seq = u64::from_le_bytes(*number);
        content.starts_with(self.pattern.content(seq, 0, SEQUENCE))
    }

    /// Bytes of a message.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Writes the bytes of message `seq` from byte `from` on over `piece`,
    /// which must not reach beyond the end of the message.
    #[inline]
    pub(crate) fn write(&self, seq: u64, from: usize, piece: &mut [u8]) {
        let head = SEQUENCE.saturating_sub(from).min(piece.len());
        let (number, content) = piece.split_at_mut(head);
        if head > 0 {
            number.copy_from_slice(&seq.to_le_bytes()[from..from + head]);
        }
        let from = (from + head).saturating_sub(SEQUENCE);
        content.copy_from_slice(self.pattern.content(seq, from, content.len()));
    }

    /// Reads on, at most to the end of one message; gives how many bytes it
    /// took and the message when it is complete.
    #[inline]
    pub(crate) fn read(&self, reader: &mut FrameReader, bytes: &[u8]) -> (usize, Option<Framed>) {
        let got = reader.got as usize;
        let take = bytes.len().min(self.size - got);
        let head = SEQUENCE.saturating_sub(got).min(take);
        reader.seq[got.min(SEQUENCE)..][..head].copy_from_slice(&bytes[..head]);
        let seq = u64::from_le_bytes(reader.seq);
        if take > head {
            let from = got + head - SEQUENCE;
            let content = &bytes[head..take];
            reader.corrupt |= content != self.pattern.content(seq, from, content.len());
        }
        reader.got += take as u32;
        if (reader.got as usize) < self.size {
            return (take, None);
        }
        let intact = !reader.corrupt;
        *reader = FrameReader::default();
        (take, Some(Framed { seq, intact }))
    }
}

/// The client's side of `rr` and `crr`.
#[derive(Debug)]
pub(crate) struct Fixed {
    /// Before each request: the secret, where each opens its own connection.
    shown: Vec<u8>,
    request: FixedFrame,
    response: FixedFrame,
    scratch: Vec<u8>,
    verify: bool,
}

impl Fixed {
    /// Requests and responses of a plan's sizes, `shown` before each request.
    pub(crate) fn new(plan: &LoadPlan, shown: &[u8]) -> Self {
        let spec = &plan.workload;
        let secret = plan.secret.filter(|_| spec.is_udp());
        let length = shown.len() + spec.request_size as usize;
        Self {
            shown: shown.to_vec(),
            request: FixedFrame::new(PayloadDirection::Request, spec.request_size, secret),
            response: FixedFrame::new(PayloadDirection::Response, spec.response_size, secret),
            scratch: vec![0; PIECE.min(length)],
            verify: plan.verify,
        }
    }
}

impl Codec for Fixed {
    type Reader = FrameReader;

    fn length(&self) -> usize {
        self.shown.len() + self.request.size()
    }

    #[inline]
    fn encode(&mut self, seq: u64, from: usize) -> &[u8] {
        let length = self.scratch.len().min(self.length() - from);
        let piece = &mut self.scratch[..length];
        let shown = self.shown.get(from..).unwrap_or_default();
        let (first, request) = piece.split_at_mut(shown.len());
        first.copy_from_slice(shown);
        let from = from.saturating_sub(self.shown.len());
        self.request.write(seq, from, request);
        piece
    }

    #[inline]
    fn decode(&mut self, reader: &mut FrameReader, bytes: &[u8]) -> (usize, DecodeStep) {
        let (taken, message) = self.response.read(reader, bytes);
        let Some(message) = message else {
            return (taken, DecodeStep::More);
        };
        let quality = if message.intact || !self.verify {
            Quality::Good
        } else {
            Quality::Corrupt
        };
        let answer = Answer {
            seq: self.verify.then_some(message.seq),
            bytes: self.response.size() as u64,
            quality,
            last: false,
        };
        (taken, DecodeStep::Answer(answer))
    }

    fn end(&self, _: &mut FrameReader) -> Option<Answer> {
        None
    }

    fn is_ours(&self, bytes: &[u8]) -> bool {
        self.response.is_marked(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use plumbline_experiment::{Workload, WorkloadKind};

    /// 64 B out and 64 B back.
    fn plan() -> LoadPlan {
        let workload = Workload::of_kind(WorkloadKind::Rr);
        LoadPlan::new(workload, ([127, 0, 0, 1], 9).into())
    }

    proptest! {
        /// However the stream is cut, the same messages come out.
        #[test]
        fn messages_survive_any_split(
            size in 16_u32..200,
            seqs in prop::collection::vec(any::<u64>(), 1..20),
            cuts in prop::collection::vec(1_usize..50, 1..40),
        ) {
            let frame = FixedFrame::new(PayloadDirection::Request, size, None);
            let mut stream = Vec::new();
            for &seq in &seqs {
                let mut message = vec![0; size as usize];
                frame.write(seq, 0, &mut message);
                stream.extend(message);
            }
            let mut reader = FrameReader::default();
            let mut read = Vec::new();
            let mut rest = stream.as_slice();
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let cut = (*cuts.next().unwrap()).min(rest.len());
                let (mut piece, after) = rest.split_at(cut);
                rest = after;
                while !piece.is_empty() {
                    let (taken, message) = frame.read(&mut reader, piece);
                    piece = &piece[taken..];
                    read.extend(message);
                }
            }
            prop_assert!(read.iter().all(|m| m.intact));
            prop_assert_eq!(read.iter().map(|m| m.seq).collect::<Vec<_>>(), seqs);
        }

        /// Pieces of a message are the message.
        #[test]
        fn pieces_make_the_whole(size in 16_usize..100, seq: u64, cut in 0_usize..100) {
            let frame = FixedFrame::new(PayloadDirection::Request, size as u32, None);
            let mut whole = vec![0; size];
            frame.write(seq, 0, &mut whole);
            let cut = cut.min(size);
            let mut pieces = vec![0; size];
            let (first, second) = pieces.split_at_mut(cut);
            frame.write(seq, 0, first);
            frame.write(seq, cut, second);
            prop_assert_eq!(whole, pieces);
        }

        /// What is shown before a request arrives whole, wherever it is cut.
        #[test]
        fn the_secret_comes_before_the_request(seq: u64, cut in 0_usize..80) {
            let (mut codec, mut plain) = (Fixed::new(&plan(), &[7; 16]), Fixed::new(&plan(), &[]));
            let mut whole = codec.encode(seq, 0)[..cut].to_vec();
            whole.extend_from_slice(codec.encode(seq, cut));
            prop_assert_eq!(&whole[..16], &[7; 16]);
            prop_assert_eq!(&whole[16..], plain.encode(seq, 0));
            prop_assert_eq!(codec.length(), whole.len());
        }

        /// One wrong bit anywhere is found: in the content by comparison, in
        /// the number because the content then belongs to another.
        #[test]
        fn a_flipped_bit_is_found(size in 16_u32..200, seq: u64, at: usize, bit in 0..8) {
            let frame = FixedFrame::new(PayloadDirection::Response, size, None);
            let mut message = vec![0; size as usize];
            frame.write(seq, 0, &mut message);
            let at = at % message.len();
            message[at] ^= 1_u8 << bit;
            let (_, read) = frame.read(&mut FrameReader::default(), &message);
            let read = read.unwrap();
            prop_assert!(!read.intact || read.seq != seq);
        }
    }

    #[test]
    fn a_request_is_not_its_own_answer() {
        let plan = plan();
        let mut codec = Fixed::new(&plan, &[]);
        let mut echo = Fixed::new(&plan, &[]);
        let (_, step) = codec.decode(&mut FrameReader::default(), echo.encode(7, 0));
        let DecodeStep::Answer(answer) = step else {
            panic!("{step:?}")
        };
        assert_eq!(answer.quality, Quality::Corrupt);
    }
}
