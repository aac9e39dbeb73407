//! Socket operations that the kernel completes by itself (io_uring), given to
//! it in batches.

mod buffers;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use buffers::{Incoming, Outgoing};

/// Number of our only group of receive buffers.
const GROUP: u16 = 0;
/// What an empty slot holds instead of a descriptor.
const NO_FILE: RawFd = -1;
/// Completions taken per wait.
const BATCH: usize = 256;

/// How much memory a ring has for receiving and sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Buffers to receive into; a power of two.
    pub incoming: u16,
    /// Bytes of each. A longer datagram is cut.
    pub incoming_size: u32,
    /// Slots: each has a place for a socket, and a buffer to send from.
    pub slots: usize,
    /// Bytes of such a buffer.
    pub outgoing_size: usize,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`Ring::receive`].
    Receive,
    /// [`Ring::send`].
    Send,
    /// [`Ring::watch_room`].
    Room,
    /// [`Ring::cancel`].
    Cancel,
}

/// Whose operation it is: a slot of the caller's, and which of the sockets
/// that were in it one after the other (of which 30 bits are kept).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The slot.
    pub slot: u32,
    /// The socket's number in that slot.
    pub generation: u32,
}

const GENERATIONS: u64 = (1 << 30) - 1;

impl Operation {
    fn stamp(self, token: Token) -> u64 {
        let generation = u64::from(token.generation) & GENERATIONS;
        (self as u64) << 62 | generation << 32 | u64::from(token.slot)
    }

    fn read(stamp: u64) -> (Self, Token) {
        let operation = match stamp >> 62 {
            0 => Self::Receive,
            1 => Self::Send,
            2 => Self::Room,
            _ => Self::Cancel,
        };
        let token = Token {
            slot: stamp as u32,
            generation: (stamp >> 32 & GENERATIONS) as u32,
        };
        (operation, token)
    }
}

/// An operation has made progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What it is.
    pub operation: Operation,
    /// Whose it is.
    pub token: Token,
    /// Bytes moved, or the negated error number.
    pub result: i32,
    /// Whether more completions of the same operation follow.
    pub more: bool,
    /// The buffer that holds what was received.
    buffer: Option<u16>,
}

/// A ring of one thread: only the thread that made it can use it.
///
/// All memory that the kernel reads or writes on behalf of an operation
/// belongs to the ring, and outlives the operation.
pub struct Ring {
    ring: IoUring,
    incoming: Incoming,
    outgoing: Outgoing,
    done: Vec<Completion>,
}

