//! Processes that forward packets, as the daemons of overlay networks do.
//!
//! Each is a process of its own, so that the CPU time of forwarding is seen apart
//! from the time of the process that builds the network. It is forked
//! and runs no other program. What it does is the network's business: a [`Carrier`]
//! by means of [`packets`].

pub mod packets;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, setpgid};

use crate::cpu::ProcessTime;

/// What carries packets in a process of its own.
pub trait Carrier {
    /// The descriptors that it uses. The process has no others.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// Carries packets for as long as that is possible; the process ends when it
    /// returns.
    ///
    /// It runs in a copy of a process with threads, so it must make system calls
    /// only, on memory that was allocated before: a lock that another thread held
    /// stays locked for ever, and then nothing is forwarded any more.
    fn carry(&mut self);
}

/// A process that forwards packets until it is dropped.
#[derive(Debug)]
pub struct Forwarder {
    pid: Pid,
}

impl Forwarder {
    /// Starts a process that is called `name` and does what `carrier` does. The
    /// kernel kills it when **the thread that called this** ends
    /// (PR_SET_PDEATHSIG(2const)).
    ///
    /// # Errors
    ///
    /// Those of fork(2). What goes wrong in the process itself ends it.
    pub fn start(name: &'static CStr, carrier: &mut impl Carrier) -> io::Result<Self> {
        Self::start_within(None, name, carrier)
    }

    /// Starts one as [`start`](Self::start) does, in a network namespace: sockets that it
    /// opens are there.
    pub fn start_in(
        namespace: &impl AsFd,
        name: &'static CStr,
        carrier: &mut impl Carrier,
    ) -> io::Result<Self> {
        Self::start_within(Some(namespace.as_fd()), name, carrier)
    }

    fn start_within(
        namespace: Option<BorrowedFd<'_>>,
        name: &'static CStr,
        carrier: &mut impl Carrier,
    ) -> io::Result<Self> {
        let descriptors = carrier.descriptors();
        let mut kept: Vec<libc::c_int> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        kept.sort_unstable();
        let parent = getpid();
        // SAFETY: the child runs safe code on a copy of this process's memory, and
        // never returns from here. Each mutex in the copy is as its holder left it,
        // and the C library keeps its own allocator usable across a fork, so the
        // worst that a carrier can do is to wait for ever.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self { pid: child }),
            ForkResult::Child => {
                let end = ExitOnDrop;
                if settle(name, parent, namespace, &kept).is_ok() {
                    carrier.carry();
                }
                drop(end);
                unreachable!("the process has ended")
            }
        }
    }

    /// Process number.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw() as u32
    }

    /// CPU time that it took since it was started.
    pub fn cpu_time(&self) -> io::Result<ProcessTime> {
        crate::cpu::time_of(self.pid())
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid), flags) == Ok(WaitStatus::StillAlive)
    }
}

impl Forwarder {
    /// Kills it without waiting until it is gone, which dropping it does. The
    /// kernel can then free what several of them hold at the same time, which
    /// matters because freeing a device takes long.
    pub fn kill(&self) {
        // It is a child that was not waited for, so its number is its own.
        let _ = kill(self.pid, Signal::SIGKILL);
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.kill();
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
    }
}

/// Ends the process when it goes out of scope, by a panic too.
struct ExitOnDrop;

impl Drop for ExitOnDrop {
    fn drop(&mut self) {
        // SAFETY: ends the process without running anything of ours.
        unsafe { libc::_exit(1) }
    }
}

/// In the child: dies with its parent, is not reached by Ctrl-C, enters the namespace if
/// there is one, and has no other descriptors than `kept`, which are in order: another one
/// would keep a namespace or a pipe of the parent's open.
fn settle(
    name: &'static CStr,
    parent: Pid,
    namespace: Option<BorrowedFd<'_>>,
    kept: &[libc::c_int],
) -> nix::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before the line above took effect.
    if getppid() != parent {
        return Err(Errno::ESRCH);
    }
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    nix::sys::prctl::set_name(name)?;
    if let Some(namespace) = namespace {
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
    }
    let mut first = 0;
    for number in kept {
        close(first, number - 1)?;
        first = number + 1;
    }
    close(first, libc::c_int::MAX)
}

/// Closes the descriptors from `first` to `last`, if there are any between.
fn close(first: libc::c_int, last: libc::c_int) -> nix::Result<()> {
    if first > last {
        return Ok(());
    }
    // By number: the C library of a static build has no such function.
    // SAFETY: a carrier names all descriptors that it uses; this process runs no
    // other code.
    Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}
