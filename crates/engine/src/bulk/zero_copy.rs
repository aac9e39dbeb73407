//! Writes that the kernel is to send without a copy.

use std::io;

use plumbline_record::ZeroCopyCounts;
use plumbline_sys::socket::Socket;

/// The writes of all connections, and what the kernel told of them.
pub(super) struct ZeroCopy {
    /// By connection: writes of which the kernel has told nothing yet.
    waiting: Vec<u32>,
    counts: ZeroCopyCounts,
}

impl ZeroCopy {
    /// No writes yet, on so many connections.
    pub(super) fn new(lines: usize) -> Self {
        Self {
            waiting: vec![0; lines],
            counts: ZeroCopyCounts::default(),
        }
    }

    /// Offers bytes to the kernel. `WouldBlock` also when it must first be done
    /// with earlier ones; it then reports the socket.
    pub(super) fn send(
        &mut self,
        socket: &Socket,
        slot: usize,
        bytes: &'static [u8],
    ) -> io::Result<usize> {
        if let Some(taken) = socket.send_zero_copy(bytes)? {
            self.waiting[slot] += 1;
            return Ok(taken);
        }
        self.collect(socket, slot);
        if self.waiting[slot] > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // Nothing is held, and yet there is no room: nothing may be held at
        // all. A copy is then the only way, and is counted as one.
        let taken = socket.send(bytes)?;
        self.counts.told += 1;
        self.counts.copied += 1;
        Ok(taken)
    }

    /// Takes what the kernel has told meanwhile.
    pub(super) fn collect(&mut self, socket: &Socket, slot: usize) {
        while let Ok(notice) = socket.zero_copy_notice() {
            let sends = u64::from(notice.sends);
            self.waiting[slot] = self.waiting[slot].saturating_sub(notice.sends);
            self.counts.told += sends;
            self.counts.copied += if notice.copied { sends } else { 0 };
        }
    }

    /// A connection is gone, and with it what was not told.
    pub(super) fn forget(&mut self, slot: usize) {
        self.waiting[slot] = 0;
    }

    /// What the kernel told so far.
    pub(super) fn counts(&self) -> ZeroCopyCounts {
        self.counts
    }
}
