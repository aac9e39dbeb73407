//! docs/promises.md names tests that exist.

use std::fs;

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
