//! Processes that forward packets, as the daemons of overlay networks do.
//!
//! Each is a process of its own, because what they forward costs them CPU time,
//! and that has to be seen apart from whoever builds the network. It is forked
//! and runs no other program, so the code of a forwarder makes system calls only:
//! no allocation, no lock, no panic.

mod flannel;
mod raw;
mod sleeve;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, setpgid};

use crate::cpu::ProcessTime;

pub use flannel::FlannelRoute;
pub use sleeve::{SLEEVE_OVERHEAD, Sleeve, SleevePeer};

/// Descriptors get numbers from here on before they are put in their places.
const ABOVE_ALL: libc::c_int = 64;

/// A process that forwards packets until it is dropped.
#[derive(Debug)]
pub struct Forwarder {
    pid: Pid,
}

impl Forwarder {
    /// Starts a process that runs `work` with `descriptors` as its only ones, from
    /// 0 on. The kernel kills it when **the thread that called this** ends
    /// (PR_SET_PDEATHSIG(2const)).
    ///
    /// # Safety
    ///
    /// `work` must be sound in a copy of a process with threads: it must not
    /// allocate, take a lock, or panic, nor do so when it is dropped.
    unsafe fn start(
        name: &'static std::ffi::CStr,
        descriptors: &[OwnedFd],
        work: impl FnOnce(),
    ) -> io::Result<Self> {
        let high = descriptors
            .iter()
            .map(|one| {
                let number = fcntl(one, FcntlArg::F_DUPFD_CLOEXEC(ABOVE_ALL))?;
                // SAFETY: the kernel just gave the number, and nobody else knows it.
                Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(number) })
            })
            .collect::<io::Result<Vec<OwnedFd>>>()?;
        let parent = getpid();
        // SAFETY: the child makes system calls only and does not return from here.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self { pid: child }),
            ForkResult::Child => {
                if settle(name, parent, &high).is_ok() {
                    work();
                }
                // SAFETY: ends the process without running anything of ours.
                unsafe { libc::_exit(1) }
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
    /// Kills it without waiting until it is gone, which dropping it does: where
    /// there are several, the kernel can then free what they hold at the same
    /// time. That is where its end takes long, for it may hold a device.
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

/// In the child: dies with its parent, is not reached by Ctrl-C, and has the
/// descriptors that it needs, none else: another one would keep a namespace or a
/// pipe of the parent's open.
fn settle(name: &'static std::ffi::CStr, parent: Pid, high: &[OwnedFd]) -> nix::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before the line above took effect.
    if getppid() != parent {
        return Err(Errno::ESRCH);
    }
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    nix::sys::prctl::set_name(name)?;
    for (number, descriptor) in high.iter().enumerate() {
        // SAFETY: no code of this process uses what it replaces.
        Errno::result(unsafe { libc::dup2(descriptor.as_raw_fd(), number as libc::c_int) })?;
    }
    let (first, last) = (high.len() as libc::c_uint, libc::c_uint::MAX);
    // By number: the C library of a static build has no such function.
    // SAFETY: no code of this process uses any of the others.
    Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })?;
    Ok(())
}
