//! A wall clock that is set while a run is under way: no figure comes from it.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::planted::{Library, TRIALS};
use crate::observed::{every_treatment_carried_load, ran_to_its_end, whole_lines};
use crate::world::{self, output, run_directory, stderr};

#[test]
fn a_wall_clock_that_is_set_changes_no_figure() {
    let test = "a_wall_clock_that_is_set_changes_no_figure";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let Some(library) = Library::compile(test) else {
        return;
    };
    // Before the first trial, and amid some later one.
    for after in [Duration::ZERO, Duration::from_millis(1_500)] {
        let [forward, back] = [3_600, -3_600].map(|seconds| set(&library, after, seconds));
        assert!(forward > back, "{forward}, {back}: it was set");
    }
}

/// A run whose clock is set `after` its start. Gives when its last trial began, as it says.
#[track_caller]
fn set(library: &Library, after: Duration, seconds: i64) -> String {
    let out = tempfile::tempdir().unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let at = (now.unwrap() + after).as_nanos();
    let run = library.output(out.path(), "PLANTED_STEP", &format!("{at}:{seconds}"));
    let directory = run_directory(out.path());
    ran_to_its_end(&run, &directory);
    every_treatment_carried_load(&directory);
    let trials = whole_lines(&directory);
    assert_eq!(trials.len(), TRIALS);
    trials.iter().for_each(is_plausible);
    let report = output(&["report", directory.to_str().unwrap()]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    trials[TRIALS - 1]["started"].as_str().unwrap().to_owned()
}

/// The window of each trial, nanoseconds.
const WINDOW_NS: u64 = 60_000_000;

/// Nothing took an hour, nor less than no time, which would be a huge number, and no trial
/// less than its window.
#[track_caller]
fn is_plausible(trial: &Value) {
    let took_ns = trial["took_ns"].as_u64().unwrap();
    assert!(took_ns >= WINDOW_NS, "{took_ns} ns: {trial}");
    let (mut longest, mut count) = (took_ns, 0);
    durations("", &trial["observation"]["what"], &mut |ns| {
        longest = longest.max(ns);
        count += 1;
    });
    assert!(count > 0, "no durations: {trial}");
    assert!(longest < 60_000_000_000, "{longest} ns: {trial}");
}

/// All that is in nanoseconds by its name, and what is listed under such a name.
fn durations(name: &str, value: &Value, each: &mut impl FnMut(u64)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                durations(name, value, each);
            }
        }
        Value::Array(values) => {
            for value in values {
                durations(name, value, each);
            }
        }
        // What is no whole number from 0 on is no duration.
        Value::Number(ns) if name.ends_with("_ns") => each(ns.as_u64().unwrap_or(u64::MAX)),
        _ => {}
    }
}

#[test]
fn planted_durations_are_found_wherever_they_are() {
    let seen = serde_json::json!({
        "a_ns": 1, "b": 100, "c_ns": [2, 3], "d": [{ "e_ns": 4 }, { "f": { "g_ns": -5 } }],
    });
    let mut found = Vec::new();
    durations("", &seen, &mut |ns| found.push(ns));
    found.sort_unstable();
    assert_eq!(found, [1, 2, 3, 4, u64::MAX]);
}
