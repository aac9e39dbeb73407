//! Inside: the first process. It sets the machine up, runs the command, and
//! switches the machine off.

use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use plumbline_sys::terminal;

use crate::job::{CODE_BASE, CONTROL, ERRORS, INTERRUPT, Job, OUTPUT, READY, Terminal};

/// Where the machine inside may write anything. It is in memory.
const SCRATCH: &str = "/dev/shm";

/// What sockets may buffer, in bytes: the least, the default and the most.
const SOCKET_MEMORY: [(&str, &str); 2] = [
    ("tcp_rmem", "4096 131072 3932160"),
    ("tcp_wmem", "4096 16384 3932160"),
];

/// Modules that the kernel does not ask for by itself. Nodes of a real cluster
/// have the first; the lab decides for its own nodes whether it has an effect.
/// The second creates the device file that a program opens.
const MODULES: [&str; 2] = ["br_netfilter", "tun"];

/// Does what the file beside the program's name says, and switches off. Returns
/// only when even that fails.
///
/// Standard error is the console, whose end is shown when something fails here.
pub fn run() -> io::Error {
    let code = match serve() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("plumbline, as the first process: {error}");
            // Below the range of a command's exit codes: the kernel failed.
            return switch_off(2);
        }
    };
    switch_off(CODE_BASE.saturating_add(code))
}

fn serve() -> io::Result<u8> {
    let program = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let job = Job::read(program.parent().unwrap_or(Path::new("/")))?;
    set_up(&job)?;

    let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
    terminal::make_raw(&control)?;
    let lines = [line(OUTPUT, job.output)?, line(ERRORS, job.errors)?];
    let output = OutputStream::new(&lines[0], job.output)?;
    let errors = match job.together {
        true => output.again()?,
        false => OutputStream::new(&lines[1], job.errors)?,
    };
    (&control).write_all(&[READY])?;

    let child = Command::new(std::env::current_exe()?)
        .args(&job.arguments)
        .env_clear()
        .envs(job.environment.iter().cloned())
        .env("TMPDIR", SCRATCH)
        .current_dir(&job.directory)
        .stdin(Stdio::null())
        .stdout(output.end)
        .stderr(errors.end)
        .spawn()?;
    let relays = [
        output.pipe.map(|from| relay(from, &lines[0])),
        errors.pipe.map(|from| relay(from, &lines[1])),
    ];
    let pid = Pid::from_raw(child.id() as i32);
    std::thread::spawn(move || obey(control, pid));
    let status = reap(pid)?;
    for relay in relays.into_iter().flatten() {
        // A panic of a relay is on the console already.
        let _ = relay?.join();
    }
    for line in &lines {
        terminal::drain(line)?;
    }
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => {
            eprintln!("the command was ended by signal {signal:?}");
            2
        }
    })
}

/// Mounts what a machine has, the directories to write to, and the modules.
fn set_up(job: &Job) -> io::Result<()> {
    mount_at("proc", Path::new("/proc"), None)?;
    mount_at("sysfs", Path::new("/sys"), None)?;
    let cgroups = Path::new("/sys/fs/cgroup");
    if cgroups.is_dir() {
        mount_at("cgroup2", cgroups, None)?;
    }
    fs::create_dir_all(SCRATCH)?;
    mount_at("tmpfs", Path::new(SCRATCH), None)?;
    // hostfs takes the directory that it shows as its option.
    if let Some(directory) = &job.writable {
        mount_at("hostfs", directory, Some(directory))?;
    }
    // The package installs the modules where `modprobe` does not look by
    // itself.
    let root = Path::new(SCRATCH).join("modules");
    fs::create_dir_all(root.join("lib"))?;
    std::os::unix::fs::symlink(&job.modules, root.join("lib/modules"))?;
    let modprobe = Path::new(SCRATCH).join("modprobe");
    let script = format!(
        "#!/bin/sh\nexec '{}' -d '{}' \"$@\"\n",
        job.modprobe.display(),
        root.display()
    );
    fs::write(&modprobe, script)?;
    fs::set_permissions(&modprobe, fs::Permissions::from_mode(0o755))?;
    fs::write(
        "/proc/sys/kernel/modprobe",
        modprobe.as_os_str().as_encoded_bytes(),
    )?;
    // Otherwise they depend on the memory that was free at boot, and no two
    // boots would be the same environment (C-13).
    for (key, value) in SOCKET_MEMORY {
        fs::write(format!("/proc/sys/net/ipv4/{key}"), value)?;
    }
    for module in MODULES {
        let loaded = Command::new(&modprobe).arg(module).status()?;
        if !loaded.success() {
            eprintln!("modprobe {module}: {loaded}");
        }
    }
    Ok(())
}

fn mount_at(kind: &str, at: &Path, option: Option<&Path>) -> io::Result<()> {
    let mounted = mount(Some(kind), at, Some(kind), MsFlags::empty(), option);
    mounted.map_err(|errno| {
        let at = at.display();
        io::Error::other(format!("cannot mount {kind} on {at}: {}", errno.desc()))
    })
}

/// A line to the outside. A terminal there is one of the same size here.
fn line(path: &str, size: Terminal) -> io::Result<File> {
    let line = OpenOptions::new().write(true).open(path)?;
    terminal::make_raw(&line)?;
    if let Some((rows, columns)) = size {
        terminal::set_size(&line, terminal::TerminalSize { rows, columns })?;
    }
    Ok(line)
}

/// What the command prints to.
struct OutputStream {
    /// What it gets: the line itself for a terminal, else a pipe, which nothing
    /// takes for a terminal.
    end: OwnedFd,
    /// The other end of the pipe.
    pipe: Option<PipeReader>,
}

impl OutputStream {
    fn new(line: &File, terminal: Terminal) -> io::Result<Self> {
        if terminal.is_some() {
            let end = line.try_clone()?.into();
            return Ok(Self { end, pipe: None });
        }
        let (pipe, end) = io::pipe()?;
        Ok(Self {
            end: end.into(),
            pipe: Some(pipe),
        })
    }

    /// The same one again, so that output to both keeps its order.
    fn again(&self) -> io::Result<Self> {
        let end = self.end.try_clone()?;
        Ok(Self { end, pipe: None })
    }
}

fn relay(
    mut from: impl Read + Send + 'static,
    line: &File,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let mut line = line.try_clone()?;
    Ok(std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => line.write_all(&buffer[..length])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }))
}

/// Interrupts the command when asked to, and kills it when the process outside
/// is gone.
fn obey(mut control: File, pid: Pid) {
    let mut byte = [0];
    loop {
        match control.read(&mut byte) {
            // It may have ended in the meantime, which is what was wanted.
            Ok(1..) if byte[0] == INTERRUPT => _ = kill(pid, Signal::SIGINT),
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => {
                _ = kill(pid, Signal::SIGKILL);
                return;
            }
        }
    }
}

/// Waits for the command. Orphaned processes become children of this one.
fn reap(command: Pid) -> io::Result<ExitStatus> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == command => {
                return Ok(ExitStatus::from_raw(code << 8));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => {
                return Ok(ExitStatus::from_raw(signal as i32));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Ends the kernel; its process exits with `code`.
fn switch_off(code: u8) -> io::Error {
    let off = fs::write("/proc/exitcode", code.to_string())
        .and_then(|()| fs::write("/proc/sysrq-trigger", "o"));
    if let Err(error) = off {
        return error;
    }
    // The kernel does it in the background.
    std::thread::sleep(Duration::from_secs(10));
    io::Error::other("the kernel did not switch off")
}
