//! Trying again what the kernel cannot do at once.

use std::error::Error;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// How long what the kernel cannot do at once is tried again.
const INSISTS: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);

/// Tries again what the kernel cannot do at once: some (User-mode Linux) have as much memory for
/// the entries of maps as the last tick left them, and a signal that is on its way to this thread
/// ends the look at a program.
pub(super) fn insist<T, E: Error + 'static>(
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(error)
                if matches!(errno(&error), Some(libc::ENOMEM | libc::EAGAIN))
                    && began.elapsed() < INSISTS =>
            {
                thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

/// The kernel's answer, where that is the cause of an error.
pub(super) fn errno(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.raw_os_error();
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use aya::maps::MapError;
    use aya::sys::SyscallError;

    use super::*;

    fn refused(errno: i32) -> Result<(), MapError> {
        Err(MapError::SyscallError(SyscallError {
            call: "bpf_map_update_elem",
            io_error: io::Error::from_raw_os_error(errno),
        }))
    }

    #[test]
    fn what_may_be_possible_soon_is_tried_again_and_nothing_else() {
        for errno in [libc::ENOMEM, libc::EAGAIN] {
            let mut tries = 0;
            let done = insist(|| {
                tries += 1;
                match tries {
                    1 | 2 => refused(errno),
                    _ => Ok(()),
                }
            });
            assert!(done.is_ok());
        }
        let mut tries = 0;
        let done = insist(|| {
            tries += 1;
            refused(libc::E2BIG)
        });
        assert!(done.is_err());
        assert_eq!(tries, 1);
    }
}
