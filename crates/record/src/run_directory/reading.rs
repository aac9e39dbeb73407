//! Reading a run, none of which is trusted (S-7).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _};
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::RunDirectoryError;
use super::error::{IoContext as _, NotARun};
use super::files::{RUN_FILE, TRIALS_FILE};
use super::older;
use crate::{FORMAT_VERSION, Run, Trial, plain};

/// Longest `run.json` that is read, in bytes. A plan of the largest allowed
/// size has about 2 MB.
const MAX_RUN_BYTES: u64 = 64 << 20;
/// Longest line of `trials.jsonl` that is written or read, in bytes. An hour
/// of measuring with wide histograms has about 1 MB.
pub(super) const MAX_LINE_BYTES: usize = 16 << 20;

/// All that is looked at before the version is known to be ours.
#[derive(Deserialize)]
struct FormatVersion {
    format: u64,
}

/// Reads and checks `run.json` of a run.
pub(super) fn run(directory: &Path) -> Result<Run, RunDirectoryError> {
    let path = directory.join(RUN_FILE);
    let file = File::open(&path).map_err(|e| missing(directory, &path, e))?;
    let mut text = Vec::new();
    file.take(MAX_RUN_BYTES + 1)
        .read_to_end(&mut text)
        .because("read", &path)?;
    if text.len() as u64 > MAX_RUN_BYTES {
        return Err(broken(
            &path,
            1,
            format!("it has more than {MAX_RUN_BYTES} bytes"),
        ));
    }
    let damaged = |e: serde_json::Error| broken(&path, e.line(), e.to_string());
    let FormatVersion { format } = serde_json::from_slice(&text).map_err(damaged)?;
    if format > u64::from(FORMAT_VERSION) {
        return Err(RunDirectoryError::Newer {
            path: directory.to_owned(),
            format,
            known: FORMAT_VERSION,
        });
    }
    let run: Run = if format < u64::from(FORMAT_VERSION) {
        let mut older = decode(&text).map_err(damaged)?;
        older::run(format, &mut older);
        serde_json::from_value(older).map_err(damaged)?
    } else {
        decode(&text).map_err(damaged)?
    };
    run.plan
        .validate()
        .map_err(|source| RunDirectoryError::Plan { path, source })?;
    Ok(run)
}

/// Reads all whole lines; gives the trials, and how many bytes the lines have.
pub(super) fn trials(
    mut file: &File,
    path: &Path,
    run: &Run,
) -> Result<(Vec<Trial>, u64), RunDirectoryError> {
    file.rewind().because("read", path)?;
    let mut reader = BufReader::new(file);
    let mut trials = Vec::new();
    let mut number = 0;
    let mut length = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        (&mut reader)
            .take(MAX_LINE_BYTES as u64)
            .read_until(b'\n', &mut line)
            .because("read", path)?;
        number += 1;
        if line.last() != Some(&b'\n') {
            // The end, or a torn line: a writer was cut off, and what it wrote
            // there was never acknowledged.
            if line.len() == MAX_LINE_BYTES {
                return Err(broken(
                    path,
                    number,
                    "it is too long for a trial".to_owned(),
                ));
            }
            return Ok((trials, length));
        }
        let read = parse(&line, run.format)
            .map_err(|e| broken(path, number, format!("it is not a trial: {e}")))?;
        for trial in read {
            check(&trial, run).map_err(|problem| broken(path, number, problem))?;
            trials.push(trial);
        }
        length += line.len() as u64;
    }
}

/// What a line of a format holds: one trial, in older formats with what came before.
fn parse(line: &[u8], format: u32) -> Result<Vec<Trial>, serde_json::Error> {
    if format == FORMAT_VERSION {
        return Ok(vec![decode(line)?]);
    }
    let lines = older::trial(format.into(), decode(line)?);
    lines.into_iter().map(serde_json::from_value).collect()
}

/// A value from JSON. What it says may be shown on a terminal.
fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    if !plain::is_suspect(json) {
        return serde_json::from_slice(json);
    }
    let value: Value = serde_json::from_slice(json)?;
    serde_json::from_value(plain::all(value))
}

/// Whether a trial belongs to the plan.
fn check(trial: &Trial, run: &Run) -> Result<(), String> {
    if trial.block as usize >= run.plan.blocks.len() {
        return Err(format!("the plan has no block {}", trial.block));
    }
    if trial.treatment >= run.plan.treatments.len() {
        return Err(format!("the plan has no treatment {}", trial.treatment));
    }
    Ok(())
}

/// A file that a run has and this directory lacks, or that cannot be opened.
pub(super) fn missing(directory: &Path, path: &Path, error: io::Error) -> RunDirectoryError {
    let absent = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    );
    if !absent {
        return RunDirectoryError::io("open", path, error);
    }
    let directory_path = directory.to_owned();
    RunDirectoryError::NotARun(if directory.exists() {
        NotARun::NoFile {
            path: directory_path,
            file: if path.ends_with(RUN_FILE) {
                RUN_FILE
            } else {
                TRIALS_FILE
            },
        }
    } else {
        NotARun::Missing {
            path: directory_path,
        }
    })
}

fn broken(path: &Path, line: usize, problem: String) -> RunDirectoryError {
    RunDirectoryError::Broken {
        path: path.to_owned(),
        line,
        problem,
    }
}
