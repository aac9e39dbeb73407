//! Where comparisons are made: two ends of a path, and programs started there.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::thread;
use std::time::{Duration, Instant};

use plumbline_experiment::Protocol;
use plumbline_harness::Path as _;
use plumbline_lab::{Place, StandingNetwork};
use plumbline_sys::cpu::{self, ProcessTime};
use plumbline_sys::process::{Child, Command, ProcessError};
use tempfile::TempDir;

use crate::error::{Doing as _, ValidationError};
use crate::exit::Exit;
use crate::process::{is_listening, resident_bytes};

/// First port of the servers. Each gets its own, so that none finds connections of
/// an earlier one.
const FIRST_PORT: u16 = 20_000;
/// How long a server may take to listen, and a program to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often memory is read.
const MEMORY_PAUSE: Duration = Duration::from_millis(50);

/// The two ends of a path, a CPU for each, and how long each run lasts.
///
/// Commands are lines whose words are separated by spaces. `plumbline` is this
/// program, and `{scratch}` is a directory that goes away with the bench.
pub(crate) struct Bench<'a> {
    client: &'a Place,
    server: &'a Place,
    address: IpAddr,
    all_cpus: Vec<usize>,
    client_cpu: usize,
    server_cpu: usize,
    next_port: Cell<u16>,
    scratch: TempDir,
    plumbline: PathBuf,
    pub(crate) seconds: u32,
}

pub(crate) struct Listener {
    command: String,
    child: Child,
    output: ChildStdout,
    pub(crate) address: SocketAddr,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        standing: &'a StandingNetwork,
        seconds: u32,
    ) -> Result<Self, ValidationError> {
        let all_cpus = cpu::allowed().when("read which CPUs this process may use")?;
        let (Some(&server_cpu), Some(&client_cpu)) = (all_cpus.first(), all_cpus.last()) else {
            return Err(ValidationError::NoCpu);
        };
        let scratch = tempfile::Builder::new().prefix("plumbline-").tempdir();
        Ok(Self {
            client: standing.client_place(),
            server: standing.server_place(),
            address: standing.server().address(),
            all_cpus,
            client_cpu,
            server_cpu,
            next_port: Cell::new(FIRST_PORT),
            scratch: scratch.when("make a temporary directory")?,
            plumbline: std::env::current_exe().when("find this program")?,
            seconds,
        })
    }

    /// Whether both ends must run on one CPU.
    pub(crate) fn shares_a_cpu(&self) -> bool {
        self.client_cpu == self.server_cpu
    }

    /// The directory that `{scratch}` stands for.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn next_address(&self) -> SocketAddr {
        let port = self.next_port.get();
        self.next_port.set(port + 1);
        (self.address, port).into()
    }

    /// Starts a server on its CPU and waits until it listens.
    pub(crate) fn serve(
        &self,
        command: String,
        address: SocketAddr,
        protocol: Protocol,
    ) -> Result<Listener, ValidationError> {
        let mut child = self.start(self.server, self.server_cpu, &command)?;
        let output = take_output(&mut child);
        let program = || tool(&command);
        let deadline = Instant::now() + PATIENCE;
        while !is_listening(child.pid(), address.port(), protocol) {
            if Instant::now() > deadline {
                return Err(ValidationError::NotListening {
                    program: program(),
                    address,
                    seconds: PATIENCE.as_secs(),
                });
            }
            match child.wait(Duration::from_millis(5)) {
                Err(ProcessError::StillRunning { .. }) => {}
                ended => {
                    ended.map_err(failed(&command))?;
                    let program = program();
                    return Err(ValidationError::EndedEarly { program, address });
                }
            }
        }
        Ok(Listener {
            command,
            child,
            output,
            address,
        })
    }

    /// Runs a client on its CPU to its end.
    pub(crate) fn run(&self, command: &str) -> Result<Exit, ValidationError> {
        let mut child = self.start(self.client, self.client_cpu, command)?;
        let output = io::read_to_string(take_output(&mut child));
        reap(child, command, output)
    }

    /// As [`run`](Self::run), and reads the client's memory meanwhile.
    pub(crate) fn watch(&self, command: &str) -> Result<Exit, ValidationError> {
        let mut child = self.start(self.client, self.client_cpu, command)?;
        let pipe = take_output(&mut child);
        let reader = thread::spawn(move || io::read_to_string(pipe));
        let mut resident = 0;
        while !reader.is_finished() {
            resident = resident.max(resident_bytes(child.pid()).unwrap_or(0));
            thread::sleep(MEMORY_PAUSE);
        }
        let output = reader.join();
        let output = output.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let exit = reap(child, command, output)?;
        Ok(Exit { resident, ..exit })
    }

    /// Runs a client to its end, then ends its server; gives what both left behind.
    pub(crate) fn run_against(
        &self,
        server: Listener,
        command: &str,
    ) -> Result<(Exit, Exit), ValidationError> {
        let client = self.run(command)?;
        Ok((client, server.end()?))
    }

    fn start(&self, at: &Place, on: usize, command: &str) -> Result<Child, ValidationError> {
        let mut words = command.split(' ').filter(|word| !word.is_empty());
        let path = match words.next().unwrap_or_default() {
            "plumbline" => self.plumbline.clone(),
            name => find(name).ok_or_else(|| ValidationError::NotInstalled(name.to_owned()))?,
        };
        let scratch = self.scratch().as_os_str();
        let words = words.map(|word| match word.strip_prefix("{scratch}") {
            Some(rest) => [scratch, OsStr::new(rest)].into_iter().collect(),
            None => OsString::from(word),
        });
        // A child inherits the CPUs of the thread that starts it.
        cpu::pin_thread(on).when("choose a CPU")?;
        let child = Command::new(&path).args(words).spawn_in(&at.namespace);
        cpu::allow_thread(&self.all_cpus).when("choose CPUs")?;
        child.map_err(failed(command))
    }
}

