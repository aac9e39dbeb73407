//! Outside: starts the kernel, and passes on what is printed inside.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use plumbline_sys::{confined, temporary, terminal};
use tempfile::TempDir;

use crate::HOST_CPU;
use crate::error::UmlError;
use crate::installation::Installation;
use crate::job::{CODE_BASE, INIT, INTERRUPT, Job, Terminal};

/// Memory of the kernel: a file, of which only what was touched takes space.
const MEMORY_MB: u64 = 512;
/// The end of the console that is kept for the error message.
const CONSOLE_TAIL: usize = 4096;
/// A signal that arrives between checking and waiting is noticed after this
/// time.
const PATIENCE_MS: u16 = 200;

/// Boots, runs this program inside with these arguments, passes on its output until it
/// ends, and gives its exit code. It may write below the directory `writable`, which is
/// made if it is not there; everything else of the machine it can only read. When
/// `interrupted` becomes true, it is interrupted, once.
///
/// Call it before the process has started a thread. The kernel dies with the process.
///
/// # Errors
///
/// A kernel that cannot be started, or that ended before the command did.
pub fn run_inside(
    installation: Installation,
    arguments: Vec<OsString>,
    writable: Option<&Path>,
    interrupted: &AtomicBool,
) -> Result<u8, UmlError> {
    let prepare = |action: &str| {
        let action = action.to_owned();
        move |source| UmlError::Prepare { action, source }
    };
    let writable = writable.map(|directory| {
        let made = std::fs::create_dir_all(directory).and_then(|()| directory.canonicalize());
        made.map_err(prepare(&format!(
            "make the directory {}",
            directory.display()
        )))
    });
    let writable = writable.transpose()?;
    let scratch =
        temporary::directory("kernel", 0o700).map_err(prepare("make a temporary directory"))?;
    let memory = memory_directory(scratch.path());
    let kernel = command(&installation.kernel, scratch.path(), &memory);
    let start = prepare(&installation.kernel.display().to_string());
    fill(scratch.path(), installation, arguments, writable)
        .map_err(prepare("write into a temporary directory"))?;
    let (streams, lines) = Pipes::new().map_err(prepare("make pipes"))?;
    confined::confine_next();
    let mut child = KernelProcess(confined::spawn(kernel, &streams).map_err(start)?);
    // The ends of the kernel would keep the pipes open.
    drop(streams);
    let console = lines.hand_on(interrupted, scratch)?;
    let status = child.0.wait();
    let status = status.map_err(prepare("wait for User-mode Linux"))?;
    code(status).ok_or_else(|| UmlError::died(status.to_string(), memory, &console))
}

/// Puts into the directory what the first process inside looks for there.
fn fill(
    scratch: &Path,
    installation: Installation,
    arguments: Vec<OsString>,
    writable: Option<PathBuf>,
) -> io::Result<()> {
    // The kernel splits its command line at spaces, which a path may have.
    std::os::unix::fs::symlink(std::env::current_exe()?, scratch.join(INIT))?;
    let job = Job {
        arguments,
        directory: std::env::current_dir()?,
        environment: std::env::vars_os().chain(host_cpu()).collect(),
        writable,
        output: size(&io::stdout()),
        errors: size(&io::stderr()),
        together: same(&io::stdout(), &io::stderr())?,
        modules: installation.modules,
        modprobe: installation.modprobe,
    };
    job.write(scratch)
}

/// The kernel's process, killed when dropped.
struct KernelProcess(Child);

impl Drop for KernelProcess {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The CPU, which the kernel inside does not report.
fn host_cpu() -> Option<(OsString, OsString)> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let value = crate::cpuinfo_value(&cpuinfo, "model name")?;
    Some((HOST_CPU.into(), value.into()))
}

fn size(stream: &impl AsFd) -> Terminal {
    let size = terminal::size(stream).ok()?;
    Some((size.rows, size.columns))
}

/// Whether two streams lead to the same place.
fn same(one: &impl AsFd, other: &impl AsFd) -> io::Result<bool> {
    let place = |stream: BorrowedFd<'_>| {
        let metadata = File::from(stream.try_clone_to_owned()?).metadata()?;
        io::Result::Ok((metadata.dev(), metadata.ino(), metadata.rdev()))
    };
    Ok(place(one.as_fd())? == place(other.as_fd())?)
}

/// The command line: files of the machine, no devices but the lines.
fn command(program: &Path, scratch: &Path, memory: &Path) -> Command {
    let mut command = Command::new(program);
    let mut init = OsString::from("init=");
    init.push(scratch.join(INIT));
    command
        .arg(format!("mem={MEMORY_MB}M"))
        .args(["rootfstype=hostfs", "rootflags=/", "ro"])
        .arg(init)
        .args(["con=null", "con0=null,fd:2", "ssl=null"])
        .args(["ssl0=null,fd:3", "ssl1=null,fd:4", "ssl2=fd:0,fd:5"])
        .args(["quiet", "--", "guest"])
        .env_clear()
        .env("HOME", scratch)
        .env("TMPDIR", memory);
    command
}

