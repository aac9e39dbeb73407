//! docs/promises.md names tests that exist, and the gate fails when one was not run.

mod fetched;
mod seeds;
mod workflow;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::world::{skip, stderr, stdout};

/// A test that is started with it skips itself.
const SKIPPING: &str = "PLUMBLINE_TEST_SKIPPING";

/// The file and the name of each test that a page of promises names.
fn named(page: &str) -> Vec<(&str, &str)> {
    let rows = page.lines().filter_map(|line| {
        let (_, shown_by) = line.strip_suffix("` |")?.rsplit_once("| `")?;
        shown_by.split_once("` `")
    });
    rows.collect()
}

/// Whether a source has a test of this name.
fn has_test(source: &str, name: &str) -> bool {
    let mut tests = source.split("#[test]").skip(1);
    tests.any(|it| {
        let after = it.split_once("fn ").map(|(_, after)| after);
        after.is_some_and(|it| it.starts_with(&format!("{name}(")))
    })
}

#[test]
fn every_test_that_is_promised_exists() {
    let page = fs::read_to_string("docs/promises.md").unwrap();
    let named = named(&page);
    let rows = page.lines().filter(|line| line.starts_with("| ")).count();
    let heads = page.matches("| we promise |").count();
    assert!(heads > 0 && named.len() + 2 * heads == rows, "{named:?}");
    for (file, test) in named {
        let source = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(has_test(&source, test), "{test} is not in {file}");
    }
}

#[test]
fn a_promise_without_a_test_is_found() {
    let page = "| we promise | shown by |\n| --- | --- |\n| All. | `tests/a.rs` `one` |\n";
    assert_eq!(named(page), [("tests/a.rs", "one")]);
    let source = "#[test]\nfn one_more() {}\nfn one() {}\n#[test]\n#[ignore]\nfn two() {}";
    assert!(!has_test(source, "one") && has_test(source, "two"));
    assert!(has_test(source, "one_more") && !has_test(source, "three"));
}

/// A script of the gate in a tree with these files, two promises, and a list of skips that knows
/// one test.
fn gate(script: &str, arguments: &[&str], files: &[(&str, &str)]) -> Output {
    let tree = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = tree.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    let itself = fs::read_to_string(Path::new(".ci").join(script)).unwrap();
    write(".ci/script", &itself);
    let rows = "| All. | `tests/a.rs` `one` |\n| More. | `tests/cluster/b.rs` `two` |\n";
    write("docs/promises.md", rows);
    write(
        ".ci/known-skips",
        "# Why.\nlimit 1\nanother\nuser: two\nroot: three\n",
    );
    files.iter().for_each(|(file, text)| write(file, text));
    let command = Command::new("bash")
        .arg(".ci/script")
        .args(arguments)
        .current_dir(tree.path())
        .output();
    command.expect("bash starts")
}

#[test]
fn the_gate_fails_when_a_promised_test_was_not_run() {
    let both = "test a::one ... ok\ntest cluster::b::two ... ok\n";
    let (root, clusters) = ("tests-as-root", "tests-in-clusters");
    for (said, in_clusters, is_run) in [
        (both, Some(both), true),
        ("test a::one ... ok\n", Some("test a::one ... ok\n"), false),
        ("test a::one ... ok\n", None, true),
        ("test one ... ok\n", None, true),
        ("test a::many::one ... ok\n", None, true),
        ("test other::one ... ok\n", None, false),
        ("test a::one_more ... ok\n", None, false),
        ("test a::one ... FAILED\n", None, true),
        ("test a::one ... ignored, too slow\n", None, false),
        (
            "test a::one has been running for over 60 seconds\n",
            None,
            false,
        ),
        ("running 0 tests\n", None, false),
    ] {
        let mut files = vec![(root, said), ("skips-as-root", ""), ("skips", "")];
        files.extend(in_clusters.map(|said| (clusters, said)));
        let gate = gate("promises", &["."], &files);
        assert_eq!(gate.status.success(), is_run, "{said}: {}", stdout(&gate));
        let names = stdout(&gate).contains(" was not run");
        assert_ne!(names, is_run, "{}", stdout(&gate));
    }
}

