//! The settings of this machine: they end with the command that they were set for, however
//! that ends, and a user who may not set them is told so.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::inventory::Inventory;
use crate::left::{MARK, marked};
use crate::moments::{Moments, say};
use crate::observed::ran_to_its_end;
use crate::world::{self, PATIENCE, Running, eventually, output, stderr, stdout};

/// A file of the machine, what it holds, and what it would be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) now: String,
    pub(crate) set: String,
}

/// What `sleep` is told where a command is to end by itself.
const SHORT: &str = "0.02";
const SHORT_TIME: Duration = Duration::from_millis(20);

/// What would be set now, but for what ends with a process by itself.
fn proposed() -> Vec<File> {
    let shown = world::json(&["tune", "--show", "--json"]);
    let proposals = shown["proposals"].as_array().unwrap().iter();
    let kept = proposals.filter(|it| it["held"] == false);
    let all = kept.flat_map(|it| it["adjustments"].as_array().unwrap());
    let word = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let file = |one: &Value| File {
        name: word(one, "file"),
        now: word(one, "before"),
        set: word(one, "set"),
    };
    all.map(file).collect()
}

fn read(file: &File) -> String {
    let text = std::fs::read_to_string(&file.name).unwrap();
    text.trim_end().to_owned()
}

pub(crate) fn hold(files: &[File], value: fn(&File) -> &str) -> bool {
    files.iter().all(|file| read(file) == value(file))
}

/// What is to be set on this machine; `None`, and a counted skip, where this user may not, as
/// in a container, or there is nothing.
pub(crate) fn to_set(test: &str) -> Option<Vec<File>> {
    if !nix::unistd::geteuid().is_root() {
        world::skip(test, "only root may set the machine");
        return None;
    }
    let files = proposed();
    if files.is_empty() {
        world::skip(test, "this machine has nothing to set");
        return None;
    }
    let opened = |file: &File| std::fs::OpenOptions::new().write(true).open(&file.name);
    if let Some(error) = files.iter().find_map(|file| opened(file).err()) {
        world::skip(
            test,
            &format!("not even root may set this machine: {error}"),
        );
        return None;
    }
    Some(files)
}

#[test]
fn an_ordinary_user_may_look_and_no_more() {
    if nix::unistd::geteuid().is_root() {
        return world::skip("an ordinary user tunes nothing", "this is root");
    }
    let before = proposed();
    let shown = stdout(&output(&["tune", "--show"]));
    assert!(shown.contains("CPU governor"), "{shown}");
    assert!(
        !shown.contains("no limit →"),
        "that is not shown to them: {shown}"
    );
    for arguments in [
        &["tune", "--", "true"][..],
        &["tune", "--restore"],
        &["run", "--tune", "--network", "host"],
    ] {
        let refused = output(arguments);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(
            stderr(&refused).contains("only root"),
            "{}",
            stderr(&refused)
        );
    }
    assert_eq!(proposed(), before);
}

#[test]
fn what_belongs_to_other_machines_is_refused() {
    for (arguments, reason) in [
        (
            &["run", "--tune", "--target", "kubernetes"][..],
            "--tune, in a cluster --allow-tuning: say --target lab",
        ),
        (
            &["run", "--tune", "--target", "hosts"],
            "--tune, in a cluster --allow-tuning: say --target lab",
        ),
        (
            &["run", "--allow-tuning", "--target", "lab"],
            "--allow-tuning: say --target kubernetes",
        ),
        (&["run", "--tune", "--kernel", "uml"], "cannot be used with"),
        (&["tune"], "--show"),
        (&["tune", "--show", "--", "true"], "cannot be used with"),
        (&["tune", "--restore", "--json"], "cannot be used with"),
    ] {
        let refused = output(arguments);
        assert_eq!(refused.status.code(), Some(64), "{arguments:?}");
        assert!(stderr(&refused).contains(reason), "{}", stderr(&refused));
    }
}

