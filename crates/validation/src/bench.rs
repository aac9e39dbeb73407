//! Where comparisons are made: two ends of a path, and programs started there.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::time::{Duration, Instant};

use plumbline_harness::Path as _;
use plumbline_lab::{Place, StandingNetwork};
use plumbline_sys::cpu::{self, ProcessTime};
use plumbline_sys::process::{Child, Command, ProcessError};
use tempfile::TempDir;

use crate::error::{Doing as _, ValidationError};
use crate::exit::Exit;
use crate::process::{Transport, is_listening, resident_bytes};

/// First port of the servers; each gets its own, so that none meets what an
/// earlier one left behind.
const FIRST_PORT: u16 = 20_000;
/// How long a server may take to listen, and a program to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often memory is looked at.
const MEMORY_PAUSE: Duration = Duration::from_millis(50);

/// The two ends of a path, a CPU for each, and how long each run lasts.
pub(crate) struct Bench<'a> {
    client: &'a Place,
    server: &'a Place,
    address: IpAddr,
    all_cpus: Vec<usize>,
    client_cpu: usize,
    server_cpu: usize,
    next_port: Cell<u16>,
    scratch: TempDir,
    plumbline: String,
    /// Seconds that each run measures.
    pub(crate) seconds: u32,
}

/// A server that listens.
pub(crate) struct Listener {
    tool: String,
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
        let plumbline = std::env::current_exe().when("find this program")?;
        Ok(Self {
            client: standing.client_place(),
            server: standing.server_place(),
            address: standing.server().address(),
            all_cpus,
            client_cpu,
            server_cpu,
            next_port: Cell::new(FIRST_PORT),
            scratch: scratch.when("make a temporary directory")?,
            plumbline: plumbline.display().to_string(),
            seconds,
        })
    }

    /// Whether both ends must run on one CPU.
    pub(crate) fn shares_a_cpu(&self) -> bool {
        self.client_cpu == self.server_cpu
    }

    /// A directory that goes away with the bench.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// An address for the next server.
    pub(crate) fn next_address(&self) -> SocketAddr {
        let port = self.next_port.get();
        self.next_port.set(port + 1);
        (self.address, port).into()
    }

    /// Starts a server on its CPU and waits until it listens.
    pub(crate) fn serve(
        &self,
        program: &str,
        args: &[&str],
        address: SocketAddr,
        transport: Transport,
    ) -> Result<Listener, ValidationError> {
        let mut child = self.start(self.server, self.server_cpu, program, args)?;
        let output = take_output(&mut child);
        let deadline = Instant::now() + PATIENCE;
        while !is_listening(child.pid(), address.port(), transport) {
            if Instant::now() > deadline {
                return Err(ValidationError::NotListening {
                    program: program.to_owned(),
                    address,
                    seconds: PATIENCE.as_secs(),
                });
            }
            match child.wait(Duration::from_millis(5)) {
                Err(ProcessError::StillRunning { .. }) => {}
                ended => {
                    ended.map_err(failed(program, args))?;
                    return Err(ValidationError::EndedEarly {
                        program: program.to_owned(),
                        address,
                    });
                }
            }
        }
        Ok(Listener {
            tool: self.name(program, args),
            child,
            output,
            address,
        })
    }

    /// Starts this program as a server; `args` begin with the subcommand.
    pub(crate) fn serve_ours(
        &self,
        args: &[&str],
        address: SocketAddr,
        transport: Transport,
    ) -> Result<Listener, ValidationError> {
        self.serve(&self.plumbline, args, address, transport)
    }

    /// Runs a client on its CPU to its end.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> Result<Exit, ValidationError> {
        let mut child = self.start(self.client, self.client_cpu, program, args)?;
        let mut output = String::new();
        let mut pipe = take_output(&mut child);
        pipe.read_to_string(&mut output)
            .when("read what a program wrote")?;
        self.reap(child, program, args, output)
    }

    /// Runs this program as a client; `args` begin with the subcommand.
    pub(crate) fn run_ours(&self, args: &[&str]) -> Result<Exit, ValidationError> {
        self.run(&self.plumbline, args)
    }

    /// As [`run_ours`](Self::run_ours), and looks at its memory meanwhile.
    pub(crate) fn watch_ours(&self, args: &[&str]) -> Result<Exit, ValidationError> {
        let program = &self.plumbline;
        let mut child = self.start(self.client, self.client_cpu, program, args)?;
        let mut pipe = take_output(&mut child);
        let reader = std::thread::spawn(move || {
            let mut output = String::new();
            pipe.read_to_string(&mut output).map(|_| output)
        });
        let mut resident = 0;
        while !reader.is_finished() {
            resident = resident.max(resident_bytes(child.pid()).unwrap_or(0));
            std::thread::sleep(MEMORY_PAUSE);
        }
        let output = reader
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .when("read what a program wrote")?;
        let exit = self.reap(child, program, args, output)?;
        Ok(Exit { resident, ..exit })
    }

    fn start(
        &self,
        at: &Place,
        on: usize,
        program: &str,
        args: &[&str],
    ) -> Result<Child, ValidationError> {
        let path =
            find(program).ok_or_else(|| ValidationError::NotInstalled(program.to_owned()))?;
        // A child inherits the CPUs of the thread that starts it.
        cpu::pin_thread(on).when("choose a CPU")?;
        let child = Command::new(&path).args(args).spawn_in(&at.namespace);
        cpu::allow_thread(&self.all_cpus).when("choose CPUs")?;
        child.map_err(failed(program, args))
    }

    /// Waits for a child that has closed its output.
    fn reap(
        &self,
        mut child: Child,
        program: &str,
        args: &[&str],
        output: String,
    ) -> Result<Exit, ValidationError> {
        let before = children_time()?;
        child.wait(PATIENCE).map_err(failed(program, args))?;
        Ok(Exit {
            tool: self.name(program, args),
            output,
            cpu: children_time()?.since(before),
            resident: 0,
        })
    }

    /// What a program is called in messages: ours with its subcommand.
    fn name(&self, program: &str, args: &[&str]) -> String {
        match args.first() {
            Some(subcommand) if program == self.plumbline => format!("plumbline {subcommand}"),
            _ => program.to_owned(),
        }
    }
}

