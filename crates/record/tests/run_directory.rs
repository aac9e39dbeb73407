//! What a run directory promises, one promise per test.

mod sample;

use std::fs;
use std::path::Path;

use plumbline_record::{FORMAT_VERSION, GuestLock, RunDirectory, RunDirectoryError, TrialStatus};
use proptest::prelude::*;

/// A run with trials, closed again.
fn recorded(parent: &Path, trials: u32) -> std::path::PathBuf {
    let mut directory = RunDirectory::create(parent, "sample", &sample::run(), &[]).unwrap();
    for n in 0..trials {
        directory.append(&sample::trial(n)).unwrap();
    }
    directory.path().to_owned()
}

fn open_error(path: &Path) -> RunDirectoryError {
    RunDirectory::open(path).map(drop).unwrap_err()
}

fn edit(path: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, change(text)).unwrap();
}

#[test]
fn what_was_written_is_read() {
    let parent = tempfile::tempdir().unwrap();
    let path = recorded(parent.path(), 5);
    let expected: Vec<_> = (0..5).map(sample::trial).collect();
    let (run, trials) = RunDirectory::read(&path).unwrap();
    assert_eq!((run, trials), (sample::run(), expected.clone()));

    let (run, trials, mut directory) = RunDirectory::open(&path).unwrap();
    assert_eq!((run, trials), (sample::run(), expected));
    directory.append(&sample::trial(5)).unwrap();
    assert_eq!(RunDirectory::read(&path).unwrap().1.len(), 6);
}

#[test]
fn what_a_terminal_would_obey_is_not_handed_on() {
    const ESCAPE: &str = "\u{1b}]0;mine\u{7}\u{9b}2J";
    let parent = tempfile::tempdir().unwrap();
    let mut run = sample::run();
    run.provenance.command.push(ESCAPE.to_owned());
    let mut directory = RunDirectory::create(parent.path(), "sample", &run, &[]).unwrap();
    let mut trial = sample::trial(0);
    trial.status = TrialStatus::Failed {
        error: ESCAPE.to_owned(),
    };
    directory.append(&trial).unwrap();
    let (run, trials) = RunDirectory::read(directory.path()).unwrap();
    let read = run.provenance.command.last().unwrap().clone();
    assert_eq!(read, "\u{fffd}]0;mine\u{fffd}\u{fffd}2J");
    assert_eq!(trials[0].status, TrialStatus::Failed { error: read });
}