/// It passes, for the skip is a known one, but shows nothing.
#[test]
fn the_gate_tells_which_promised_tests_were_skipped_wherever_they_were_run() {
    const ONE: &str = "test a::one ... ok\n";
    const TWO: &str = "test cluster::b::two ... ok\n";
    const SKIPPED: &str = "SKIP another: no eBPF (in a::one)\n";
    const NO_CLUSTER: &str = "SKIP cluster: none (in cluster::b::two)\n";
    const UNTUNED: &str = "SKIP tuned: a kernel (in cluster::b::two)\n";
    let other = SKIPPED.replace("a::one", "other::one");
    let before = [
        ("tests-as-root", ONE),
        ("tests-in-clusters", TWO),
        ("skips", NO_CLUSTER),
    ];
    let of_one = "not shown here, or not in full: one of tests/a.rs; skipped: another\n";
    let of_two = "not shown here, or not in full: two of tests/cluster/b.rs; skipped: tuned\n";
    for (files, says) in [
        (&[("skips-as-root", "")][..], ""),
        (&[("skips-as-root", &*other)], ""),
        (&[("skips-as-root", SKIPPED)], of_one),
        // A user has not run it, has, and has skipped it too.
        (&[("skips-as-root", SKIPPED), ("tests-as-user", "")], of_one),
        (&[("skips-as-root", SKIPPED), ("tests-as-user", ONE)], ""),
        (
            &[
                ("skips-as-root", SKIPPED),
                ("tests-as-user", ONE),
                ("skips-as-user", SKIPPED),
            ],
            of_one,
        ),
        (&[("skips-as-root", SKIPPED), ("uml/log", ONE)], ""),
        (&[("skips-as-root", ""), ("skips", UNTUNED)], of_two),
    ] {
        let gate = gate("promises", &["."], &[&before[..], files].concat());
        assert!(gate.status.success(), "{}", stderr(&gate));
        let in_part = usize::from(!says.is_empty());
        let end = format!(
            "of the tests of docs/promises.md 2 were run, of which {in_part} skipped all or a \
             part; without a cluster to run in were 0\n"
        );
        assert_eq!(stdout(&gate), format!("{says}{end}"), "{files:?}");
    }
}

/// As the harness names the thread that a test runs on.
#[test]
fn a_skip_tells_the_test_that_it_is_of() {
    let test = "a_skip_tells_the_test_that_it_is_of";
    let skips = tempfile::NamedTempFile::new().unwrap();
    let program = std::env::current_exe().unwrap();
    let name = format!("promises::{test}");
    if std::env::var_os(SKIPPING).is_some() {
        return skip("one", "two\nlines");
    }
    let ran = Command::new(program)
        .args(["--exact", &name])
        .env("PLUMBLINE_SKIPS", skips.path())
        .env(SKIPPING, "yes")
        .output()
        .expect("it runs itself");
    assert!(ran.status.success(), "{}", stderr(&ran));
    let line = format!("SKIP one: two lines (in {name})\n");
    assert_eq!(fs::read_to_string(skips.path()).unwrap(), line);
    assert!(stderr(&ran).contains(&line), "{}", stderr(&ran));
}

/// Promised or not: what skips itself is counted by its name.
#[test]
fn the_gate_fails_when_a_test_was_skipped_that_it_does_not_know() {
    for (said, who, is_known) in [
        ("", None, true),
        ("SKIP another: no eBPF\n", None, true),
        ("SKIP one: no eBPF\n", None, false),
        ("SKIP another: no eBPF\nSKIP one: no eBPF\n", None, false),
        ("SKIP one\n", None, false),
        ("SKIP another: no eBPF (in a::one)\n", None, true),
        ("SKIP two: no eBPF\n", None, true),
        ("SKIP two: no eBPF\n", Some("user"), true),
        ("SKIP two: no eBPF\n", Some("root"), false),
        ("SKIP three: no eBPF\n", Some("root"), true),
        ("SKIP three: no eBPF\n", Some("user"), false),
    ] {
        let arguments = Vec::from_iter(std::iter::once("said").chain(who));
        let gate = gate("skips", &arguments, &[("said", said)]);
        assert_eq!(gate.status.success(), is_known, "{said}: {}", stdout(&gate));
    }
}

/// What only one of both may skip the other has run: each has a file of skips of its own.
#[test]
fn the_gate_holds_apart_what_root_and_what_a_user_has_skipped() {
    for (script, held) in [
        ("run", ".ci/skips \"$scratch/skips-as-root\" \"$who\"\n"),
        ("test-as-user", "/skips\" \"$skips\" user\n"),
    ] {
        let text = fs::read_to_string(Path::new(".ci").join(script)).unwrap();
        assert!(text.contains(held), "{script} has no: {held}");
    }
}

