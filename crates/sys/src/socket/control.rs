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

    /// What the kernel wrote into it, by a header that it was offered to.
    #[inline]
    pub(super) fn received(&self, header: &libc::msghdr) -> &[u8] {
        &self.0[..BYTES.min(header.msg_controllen as _)]
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

/// Calls `look` with level, type and data of each control message among bytes that were
/// [received](Control::received). One that is not whole ends them.
#[inline]
pub(super) fn each(mut bytes: &[u8], mut look: impl FnMut(i32, i32, &[u8])) {
    // struct cmsghdr, as the kernel has it with any C library.
    while let Some((length, _)) = bytes.split_first_chunk() {
        let length = usize::from_ne_bytes(*length);
        let message = bytes.get(mem::size_of::<usize>()..length);
        let message = message.unwrap_or_default();
        let Some((level, message)) = message.split_first_chunk() else {
            return;
        };
        let Some((kind, data)) = message.split_first_chunk() else {
            return;
        };
        look(i32::from_ne_bytes(*level), i32::from_ne_bytes(*kind), data);
        let next = length.next_multiple_of(mem::align_of::<usize>());
        bytes = bytes.get(next..).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A control message as the kernel writes it.
    fn message(length: usize, level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let head = [level.to_ne_bytes(), kind.to_ne_bytes()].concat();
        let mut bytes = [&length.to_ne_bytes()[..], &head, data].concat();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn seen(bytes: &[u8]) -> Vec<(i32, i32, Vec<u8>)> {
        let mut seen = Vec::new();
        each(bytes, |level, kind, data| {
            seen.push((level, kind, data.to_vec()))
        });
        seen
    }

    #[test]
    fn each_message_is_seen_with_its_data() {
        let bytes = [message(19, 1, 2, b"abc"), message(16, 3, 4, b"")].concat();
        let expected = vec![(1, 2, b"abc".to_vec()), (3, 4, Vec::new())];
        assert_eq!(seen(&bytes), expected);
        assert_eq!(seen(&[]), []);
    }

    /// Whatever a length says, nothing outside of the bytes is read.
    #[test]
    fn a_length_that_is_wrong_ends_the_messages() {
        for length in [0, 8, 15, 20, 4_096, usize::MAX, usize::MAX - 7] {
            let bytes = [message(19, 1, 2, b"abc"), message(length, 3, 4, b"")].concat();
            assert_eq!(seen(&bytes).len(), 1, "{length}");
        }
    }
}
