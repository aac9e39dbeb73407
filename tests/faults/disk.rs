//! A disk that is full, and one that breaks: the run ends with a sentence, what was finished
//! can be read, and the run goes on once there is room. Not every kernel has a device mapper,
//! this project's gate among them, so the disk that breaks is a library that answers `EIO`.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::planted::{Library, RUN, TRIALS};
use super::under_way;
use crate::observed::{ran_to_its_end, whole_lines};
use crate::world::{
    self, PATIENCE, Running, output, plumbline, run_directory, runs_in, stderr, stdout, trials,
};

/// A file system of two megabytes in a mount namespace of its own.
struct Small {
    holder: Child,
    directory: tempfile::TempDir,
}

impl Small {
    /// `None`, and a counted skip, where it cannot be made.
    fn mount(test: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let script = "mount -t tmpfs -o size=2m none \"$1\" && echo ready && exec cat";
        let mut holder = Command::new("unshare")
            .args(["-Ur", "--mount", "sh", "-c", script, "sh"])
            .arg(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("util-linux is part of every Linux");
        let mut line = String::new();
        let mut said = BufReader::new(holder.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let small = Self { holder, directory };
        if line.trim() != "ready" {
            world::skip(test, "a small file system cannot be mounted");
            return None;
        }
        Some(small)
    }

    /// Where it is, seen from outside of its namespace.
    fn path(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        let inside = self.directory.path().strip_prefix("/");
        root.join(inside.expect("temporary directories have whole paths"))
    }

    /// The program where it is seen.
    fn plumbline(&self, arguments: &[&str], directory: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--target={}", self.holder.id()))
            .args(["--user", "--preserve-credentials", "--mount"])
            .arg(plumbline(&[]).get_program())
            .args(arguments)
            .arg(directory)
            .stdin(Stdio::null());
        command
    }

    /// Leaves no byte free; gives the file that takes them.
    fn fill(&self) -> PathBuf {
        let path = self.path().join("ballast");
        let mut ballast = fs::File::create(&path).unwrap();
        let is_full = (0..1_000).any(|_| ballast.write_all(&[0; 4096]).is_err());
        assert!(is_full, "more than 2 MB went in");
        path
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Ends the namespace; fails only when it has ended already.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[test]
fn a_full_disk_ends_the_run_which_goes_on_when_there_is_room() {
    let test = "a_full_disk_ends_the_run_which_goes_on_when_there_is_room";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let Some(small) = Small::mount(test) else {
        return;
    };
    let child = small
        .plumbline(RUN, small.directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut run = Running(child.expect("the program starts"));
    let directory = under_way(&small.path(), 1);
    let ballast = small.fill();
    let code = run.wait(PATIENCE);
    let said = std::io::read_to_string(run.0.stderr.take().unwrap()).unwrap();
    assert_eq!(code, Some(2), "{said}");
    for part in ["no space is left", "make room", "--resume"] {
        assert!(said.contains(part), "it should say {part:?}: {said}");
    }
    let inside = small.directory.path().join(directory.file_name().unwrap());
    let run = |arguments: &[&str]| small.plumbline(arguments, &inside).output().unwrap();
    let kept = is_readable(&directory, &run(&["report"]));
    assert!((1..TRIALS).contains(&kept), "{kept}: {said}");
    fs::remove_file(ballast).unwrap();
    goes_on(&directory, || run(&["run", "--resume"]));
}

/// Writes and syncs fail from one of them on, the first or the second of a trial.
#[test]
fn a_disk_that_breaks_ends_the_run_and_what_was_finished_can_be_read() {
    let test = "a_disk_that_breaks_ends_the_run_and_what_was_finished_can_be_read";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let Some(library) = Library::compile(test) else {
        return;
    };
    // A write and a sync for each trial.
    for (order, kept) in [("0", 0), ("1", 0), ("4", 2), ("5", 2)] {
        let out = tempfile::tempdir().unwrap();
        let order = format!("{order}:/trials.jsonl");
        let broken = library.output(out.path(), "PLANTED_EIO", &order);
        says_that_it_breaks(&broken);
        let directory = run_directory(out.path());
        let name = directory.to_str().unwrap();
        let report = output(&["report", name]);
        assert_eq!(is_readable(&directory, &report), kept, "{order}");
        goes_on(&directory, || output(&["run", "--resume", name]));
    }
    // Before there is a run.
    let out = tempfile::tempdir().unwrap();
    let broken = library.output(out.path(), "PLANTED_EIO", "0:.partial");
    says_that_it_breaks(&broken);
    assert_eq!(runs_in(out.path()), Vec::<PathBuf>::new());
}

#[track_caller]
fn says_that_it_breaks(broken: &Output) {
    let said = stderr(broken);
    assert_eq!(broken.status.code(), Some(2), "{said}");
    for part in ["Input/output error", "dmesg", "--out on another"] {
        assert!(said.contains(part), "it should say {part:?}: {said}");
    }
}

/// No line is torn, and there is a report; gives how many trials were kept.
#[track_caller]
fn is_readable(directory: &Path, report: &Output) -> usize {
    let text = fs::read_to_string(directory.join("trials.jsonl")).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    let told = stdout(report);
    assert!(told.contains("Cut off: "), "{told}{}", stderr(report));
    whole_lines(directory).len()
}

#[track_caller]
fn goes_on(directory: &Path, resume: impl Fn() -> Output) {
    let before = fs::read_to_string(directory.join("trials.jsonl")).unwrap();
    ran_to_its_end(&resume(), directory);
    let after = fs::read_to_string(directory.join("trials.jsonl")).unwrap();
    assert!(after.starts_with(&before), "a finished trial was lost");
    assert!(trials(directory) >= TRIALS, "{after}");
}