impl Listener {
    /// Ends it as Ctrl-C would; one that has ended by itself is as good.
    pub(crate) fn end(mut self) -> Result<Exit, ValidationError> {
        self.child.interrupt();
        let before = children_time()?;
        // What it says of having been interrupted does not matter.
        if self.child.wait(PATIENCE).is_err() {
            self.child.kill();
        }
        self.exit(before)
    }

    /// Waits until it ends by itself, as a server for one client does.
    pub(crate) fn finish(mut self) -> Result<Exit, ValidationError> {
        let before = children_time()?;
        self.child.wait(PATIENCE).map_err(failed(&self.tool, &[]))?;
        self.exit(before)
    }

    fn exit(mut self, before: ProcessTime) -> Result<Exit, ValidationError> {
        let mut output = String::new();
        self.output
            .read_to_string(&mut output)
            .when("read what a server wrote")?;
        drop(self.child);
        Ok(Exit {
            tool: self.tool,
            output,
            cpu: children_time()?.since(before),
            resident: 0,
        })
    }
}

/// CPU of all children that have ended.
fn children_time() -> Result<ProcessTime, ValidationError> {
    cpu::children_time().when("read the CPU time of programs that have ended")
}

fn take_output(child: &mut Child) -> ChildStdout {
    child.take_stdout().expect("a command pipes its output")
}

fn failed(program: &str, args: &[&str]) -> impl FnOnce(ProcessError) -> ValidationError {
    let command = std::iter::once(program).chain(args.iter().copied());
    let command = command.collect::<Vec<_>>().join(" ");
    move |source| ValidationError::Process { command, source }
}

/// Looks for a program where shells do, and where Debian keeps servers.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin"));
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}
