//! Readiness of file descriptors (epoll), with deadlines in nanoseconds.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

/// Whether the kernel and the seccomp profile allow `epoll_pwait2`
/// (Linux 5.11). Cleared by the first call that is refused.
static PWAIT2: AtomicBool = AtomicBool::new(true);

/// When a descriptor that stays ready is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Once for each change. Data that is left unread is not reported again.
    Edge,
    /// As long as it is ready.
    Level,
}

/// The events to wait for. A hang-up of the other side and errors are always
/// reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Data or a connection to accept.
    Read,
    /// Data, and room to send.
    ReadWrite,
}

/// One descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token that the descriptor was added with.
    pub token: u64,
    /// There is something to read, an end of file or an error included.
    pub readable: bool,
    /// There is room to send, or a connection attempt has ended.
    pub writable: bool,
    /// The other side will send no more.
    pub hangup: bool,
}

/// A set of descriptors and the list of those that the last wait found ready.
#[derive(Debug)]
pub struct Poller {
    epoll: Epoll,
    events: Vec<libc::epoll_event>,
}

impl Poller {
    /// An empty set that reports at most `capacity` descriptors per wait.
    pub fn new(capacity: usize) -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            events: Vec::with_capacity(capacity.max(1)),
        })
    }

    /// Adds a descriptor. Closing it removes it again.
    pub fn add(
        &self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
        trigger: Trigger,
    ) -> io::Result<()> {
        Ok(self.epoll.add(fd, event(token, interest, trigger))?)
    }

    /// Has a descriptor that was [added](Self::add) reported once more if it is ready, behind
    /// all others that are.
    pub fn renew(
        &self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
        trigger: Trigger,
    ) -> io::Result<()> {
        let mut event = event(token, interest, trigger);
        Ok(self.epoll.modify(fd, &mut event)?)
    }

    /// Waits until a descriptor is ready or `timeout_ns` have passed, and
    /// gives how many are ready; 0 does not sleep. A signal ends the wait
    /// with 0.
    ///
    /// Where `epoll_pwait2` is refused, the sleep is cut to whole
    /// milliseconds: it may end early, never late.
    pub fn wait(&mut self, timeout_ns: u64) -> io::Result<usize> {
        self.events.clear();
        let ready = self.wait_raw(timeout_ns);
        if ready < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        // SAFETY: the kernel has filled in the first `ready` entries, and
        // `ready` is at most the capacity that it was told.
        unsafe { self.events.set_len(ready as usize) };
        Ok(ready as usize)
    }

    fn wait_raw(&mut self, timeout_ns: u64) -> libc::c_long {
        let fd = self.epoll.0.as_raw_fd();
        let capacity = self.events.capacity() as libc::c_int;
        let events = self.events.as_mut_ptr();
        if timeout_ns > 0 && PWAIT2.load(Ordering::Relaxed) {
            let timeout = libc::timespec {
                tv_sec: (timeout_ns / 1_000_000_000) as _,
                tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
            };
            // SAFETY: `events` has room for `capacity` entries, `timeout` is
            // valid, and a null signal mask means none.
            let ready = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    fd,
                    events,
                    capacity,
                    &timeout,
                    std::ptr::null::<libc::sigset_t>(),
                    0_usize,
                )
            };
            let refused = ready < 0
                && matches!(
                    io::Error::last_os_error().raw_os_error(),
                    Some(libc::ENOSYS | libc::EPERM)
                );
            if !refused {
                return ready;
            }
            PWAIT2.store(false, Ordering::Relaxed);
        }
        let milliseconds = (timeout_ns / 1_000_000).min(i32::MAX as u64) as libc::c_int;
        // SAFETY: `events` has room for `capacity` entries.
        let ready = unsafe { libc::epoll_wait(fd, events, capacity, milliseconds) };
        libc::c_long::from(ready)
    }

    /// The `index`th descriptor that the last [`wait`](Self::wait) found ready.
    ///
    /// # Panics
    /// When the wait found fewer.
    #[inline]
    pub fn ready(&self, index: usize) -> Ready {
        let event = self.events[index];
        let flags = event.events as libc::c_int;
        let failed = flags & (libc::EPOLLERR | libc::EPOLLHUP) != 0;
        let hangup = flags & libc::EPOLLRDHUP != 0;
        Ready {
            token: event.u64,
            readable: flags & libc::EPOLLIN != 0 || hangup || failed,
            writable: flags & libc::EPOLLOUT != 0 || failed,
            hangup: hangup || failed,
        }
    }
}

fn event(token: u64, interest: Interest, trigger: Trigger) -> EpollEvent {
    let mut flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP;
    flags.set(EpollFlags::EPOLLOUT, interest == Interest::ReadWrite);
    flags.set(EpollFlags::EPOLLET, trigger == Trigger::Edge);
    EpollEvent::new(flags, token)
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::clock::now_ns;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn an_edge_is_reported_once_and_a_level_again() {
        for (trigger, again) in [(Trigger::Edge, 0), (Trigger::Level, 1)] {
            let (near, mut far) = pair();
            let mut poller = Poller::new(8).unwrap();
            poller
                .add(near.as_fd(), 7, Interest::Read, trigger)
                .unwrap();
            assert_eq!(poller.wait(0).unwrap(), 0);
            far.write_all(b"x").unwrap();
            assert_eq!(poller.wait(1_000_000_000).unwrap(), 1);
            let ready = poller.ready(0);
            assert_eq!((ready.token, ready.readable), (7, true));
            assert!(!ready.hangup && !ready.writable);
            assert_eq!(poller.wait(0).unwrap(), again, "{trigger:?}");
            let renewed = poller.renew(near.as_fd(), 7, Interest::Read, trigger);
            renewed.unwrap();
            assert_eq!(poller.wait(0).unwrap(), 1, "{trigger:?} once more");
        }
    }

    #[test]
    fn a_hangup_is_told_apart_from_data() {
        let (near, far) = pair();
        let mut poller = Poller::new(8).unwrap();
        poller
            .add(near.as_fd(), 1, Interest::ReadWrite, Trigger::Edge)
            .unwrap();
        drop(far);
        assert_eq!(poller.wait(1_000_000_000).unwrap(), 1);
        assert!(poller.ready(0).hangup);
    }

    #[test]
    fn a_wait_lasts_its_nanoseconds() {
        let mut poller = Poller::new(1).unwrap();
        let start = now_ns();
        assert_eq!(poller.wait(3_500_000).unwrap(), 0);
        assert!(now_ns() - start >= 3_000_000);
    }
}
