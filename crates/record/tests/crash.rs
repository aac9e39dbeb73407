//! a writer killed at a random moment loses nothing that it acknowledged.
//!
//! A child of this program makes runs and appends trials, and tells its parent
//! after each append. The parent kills it at a random moment and opens what it
//! left. 200 times by default; `PLUMBLINE_CRASHES=1000` for the full count.

mod sample;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plumbline_record::{RunDirectory, RunDirectoryError};

/// Tells the child where to write, and so that it is the child.
const WRITE_INTO: &str = "PLUMBLINE_TEST_WRITE_INTO";
/// Trials of one run of the child, after which it makes another run.
const TRIALS: u32 = 12;

fn main() {
    match std::env::var_os(WRITE_INTO) {
        Some(parent) => write_forever(Path::new(&parent)),
        None if std::env::args().any(|argument| argument == "--list") => {
            println!("crash: test");
        }
        None => {
            killed_writers_lose_nothing();
            a_full_disk_loses_nothing();
        }
    }
}

/// The child: runs with trials until it is killed or an append fails.
fn write_forever(parent: &Path) {
    let mut out = std::io::stdout();
    let run = sample::run();
    let trials: Vec<_> = (0..TRIALS).map(sample::trial).collect();
    loop {
        let made = RunDirectory::create(parent, "crash", &run, &[]);
        let mut directory = match made {
            Ok(directory) => directory,
            Err(error) => return tell_end(&error),
        };
        let name = directory.path().file_name().unwrap().to_owned();
        for (trial, count) in trials.iter().zip(1..) {
            if let Err(error) = directory.append(trial) {
                return tell_end(&error);
            }
            // One write, so that the parent never reads half a line.
            let line = format!("{} {count}\n", name.to_str().unwrap());
            out.write_all(line.as_bytes()).unwrap();
            out.flush().unwrap();
        }
    }
}

fn tell_end(error: &RunDirectoryError) {
    let full = matches!(error, RunDirectoryError::Full { .. });
    println!("end {}", if full { "full" } else { "other" });
    eprintln!("{error}");
}

fn killed_writers_lose_nothing() {
    let crashes: u32 = std::env::var("PLUMBLINE_CRASHES")
        .map_or(200, |n| n.parse().expect("PLUMBLINE_CRASHES is a number"));
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let (mut runs, mut trials, mut torn, mut awaited) = (0, 0, 0, 0);
    for _ in 0..crashes {
        // xorshift64: moments between the first file and the second run, counted
        // in trials, so that a slow machine is killed at the same places.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let after = (random >> 32) as u32 % (TRIALS + 3);
        let delay = Duration::from_micros(random % 10_000);
        let parent = tempfile::tempdir().unwrap();
        let acknowledged = crash_after(parent.path(), after, delay);
        let found = check_all(parent.path(), &acknowledged);
        runs += found.runs;
        trials += found.trials;
        torn += found.torn;
        awaited += after;
    }
    assert!(trials >= awaited, "{trials} trials of {awaited}");
    println!("{crashes} crashes: {runs} runs, {trials} trials, {torn} torn tails; none lost");
}

/// Starts a writer, kills it a moment after some trials were acknowledged, and
/// gives the last acknowledged trial of each run.
fn crash_after(parent: &Path, trials: u32, delay: Duration) -> HashMap<String, usize> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(WRITE_INTO, parent)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said: Vec<String> = lines
        .by_ref()
        .take(trials as usize)
        .map(|line| line.unwrap())
        .collect();
    std::thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    said.extend(lines.map(|line| line.unwrap()));
    last_of_each_run(said.iter().map(String::as_str))
}

fn last_of_each_run<'a>(lines: impl Iterator<Item = &'a str>) -> HashMap<String, usize> {
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, count)| (name.to_owned(), count.parse().unwrap()))
        .collect()
}

#[derive(Default)]
struct Found {
    runs: u32,
    trials: u32,
    torn: u32,
}

/// Opens every run, and holds it against what was acknowledged.
fn check_all(parent: &Path, acknowledged: &HashMap<String, usize>) -> Found {
    let mut found = Found::default();
    let mut unseen = acknowledged.clone();
    for entry in std::fs::read_dir(parent).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('.') {
            // A run that had not begun; it does not look like one.
            continue;
        }
        let before = std::fs::metadata(path.join("trials.jsonl")).unwrap().len();
        let (run, trials, mut directory) =
            RunDirectory::open(&path).unwrap_or_else(|e| panic!("{e}"));
        let after = std::fs::metadata(path.join("trials.jsonl")).unwrap().len();
        assert_eq!(run, sample::run());
        let count = unseen.remove(name).unwrap_or(0);
        // One more may be complete whose word was cut off.
        assert!(
            (count..=count + 1).contains(&trials.len()),
            "{} trials, {count} acknowledged",
            trials.len()
        );
        for (trial, n) in trials.iter().zip(0..) {
            assert_eq!(*trial, sample::trial(n));
        }
        directory.append(&sample::trial(99)).unwrap();
        assert_eq!(RunDirectory::read(&path).unwrap().1.len(), trials.len() + 1);
        found.runs += 1;
        found.trials += trials.len() as u32;
        found.torn += u32::from(before != after);
    }
    assert!(
        unseen.is_empty(),
        "runs with acknowledged trials are gone: {unseen:?}"
    );
    found
}

/// The shell sets the largest file and ignores the signal that comes with it,
/// so that the kernel answers writes as it does when a disk is full. Every
/// limit from nothing to several trials, so that each write is hit.
fn a_full_disk_loses_nothing() {
    for blocks in [0, 1, 4, 8, 20, 40, 100] {
        let parent = tempfile::tempdir().unwrap();
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!(
                "trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" 2>/dev/null"
            ))
            .arg(std::env::current_exe().unwrap())
            .env(WRITE_INTO, parent.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.pop(), Some("end full"), "ulimit -f {blocks}: {said}");
        let acknowledged = last_of_each_run(lines.into_iter());
        let left: Vec<_> = std::fs::read_dir(parent.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(
            left.iter()
                .all(|name| !name.to_str().unwrap().starts_with('.')),
            "something half-made is left: {left:?}"
        );
        let found = check_all(parent.path(), &acknowledged);
        assert_eq!(found.torn, 0, "a half-written line was left");
        println!(
            "full at {blocks} blocks: {} runs, {} trials kept",
            found.runs, found.trials
        );
    }
}