/// What `cargo test` prints of binaries, each with tests of which some fail: here the first of
/// `tests` that is named `flaky`.
fn printed(binaries: &[(&str, &[&str])]) -> String {
    let of_one = |(_, failed): &(&str, &[&str])| {
        let names: String = failed.iter().map(|name| format!("    {name}\n")).collect();
        let lists = format!("failures:\n\n---- said ----\n    no name here\n\nfailures:\n{names}");
        let failed = failed.len();
        format!("{lists}\ntest result: FAILED. 7 passed; {failed} failed; 0 ignored\n\n")
    };
    let targets = binaries
        .iter()
        .map(|(name, _)| format!("    `-p of {name}`\n"));
    let targets = Vec::from_iter(targets);
    let all: String = binaries.iter().map(of_one).collect();
    format!(
        "{all}error: {} targets failed:\n{}",
        targets.len(),
        targets.concat()
    )
}

/// Whether the gate goes on after a `cargo test` that printed this and failed, when all that is
/// run again passes.
fn is_forgiven(said: &str) -> bool {
    let tree = tempfile::tempdir().unwrap();
    let at = |file: &str| tree.path().join(file).to_str().unwrap().to_owned();
    fs::write(at("said"), said).unwrap();
    let cargo = "case \" $* \" in *--exact*) echo \"test result: ok. $# passed; 0 failed\" ;; \
                 *) cat \"$0-said\"; exit 101 ;; esac\n";
    fs::write(at("cargo"), cargo).unwrap();
    fs::rename(at("said"), at("cargo-said")).unwrap();
    let again = Command::new("bash")
        .args([".ci/again", &at("log"), "bash", &at("cargo"), "test", "--"])
        .env("PLUMBLINE_AGAIN", at("again"))
        .output();
    again.expect("bash starts").status.success()
}

/// What failed at another place than a named test must not be lost beside one that did.
#[test]
fn the_gate_forgives_only_what_was_run_again() {
    let flaky: (&str, &[&str]) = ("--test tests", &["runs::flaky"]);
    assert!(is_forgiven(&printed(&[flaky])));
    let at_top: (&str, &[&str]) = ("--test schema", &["at_top"]);
    assert!(
        is_forgiven(&printed(&[flaky, at_top])),
        "both are run again"
    );
    let many: &[&str] = &["a::a", "a::b", "a::c", "a::d"];
    assert!(
        !is_forgiven(&printed(&[("--lib", many)])),
        "more than a few"
    );
    // It was killed before it said which.
    let killed = printed(&[flaky]).replace(":\n    `-p", ":\n    `-p of --test crash`\n    `-p");
    assert!(killed.contains("crash") && !is_forgiven(&killed));
    // One of two has no name that can be found.
    let lost = printed(&[flaky]).replace("1 failed", "2 failed");
    assert!(!is_forgiven(&lost));
}

/// They kill at random moments: what one of them left would not be left by the next.
#[test]
fn the_gate_does_not_forgive_a_kill() {
    let flaky: (&str, &[&str]) = ("--test tests", &["runs::flaky"]);
    for (module, test) in [
        (
            "killed",
            "a_run_killed_at_any_moment_leaves_nothing_and_can_be_resumed",
        ),
        ("killed", "a_standing_lab_killed_leaves_nothing"),
        (
            "hosts",
            "a_controller_that_is_killed_leaves_nothing_on_the_hosts",
        ),
        ("kernel", "a_killed_run_leaves_no_process_of_the_kernel"),
        (
            "offloads",
            "an_agent_whose_controller_is_killed_puts_offloads_back",
        ),
        ("tune", "what_a_killed_one_has_left_is_put_back"),
        ("validate", "a_kill_leaves_no_program_behind"),
        (
            "cluster/left",
            "a_killed_controller_stops_the_load_and_cleanup_removes_the_rest",
        ),
        (
            "cluster/rights",
            "what_a_killed_run_left_in_a_shared_namespace_is_shown_and_removed",
        ),
        (
            "cluster/services",
            "cleanup_removes_the_services_of_a_run_that_was_killed",
        ),
        (
            "cluster/tuning",
            "nodes_of_a_killed_run_are_put_back_when_its_pods_end",
        ),
    ] {
        let source = fs::read_to_string(format!("tests/{module}.rs")).unwrap();
        assert!(has_test(&source, test), "{test} is not in {module}");
        let name = format!("{}::{test}", module.replace('/', "::"));
        let killed: (&str, &[&str]) = ("--test tests", &[&name]);
        assert!(!is_forgiven(&printed(&[killed])), "{name}");
        assert!(!is_forgiven(&printed(&[flaky, killed])), "{name}");
    }
    // Another one of the same file.
    let other: (&str, &[&str]) = ("--test tests", &["hosts::flaky"]);
    assert!(is_forgiven(&printed(&[other])));
}
