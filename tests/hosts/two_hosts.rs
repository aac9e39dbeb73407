//! Two hosts in namespaces, and the program on their controller.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::MutexGuard;

use super::CLEANED;
use crate::left::family;
use crate::world::{self, eventually};

/// Two hosts and a controller that reaches them.
pub(crate) struct TwoHosts {
    process: Child,
    directory: tempfile::TempDir,
    _machine: MutexGuard<'static, ()>,
}

impl TwoHosts {
    /// `None`, and a counted skip, where they cannot be made.
    pub(crate) fn stand(test: &str) -> Option<Self> {
        Self::stand_with(test, &[])
    }

    /// The same with two hosts more, `c` and `d`.
    pub(crate) fn stand_many(test: &str) -> Option<Self> {
        Self::stand_with(test, &["many"])
    }

    fn stand_with(test: &str, more: &[&str]) -> Option<Self> {
        let machine = world::lab(test)?;
        let directory = tempfile::Builder::new().prefix("hosts.").tempdir();
        let directory = directory.expect("a temporary directory");
        let mut process = Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "--mount", "--pid"])
            .args(["--fork", "--kill-child", "--mount-proc"])
            .args(["sh", "tests/hosts/world.sh"])
            .arg(directory.path())
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("util-linux is part of every Linux");
        let mut line = String::new();
        let output = process.stdout.take().expect("it is piped");
        let read = BufReader::new(output).read_line(&mut line);
        read.expect("it can be read");
        if line.trim() != "ready" {
            let mut said = String::new();
            let mut errors = process.stderr.take().expect("it is piped");
            errors.read_to_string(&mut said).expect("it can be read");
            process.wait().expect("it is ours");
            world::skip(test, &format!("two hosts with openssh-server: {said}"));
            return None;
        }
        for place in ["controller", "out"] {
            std::fs::create_dir(directory.path().join(place)).expect("it is ours");
        }
        put_program(&directory.path().join("plumbline"));
        Some(Self {
            process,
            directory,
            _machine: machine,
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The first process of the namespaces, which `unshare` started.
    fn init(&self) -> String {
        let unshare = self.process.id();
        let children = format!("/proc/{unshare}/task/{unshare}/children");
        let children = std::fs::read_to_string(children).expect("unshare runs");
        children.trim().to_owned()
    }

    /// A command on the controller.
    pub(crate) fn inside(&self, program: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.init(), "--user"])
            .args(["--preserve-credentials", "--net", "--mount", "--pid"])
            .args(program)
            .env("TMPDIR", self.path("controller"))
            .stdin(Stdio::null());
        command
    }

    /// `plumbline run --target hosts` with more arguments.
    pub(crate) fn run_with(&self, before: &[&str], arguments: &[&str]) -> Command {
        let program = self.path("plumbline");
        let mut words = before.to_vec();
        words.push(program.to_str().expect("a plain path"));
        let mut command = self.inside(&words);
        command
            .args(["run", "--target", "hosts", "--ssh-config"])
            .arg(self.path("config"))
            .arg("--out")
            .arg(self.path("out"))
            .args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let output = self.run_with(&[], arguments).output();
        output.expect("it starts")
    }

    /// What is in the temporary directories of the hosts and the controller.
    pub(crate) fn left(&self) -> Vec<PathBuf> {
        let places = std::fs::read_dir(self.directory.path()).expect("it stands");
        let is_a_hosts = |name: &str| name.starts_with("tmp-") || name.starts_with("full-");
        let places = places.filter_map(|entry| {
            let entry = entry.expect("it can be read");
            let name = entry.file_name().into_string().ok()?;
            (is_a_hosts(&name) || name == "controller").then(|| entry.path())
        });
        let within = places.flat_map(|place| {
            let entries = std::fs::read_dir(place).expect("it stands");
            entries.map(|entry| entry.expect("it can be read").path())
        });
        within.collect()
    }

    /// Processes of the hosts that run our program from a temporary directory.
    pub(crate) fn agents(&self) -> usize {
        let mark = self.directory.path().join("tmp-");
        let mark = mark.to_str().expect("a plain path").to_owned();
        let processes = std::fs::read_dir("/proc").expect("/proc is mounted");
        let lines = processes
            .flatten()
            .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines
            .filter(|line| line.starts_with(mark.as_bytes()))
            .count()
    }

    /// Every process of the hosts and the controller.
    pub(crate) fn processes(&self) -> BTreeSet<u32> {
        family(self.process.id())
    }

    #[track_caller]
    pub(crate) fn nothing_left(&self) {
        eventually("nothing is left on the hosts", CLEANED, || {
            self.left().is_empty() && self.agents() == 0
        });
    }
}

/// The program under test, which every run copies to its hosts, without what only a debugger
/// reads where that can be told apart: the most of it.
fn put_program(to: &Path) {
    let program = world::plumbline(&[]).get_program().to_owned();
    let stripped = Command::new("strip")
        .arg("-o")
        .arg(to)
        .arg(&program)
        .output();
    if !stripped.is_ok_and(|it| it.status.success()) {
        std::fs::copy(program, to).expect("there is room");
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        // Ends the namespaces with everything in them; fails only when it has
        // ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