impl Ring {
    /// A ring with room for `entries` operations per batch (Linux 6.1).
    ///
    /// # Errors
    /// `ENOSYS`, `EPERM` or `EINVAL` where the kernel, a seccomp profile or
    /// `kernel.io_uring_disabled` does not allow it.
    pub fn new(entries: u32, room: Room) -> io::Result<Self> {
        let ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_clamp()
            .setup_cqsize(entries.max(1_024) * 4)
            .build(entries)?;
        let incoming = Incoming::new(room.incoming, room.incoming_size);
        // SAFETY: `incoming` lives as long as the ring: it is a field of the
        // same structure, and is leaked if the ring cannot be quieted.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                incoming.address(),
                incoming.count(),
                GROUP,
                0,
            )?;
        }
        ring.submitter()
            .register_files_sparse(room.slots.max(1) as u32)?;
        // Saves a look-up in each call; a kernel before 5.18 refuses.
        let _ = ring.submitter().register_ring_fd();
        Ok(Self {
            ring,
            incoming,
            outgoing: Outgoing::new(room.slots, room.outgoing_size),
            done: Vec::with_capacity(BATCH),
        })
    }

    /// Puts a socket into a slot, for the operations that follow.
    pub fn attach(&mut self, slot: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.set_file(slot, socket.as_raw_fd())
    }

    /// Takes the socket out of a slot. Operations on it must have been
    /// cancelled, or it stays open until they have ended.
    pub fn detach(&mut self, slot: u32) -> io::Result<()> {
        // Operations that the kernel does not have yet refer to this socket.
        self.submit()?;
        self.set_file(slot, NO_FILE)
    }

    fn set_file(&mut self, slot: u32, file: RawFd) -> io::Result<()> {
        let submitter = self.ring.submitter();
        submitter.register_files_update(slot, &[file]).map(drop)
    }

    /// Receives from a slot's socket until an error, the end of the stream, or
    /// a lack of buffers; each arrival is a completion.
    pub fn receive(&mut self, token: Token) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fixed(token.slot), GROUP).build();
        self.push(entry.user_data(Operation::Receive.stamp(token)))
    }

    /// Waits once until a slot's socket has room to send, or has failed.
    pub fn watch_room(&mut self, token: Token) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fixed(token.slot), libc::POLLOUT as u32).build();
        self.push(entry.user_data(Operation::Room.stamp(token)))
    }

    /// Sends all of `bytes` from the slot's buffer, which is in use until the
    /// completion. False, and nothing is sent, while it is, or when it is too
    /// small.
    pub fn send(&mut self, token: Token, bytes: &[u8]) -> io::Result<bool> {
        let Some(address) = self.outgoing.fill(token.slot as usize, bytes) else {
            return Ok(false);
        };
        // The kernel continues by itself until everything is sent.
        let entry = opcode::Send::new(Fixed(token.slot), address, bytes.len() as u32)
            .flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
            .build();
        self.push(entry.user_data(Operation::Send.stamp(token)))?;
        Ok(true)
    }

    /// Whether the buffer of a slot is in use.
    pub fn is_sending(&self, slot: u32) -> bool {
        self.outgoing.is_busy(slot as usize)
    }

    /// Ends an operation that was begun with this token.
    pub fn cancel(&mut self, operation: Operation, token: Token) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(operation.stamp(token)).build();
        self.push(entry.user_data(Operation::Cancel.stamp(token)))
    }

    /// Gives the kernel everything at once.
    fn submit(&mut self) -> io::Result<()> {
        if self.ring.submission().is_empty() {
            return Ok(());
        }
        match self.ring.submit() {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Submits, then waits until something is complete or `timeout_ns` have
    /// passed, and gives how many completions there are; 0 does not sleep.
    /// What the last completions received is given back to the kernel.
    pub fn wait(&mut self, timeout_ns: u64) -> io::Result<usize> {
        let buffers = self.done.iter().filter_map(|one| one.buffer);
        self.incoming.give_back(buffers);
        self.done.clear();
        let pending = !self.ring.completion().is_empty();
        let submission = self.ring.submission();
        if timeout_ns == 0 && submission.is_empty() && !submission.taskrun() {
            drop(submission);
        } else {
            drop(submission);
            self.enter(if pending { 0 } else { timeout_ns })?;
        }
        for entry in self.ring.completion().take(BATCH) {
            let (operation, token) = Operation::read(entry.user_data());
            if operation == Operation::Send {
                self.outgoing.free(token.slot as usize);
            }
            self.done.push(Completion {
                operation,
                token,
                result: entry.result(),
                more: cqueue::more(entry.flags()),
                buffer: cqueue::buffer_select(entry.flags()),
            });
        }
        Ok(self.done.len())
    }

    fn enter(&mut self, timeout_ns: u64) -> io::Result<()> {
        let timeout = Timespec::new()
            .sec(timeout_ns / 1_000_000_000)
            .nsec((timeout_ns % 1_000_000_000) as u32);
        let arguments = SubmitArgs::new().timespec(&timeout);
        let want = usize::from(timeout_ns > 0);
        match self.ring.submitter().submit_with_args(want, &arguments) {
            Ok(_) => Ok(()),
            Err(e) => match e.raw_os_error() {
                // The time is up, a signal came, or completions must be taken
                // first.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(e),
            },
        }
    }

    /// The `index`th completion of the last [`wait`](Self::wait).
    ///
    /// # Panics
    /// When there are fewer.
    pub fn completion(&self, index: usize) -> Completion {
        self.done[index]
    }

    /// What the `index`th completion of the last wait has received.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn received(&self, index: usize) -> &[u8] {
        let done = &self.done[index];
        match done.buffer {
            Some(buffer) => self.incoming.get(buffer, done.result.max(0) as usize),
            None => &[],
        }
    }

    fn push(&mut self, entry: squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: the only memory that our operations name is that of
            // `incoming` and `outgoing`, which outlive them; a slot without a
            // socket is an error of the operation.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }
}

impl Drop for Ring {
    /// Ends all operations before their memory is freed. If the kernel does not
    /// confirm that they have ended, the memory is leaked.
    fn drop(&mut self) {
        let ended = self
            .ring
            .submitter()
            .register_sync_cancel(None, CancelBuilder::any());
        let quiet = match ended {
            Ok(()) => true,
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        };
        if !quiet {
            self.incoming.leak();
            self.outgoing.leak();
        }
    }
}

#[cfg(test)]
mod tests;
