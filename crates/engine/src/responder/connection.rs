//! One connection of a server: what was read of it, and what it is still owed.

use plumbline_record::ServeResult;

use super::service::{RequestStep, Service, think};
use crate::secret::Secret;

/// Most bytes of answers that are made before they are sent.
const ROOM: usize = 128 << 10;

/// Bytes of which the first were used up.
#[derive(Default)]
struct Remainder {
    bytes: Vec<u8>,
    from: usize,
}

impl Remainder {
    fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            from: 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Uses up more bytes; after the last one there is no memory left to keep.
    fn advance(&mut self, length: usize) {
        self.from += length;
        if self.from == self.bytes.len() {
            *self = Self::default();
        }
    }
}

/// What a server knows about one of its connections.
///
/// Its memory is bounded: requests are read only as fast as their answers leave, so
/// it holds at most what one call read and [`ROOM`].
pub(super) struct ServerConnection<S: Service> {
    reader: S::Reader,
    /// Bytes of the secret that are still to be shown.
    unshown: usize,
    /// Requests that arrived together with others whose answers filled the room.
    unread: Remainder,
    /// The answer that is being made, and how many of its bytes are.
    answer: Option<(S::Answer, usize)>,
    /// Answers that the kernel would not take yet. While there are any, nothing more
    /// is read: a client that does not take its answers gets no further ones.
    unsent: Remainder,
    closing: bool,
    /// Whether it waits for its next turn.
    pub(super) is_queued: bool,
    /// When something last happened on it.
    pub(super) active_ns: u64,
}

impl<S: Service> ServerConnection<S> {
    pub(super) fn new(secret: Option<Secret>, now_ns: u64) -> Self {
        Self {
            reader: S::Reader::default(),
            unshown: secret.map_or(0, |it| it.bytes().len()),
            unread: Remainder::default(),
            answer: None,
            unsent: Remainder::default(),
            closing: false,
            is_queued: false,
            active_ns: now_ns,
        }
    }

    /// Whether its client has yet to show the secret.
    pub(super) fn is_stranger(&self) -> bool {
        self.unshown > 0
    }

    /// Takes the secret off the first bytes of the connection, and gives those after
    /// it; `None` when it is another one.
    pub(super) fn greet<'a>(&mut self, secret: &Secret, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (shown, rest) = bytes.split_at(bytes.len().min(self.unshown));
        let expected = secret.bytes();
        let from = expected.len() - self.unshown;
        if *shown != expected[from..from + shown.len()] {
            return None;
        }
        self.unshown -= shown.len();
        Some(rest)
    }

    /// Reads requests and appends their answers to `out`, until there are no more of
    /// these bytes or no room is left. What is left is kept for
    /// [`catch_up`](Self::catch_up).
    #[inline]
    pub(super) fn read(
        &mut self,
        service: &mut S,
        bytes: &[u8],
        (out, think_ns): (&mut Vec<u8>, u64),
        seen: &mut ServeResult,
    ) {
        let taken = self.digest(service, bytes, (out, think_ns), seen);
        if taken < bytes.len() && !self.closing {
            self.unread = Remainder::of(&bytes[taken..]);
        }
    }

    /// Whether requests or a part of an answer are left from before.
    pub(super) fn is_behind(&self) -> bool {
        self.answer.is_some() || !self.unread.is_empty()
    }

    /// As [`read`](Self::read), with what was left of earlier bytes.
    pub(super) fn catch_up(
        &mut self,
        service: &mut S,
        out: (&mut Vec<u8>, u64),
        seen: &mut ServeResult,
    ) {
        let mut unread = std::mem::take(&mut self.unread);
        let taken = self.digest(service, unread.bytes(), out, seen);
        unread.advance(taken);
        self.unread = unread;
    }

    /// Gives how many bytes were read. A server that thinks sends each answer as soon
    /// as it is made.
    #[inline]
    fn digest(
        &mut self,
        service: &mut S,
        bytes: &[u8],
        (out, think_ns): (&mut Vec<u8>, u64),
        seen: &mut ServeResult,
    ) -> usize {
        let mut taken = 0;
        loop {
            while let Some((answer, from)) = &mut self.answer {
                let piece = service.piece(*answer, *from);
                if piece.is_empty() {
                    self.answer = None;
                    break;
                }
                let room = ROOM - out.len();
                if room == 0 {
                    return taken;
                }
                let piece = &piece[..piece.len().min(room)];
                out.extend_from_slice(piece);
                *from += piece.len();
            }
            let is_full = out.len() == ROOM || (think_ns > 0 && !out.is_empty());
            if self.closing || is_full || taken == bytes.len() {
                return taken;
            }
            let (length, step) = service.read(&mut self.reader, &bytes[taken..], seen);
            taken += length;
            self.closing = matches!(step, RequestStep::Last(_) | RequestStep::Wrong);
            if let RequestStep::Answer(answer) | RequestStep::Last(answer) = step {
                think(think_ns);
                self.answer = Some((answer, 0));
            }
        }
    }

    /// Whether all is said: it can be closed once the answers are out.
    pub(super) fn is_done(&self) -> bool {
        self.closing && self.answer.is_none()
    }

    /// Answers that the kernel has not taken.
    pub(super) fn unsent(&self) -> &[u8] {
        self.unsent.bytes()
    }

    /// Keeps what the kernel has not taken.
    pub(super) fn keep_unsent(&mut self, bytes: &[u8]) {
        self.unsent = Remainder::of(bytes);
    }

    /// The kernel has taken more of it.
    pub(super) fn sent(&mut self, length: usize) {
        self.unsent.advance(length);
    }
}
