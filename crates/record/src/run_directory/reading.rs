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
use super::{older, seal};
use crate::plain::{self, why_unreadable};
use crate::{FORMAT_VERSION, Run, Trial, without_secrets};

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
    let damaged = |e: serde_json::Error| broken(&path, e.line(), why_unreadable(&e));
    let FormatVersion { format } = serde_json::from_slice(&text).map_err(damaged)?;
    if format > u64::from(FORMAT_VERSION) {
        return Err(RunDirectoryError::Newer {
            path: directory.to_owned(),
            format,
            known: FORMAT_VERSION,
        });
    }
    let mut run: Run = if format < u64::from(FORMAT_VERSION) {
        let mut older = decode(&text).map_err(damaged)?;
        older::run(format, &mut older);
        serde_json::from_value(older).map_err(damaged)?
    } else {
        decode(&text).map_err(damaged)?
    };
    // Earlier builds recorded all that was typed.
    run.provenance.command = without_secrets(&run.provenance.command);
    run.plan
        .validate()
        .map_err(|source| RunDirectoryError::Plan { path, source })?;
    Ok(run)
}

/// What the lines of `trials.jsonl` hold.
pub(super) struct Lines {
    pub(super) trials: Vec<Trial>,
    /// Lines that are no trials of the run, or not what was written.
    pub(super) damaged: u32,
    /// Bytes of all whole lines.
    pub(super) length: u64,
}

/// Reads all whole lines.
pub(super) fn trials(mut file: &File, path: &Path, run: &Run) -> Result<Lines, RunDirectoryError> {
    file.rewind().because("read", path)?;
    let mut reader = BufReader::new(file);
    let mut lines = Lines {
        trials: Vec::new(),
        damaged: 0,
        length: 0,
    };
    let mut line = Vec::new();
    loop {
        let mut length = 0;
        // In pieces where it is too long for a trial; only the last of them is kept.
        loop {
            line.clear();
            (&mut reader)
                .take(MAX_LINE_BYTES as u64)
                .read_until(b'\n', &mut line)
                .because("read", path)?;
            length += line.len();
            if line.len() < MAX_LINE_BYTES || line.ends_with(b"\n") {
                break;
            }
        }
        if line.pop() != Some(b'\n') {
            // The end, or a torn line: a writer was cut off, and what it wrote
            // there was never acknowledged.
            return Ok(lines);
        }
        match parse(&line, run).filter(|_| length <= MAX_LINE_BYTES) {
            Some(read) => lines.trials.extend(read),
            None => lines.damaged += 1,
        }
        lines.length += length as u64;
    }
}

/// What a line holds: one trial, in older formats with what came before. `None` where
/// it is not what was written, or does not belong to the plan.
fn parse(line: &[u8], run: &Run) -> Option<Vec<Trial>> {
    let trials = if run.format == FORMAT_VERSION {
        let whole = seal::holds(line).then_some(line)?;
        vec![decode(whole).ok()?]
    } else {
        let lines = older::trial(run.format.into(), decode(line).ok()?);
        let trials = lines.into_iter().map(serde_json::from_value);
        trials.collect::<Result<_, _>>().ok()?
    };
    let (blocks, treatments) = (run.plan.blocks.len(), run.plan.treatments.len());
    let is_planned = |it: &Trial| (it.block as usize) < blocks && it.treatment < treatments;
    trials.iter().all(is_planned).then_some(trials)
}

/// A value from JSON. What it says may be shown on a terminal.
fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    if !plain::is_suspect(json) {
        return serde_json::from_slice(json);
    }
    let value: Value = serde_json::from_slice(json)?;
    serde_json::from_value(plain::all(value))
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
