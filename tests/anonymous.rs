//! `--anonymise`: what a run leaves and shows does not tell whose it is.

use std::fs;
use std::path::{Path, PathBuf};

use crate::observed::{make_all_alike, ran_to_its_end};
use crate::tried::{dead_end, run};
use crate::world::{self, output, stderr, stdout};

/// A name that nothing but the paths of the test has.
const SECRET: &str = "zqx-acme";

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|it| it.unwrap().path());
    let inside = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    entries.flat_map(inside).collect()
}

#[track_caller]
fn assert_hidden(what: &str, text: &str) {
    let kernel = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for name in [SECRET, "/dead-end", kernel.trim(), boot.trim()] {
        assert!(
            name.len() < 4 || !text.contains(name),
            "{name} is in {what}"
        );
    }
}

#[test]
fn neither_the_run_nor_what_is_shown_tells_names() {
    let Some(_alone) = world::lab("neither_the_run_nor_what_is_shown_tells_names") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join(SECRET);
    fs::create_dir(&directory).unwrap();
    let path = directory.to_str().unwrap();
    let networks = format!("routed,{}", dead_end(&directory));
    let ran = output(&run(path, &["--anonymise", "--network", &networks]));
    let printed = stdout(&ran);
    assert!(
        printed.contains("could not carry a packet"),
        "{printed}{}",
        stderr(&ran)
    );
    assert_hidden("the JSON", &printed);
    let recorded = world::run_directory(&directory);
    ran_to_its_end(&ran, &recorded);
    for file in files(&recorded) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert_hidden(&file.display().to_string(), &text);
    }
    let run_json = fs::read_to_string(recorded.join("run.json")).unwrap();
    assert!(
        run_json.contains("\"routed\"") && run_json.contains("network-1"),
        "{run_json}"
    );
    let resumed = output(&["run", "--resume", recorded.to_str().unwrap()]);
    assert_eq!(resumed.status.code(), Some(64), "{}", stderr(&resumed));
    assert!(
        stderr(&resumed).contains("--anonymise"),
        "{}",
        stderr(&resumed)
    );
}

#[test]
fn an_old_run_is_shown_without_names() {
    let Some(_alone) = world::lab("an_old_run_is_shown_without_names") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join(SECRET);
    fs::create_dir(&directory).unwrap();
    let path = directory.to_str().unwrap();
    let networks = format!("routed,{}", dead_end(&directory));
    let ran = output(&run(path, &["--network", &networks]));
    let recorded = world::run_directory(&directory);
    ran_to_its_end(&ran, &recorded);
    let whole = fs::read_to_string(recorded.join("run.json")).unwrap();
    assert!(whole.contains(SECRET), "it tells names before: {whole}");
    make_all_alike(&recorded);
    let recorded = recorded.to_str().unwrap();
    for format in ["terminal", "html", "markdown", "csv", "json"] {
        let shown = output(&["report", recorded, "--anonymise", "--format", format]);
        assert!(shown.status.success(), "{}", stderr(&shown));
        assert!(stdout(&shown).contains("host"), "{format}");
        assert_hidden(format, &stdout(&shown));
    }
}
