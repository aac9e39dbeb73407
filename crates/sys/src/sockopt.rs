//! Socket options that no library has a type for.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;

/// Sets an option to a plain C value.
///
/// # Safety
///
/// What the value points to, if it does, must live as long as the call.
pub(crate) unsafe fn set<T: Copy>(
    fd: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let (fd, length) = (fd.as_fd().as_raw_fd(), size_of_val(value));
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the descriptor is open; pointer and length describe a live value,
    // and the caller guarantees what it points to.
    let code = unsafe { libc::setsockopt(fd, level, option, value, length as libc::socklen_t) };
    Ok(Errno::result(code).map(drop)?)
}

/// Sets an option to an integer.
pub(crate) fn set_integer(
    fd: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: an integer points to nothing.
    unsafe { set(fd, level, option, &value) }
}

/// Reads an option; what the kernel does not fill in is zero.
///
/// # Safety
///
/// Any bytes, zeroes among them, must be a valid `T`.
pub(crate) unsafe fn get<T: Copy>(
    fd: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    let (fd, start) = (fd.as_fd().as_raw_fd(), value.as_mut_ptr().cast());
    // SAFETY: the descriptor is open, and the kernel writes at most `length`
    // bytes into `value`.
    let code = unsafe { libc::getsockopt(fd, level, option, start, &mut length) };
    Errno::result(code)?;
    // SAFETY: the caller guarantees that any bytes are a value.
    Ok(unsafe { value.assume_init() })
}
