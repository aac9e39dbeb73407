//! Where the bouts take place: two ends of a path, and programs started there.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use plumbline_harness::Path as _;
use plumbline_lab::{Place, Standing};
use plumbline_sys::cpu::{self, ProcessTime};
use plumbline_sys::process::{Child, Command};

/// First port of the servers; each gets its own, so that none meets what an
/// earlier one left behind.
const FIRST_PORT: u16 = 20_000;
/// How long a server may take to listen, and a program to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often memory is looked at.
const MEMORY_PAUSE: Duration = Duration::from_millis(50);

/// The two ends of a path, a CPU for each, and how long each run lasts.
pub(super) struct Stage<'a> {
    client: &'a Place,
    server: &'a Place,
    address: IpAddr,
    all_cpus: Vec<usize>,
    client_cpu: usize,
    server_cpu: usize,
    next_port: Cell<u16>,
    scratch: PathBuf,
    /// This program.
    pub(super) plumbline: PathBuf,
    /// Seconds that each run measures.
    pub(super) seconds: u32,
}

/// A server that listens.
pub(super) struct Server {
    child: Child,
    output: ChildStdout,
    pub(super) address: SocketAddr,
}

/// What a program left behind.
pub(super) struct Ended {
    /// Its standard output.
    pub(super) output: String,
    /// CPU from its start to its end.
    pub(super) cpu: ProcessTime,
    /// Largest resident memory seen, in bytes; 0 when nobody looked.
    pub(super) resident: u64,
}

impl Ended {
    /// User and system together, in nanoseconds.
    pub(super) fn cpu_ns(&self) -> f64 {
        (self.cpu.user_ns + self.cpu.system_ns) as f64
    }
}

/// The table in `/proc/PID/net` that a listening server appears in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

impl<'a> Stage<'a> {
    pub(super) fn new(standing: &'a Standing, seconds: u32) -> anyhow::Result<Self> {
        let all_cpus = cpu::allowed()?;
        let (Some(&server_cpu), Some(&client_cpu)) = (all_cpus.first(), all_cpus.last()) else {
            bail!("this process may run on no CPU at all");
        };
        let scratch = std::env::temp_dir().join(format!("plumbline-{}", std::process::id()));
        std::fs::create_dir(&scratch)
            .with_context(|| format!("cannot make the directory {}", scratch.display()))?;
        Ok(Self {
            client: standing.client_place(),
            server: standing.server_place(),
            address: standing.server().address(),
            all_cpus,
            client_cpu,
            server_cpu,
            next_port: Cell::new(FIRST_PORT),
            scratch,
            plumbline: std::env::current_exe()?,
            seconds,
        })
    }

    /// What to know when both ends must run on one CPU.
    pub(super) fn shared_cpu(&self) -> Option<String> {
        (self.client_cpu == self.server_cpu).then(|| {
            "client and server share the only CPU: every figure holds the other side's work too"
                .to_owned()
        })
    }

    /// Whether a program is installed.
    pub(super) fn has(&self, name: &str) -> bool {
        find(name).is_some()
    }

