//! Control messages: what goes to the kernel or comes from it beside the bytes
//! of a message (cmsg(3)).

use std::mem;
use std::ptr;

/// Room for control messages, aligned as the kernel wants them.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Control<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Control<BYTES> {
    pub(super) const EMPTY: Self = Self([0; BYTES]);

    /// Lets a header point to all of the room, for the kernel to write into.
    pub(super) fn offer(&mut self, header: &mut libc::msghdr) {
        header.msg_control = self.0.as_mut_ptr().cast();
        header.msg_controllen = BYTES as _;
    }

    /// Writes one control message, and lets a header point to it.
    pub(super) fn put<T: Copy>(
        &mut self,
        header: &mut libc::msghdr,
        level: i32,
        kind: i32,
        value: T,
    ) {
        let size = mem::size_of::<T>() as u32;
        self.offer(header);
        // SAFETY: both compute a size from a size.
        let (space, length) = unsafe { (libc::CMSG_SPACE(size), libc::CMSG_LEN(size)) };
        assert!(space as usize <= BYTES, "room for {size} bytes");
        header.msg_controllen = space as _;
        // SAFETY: the room is aligned for a cmsghdr and large enough for one with
        // this value, so the first header lies within it, and its data.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(header);
            (*first).cmsg_level = level;
            (*first).cmsg_type = kind;
            (*first).cmsg_len = length as _;
            ptr::write_unaligned(libc::CMSG_DATA(first).cast(), value);
        }
    }
}

/// A header over one buffer, with room for control messages.
///
/// It points to both without borrowing them: they must live and stay in place for
/// as long as the header is used.
pub(super) fn header<const BYTES: usize>(
    part: &mut libc::iovec,
    control: &mut Control<BYTES>,
) -> libc::msghdr {
    // SAFETY: a plain C structure, for which zero is valid.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = part;
    header.msg_iovlen = 1;
    control.offer(&mut header);
    header
}

/// Calls `look` with level, type and data of each control message.
///
/// # Safety
///
/// `header` must be as a successful receive left it, and its [`Control`] live.
#[inline]
pub(super) unsafe fn each(header: &libc::msghdr, mut look: impl FnMut(i32, i32, &[u8])) {
    // SAFETY: the kernel has left well-formed control messages within the buffer
    // and their length in `header`; the macros stay within it, and so does each
    // message's own length.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            let head = libc::CMSG_LEN(0) as usize;
            let length = ((*message).cmsg_len as usize).saturating_sub(head);
            let data = std::slice::from_raw_parts(libc::CMSG_DATA(message), length);
            look((*message).cmsg_level, (*message).cmsg_type, data);
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
}

/// The plain C value that data begins with; `None` when it is too short.
///
/// # Safety
///
/// Any bytes must be a valid `T`.
pub(super) unsafe fn value<T: Copy>(data: &[u8]) -> Option<T> {
    // SAFETY: there are enough bytes, any of which the caller calls a value, and
    // the read does not ask for alignment.
    (data.len() >= mem::size_of::<T>())
        .then(|| unsafe { data.as_ptr().cast::<T>().read_unaligned() })
}

/// The extended error of an error queue (`IP_RECVERR`), if it is one.
pub(super) fn extended_error(
    level: i32,
    kind: i32,
    data: &[u8],
) -> Option<libc::sock_extended_err> {
    let is_error = [
        (libc::SOL_IP, libc::IP_RECVERR),
        (libc::SOL_IPV6, libc::IPV6_RECVERR),
    ];
    if !is_error.contains(&(level, kind)) {
        return None;
    }
    // SAFETY: the structure is made of integers only.
    unsafe { value(data) }
}