#[test]
fn names_tell_time_and_experiment_and_are_unique() {
    let parent = tempfile::tempdir().unwrap();
    let runs = parent.path().join("made/on/the/way");
    for _ in 0..5 {
        recorded(&runs, 0);
    }
    let names: Vec<String> = fs::read_dir(&runs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
    for name in names {
        let (time, experiment) = name.split_once('-').unwrap();
        assert_eq!(
            (time.len(), time.as_bytes()[8], time.ends_with('Z')),
            (16, b'T', true)
        );
        assert!(experiment.starts_with("sample"), "{name}");
    }
}

#[test]
fn a_trial_line_has_a_few_kilobytes() {
    let parent = tempfile::tempdir().unwrap();
    let path = recorded(parent.path(), 10);
    let bytes = fs::metadata(path.join("trials.jsonl")).unwrap().len() / 10;
    assert!((2_000..30_000).contains(&bytes), "{bytes} bytes per trial");
}

#[test]
fn a_second_writer_is_refused_and_a_reader_is_not() {
    let parent = tempfile::tempdir().unwrap();
    let mut directory = RunDirectory::create(parent.path(), "sample", &sample::run(), &[]).unwrap();
    directory.append(&sample::trial(0)).unwrap();
    let path = directory.path().to_owned();
    assert!(matches!(
        open_error(&path),
        RunDirectoryError::Locked { .. }
    ));
    assert_eq!(RunDirectory::read(&path).unwrap().1.len(), 1);
    drop(directory);
    assert!(RunDirectory::open(&path).is_ok());
}

/// A guest's own locks are not seen outside of its kernel.
#[test]
fn a_second_writer_is_refused_where_the_first_is_a_guest() {
    let parent = tempfile::tempdir().unwrap();
    let path = recorded(parent.path(), 1);
    let goes_on = GuestLock::on_run(&path).unwrap();
    assert!(matches!(
        open_error(&path),
        RunDirectoryError::Locked { .. }
    ));
    assert!(GuestLock::on_run(&path).is_err(), "a second guest");
    drop(goes_on);
    drop(GuestLock::on_run(&path).unwrap());

    let below = parent.path().join("new");
    let elsewhere = GuestLock::on_new_run_below(&below).unwrap();
    assert!(RunDirectory::open(&path).is_ok(), "it is in another place");
    drop(elsewhere);
    let begun = GuestLock::on_new_run_below(parent.path()).unwrap();
    let again = GuestLock::on_new_run_below(parent.path()).unwrap();
    assert!(matches!(open_error(&path), RunDirectoryError::Guest { .. }));
    assert!(GuestLock::on_run(&path).is_err(), "a second guest");
    assert!(RunDirectory::create(parent.path(), "sample", &sample::run(), &[]).is_ok());
    drop((begun, again));
    assert!(RunDirectory::open(&path).is_ok());
}

#[test]
fn a_torn_tail_is_dropped_and_overwritten() {
    let parent = tempfile::tempdir().unwrap();
    let path = recorded(parent.path(), 3);
    let file = path.join("trials.jsonl");
    edit(&file, |text| text[..text.len() - 100].to_owned());
    assert_eq!(RunDirectory::read(&path).unwrap().1.len(), 2);
    let (_, trials, mut directory) = RunDirectory::open(&path).unwrap();
    assert_eq!(trials.len(), 2);
    directory.append(&sample::trial(9)).unwrap();
    let expected = [0, 1, 9].map(sample::trial);
    assert_eq!(RunDirectory::read(&path).unwrap().1, expected);
}

/// Nothing may be appended to it: what stood behind it would be lost with it.
#[test]
fn a_torn_tail_that_is_far_too_long_is_dropped_too() {
    let parent = tempfile::tempdir().unwrap();
    let path = recorded(parent.path(), 1);
    edit(&path.join("trials.jsonl"), |text| {
        text + &"x".repeat(17 << 20)
    });
    let (run, _, mut directory) = RunDirectory::open(&path).unwrap();
    assert_eq!(run.damaged_lines, 0);
    directory.append(&sample::trial(9)).unwrap();
    let expected = [0, 9].map(sample::trial);
    assert_eq!(RunDirectory::read(&path).unwrap().1, expected);
}

/// What stands at the end of a line is not the line.
#[test]
fn a_trial_behind_what_is_far_too_long_is_none() {
    let behind = |line: &str| "x".repeat(16 << 20) + line;
    assert_salvaged(|text| with_line(text, 1, behind), &[0, 2, 3], 1);
}

/// A run of four trials, changed: what is left, and how many lines are called damaged,
/// to a reader and to one that goes on with it.
#[track_caller]
fn assert_salvaged(change: impl Fn(&str) -> String, left: &[u32], damaged: u32) {
    let parent = tempfile::tempdir().unwrap();
    let path = recorded(parent.path(), 4);
    edit(&path.join("trials.jsonl"), |text| change(&text));
    let expected: Vec<_> = left.iter().map(|n| sample::trial(*n)).collect();
    let (run, trials) = RunDirectory::read(&path).unwrap();
    assert_eq!((run.damaged_lines, &trials), (damaged, &expected));
    let (run, trials, mut directory) = RunDirectory::open(&path).unwrap();
    assert_eq!((run.damaged_lines, &trials), (damaged, &expected));
    directory.append(&sample::trial(9)).unwrap();
    let (_, trials) = RunDirectory::read(&path).unwrap();
    assert_eq!(trials.len(), left.len() + 1);
}

fn with_line(text: &str, at: usize, change: impl Fn(&str) -> String) -> String {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(n, line)| {
        if n == at {
            change(line)
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn a_damaged_line_costs_only_what_it_held() {
    assert_salvaged(
        |text| with_line(text, 1, |line| line[..50].to_owned()),
        &[0, 2, 3],
        1,
    );
    let two = |text: &str| with_line(&with_line(text, 0, |_| String::new()), 3, |_| "?".into());
    assert_salvaged(two, &[1, 2], 2);
    // A line that is far too long, and nothing else.
    let long = |text: &str| with_line(text, 2, |_| "x".repeat(20 << 20));
    assert_salvaged(long, &[0, 1, 3], 1);
}

#[test]
fn a_digit_that_changed_is_found_by_the_checksum() {
    let changed = |text: &str| {
        with_line(text, 2, |line| {
            let at = line.find("\"took_ns\":").unwrap() + "\"took_ns\":".len();
            let digit = if line[at..].starts_with('9') {
                "8"
            } else {
                "9"
            };
            format!("{}{digit}{}", &line[..at], &line[at + 1..])
        })
    };
    assert_salvaged(changed, &[0, 1, 3], 1);
}

#[test]
fn lines_without_a_checksum_are_read_as_earlier_builds_wrote_them() {
    let strip = |line: &str| {
        let at = line.rfind(",\"checksum\"").unwrap();
        line[..at].to_owned() + "}"
    };
    let all = |text: &str| (0..4).fold(text.to_owned(), |text, at| with_line(&text, at, strip));
    assert_salvaged(all, &[0, 1, 2, 3], 0);
}

#[test]
fn a_trial_that_the_plan_does_not_know_is_left_out() {
    let parent = tempfile::tempdir().unwrap();
    let mut directory = RunDirectory::create(parent.path(), "sample", &sample::run(), &[]).unwrap();
    let mut unknown = sample::trial(1);
    unknown.treatment = 2;
    directory.append(&sample::trial(0)).unwrap();
    directory.append(&unknown).unwrap();
    let (run, trials) = RunDirectory::read(directory.path()).unwrap();
    assert_eq!((run.damaged_lines, trials), (1, vec![sample::trial(0)]));
}

#[test]
fn a_newer_format_is_refused_with_a_remedy() {
    let parent = tempfile::tempdir().unwrap();
    let path = recorded(parent.path(), 0);
    edit(&path.join("run.json"), |text| {
        let ours = format!("\"format\": {FORMAT_VERSION}");
        assert!(text.contains(&ours));
        // Nothing else need be known of a newer format.
        text.replace(&ours, "\"format\": 4000000000, \"plan_v2\": []")
            .replace("\"plan\"", "\"x\"")
    });
    let error = open_error(&path);
    assert!(
        matches!(
            error,
            RunDirectoryError::Newer {
                format: 4_000_000_000,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("use the version that wrote it"),
        "{error}"
    );
}

#[test]
fn what_is_no_run_directory_is_said_to_be_none() {
    let parent = tempfile::tempdir().unwrap();
    let missing = open_error(&parent.path().join("nowhere"));
    assert!(missing.to_string().contains("does not exist"), "{missing}");
    let empty = open_error(parent.path());
    assert!(
        empty
            .to_string()
            .contains("is not a run directory: it has no run.json"),
        "{empty}"
    );
    let path = recorded(parent.path(), 0);
    let file = open_error(&path.join("run.json"));
    assert!(matches!(file, RunDirectoryError::NotARun(_)), "{file}");
    fs::remove_file(path.join("trials.jsonl")).unwrap();
    let half = open_error(&path);
    assert!(
        half.to_string().contains("it has no trials.jsonl"),
        "{half}"
    );
}

#[test]
fn a_plan_that_was_changed_by_hand_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let path = recorded(parent.path(), 0);
    edit(&path.join("run.json"), |text| {
        text.replacen("\"rate\": 5000.0", "\"rate\": 1e12", 1)
    });
    let error = open_error(&path);
    assert!(matches!(error, RunDirectoryError::Plan { .. }), "{error}");
}

#[test]
fn what_is_no_word_of_a_run_is_not_repeated_at_any_length() {
    let parent = tempfile::tempdir().unwrap();
    let path = recorded(parent.path(), 0);
    edit(&path.join("run.json"), |text| {
        let long = format!("\"format\": \"{}\"", "x".repeat(100_000));
        text.replacen(&format!("\"format\": {FORMAT_VERSION}"), &long, 1)
    });
    let error = open_error(&path).to_string();
    assert!(error.contains("invalid type: string \"xxx"), "{error}");
    assert!(error.len() < 1_000, "{} bytes", error.len());
}

#[test]
fn a_trial_that_cannot_be_read_back_is_not_written() {
    let parent = tempfile::tempdir().unwrap();
    let mut directory = RunDirectory::create(parent.path(), "sample", &sample::run(), &[]).unwrap();
    let mut trial = sample::trial(0);
    trial.warnings = vec![plumbline_record::Warning::Steal { share: f64::NAN }];
    let error = directory.append(&trial).unwrap_err();
    assert!(
        matches!(error, RunDirectoryError::Unreadable { .. }),
        "{error}"
    );
    directory.append(&sample::trial(1)).unwrap();
    let (_, trials) = RunDirectory::read(directory.path()).unwrap();
    assert_eq!(trials, [sample::trial(1)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// wherever the file is cut, only the trial in which the cut lies is lost.
    #[test]
    fn a_cut_anywhere_loses_only_what_is_behind_it(share in 0.0..=1.0f64) {
        let parent = tempfile::tempdir().unwrap();
        let path = recorded(parent.path(), 4);
        let file = path.join("trials.jsonl");
        let whole = fs::read(&file).unwrap();
        let cut = (share * whole.len() as f64) as usize;
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        fs::write(&file, &whole[..cut]).unwrap();
        let (_, trials, mut directory) = RunDirectory::open(&path).unwrap();
        prop_assert_eq!(trials.len(), lines);
        directory.append(&sample::trial(8)).unwrap();
        let expected: Vec<_> = (0..lines as u32).chain([8]).map(sample::trial).collect();
        prop_assert_eq!(RunDirectory::read(&path).unwrap().1, expected);
    }

    /// S-7: whatever stands in the files, reading them ends with an answer.
    #[test]
    fn garbage_is_answered(run in any::<Vec<u8>>(), tail in any::<Vec<u8>>()) {
        let parent = tempfile::tempdir().unwrap();
        let path = recorded(parent.path(), 1);
        let file = path.join("trials.jsonl");
        let whole = fs::read(&file).unwrap();
        fs::write(&file, [whole.as_slice(), &tail].concat()).unwrap();
        let (_, trials) = RunDirectory::read(&path).unwrap();
        prop_assert_eq!(trials.len(), 1);
        fs::write(path.join("run.json"), run).unwrap();
        prop_assert!(RunDirectory::read(&path).is_err());
    }
}