    /// A file that goes away with the stage.
    pub(super) fn file(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.scratch.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// Where such files are.
    pub(super) fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// An address for the next server.
    pub(super) fn next_address(&self) -> SocketAddr {
        let port = self.next_port.get();
        self.next_port.set(port + 1);
        (self.address, port).into()
    }

    /// Starts a server on its CPU and waits until it listens.
    pub(super) fn serve(
        &self,
        program: &str,
        args: &[&str],
        address: SocketAddr,
        transport: Transport,
    ) -> anyhow::Result<Server> {
        let mut child = self.start(self.server, self.server_cpu, program, args)?;
        let output = child.take_stdout().context("a command pipes its output")?;
        let deadline = Instant::now() + PATIENCE;
        while !is_listening(child.pid(), address.port(), transport) {
            if Instant::now() > deadline {
                bail!("`{program}` does not listen on {address} after {PATIENCE:?}");
            }
            match child.wait(Duration::from_millis(5)) {
                Err(plumbline_sys::process::ProcessError::StillRunning { .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(()) => bail!("`{program}` ended before it listened on {address}"),
            }
        }
        Ok(Server {
            child,
            output,
            address,
        })
    }

    /// Runs a client on its CPU to its end.
    pub(super) fn run(&self, program: &str, args: &[&str]) -> anyhow::Result<Ended> {
        let mut child = self.start(self.client, self.client_cpu, program, args)?;
        let mut output = String::new();
        let mut pipe = child.take_stdout().context("a command pipes its output")?;
        pipe.read_to_string(&mut output)?;
        let cpu = reap(&mut child).with_context(|| format!("{program} {}", args.join(" ")))?;
        Ok(Ended {
            output,
            cpu,
            resident: 0,
        })
    }

    /// As [`run`](Self::run), and looks at its memory meanwhile.
    pub(super) fn run_watched(&self, program: &str, args: &[&str]) -> anyhow::Result<Ended> {
        let mut child = self.start(self.client, self.client_cpu, program, args)?;
        let mut pipe = child.take_stdout().context("a command pipes its output")?;
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
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let cpu = reap(&mut child).with_context(|| format!("{program} {}", args.join(" ")))?;
        Ok(Ended {
            output,
            cpu,
            resident,
        })
    }

    fn start(&self, at: &Place, on: usize, program: &str, args: &[&str]) -> anyhow::Result<Child> {
        let path = find(program).with_context(|| format!("`{program}` is not installed"))?;
        // A child inherits the CPUs of the thread that starts it.
        cpu::pin_thread(on)?;
        let child = Command::new(&path).args(args).spawn_in(&at.namespace);
        cpu::allow_thread(&self.all_cpus)?;
        Ok(child?)
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // Left behind at worst: some small files in the directory for such.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

impl Server {
    /// Ends it as Ctrl-C would; one that has ended by itself is as good.
    pub(super) fn end(mut self) -> anyhow::Result<Ended> {
        self.child.interrupt();
        let before = cpu::children_time()?;
        // What it says of having been interrupted does not matter.
        if self.child.wait(PATIENCE).is_err() {
            self.child.kill();
        }
        self.ended(before)
    }

    /// Waits until it ends by itself, as a server for one client does.
    pub(super) fn finish(mut self) -> anyhow::Result<Ended> {
        let before = cpu::children_time()?;
        self.child.wait(PATIENCE)?;
        self.ended(before)
    }

    fn ended(mut self, before: ProcessTime) -> anyhow::Result<Ended> {
        let mut output = String::new();
        self.output.read_to_string(&mut output)?;
        drop(self.child);
        Ok(Ended {
            output,
            cpu: cpu::children_time()?.since(before),
            resident: 0,
        })
    }
}

/// Waits for a child that has closed its output, and gives its CPU time.
fn reap(child: &mut Child) -> anyhow::Result<ProcessTime> {
    let before = cpu::children_time()?;
    child.wait(PATIENCE)?;
    Ok(cpu::children_time()?.since(before))
}

/// Looks for a program where shells do, and where Debian keeps servers.
fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin"));
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// Whether a socket of the namespace of `pid` waits on a port. A connection
/// attempt would tell too, but a server for one client would take it for that.
fn is_listening(pid: u32, port: u16, transport: Transport) -> bool {
    let (tables, state) = match transport {
        Transport::Tcp => (["tcp", "tcp6"], Some("0A")),
        Transport::Udp => (["udp", "udp6"], None),
    };
    tables.iter().any(|table| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        has_socket(&text, port, state)
    })
}

/// Looks for a local port, and a state, in a table of `/proc/net`.
fn has_socket(table: &str, port: u16, state: Option<&str>) -> bool {
    let suffix = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_local = fields.next().is_some_and(|local| local.ends_with(&suffix));
        is_local && state.is_none_or(|state| fields.nth(1) == Some(state))
    })
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_socket_is_told_from_a_connection() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
            0: 0100007F:4E20 00000000:0000 0A 00000000:00000000\n   \
            1: 0100007F:4E21 0100007F:9999 01 00000000:00000000\n";
        assert!(has_socket(table, 0x4e20, Some("0A")));
        assert!(!has_socket(table, 0x4e21, Some("0A")));
        assert!(has_socket(table, 0x4e21, None));
        assert!(!has_socket(table, 0x9999, None));
    }

    #[test]
    fn this_process_uses_memory() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
    }
}
