//! Writes that the kernel should send without a copy.

use std::io;

use plumbline_record::ZeroCopyCounts;
use plumbline_sys::socket::Socket;

/// The writes of all connections, and what the kernel reported about them.
pub(super) struct ZeroCopy {
    /// By connection: writes that the kernel has not reported yet.
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

    /// Offers bytes to the kernel. Also gives `WouldBlock` when the kernel must
    /// first finish earlier writes; it then reports the socket.
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
        // No pages are held, and yet there is no room: none may be held at all.
        // A copy is then the only way, and is counted as one.
        let taken = socket.send(bytes)?;
        self.counts.told += 1;
        self.counts.copied += 1;
        Ok(taken)
    }

    /// Reads what the kernel has reported meanwhile.
    pub(super) fn collect(&mut self, socket: &Socket, slot: usize) {
        while let Ok(notice) = socket.zero_copy_notice() {
            let sends = u64::from(notice.sends);
            self.waiting[slot] = self.waiting[slot].saturating_sub(notice.sends);
            self.counts.told += sends;
            self.counts.copied += if notice.copied { sends } else { 0 };
        }
    }

    /// A connection is gone, and with it its outstanding reports.
    pub(super) fn forget(&mut self, slot: usize) {
        self.waiting[slot] = 0;
    }

    /// What the kernel has reported so far.
    pub(super) fn counts(&self) -> ZeroCopyCounts {
        self.counts
    }
}