#[test]
fn a_command_has_the_machine_tuned_and_leaves_it_as_it_was() {
    let Some(_alone) = world::lab("a tuned command") else {
        return;
    };
    let Some(files) = to_set("a tuned command") else {
        return;
    };
    let names = files.iter().map(|file| &*file.name);
    let tuned = output(
        &["tune", "--", "cat"]
            .into_iter()
            .chain(names)
            .collect::<Vec<_>>(),
    );
    assert!(tuned.status.success(), "{}", stderr(&tuned));
    let wanted: Vec<&str> = files.iter().map(|file| &*file.set).collect();
    assert_eq!(stdout(&tuned).lines().collect::<Vec<_>>(), wanted);
    assert!(hold(&files, |file| &file.now), "{}", stderr(&tuned));

    let failed = output(&["tune", "--", "sh", "-c", "exit 7"]);
    assert_eq!(failed.status.code(), Some(7));
    let missing = output(&["tune", "--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(2), "{}", stderr(&missing));
    assert_eq!(proposed(), files);
}

#[test]
fn a_signal_ends_the_command_and_then_the_settings() {
    let Some(_alone) = world::lab("a tuned command gets a signal") else {
        return;
    };
    let Some(files) = to_set("a tuned command gets a signal") else {
        return;
    };
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let mut tune = Running::start(&["tune", "--", "sleep", "60"]);
        eventually("it is tuned", Duration::from_secs(10), || {
            hold(&files, |file| &file.set)
        });
        tune.signal(signal);
        assert_eq!(tune.wait(Duration::from_secs(10)), Some(code));
        assert_eq!(proposed(), files);
    }
}

/// At moments from its start to its end; the settings are those of this machine.
#[test]
fn what_a_killed_one_has_left_is_put_back() {
    const TEST: &str = "what_a_killed_one_has_left_is_put_back";
    const KILLS: u32 = 200;
    let Some(_alone) = world::lab("a killed tune") else {
        return;
    };
    let Some(files) = to_set("a killed tune") else {
        return;
    };
    // It makes the file that says who has the machine, which stays.
    assert!(output(&["tune", "--restore"]).status.success());
    let before = Inventory::take();
    let mark = format!("tune-{}", std::process::id());
    let marked_so = format!("{MARK}={mark}");
    let start = |time| Running::start(&["tune", "--", "env", &marked_so, "sleep", time]);
    let begun = Instant::now();
    assert_eq!(start(SHORT).wait(PATIENCE), Some(0));
    let whole = begun.elapsed();
    let mut moments = Moments::new(TEST);
    let (mut left, mut ended) = (0, 0);
    for kill in 0..KILLS {
        let is_at_end = kill % 4 == 3;
        let mut tune = start(if is_at_end { SHORT } else { "60" });
        match kill % 4 {
            // From when its command ends to a while after its own end.
            3 => std::thread::sleep(SHORT_TIME + moments.within(whole * 5 / 4 - SHORT_TIME)),
            1 => std::thread::sleep(Duration::from_micros(u64::from(kill) * 50)),
            _ => eventually("it has begun", Duration::from_secs(10), || {
                files.iter().any(|file| read(file) != file.now)
            }),
        }
        tune.signal(Signal::SIGKILL);
        let code = tune.wait(Duration::from_secs(5));
        let had_ended = is_at_end && code == Some(0);
        assert!(had_ended || code.is_none(), "{code:?}: {}", tune.said());
        let has_left = !hold(&files, |file| &file.now);
        assert!(!had_ended || !has_left, "{}", tune.said());
        ended += u32::from(had_ended);
        left += u32::from(has_left);
        let restored = output(&["tune", "--restore"]);
        assert!(restored.status.success(), "{}", stderr(&restored));
        assert_eq!(proposed(), files, "{}", stderr(&restored));
        eventually("the command has ended", PATIENCE, || {
            marked(&mark).is_empty()
        });
    }
    before.assert_unchanged();
    say(&format!(
        "{left} of {KILLS} have left something, and {ended} had ended"
    ));
    assert!(left >= KILLS / 2, "{left} of {KILLS} have left anything");
    assert!(ended < KILLS / 4, "none was killed at its end");
}

/// A run says that the machine was tuned, and another environment it is.
#[test]
fn a_run_says_whether_the_machine_was_tuned() {
    let Some(_alone) = world::lab("a tuned run") else {
        return;
    };
    let Some(files) = to_set("a tuned run") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let mut seen = BTreeMap::new();
    for tune in [&["--tune"][..], &[]] {
        let place = out.path().join(format!("{}", tune.len()));
        let words = "run --network host --workload rr --rate 200 --connections 1 --duration 100ms \
                     --blocks 1 --out";
        let words = words.split_whitespace();
        let words = words
            .chain([place.to_str().unwrap()])
            .chain(tune.iter().copied());
        let run = output(&words.collect::<Vec<_>>());
        assert!(place.exists(), "{}", stderr(&run));
        let directory = world::run_directory(&place);
        ran_to_its_end(&run, &directory);
        let text = std::fs::read_to_string(directory.join("run.json")).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        seen.insert(tune.len(), (directory, record["fingerprint"].clone()));
    }
    assert_eq!(proposed(), files);
    let ((untuned, without), (tuned, with)) = (&seen[&0], &seen[&1]);
    assert!(without["tuned"].is_null(), "{without}");
    assert!(
        with["tuned"].as_array().is_some_and(|it| !it.is_empty()),
        "{with}"
    );
    for (run, is_tuned) in [(untuned, false), (tuned, true)] {
        let page = std::fs::read_to_string(run.join("report.html")).unwrap();
        let says = page.contains("set by `plumbline tune`");
        assert_eq!(says, is_tuned, "{page}");
    }
    let compared = output(&[
        "compare",
        untuned.to_str().unwrap(),
        tuned.to_str().unwrap(),
    ]);
    assert_eq!(compared.status.code(), Some(2), "{}", stdout(&compared));
    assert!(stderr(&compared).contains("tuned"), "{}", stderr(&compared));
}
