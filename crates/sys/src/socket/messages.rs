//! Many datagrams in one system call (`sendmmsg`, `recvmmsg`), and trains of
//! them that pass through the kernel as one (UDP GSO and GRO).

use std::io;
use std::mem;
use std::ptr;

use super::Socket;
use super::control::{self, Control, header};
use crate::sockopt;

/// Bytes of the largest train that can arrive.
const TRAIN_BYTES: usize = 1 << 16;
/// Most datagrams of a train to send. Kernels before 6.9 take no more
/// (`UDP_MAX_SEGMENTS`).
pub const TRAIN_MESSAGES: usize = 64;

/// Bytes of one control message that holds an integer.
const CONTROL: usize = 32;

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
    /// Where the kernel reports the size of a train's datagrams; empty when no
    /// trains are expected.
    controls: Vec<Control<CONTROL>>,
    /// Bytes of each datagram of what was received.
    segments: Vec<usize>,
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
            controls: Vec::new(),
            segments: vec![0; capacity],
            len: 0,
        }
    }

    /// Room to receive `capacity` trains of any size, on a socket that
    /// [accepts trains](Socket::accept_trains); [`datagrams`](Self::datagrams)
    /// takes them apart again.
    pub fn for_trains(capacity: usize) -> Self {
        Self {
            controls: vec![Control::EMPTY; capacity],
            ..Self::new(capacity, TRAIN_BYTES)
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

    /// The datagrams of received message `index`: itself, or those of a train.
    /// An empty datagram shows as none.
    ///
    /// # Panics
    /// When there is no such message.
    #[inline]
    pub fn datagrams(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let bytes = self.get(index);
        bytes.chunks(self.segments[index].max(1))
    }

    /// Adds a message of `length` bytes for a connected socket and returns its
    /// bytes, to be written. They still hold the contents of an earlier
    /// message.
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
            match self.controls.get_mut(index) {
                Some(control) if receive => control.offer(header),
                _ => (header.msg_control, header.msg_controllen) = (ptr::null_mut(), 0),
            }
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
    /// `messages` held; `WouldBlock` when there is none. A datagram longer than
    /// a buffer is truncated.
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
            let whole = messages.lengths[index];
            let control = messages.controls.get(index);
            let told = control.and_then(|it| train_segment(it.received(&header.msg_hdr)));
            messages.segments[index] = told.unwrap_or(whole);
        }
        Ok(messages.len)
    }

    /// Sends the messages from `from` on and returns how many the kernel took;
    /// `WouldBlock` when it took none. An error of a later message shows in the
    /// next call.
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

    /// Sends `count` messages from `from` on as one train (`UDP_SEGMENT`, Linux
    /// 4.18), at most [`TRAIN_MESSAGES`] and 65,507 bytes, and gives `count`;
    /// `WouldBlock` when the kernel takes none. The kernel, or the device,
    /// splits the train into datagrams as late as it can: everything before
    /// that point handles it as one.
    ///
    /// The kernel refuses datagrams that do not fit the path's MTU.
    ///
    /// # Panics
    /// When a message does not have the size given to [`Messages::new`].
    pub fn send_train(&self, messages: &Messages, from: usize, count: usize) -> io::Result<usize> {
        let size = messages.size;
        let whole = messages.lengths[from..from + count].iter();
        assert!(whole.copied().all(|length| length == size));
        let bytes = &messages.bytes[from * size..(from + count) * size];
        let mut part = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let mut control = Control::<CONTROL>::EMPTY;
        let mut header = header(&mut part, &mut control);
        control.put(
            &mut header,
            libc::IPPROTO_UDP,
            libc::UDP_SEGMENT,
            size as u16,
        );
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: `header` points to `part` and `control`, which live until
        // after the call, and `part` to bytes that the kernel only reads.
        let sent = unsafe { libc::sendmsg(self.as_raw_fd(), &header, flags) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(count)
    }

    /// Lets trains arrive whole (`UDP_GRO`, Linux 5.0). Receive with
    /// [`Messages::for_trains`], or trains are taken for single datagrams.
    pub fn accept_trains(&self) -> io::Result<()> {
        sockopt::set_integer(self, libc::IPPROTO_UDP, libc::UDP_GRO, 1)
    }
}

/// Bytes of each datagram of a train; `None` for a single datagram.
pub(super) fn train_segment(control: &[u8]) -> Option<usize> {
    let mut segment = None;
    control::each(control, |level, kind, data| {
        if (level, kind) == (libc::IPPROTO_UDP, libc::UDP_GRO) {
            // SAFETY: any bytes are an integer.
            segment = unsafe { control::value::<i32>(data) };
        }
    });
    let size = usize::try_from(segment?).ok()?;
    (size > 0).then_some(size)
}
