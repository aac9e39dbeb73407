//! What fuzzing begins with is what its readers take: it would hardly find out by itself what
//! a message or a run looks like.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plumbline_protocol::{FrameError, FromAgent, ToAgent, read_frame};
use plumbline_record::{Histogram, Run, RunDirectory, RunDirectoryError, Trial, What};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

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
        .split_once(&format!("!= corpus/{target} ]] || longest="))
        .map(|(_, rest)| rest);
    of_one.or(of_all).and_then(number).expect("it has a limit")
}

/// The messages of a stream, and how it ends.
fn messages<T: DeserializeOwned>(mut stream: &[u8]) -> (Vec<T>, FrameError) {
    let mut messages = Vec::new();
    loop {
        match read_frame::<T>(&mut stream) {
            Ok(message) => messages.push(message),
            Err(end) => return (messages, end),
        }
    }
}

/// The words that a message may have in a field: they are in the error about another one.
fn words<T: DeserializeOwned>(mut message: Value, field: &str) -> Vec<String> {
    message[field] = "?".into();
    let error = serde_json::from_value::<T>(message).err();
    let error = error.expect("there is no such word").to_string();
    // What is between every other pair of backquotes; the first is the word itself.
    let words = error.split('`').skip(3).step_by(2);
    words.map(str::to_owned).collect()
}

/// A run as the target lays it: `run.json`, a zero, and the trials.
fn run(seed: &[u8]) -> Result<(Run, Vec<Trial>), RunDirectoryError> {
    let zero = seed.iter().position(|byte| *byte == 0).expect("a zero");
    let directory = tempfile::tempdir().unwrap();
    let write = |name, content| fs::write(directory.path().join(name), content).unwrap();
    write("run.json", &seed[..zero]);
    write("trials.jsonl", &seed[zero + 1..]);
    RunDirectory::read(directory.path())
}

/// Holds that a seed is messages and nothing else, and has one of each kind: each word of
/// `message`, and with some of these each of a second field.
fn has_every_message<T: DeserializeOwned + Serialize>(name: &str, second: &[(&str, &str)]) {
    let seed = fs::read(Path::new("fuzz/corpus/frames").join(name)).expect("there is one");
    let (messages, end) = messages::<T>(&seed);
    assert!(matches!(end, FrameError::Closed), "{name}: {end}");
    assert!(seed.len() <= longest("frames"), "{name} is cut off");
    let messages = messages.iter().map(|it| serde_json::to_value(it).unwrap());
    let messages: Vec<Value> = messages.collect();
    let holds = |of: Value, field: &str| {
        let words = words::<T>(of.clone(), field);
        assert!(words.len() > 4, "{field}: {words:?}");
        for word in words {
            let mut wanted = of.clone();
            wanted[field] = word.into();
            let fields = wanted.as_object().expect("it is one");
            let is_wanted = |it: &Value| fields.iter().all(|(key, value)| it[key] == *value);
            assert!(messages.iter().any(is_wanted), "{name}: {wanted}");
        }
    };
    holds(json!({}), "message");
    for (message, field) in second {
        holds(json!({ "message": message }), field);
    }
}

#[test]
fn fuzzing_of_frames_begins_with_every_message_of_both_sides() {
    has_every_message::<ToAgent>("to-agent", &[("sound", "sound"), ("trace", "trace")]);
    has_every_message::<FromAgent>(
        "from-agent",
        &[("sounded", "sounded"), ("traced", "traced")],
    );
    // What is no message is found.
    let cut = fs::read("fuzz/corpus/frames/cut").unwrap();
    let (whole, end) = messages::<ToAgent>(&cut);
    assert!(
        whole.is_empty() && matches!(end, FrameError::Io(_)),
        "{end}"
    );
}

#[test]
fn fuzzing_of_runs_begins_with_every_exercise_and_every_format() {
    let (mut formats, mut exercises) = (BTreeSet::new(), BTreeSet::new());
    for (path, seed) in seeds("run_directory") {
        let (run, trials) = run(&seed).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(
            !trials.is_empty() && run.damaged_lines == 0,
            "{}: {} trials, {} damaged lines",
            path.display(),
            trials.len(),
            run.damaged_lines
        );
        assert!(seed.len() <= longest("run_directory"), "{}", path.display());
        formats.insert(run.format);
        for seen in trials.iter().filter_map(|it| it.observation.as_ref()) {
            let what = serde_json::to_value(&seen.what).unwrap();
            let exercise = what["exercise"].as_str().expect("it has a name").to_owned();
            // What a set-up that stood on a trial becomes is read by another function.
            exercises.insert((exercise, run.format == plumbline_record::FORMAT_VERSION));
        }
    }
    assert_eq!(formats, (1..=plumbline_record::FORMAT_VERSION).collect());
    for exercise in words::<What>(json!({}), "exercise") {
        assert!(exercises.contains(&(exercise.clone(), true)), "{exercise}");
    }
    assert!(exercises.contains(&("set-up".to_owned(), false)));
}

#[test]
fn fuzzing_of_histograms_begins_with_one_that_holds_something() {
    for (path, seed) in seeds("histogram") {
        let read: Histogram = serde_json::from_slice(&seed).expect("it is one");
        assert!(!read.is_empty(), "{}", path.display());
    }
}

/// Those of targets that this test does not name are held by the crates that they are of.
#[test]
fn every_target_has_seeds_and_every_seed_a_target() {
    let manifest = fs::read_to_string("fuzz/Cargo.toml").unwrap();
    let names = manifest.lines().filter_map(|line| {
        let path = line.strip_prefix("path = \"targets/")?;
        path.strip_suffix(".rs\"")
    });
    // A report is made of the seeds of runs.
    let targets: BTreeSet<String> = names
        .filter(|name| *name != "report")
        .map(str::to_owned)
        .collect();
    let corpora = fs::read_dir("fuzz/corpus").unwrap();
    let corpora = corpora.map(|it| it.unwrap().file_name().into_string().expect("text"));
    assert_eq!(targets, corpora.collect());
    for target in targets {
        assert!(!seeds(&target).is_empty(), "{target}");
    }
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
