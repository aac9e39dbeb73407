//! Running the program, and looking at what it leaves in the world.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::documented;
pub(crate) use crate::skipped::skip;
pub(crate) use crate::tries::{in_time, often_in_time};

/// How long something may take that is to come at all, on a machine that others use too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The program under test.
pub(crate) fn plumbline(arguments: &[&str]) -> Command {
    let program = std::env::var_os("PLUMBLINE_BIN").map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_plumbline")),
        PathBuf::from,
    );
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A run whose trials take some 100 ms and are not repeated; the directory is to follow.
pub(crate) const fn short_run(networks: &'static str, blocks: &'static str) -> [&'static str; 16] {
    [
        "run",
        "--network",
        networks,
        "--workload",
        "rr",
        "--rate",
        "2000",
        "--blocks",
        blocks,
        "--duration",
        "60ms",
        "--set",
        "design.warm_up=20ms",
        "--set",
        "design.retries=0",
        "--out",
    ]
}

/// Runs it to its end. What it said of errors stands below a test that fails.
pub(crate) fn output(arguments: &[&str]) -> Output {
    let output = plumbline(arguments).output().expect("the program starts");
    eprintln!(
        "{arguments:?} ended with {}: {}",
        output.status,
        stderr(&output)
    );
    output
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs it, and gives what it printed as JSON, all of which is described.
#[track_caller]
pub(crate) fn json(arguments: &[&str]) -> serde_json::Value {
    let output = output(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    let value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{arguments:?}: {e}: {}", stdout(&output)));
    let what = match arguments[0] {
        "doctor" => "findings",
        "list" => "listed",
        "load" if arguments.contains(&"--find-max") => "search",
        "load" => "load",
        "tune" => "tunables",
        "validate" => "validation",
        "xray" => "xray",
        _ => "report",
    };
    documented::check(what, &value);
    value
}

/// Tests that measure do so one after the other: they would disturb each other.
static MEASURING: Mutex<()> = Mutex::new(());

/// The machine for one test alone; `None`, and a counted skip, where this user
/// may not make namespaces.
pub(crate) fn lab(test: &str) -> Option<MutexGuard<'static, ()>> {
    match plumbline_sys::namespace::can_enter_private() {
        // A test that failed while it held the lock left nothing half-done in it.
        Ok(()) => Some(MEASURING.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(error) => {
            skip(test, &error.to_string());
            None
        }
    }
}

/// As [`lab`], for root; `why` says what anybody else may not.
pub(crate) fn lab_as_root(test: &str, why: &str) -> Option<MutexGuard<'static, ()>> {
    if !nix::unistd::geteuid().is_root() {
        skip(test, why);
        return None;
    }
    lab(test)
}

/// Where Debian has the plugins of CNI.
pub(crate) const CNI_PLUGINS: &str = "/usr/lib/cni";

/// As [`lab`], where there are plugins of CNI, and a program that is used beside them.
pub(crate) fn lab_with_plugins(test: &str, program: &str) -> Option<MutexGuard<'static, ()>> {
    let alone = lab(test)?;
    let has_all = is_installed(program) && Path::new(CNI_PLUGINS).join("bridge").is_file();
    if !has_all {
        let why = format!("no {program}, or no CNI plugins in {CNI_PLUGINS}");
        skip(test, &why);
    }
    has_all.then_some(alone)
}

/// Whether a program is there, in a folder of the user's or of administrators.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/sbin"]);
    let mut files = folders.map(|it| Path::new(it).join(program));
    files.any(|it| it.exists())
}

/// A program that runs, killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// As from a terminal: no signal of one is ignored, whatever runs the tests.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let program = plumbline(arguments);
        let child = Command::new("env")
            .arg("--default-signal=HUP,INT,QUIT")
            .arg(program.get_program())
            .args(program.get_args())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Self(child)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid() as i32), signal).expect("it runs");
    }

    /// Waits for its end; gives the exit code, `None` after a signal.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<i32> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().expect("it is ours") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it did not end within {limit:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What it wrote to standard error by its end.
    pub(crate) fn said(&mut self) -> String {
        let mut said = String::new();
        let errors = self.0.stderr.as_mut().expect("it is a pipe");
        errors.read_to_string(&mut said).expect("it is text");
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn eventually(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The only run directory below `out`.
#[track_caller]
pub(crate) fn run_directory(out: &Path) -> PathBuf {
    let mut runs = runs_in(out);
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

/// All run directories below `out`. One that is still being made has a name with
/// a dot in front, and is none yet.
pub(crate) fn runs_in(out: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(out) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| !p.file_name().unwrap().as_encoded_bytes().starts_with(b"."))
        .filter(|p| p.join("run.json").exists())
        .collect()
}

/// Finished trials of a run.
pub(crate) fn trials(run: &Path) -> usize {
    let text = std::fs::read_to_string(run.join("trials.jsonl")).unwrap_or_default();
    text.matches('\n').count()
}
