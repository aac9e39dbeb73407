//! Which connections are free, longest free first.

/// A queue of connections without a request, each at most once. Taking the one
/// that has been free longest spreads the load over all connections, and shows
/// the earliest moment at which a waiting request could have gone out.
#[derive(Debug)]
pub(crate) struct Idle {
    ring: Vec<u32>,
    queued: Vec<bool>,
    head: usize,
    len: usize,
}

impl Idle {
    /// An empty queue for connections 0 to `slots`.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            ring: vec![0; slots],
            queued: vec![false; slots],
            head: 0,
            len: 0,
        }
    }

    /// Adds a connection, unless it is already there.
    #[inline]
    pub(crate) fn push(&mut self, slot: usize) {
        if std::mem::replace(&mut self.queued[slot], true) {
            return;
        }
        let mut at = self.head + self.len;
        if at >= self.ring.len() {
            at -= self.ring.len();
        }
        self.ring[at] = slot as u32;
        self.len += 1;
    }

    /// How many connections there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Takes the connection that was added first. It may have broken since.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let slot = self.ring[self.head] as usize;
        self.head += 1;
        if self.head == self.ring.len() {
            self.head = 0;
        }
        self.len -= 1;
        self.queued[slot] = false;
        Some(slot)
    }
}
