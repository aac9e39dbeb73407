//! A program whose processes all end with it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, getgid, getuid};

/// Streams first get numbers from here on, and then their final ones, so that
/// none overwrites another.
const ABOVE_ALL: libc::c_int = 32;

/// Whether the kernel ends all of a program's processes when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// In a process namespace of its own: the kernel kills what is left.
    Namespace,
    /// The machine forbids that. The program's processes must end by
    /// themselves.
    Group,
}

/// Makes the next process that this one starts the first of a process
/// namespace; when it ends, the kernel kills all others in it. Files and users
/// stay as they are.
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
    // Each user keeps its number. Without the maps every user would show as
    // nobody for as long as this process lives, but could still read and write
    // its own files; so an error does not matter here.
    let _ = std::fs::write("/proc/self/setgroups", "deny");
    let _ = std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"));
    let _ = std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"));
    Confinement::Namespace
}

/// The exit code that stands for a program that was ended by a signal.
pub const BY_SIGNAL: i32 = 99;

/// Starts `command` with `streams` as its descriptors 0, 1, 2 and so on, in a
/// process group of its own, so that Ctrl-C reaches the caller alone. The
/// kernel kills it when the calling thread ends.
///
/// The returned process is an intermediate one. It ends as the program does:
/// with its exit code, or with [`BY_SIGNAL`]. It is needed because many signals
/// do nothing to the first process of a namespace, not even its own `abort`.
pub fn spawn(mut command: Command, streams: &[OwnedFd]) -> io::Result<Child> {
    let high = streams.iter().map(above_all);
    let high = high.collect::<io::Result<Vec<OwnedFd>>>()?;
    let place = move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        step_between()?;
        // Set again, because a fork clears it.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        for (number, stream) in high.iter().enumerate() {
            // SAFETY: replaces a descriptor of the new process, before any of
            // its code that could use it has run.
            let code = unsafe { libc::dup2(stream.as_raw_fd(), number as libc::c_int) };
            Errno::result(code)?;
        }
        Ok(())
    };
    command.process_group(0);
    // SAFETY: between fork and exec, `place` makes system calls on descriptors
    // that it owns; it takes no lock and does not allocate.
    unsafe { command.pre_exec(place) };
    command.spawn()
}

/// A copy of a descriptor with a number above all final ones.
fn above_all(stream: &OwnedFd) -> io::Result<OwnedFd> {
    let number = fcntl(stream, FcntlArg::F_DUPFD_CLOEXEC(ABOVE_ALL))?;
    // SAFETY: the kernel has just returned the number, and no other code knows
    // it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Returns in a child of the calling process. The calling process itself stays
/// behind: it closes everything, waits for the child, and ends as the child does.
///
/// Makes system calls only, so that it may be called between fork and exec.
fn step_between() -> nix::Result<()> {
    // SAFETY: both processes go on with system calls only.
    let child = match unsafe { fork() }? {
        ForkResult::Child => return Ok(()),
        ForkResult::Parent { child } => child,
    };
    // The parent waits for the end of a pipe, which `exec` closes. By number:
    // the C library of a static build has no such function. SAFETY: nothing of
    // this process uses a descriptor from here on.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    let code = loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => break code,
            Ok(WaitStatus::Signaled(pid, ..)) if pid == child => break BY_SIGNAL,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => break BY_SIGNAL,
        }
    };
    // SAFETY: ends the process without running anything of ours.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn run(script: &str) -> (Option<i32>, String) {
        let (mut ours, theirs) = io::pipe().unwrap();
        let streams: Vec<OwnedFd> = (0..5).map(|_| theirs.try_clone().unwrap().into()).collect();
        drop(theirs);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let mut child = spawn(command, &streams).expect("a shell starts");
        drop(streams);
        let mut text = String::new();
        ours.read_to_string(&mut text).unwrap();
        (child.wait().unwrap().code(), text)
    }

    #[test]
    fn streams_are_where_they_were_asked_for_and_the_code_comes_back() {
        assert_eq!(run("echo far >&4; exit 7"), (Some(7), "far\n".into()));
    }

    #[test]
    fn a_program_that_aborts_ends() {
        assert_eq!(run("kill -ABRT $$").0, Some(BY_SIGNAL));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let error = spawn(Command::new("/no/such/program"), &[]).expect_err("none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
