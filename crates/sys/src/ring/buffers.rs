//! The memory that a ring's operations read and write.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

/// Page-aligned zeroed memory.
struct Pages {
    start: *mut u8,
    layout: Layout,
    leaked: bool,
}

impl Pages {
    fn new(bytes: usize) -> Self {
        let layout =
            Layout::from_size_align(bytes.max(1), 4_096).expect("buffers are far below 2^63 bytes");
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Self {
            start,
            layout,
            leaked: false,
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if !self.leaked {
            // SAFETY: allocated with this layout, and freed only here.
            unsafe { dealloc(self.start, self.layout) };
        }
    }
}

/// Buffers that the kernel picks to receive into: the bytes, and the ring in
/// which they are offered to it (io_uring_register_buf_ring(3)).
pub(super) struct Incoming {
    offers: Pages,
    bytes: Pages,
    count: u16,
    size: u32,
    tail: u16,
}

impl Incoming {
    /// `count`, a power of two, buffers of `size` bytes, all offered.
    pub(super) fn new(count: u16, size: u32) -> Self {
        assert!(count.is_power_of_two(), "{count} buffers");
        let mut incoming = Self {
            offers: Pages::new(usize::from(count) * size_of::<BufRingEntry>()),
            bytes: Pages::new(usize::from(count) * size as usize),
            count,
            size,
            tail: 0,
        };
        incoming.give_back(0..count);
        incoming
    }

    /// Address of the ring of offers.
    pub(super) fn address(&self) -> u64 {
        self.offers.start as u64
    }

    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// Offers buffers to the kernel. Each must belong to the caller: a
    /// completion has named it, and it has not been offered again since.
    pub(super) fn give_back(&mut self, buffers: impl Iterator<Item = u16>) {
        let first: *mut BufRingEntry = self.offers.start.cast();
        for buffer in buffers {
            let at = usize::from(self.tail & (self.count - 1));
            let address = self.bytes.start as u64 + u64::from(buffer) * u64::from(self.size);
            // SAFETY: `at` is below the count that the pages have room for;
            // the kernel reads an entry only once the tail is beyond it. The
            // tail itself lies in the first entry's unused field, which these
            // setters do not touch.
            unsafe {
                let entry = &mut *first.add(at);
                entry.set_addr(address);
                entry.set_len(self.size);
                entry.set_bid(buffer);
            }
            self.tail = self.tail.wrapping_add(1);
        }
        // SAFETY: `first` is the page-aligned start of the ring, in which the
        // tail is a 16-bit field that the kernel only reads.
        let tail = unsafe { &*BufRingEntry::tail(first).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }

    /// The first `length` bytes of a buffer that a completion has named.
    pub(super) fn get(&self, buffer: u16, length: usize) -> &[u8] {
        assert!(buffer < self.count && length <= self.size as usize);
        let start = usize::from(buffer) * self.size as usize;
        // SAFETY: within the pages, zeroed at first, and not the kernel's to
        // write before it is given back, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.bytes.start.add(start), length) }
    }

    pub(super) fn leak(&mut self) {
        self.offers.leaked = true;
        self.bytes.leaked = true;
    }
}

/// A buffer to send from for each slot.
pub(super) struct Outgoing {
    bytes: Pages,
    size: usize,
    busy: Vec<bool>,
}

impl Outgoing {
    pub(super) fn new(count: usize, size: usize) -> Self {
        Self {
            bytes: Pages::new(count * size),
            size,
            busy: vec![false; count],
        }
    }

    pub(super) fn is_busy(&self, slot: usize) -> bool {
        self.busy.get(slot).is_some_and(|&busy| busy)
    }

    /// Copies `bytes` into a slot's buffer and marks it busy; `None` when it is
    /// busy already, or they do not fit.
    pub(super) fn fill(&mut self, slot: usize, bytes: &[u8]) -> Option<*const u8> {
        if bytes.len() > self.size || *self.busy.get(slot)? {
            return None;
        }
        self.busy[slot] = true;
        // SAFETY: the slot exists, its buffer has `size` bytes, and the kernel
        // does not read it: no send from it is under way.
        unsafe {
            let start = self.bytes.start.add(slot * self.size);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            Some(start)
        }
    }

    pub(super) fn free(&mut self, slot: usize) {
        self.busy[slot] = false;
    }

    pub(super) fn leak(&mut self) {
        self.bytes.leaked = true;
    }
}
