//! A directory in memory that is visible in no other file system.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

/// An empty directory on a file system of its own that is mounted nowhere. It
/// disappears with its last descriptor: when the value is dropped, or when the
/// process dies by any signal. Needs Linux 5.2, and the rights of
/// [`enter_private`](crate::namespace::enter_private).
#[derive(Debug)]
pub struct Scratch {
    root: OwnedFd,
}

impl Scratch {
    /// Makes one.
    pub fn create() -> io::Result<Self> {
        const CLOSE_ON_EXEC: libc::c_uint = 1;
        /// `FSCONFIG_CMD_CREATE`
        const MAKE: libc::c_uint = 6;
        // SAFETY: the name is a string that ends in a zero byte, and lives on.
        let context = descriptor(unsafe {
            libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), CLOSE_ON_EXEC)
        })?;
        let none = std::ptr::null::<libc::c_char>();
        // SAFETY: the command takes neither a key nor a value, and reads none.
        let made =
            unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), MAKE, none, none, 0) };
        if made != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: takes a descriptor and two numbers, no pointer.
        let root = descriptor(unsafe {
            libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOSE_ON_EXEC, 0)
        })?;
        Ok(Self { root })
    }

    /// The directory, for this process and its children, as long as the value
    /// lives.
    pub fn path(&self) -> PathBuf {
        let (process, descriptor) = (std::process::id(), self.root.as_raw_fd());
        format!("/proc/{process}/fd/{descriptor}").into()
    }
}

fn descriptor(answer: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(answer) {
        // SAFETY: the system call has just made it, so nobody else owns it.
        Ok(fd @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
