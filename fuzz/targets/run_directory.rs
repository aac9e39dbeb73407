//! The files of a run that somebody else made or cut off: `run.json`, a zero, and the trials.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use plumbline_record::RunDirectory;

fuzz_target!(|input: &[u8]| {
    let at = input.iter().position(|byte| *byte == 0);
    let (run, trials) = input.split_at(at.unwrap_or(input.len()));
    let directory = tempfile::tempdir().expect("there is room");
    let write = |name: &str, content: &[u8]| {
        fs::write(directory.path().join(name), content).expect("there is room");
    };
    write("run.json", run);
    write(
        "trials.jsonl",
        trials.strip_prefix(b"\0").unwrap_or_default(),
    );
    if let Ok((run, trials)) = RunDirectory::read(directory.path()) {
        let lines = input.iter().filter(|byte| **byte == b'\n').count() + 1;
        assert!(trials.len() as u64 + run.damaged_lines as u64 <= lines as u64);
    }
});
