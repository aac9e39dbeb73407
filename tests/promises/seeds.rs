//! What fuzzing begins with is what its readers take: it would hardly find out by itself what
//! a message or a run looks like.

use std::fs;
use std::path::{Path, PathBuf};

use plumbline_protocol::{FrameError, FromAgent, ToAgent, read_frame};
use plumbline_record::{RunDirectory, RunDirectoryError};
use serde::de::DeserializeOwned;

/// The seeds of a target, by their names.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new("fuzz/corpus").join(target);
    let entries = fs::read_dir(&directory).expect("it has seeds");
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = paths
        .map(|it| (it.clone(), fs::read(it).unwrap()))
        .collect();
    all.sort();
    all
}

/// How many bytes of a seed are read; what is behind them is cut off.
fn longest(target: &str) -> usize {
    let script = fs::read_to_string("scripts/fuzz").unwrap();
    let number = |rest: &str| {
        rest.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let of_all = script.split_once("local longest=").map(|(_, rest)| rest);
    let of_one = script
        .split_once(&format!("!= {target} ]] || longest="))
        .map(|(_, rest)| rest);
    of_one.or(of_all).and_then(number).expect("it has a limit")
}

/// How many messages a stream holds, and how it ends.
fn messages<T: DeserializeOwned>(mut stream: &[u8]) -> (usize, FrameError) {
    let mut count = 0;
    loop {
        match read_frame::<T>(&mut stream) {
            Ok(_) => count += 1,
            Err(end) => return (count, end),
        }
    }
}

/// A run as the target lays it: `run.json`, a zero, and the trials.
fn run(seed: &[u8]) -> Result<(u32, usize, u32), RunDirectoryError> {
    let zero = seed.iter().position(|byte| *byte == 0).expect("a zero");
    let directory = tempfile::tempdir().unwrap();
    let write = |name, content| fs::write(directory.path().join(name), content).unwrap();
    write("run.json", &seed[..zero]);
    write("trials.jsonl", &seed[zero + 1..]);
    let (run, trials) = RunDirectory::read(directory.path())?;
    Ok((run.format, trials.len(), run.damaged_lines))
}

/// Holds that a seed is messages and nothing else, at least so many.
fn holds_messages<T: DeserializeOwned>(name: &str, least: usize) {
    let seed = fs::read(Path::new("fuzz/corpus/frames").join(name)).expect("there is one");
    let (count, end) = messages::<T>(&seed);
    assert!(
        matches!(end, FrameError::Closed) && count >= least,
        "{name}: after {count} messages: {end}"
    );
    assert!(seed.len() <= longest("frames"), "{name} is cut off");
}

#[test]
fn fuzzing_of_frames_begins_with_messages_of_both_sides() {
    holds_messages::<ToAgent>("to-agent", 20);
    holds_messages::<FromAgent>("from-agent", 20);
    // What is no message is found.
    let cut = fs::read("fuzz/corpus/frames/cut").unwrap();
    assert!(matches!(messages::<ToAgent>(&cut), (0, FrameError::Io(_))));
}

#[test]
fn fuzzing_of_runs_begins_with_runs_of_the_newest_format_and_of_an_older_one() {
    let mut formats = Vec::new();
    for (path, seed) in seeds("run_directory") {
        let read = run(&seed).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (format, trials, damaged) = read;
        assert!(
            trials > 0 && damaged == 0,
            "{}: {trials} trials, {damaged} damaged lines",
            path.display()
        );
        assert!(seed.len() <= longest("run_directory"), "{}", path.display());
        formats.push(format);
    }
    let newest = plumbline_record::FORMAT_VERSION;
    assert!(
        formats.contains(&newest) && formats.iter().any(|it| *it < newest),
        "{formats:?}, and {newest} is the newest"
    );
}

#[test]
fn fuzzing_of_experiments_begins_with_those_of_the_program() {
    for (directory, prefix) in [
        ("experiments", ""),
        ("crates/experiment/published", "published-"),
    ] {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().and_then(|it| it.to_str()).expect("text");
            let seed = Path::new("fuzz/corpus/experiment").join(format!("{prefix}{name}"));
            let is_same = fs::read(&seed).is_ok_and(|it| it == fs::read(&path).unwrap());
            assert!(
                is_same,
                "{} is to be a copy of {}",
                seed.display(),
                path.display()
            );
        }
    }
}
