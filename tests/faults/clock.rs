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

/// A minute, which nothing of these runs takes.
const LONG_NS: u64 = 60_000_000_000;

#[track_caller]
fn is_plausible(trial: &Value) {
    let odd = oddities(trial);
    assert!(odd.is_empty(), "{odd:?}: {trial}");
}

/// What of a trial a clock that was set may have to do with: nothing took an hour, nor less than
/// no time, which would be a huge number, and what is as long as the window is no shorter.
fn oddities(trial: &Value) -> Vec<String> {
    let took_ns = trial["took_ns"].as_u64().unwrap();
    let mut odd = Vec::new();
    if took_ns >= LONG_NS {
        odd.push(format!("took_ns: {took_ns} ns"));
    }
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let cpus = stat.lines().filter(|it| it.starts_with("cpu")).count() as u64;
    // The time of CPUs is that of all together.
    for (part, most) in [("what", LONG_NS), ("common", cpus * LONG_NS)] {
        let mut count = 0;
        let seen = &trial["observation"][part];
        durations(part, seen, &mut |name, ns| {
            count += 1;
            if ns >= most {
                odd.push(format!("{name}: {ns} ns"));
            }
        });
        assert!(count > 0, "no durations in {part}: {trial}");
    }

    let common = &trial["observation"]["common"];
    let rotation = ["slices", "slice_ns", "skipped_ns"].map(|it| &common["rotation"][it]);
    let [slices, slice_ns, skipped_ns] = rotation.map(|it| it.as_u64().unwrap());
    let recorded_ns = slices * slice_ns.saturating_sub(skipped_ns);
    let mut capacities = vec![&common["idle"]["capacity_ns"]];
    for machine in common["machines"].as_array().unwrap() {
        capacities.push(&machine["capacity_ns"]);
    }
    let capacities = capacities.iter().map(|it| it.as_u64().unwrap());
    for ns in capacities.chain([took_ns, recorded_ns]) {
        if ns < WINDOW_NS {
            odd.push(format!("{ns} ns are less than the window"));
        }
    }
    odd
}

/// All that is in nanoseconds by its name, and what is listed under such a name.
fn durations(name: &str, value: &Value, each: &mut impl FnMut(&str, u64)) {
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
        Value::Number(ns) if name.ends_with("_ns") => each(name, ns.as_u64().unwrap_or(u64::MAX)),
        _ => {}
    }
}

#[test]
fn planted_durations_are_found_wherever_they_are() {
    let seen = serde_json::json!({
        "a_ns": 1, "b": 100, "c_ns": [2, 3], "d": [{ "e_ns": 4 }, { "f": { "g_ns": -5 } }],
    });
    let mut found = Vec::new();
    durations("", &seen, &mut |_, ns| found.push(ns));
    found.sort_unstable();
    assert_eq!(found, [1, 2, 3, 4, u64::MAX]);
}

/// As if the wall clock dated a window, CPUs or slices.
#[test]
fn a_planted_step_is_odd_wherever_it_is() {
    let sound = serde_json::json!({
        "took_ns": 70_000_000,
        "observation": {
            "what": { "load": { "window_ns": 60_000_000 } },
            "common": {
                "machines": [{ "capacity_ns": 120_000_000, "busy_ns": 30_000_000 }],
                "idle": { "capacity_ns": 120_000_000, "busy_ns": 2_000_000 },
                "rotation": { "slices": 3, "slice_ns": 23_000_000, "skipped_ns": 3_000_000 },
            },
        },
    });
    assert_eq!(oddities(&sound), Vec::<String>::new());
    // An hour of each of a thousand CPUs.
    let hours_ns = 3_600_000_000_000_000;
    for (place, ns) in [
        ("/took_ns", 0),
        ("/took_ns", hours_ns),
        ("/observation/what/load/window_ns", hours_ns),
        ("/observation/common/machines/0/capacity_ns", 0),
        ("/observation/common/machines/0/busy_ns", hours_ns),
        ("/observation/common/idle/capacity_ns", 0),
        ("/observation/common/idle/busy_ns", u64::MAX),
        ("/observation/common/rotation/slice_ns", 1_000_000),
        ("/observation/common/rotation/skipped_ns", hours_ns),
    ] {
        let mut planted = sound.clone();
        *planted.pointer_mut(place).unwrap() = ns.into();
        assert!(!oddities(&planted).is_empty(), "{place}: {ns} ns");
    }
}
