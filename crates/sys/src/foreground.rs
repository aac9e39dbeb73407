//! A command in the place of this process: it has its streams, and gets its signals.

use std::io;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::unistd::Pid;

/// What ends a process that does nothing about it, and can be held.
const ENDING: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// A process that no signal but SIGKILL ends, so that it can put something back after a
/// command has ended.
#[derive(Debug)]
pub struct Foreground {
    signals: SignalFd,
    /// Those that were held before.
    before: SigSet,
}

impl Foreground {
    /// Holds signals from now on, to the end of the process. To be called from its only
    /// thread.
    pub fn enter() -> io::Result<Self> {
        let mut held = SigSet::empty();
        ENDING.iter().for_each(|&signal| held.add(signal));
        let before = held.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(&held, flags)?;
        Ok(Self { signals, before })
    }

    /// Runs a command to its end, and gives its exit code, as a shell does: 128 and the
    /// number of the signal that ended it. It gets the signals that this process is sent; a
    /// terminal sends its own to both. One that came before it was started keeps it from
    /// that. The kernel sends it SIGTERM when this process is killed.
    pub fn run(&self, mut command: Command) -> io::Result<u8> {
        if let Some(signal) = self.signals.read_signal()? {
            return Ok(code(signal.ssi_signo));
        }
        let (before, parent) = (self.before, Pid::this());
        let tie = move || {
            before.thread_set_mask()?;
            nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
            // It may have died before the line above took effect.
            if Pid::parent() != parent {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        };
        // SAFETY: between fork and exec, `tie` makes three system calls; it takes no lock
        // and does not allocate (an `io::Error` of a kind or an error number is a plain
        // value).
        unsafe { command.pre_exec(tie) };
        let mut child = command.spawn()?;
        let end = descriptor_of(&child)?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(code_of(status));
            }
            let watched = [self.signals.as_fd(), end.as_fd()];
            let mut watched = watched.map(|it| PollFd::new(it, PollFlags::POLLIN));
            match poll(&mut watched, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            while let Some(signal) = self.signals.read_signal()? {
                pass_on(&signal, &child);
            }
        }
    }
}

/// A descriptor that can be read when the process has ended. Needs Linux 5.3.
fn descriptor_of(child: &Child) -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers.
    let answer = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id() as libc::pid_t, 0) };
    match i32::try_from(answer) {
        // SAFETY: the system call has just made it, so nobody else owns it.
        Ok(fd @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Passes on what a process has sent: what the kernel sends comes from a terminal, and went
/// to the whole process group.
fn pass_on(signal: &siginfo, child: &Child) {
    let number = i32::try_from(signal.ssi_signo);
    let passed = number.ok().and_then(|it| Signal::try_from(it).ok());
    if let Some(passed) = passed.filter(|it| ENDING.contains(it))
        && signal.ssi_code != libc::SI_KERNEL
    {
        // It has not been waited for, so the number is its own; it may have ended.
        let _ = kill(Pid::from_raw(child.id() as i32), passed);
    }
}

fn code_of(status: ExitStatus) -> u8 {
    // Exit codes have eight bits.
    let by_itself = status.code().map(|it| it as u8);
    let signal = status.signal().unwrap_or_default() as u32;
    by_itself.unwrap_or_else(|| code(signal))
}

fn code(signal: u32) -> u8 {
    128 + signal as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// In a thread of its own, which holds the signals that it is sent.
    fn in_foreground<T: Send + 'static>(test: impl FnOnce(&Foreground) -> T + Send + 'static) -> T {
        let thread = std::thread::spawn(|| test(&Foreground::enter().unwrap()));
        thread.join().unwrap()
    }

    #[test]
    fn the_exit_code_is_the_commands() {
        in_foreground(|foreground| {
            assert_eq!(foreground.run(shell("exit 7")).unwrap(), 7);
            assert_eq!(foreground.run(shell("kill -KILL $$")).unwrap(), 137);
            assert!(foreground.run(Command::new("/no/such/program")).is_err());
        });
    }

    /// The command holds no signal, though this process does.
    #[test]
    fn a_signal_that_is_sent_to_the_command_acts() {
        let code = in_foreground(|it| it.run(shell("kill -TERM $$; sleep 10")).unwrap());
        assert_eq!(code, 143);
    }
}
