//! A run as an input lays it.

use std::fs;

use plumbline_record::{Run, RunDirectory, Trial};

/// Reads the files of a run: `run.json`, a zero, and the trials. `None` where that is no run.
pub(crate) fn read(input: &[u8]) -> Option<(Run, Vec<Trial>)> {
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
    RunDirectory::read(directory.path()).ok()
}