impl Listener {
    /// Where a client fetches from an HTTP server.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Ends it as Ctrl-C would; one that has ended by itself is as good.
    pub(crate) fn end(mut self) -> Result<Exit, ValidationError> {
        self.child.interrupt();
        let before = children_time()?;
        // How it ends when interrupted does not matter.
        if self.child.wait(PATIENCE).is_err() {
            self.child.kill();
        }
        self.exit(before)
    }

    /// Waits until it ends by itself, as a server for one client does.
    pub(crate) fn finish(mut self) -> Result<Exit, ValidationError> {
        let before = children_time()?;
        self.child.wait(PATIENCE).map_err(failed(&self.command))?;
        self.exit(before)
    }

    fn exit(self, before: ProcessTime) -> Result<Exit, ValidationError> {
        let output = io::read_to_string(self.output).when("read what a server wrote")?;
        drop(self.child);
        Exit::new(&self.command, output, before)
    }
}

impl Exit {
    fn new(command: &str, output: String, before: ProcessTime) -> Result<Self, ValidationError> {
        Ok(Self {
            tool: tool(command),
            output,
            cpu: children_time()?.since(before),
            resident: 0,
        })
    }
}

/// Waits for a child that has closed its output.
fn reap(
    mut child: Child,
    command: &str,
    output: io::Result<String>,
) -> Result<Exit, ValidationError> {
    let output = output.when("read what a program wrote")?;
    let before = children_time()?;
    child.wait(PATIENCE).map_err(failed(command))?;
    Exit::new(command, output, before)
}

/// What a program is called in messages: ours with its subcommand.
fn tool(command: &str) -> String {
    let words = if command.starts_with("plumbline ") {
        2
    } else {
        1
    };
    let words: Vec<&str> = command.split(' ').take(words).collect();
    words.join(" ")
}

/// CPU of all children that have ended.
fn children_time() -> Result<ProcessTime, ValidationError> {
    cpu::children_time().when("read the CPU time of programs that have ended")
}

fn take_output(child: &mut Child) -> ChildStdout {
    child.take_stdout().expect("a command pipes its output")
}

fn failed(command: &str) -> impl FnOnce(ProcessError) -> ValidationError {
    let command = command.to_owned();
    move |source| ValidationError::Process { command, source }
}

/// Looks for a program where shells do, and where Debian keeps servers.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin"));
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}
