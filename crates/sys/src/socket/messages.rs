//! Many datagrams in one system call (`sendmmsg`, `recvmmsg`).

use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::ptr;

use super::Socket;

/// A fixed number of datagram buffers of a fixed size, filled by one receive
/// or sent by one send. Allocates only when made.
pub struct Messages {
    size: usize,
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    names: Vec<libc::sockaddr_storage>,
    name_lengths: Vec<libc::socklen_t>,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    len: usize,
}

// SAFETY: the raw pointers in `parts` and `headers` are written anew before
// each system call and not read in between; the rest is owned data.
unsafe impl Send for Messages {}

impl Messages {
    /// Room for `capacity` messages of at most `size` bytes.
    pub fn new(capacity: usize, size: usize) -> Self {
        // SAFETY: all three are plain C structures, for which zero is valid.
        let (name, part, header) = unsafe {
            (
                mem::zeroed::<libc::sockaddr_storage>(),
                mem::zeroed::<libc::iovec>(),
                mem::zeroed::<libc::mmsghdr>(),
            )
        };
        Self {
            size,
            bytes: vec![0; capacity * size],
            lengths: vec![0; capacity],
            names: vec![name; capacity],
            name_lengths: vec![0; capacity],
            parts: vec![part; capacity],
            headers: vec![header; capacity],
            len: 0,
        }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is no room for another message.
    pub fn is_full(&self) -> bool {
        self.len == self.lengths.len()
    }

    /// Forgets all messages.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The bytes of message `index`.
    ///
    /// # Panics
    /// When there is no such message.
    pub fn get(&self, index: usize) -> &[u8] {
        assert!(index < self.len, "message {index} of {}", self.len);
        let start = index * self.size;
        &self.bytes[start..start + self.lengths[index]]
    }

    /// Adds a message of `length` bytes for a connected socket and gives its
    /// bytes to be written. They hold what an earlier message left there.
    ///
    /// # Panics
    /// When full, or when `length` is beyond the size given to
    /// [`new`](Self::new).
    pub fn push(&mut self, length: usize) -> &mut [u8] {
        assert!(!self.is_full() && length <= self.size);
        let index = self.len;
        self.len += 1;
        self.lengths[index] = length;
        self.name_lengths[index] = 0;
        &mut self.bytes[index * self.size..][..length]
    }

    /// Adds a message that goes back to where message `index` of `received`
    /// came from. Panics as [`push`](Self::push).
    pub fn push_reply(&mut self, received: &Self, index: usize, length: usize) -> &mut [u8] {
        let own = self.len;
        self.push(length);
        self.names[own] = received.names[index];
        self.name_lengths[own] = received.name_lengths[index];
        &mut self.bytes[own * self.size..][..length]
    }

    /// Lets the headers point to `count` messages from `from` on.
    fn prepare(&mut self, from: usize, count: usize, receive: bool) {
        let bytes = self.bytes.as_mut_ptr();
        let names = self.names.as_mut_ptr();
        let parts = self.parts.as_mut_ptr();
        for index in from..from + count {
            let (length, name_length) = if receive {
                let whole = mem::size_of::<libc::sockaddr_storage>();
                (self.size, whole as libc::socklen_t)
            } else {
                (self.lengths[index], self.name_lengths[index])
            };
            self.parts[index] = libc::iovec {
                iov_base: bytes.wrapping_add(index * self.size).cast(),
                iov_len: length,
            };
            let header = &mut self.headers[index].msg_hdr;
            header.msg_iov = parts.wrapping_add(index);
            header.msg_iovlen = 1;
            header.msg_namelen = name_length;
            header.msg_name = if name_length == 0 {
                ptr::null_mut()
            } else {
                names.wrapping_add(index).cast()
            };
        }
    }
}

impl Socket {
    /// Receives as many datagrams as there are and fit, replacing what
    /// `messages` held; `WouldBlock` when there is none. A datagram longer
    /// than a buffer is cut.
    pub fn receive_messages(&self, messages: &mut Messages) -> io::Result<usize> {
        messages.clear();
        let capacity = messages.lengths.len();
        messages.prepare(0, capacity, true);
        // SAFETY: `prepare` has just let `capacity` headers point to buffers
        // that `messages` owns and that do not move during the call.
        let received = unsafe {
            libc::recvmmsg(
                self.as_raw_fd(),
                messages.headers.as_mut_ptr(),
                capacity as libc::c_uint,
                // An `int` with glibc, unsigned with musl.
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        messages.len = received as usize;
        for index in 0..messages.len {
            let header = &messages.headers[index];
            messages.lengths[index] = (header.msg_len as usize).min(messages.size);
            messages.name_lengths[index] = header.msg_hdr.msg_namelen;
        }
        Ok(messages.len)
    }

    /// Sends the messages from `from` on and gives how many the kernel took;
    /// `WouldBlock` when none. An error of a later message shows in the next
    /// call.
    pub fn send_messages(&self, messages: &mut Messages, from: usize) -> io::Result<usize> {
        let count = messages.len.saturating_sub(from);
        if count == 0 {
            return Ok(0);
        }
        messages.prepare(from, count, false);
        // SAFETY: `prepare` has just let `count` headers from `from` on point
        // to buffers that `messages` owns and that do not move during the call.
        let sent = unsafe {
            libc::sendmmsg(
                self.as_raw_fd(),
                messages.headers.as_mut_ptr().add(from),
                count as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(sent as usize)
    }

    fn as_raw_fd(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }
}
