//! What the gate leaves out where it cannot be downloaded, and nothing else.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use crate::world::stdout;

/// What a script of the gate says, and the skips that it counts, where these programs are in
/// front of those of the machine.
fn with(script: &str, programs: &[(&str, &str)]) -> (Output, String) {
    let scratch = tempfile::tempdir().unwrap();
    for (name, text) in programs {
        let file = scratch.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let skips = scratch.path().join("skips");
    let ran = Command::new(script)
        .arg("/bin/true")
        .env(
            "PATH",
            format!("{}:{}", scratch.path().display(), env::var("PATH").unwrap()),
        )
        .env("XDG_CACHE_HOME", scratch.path().join("cache"))
        .env("PLUMBLINE_SKIPS", &skips)
        .output()
        .expect("bash starts");
    (ran, fs::read_to_string(skips).unwrap_or_default())
}

const AWAY: &str = "echo 'error sending request for url' >&2; exit 1";
const NO_PACKAGE: &str =
    "echo 'ERROR: No matching distribution found (from versions: none)' >&2; exit 1";
const NO_VERSION: &str =
    "echo 'ERROR: No matching distribution found (from versions: 0.15.1)' >&2; exit 1";
const OURS: &str = "echo 'error: toolchain does not support this target' >&2; exit 1";
const WORKS: &str = "exit 0";

#[test]
fn a_compiler_that_cannot_be_downloaded_is_skipped_and_a_mistake_of_ours_is_not() {
    for (script, name) in [
        (".ci/macos", "the controller for macOS"),
        (".ci/arm64", "ARM64"),
    ] {
        for (rustup, pip, is_skipped) in [
            (AWAY, WORKS, true),
            (WORKS, NO_PACKAGE, true),
            (OURS, WORKS, false),
            (WORKS, NO_VERSION, false),
        ] {
            let programs = [
                ("rustup", rustup),
                ("python3", pip),
                ("cargo", "exit 1"),
                ("qemu-aarch64-static", WORKS),
            ];
            let (ran, skips) = with(script, &programs);
            let said = stdout(&ran);
            assert_eq!(ran.status.success(), is_skipped, "{script}: {said}");
            assert_eq!(
                skips.starts_with(&format!("SKIP {name}: ")),
                is_skipped,
                "{skips}"
            );
            assert!(
                said.to_lowercase().contains("error"),
                "{script} says why: {said}"
            );
        }
    }
}

/// `cargo` where there are so many crates, all and without clusters, and the advisories come to
/// this.
fn cargo([all, fewest]: [usize; 2], fetches: &str) -> String {
    format!(
        "case \"$*\" in\n\
         tree*--no-default-features*) seq {fewest} ;;\n\
         tree*) seq {all} ;;\n\
         *'fetch db') {fetches} ;;\n\
         esac"
    )
}

#[test]
fn the_gate_counts_crates_and_skips_advisories_only_where_they_cannot_be_fetched() {
    let page = fs::read_to_string("docs/security.md").unwrap();
    let after = |words: &str| -> usize {
        let (_, rest) = page.split_once(words).expect("it counts them");
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    let [all, fewest] = ["Compiled in are ", " not ours, "].map(after);
    let away = "echo 'fatal: Could not resolve host' >&2; exit 1";
    let wrong = "echo 'error: unexpected argument' >&2; exit 2";
    for (crates, fetches, is_passed, skips) in [
        ([all, fewest], "exit 0", true, 0),
        ([all, fewest], away, true, 1),
        ([all, fewest], wrong, false, 0),
        ([all + 1, fewest], "exit 0", false, 0),
        ([all, fewest + 1], "exit 0", false, 0),
        // The page would say more than there are.
        ([all, fewest - 1], "exit 0", false, 0),
    ] {
        let cargo = cargo(crates, fetches);
        let (ran, skipped) = with(".ci/deny", &[("cargo", &cargo), ("cargo-deny", WORKS)]);
        assert_eq!(
            ran.status.success(),
            is_passed,
            "{crates:?}: {}",
            stdout(&ran)
        );
        assert_eq!(skipped.matches("SKIP advisories: ").count(), skips);
    }
}

/// `cargo` of a program with two crates of others, and a bill that names these.
fn cargo_with_a_bill(named: &[&str]) -> String {
    let components: Vec<String> = named
        .iter()
        .map(|name| format!("{{\"name\": \"{name}\", \"version\": \"1.0.0\"}}"))
        .collect();
    let bill = format!("{{\"components\": [{}]}}", components.join(", "));
    format!(
        "case \"$*\" in\n\
         'cyclonedx --version') echo 'cargo-cyclonedx 0.5.9' ;;\n\
         cyclonedx*) for file; do :; done; echo '{bill}' >\"$file.json\" ;;\n\
         tree*) printf 'plumbline v0.1.0\\nserde v1.0.0\\nlibc v1.0.0\\nserde v1.0.0 (*)\\n' ;;\n\
         esac"
    )
}

#[test]
fn the_gate_fails_where_a_bill_of_materials_leaves_out_a_crate() {
    for (cargo, is_passed, skips) in [
        (cargo_with_a_bill(&["libc", "serde"]), true, 0),
        (cargo_with_a_bill(&["libc", "serde", "syn"]), true, 0),
        (cargo_with_a_bill(&["serde"]), false, 0),
        (AWAY.to_owned(), true, 1),
        (OURS.to_owned(), false, 0),
    ] {
        let (ran, skipped) = with(".ci/bill", &[("cargo", &cargo)]);
        assert_eq!(ran.status.success(), is_passed, "{cargo}: {}", stdout(&ran));
        assert_eq!(skipped.matches("SKIP bills of materials: ").count(), skips);
    }
}

#[test]
fn schemas_that_cannot_be_downloaded_are_skipped_and_a_mistake_of_ours_is_not() {
    for (pip, is_skipped) in [(NO_PACKAGE, true), (NO_VERSION, false)] {
        let (ran, skips) = with(".ci/workflows", &[("python3", pip)]);
        assert_eq!(ran.status.success(), is_skipped, "{}", stdout(&ran));
        assert_eq!(skips.starts_with("SKIP workflow files: "), is_skipped);
    }
}
