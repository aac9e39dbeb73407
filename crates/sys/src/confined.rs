//! A program whose processes all end with it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::unistd::{getgid, getuid};

/// Streams get numbers from here on before they are put in their places, so
/// that none is in another's place.
const ABOVE_ALL: libc::c_int = 32;

/// Whether the kernel ends all of a program's processes when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// In a process namespace of its own: the kernel kills what is left.
    Namespace,
    /// The machine forbids that. Its own processes are on their honour.
    Group,
}

/// Makes the next process that this one starts the first of a process
/// namespace, with which the kernel ends all others in it. Files and users stay
/// as they are.
///
/// Afterwards this process cannot start threads. It must have none before.
pub fn confine_next() -> Confinement {
    let (uid, gid) = (getuid(), getgid());
    if unshare(CloneFlags::CLONE_NEWPID).is_ok() {
        return Confinement::Namespace;
    }
    if unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID).is_err() {
        return Confinement::Group;
    }
    // Each user stays what they were. Without the maps everybody would be nobody
    // for as long as this process lives, but could still read and write what
    // they own; so an error changes nothing that matters here.
    let _ = std::fs::write("/proc/self/setgroups", "deny");
    let _ = std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"));
    let _ = std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"));
    Confinement::Namespace
}

/// Starts `command` with `streams` as its descriptors 0, 1, 2 and so on, in a
/// process group of its own, so that Ctrl-C reaches the caller alone. The
/// kernel kills it when the calling thread ends.
pub fn spawn(mut command: Command, streams: &[OwnedFd]) -> io::Result<Child> {
    let numbers = streams
        .iter()
        .map(|stream| {
            use nix::fcntl::{FcntlArg, fcntl};
            Ok(fcntl(stream, FcntlArg::F_DUPFD_CLOEXEC(ABOVE_ALL))?)
        })
        .collect::<io::Result<Vec<_>>>()?;
    // SAFETY: each number was just given by the kernel, and is nobody else's.
    let high: Vec<OwnedFd> = numbers
        .into_iter()
        .map(|number| unsafe { std::os::fd::FromRawFd::from_raw_fd(number) })
        .collect();
    let place = move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        for (number, stream) in high.iter().enumerate() {
            // SAFETY: replaces a descriptor of the new process, before any of
            // its code that could use it has run.
            let code = unsafe { libc::dup2(stream.as_raw_fd(), number as libc::c_int) };
            nix::errno::Errno::result(code)?;
        }
        Ok(())
    };
    command.process_group(0);
    // SAFETY: between fork and exec, `place` makes system calls on descriptors
    // that it owns; it takes no lock and does not allocate.
    unsafe { command.pre_exec(place) };
    command.spawn()
}