/// The kernel's memory file in RAM where there is room, else on disk: a small
/// /dev/shm, as in containers, would end the kernel half-way.
fn memory_directory(otherwise: &Path) -> PathBuf {
    let shared = Path::new("/dev/shm");
    let fits = nix::sys::statvfs::statvfs(shared).is_ok_and(|it| {
        let free = it.blocks_available() * it.fragment_size();
        let executable = !it.flags().contains(nix::sys::statvfs::FsFlags::ST_NOEXEC);
        executable && free > (MEMORY_MB + 64) << 20
    });
    if fits { shared } else { otherwise }.to_owned()
}

/// The command's exit code; `None` when the kernel ended otherwise.
fn code(status: ExitStatus) -> Option<u8> {
    let code = u8::try_from(status.code()?).ok()?;
    code.checked_sub(CODE_BASE)
}

/// Our ends of the pipes.
struct Pipes {
    control: PipeWriter,
    /// Standard output, standard error, the readiness of the machine, and the console.
    ends: [PipeReader; 4],
}

impl Pipes {
    /// The kernel's ends, in the order of its descriptors, and ours.
    fn new() -> io::Result<(Vec<OwnedFd>, Self)> {
        let (control_theirs, control) = io::pipe()?;
        let (console, console_theirs) = io::pipe()?;
        let (output, output_theirs) = io::pipe()?;
        let (errors, errors_theirs) = io::pipe()?;
        let (ready, ready_theirs) = io::pipe()?;
        let streams = vec![
            control_theirs.into(),
            console_theirs.try_clone()?.into(),
            console_theirs.into(),
            output_theirs.into(),
            errors_theirs.into(),
            ready_theirs.into(),
        ];
        let ends = [output, errors, ready, console];
        Ok((streams, Self { control, ends }))
    }

    /// Passes output on until the kernel has closed all lines; returns the end of
    /// the console. `scratch` is removed as soon as it is not needed, so that a
    /// killed run leaves nothing.
    fn hand_on(mut self, interrupted: &AtomicBool, scratch: TempDir) -> Result<Vec<u8>, UmlError> {
        let mut scratch = Some(scratch);
        let mut console = Vec::new();
        let mut told = false;
        let mut open = [true; 4];
        while open.contains(&true) {
            let ready = self.wait(open)?;
            for at in (0..ready.len()).filter(|&at| ready[at]) {
                let mut buffer = [0; 4096];
                let length = self.ends[at].read(&mut buffer)?;
                let bytes = &buffer[..length];
                open[at] = length > 0;
                match at {
                    0 => pass(&mut io::stdout().lock(), bytes)?,
                    1 => pass(&mut io::stderr().lock(), bytes)?,
                    2 => drop(scratch.take()),
                    _ => keep_tail(&mut console, bytes),
                }
            }
            if interrupted.load(Ordering::SeqCst) && !told {
                told = true;
                // It fails when the kernel has just ended, which is what was wanted.
                let _ = self.control.write_all(&[INTERRUPT]);
            }
        }
        Ok(console)
    }

    /// Which of the open ends can be read, or have been closed.
    fn wait(&self, open: [bool; 4]) -> Result<[bool; 4], UmlError> {
        let watched = (0..4).filter(|&at| open[at]);
        let mut polled: Vec<PollFd<'_>> = watched
            .clone()
            .map(|at| PollFd::new(self.ends[at].as_fd(), PollFlags::POLLIN))
            .collect();
        match poll(&mut polled, PollTimeout::from(PATIENCE_MS)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(UmlError::HandOn(errno.into())),
        }
        let mut ready = [false; 4];
        for (at, polled) in watched.zip(&polled) {
            ready[at] = polled.any().unwrap_or(false);
        }
        Ok(ready)
    }
}

fn pass(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

fn keep_tail(tail: &mut Vec<u8>, bytes: &[u8]) {
    tail.extend_from_slice(bytes);
    let surplus = tail.len().saturating_sub(CONSOLE_TAIL);
    tail.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn only_a_code_of_the_command_is_one() {
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(code(exited(100)), Some(0));
        assert_eq!(code(exited(164)), Some(64));
        assert_eq!(code(exited(1)), None, "a panic of the kernel");
        assert_eq!(code(ExitStatus::from_raw(9)), None, "killed");
    }

    #[test]
    fn streams_are_the_same_where_one_is_a_copy_of_the_other() {
        let (_reader, one) = io::pipe().unwrap();
        let (_reader, other) = io::pipe().unwrap();
        assert!(same(&one, &one.try_clone().unwrap()).unwrap());
        assert!(!same(&one, &other).unwrap());
    }

    #[test]
    fn the_end_of_the_console_is_kept() {
        let mut tail = Vec::new();
        keep_tail(&mut tail, &[1; 4050]);
        keep_tail(&mut tail, &[2; 100]);
        assert_eq!(tail.len(), CONSOLE_TAIL);
        assert_eq!(tail.last(), Some(&2));
    }
}
