//! The arrows between the rooms (design, section 2).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use toml::{Table, Value};

/// What each crate may use of the workspace, tests aside.
const MAY_USE: &[(&str, &[&str])] = &[
    ("experiment", &[]),
    ("record", &["experiment"]),
    ("sys", &[]),
    ("engine", &["stats", "sys", "record", "experiment"]),
    ("agent", &["engine", "sys", "record", "experiment"]),
    (
        "harness",
        &["agent", "stats", "sys", "record", "experiment"],
    ),
    ("kubernetes", &["harness", "agent", "record", "experiment"]),
    ("lab", &["harness", "agent", "sys", "record", "experiment"]),
    (
        "hosts",
        &["harness", "agent", "sys", "record", "experiment"],
    ),
    ("stats", &[]),
    ("report", &["stats", "record", "experiment"]),
    ("testkit", &["sys"]),
    ("uml", &["sys"]),
    (
        "validation",
        &[
            "lab",
            "harness",
            "report",
            "stats",
            "sys",
            "record",
            "experiment",
        ],
    ),
];

/// The workspace's packages that `manifest` depends on, tests and benches aside.
fn used_by(manifest: &Table) -> BTreeSet<String> {
    let everywhere = [manifest].into_iter();
    let targets = manifest.get("target").and_then(Value::as_table);
    let on_some = targets.into_iter().flatten();
    let tables = everywhere.chain(on_some.filter_map(|(_, target)| target.as_table()));
    let kinds = ["dependencies", "build-dependencies"];
    tables
        .flat_map(|table| kinds.iter().filter_map(|kind| table.get(*kind)?.as_table()))
        .flatten()
        .map(|(key, value)| {
            // A dependency may be renamed.
            let package = value.get("package").and_then(Value::as_str);
            package.unwrap_or(key)
        })
        .filter_map(|package| package.strip_prefix("plumbline-"))
        .map(str::to_owned)
        .collect()
}

fn manifest(path: &std::path::Path) -> Table {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.parse()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The manifests are read, and not asked for from cargo, because a user without
/// a toolchain runs this test too.
#[test]
fn crates_use_only_what_the_design_allows() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir("crates").expect("cargo runs tests in the directory of the package") {
        let manifest = manifest(&entry.unwrap().path().join("Cargo.toml"));
        let package = manifest["package"]["name"].as_str().unwrap();
        let name = package
            .strip_prefix("plumbline-")
            .unwrap_or_else(|| panic!("{package} should be called plumbline-{package}"));
        seen.insert(name.to_owned());
        let may_use = allowed
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not in the design"));
        for used in used_by(&manifest) {
            assert!(
                may_use.contains(&used.as_str()),
                "{name} may not use {used}"
            );
        }
    }
    let designed: BTreeSet<String> = allowed.keys().map(|&name| name.to_owned()).collect();
    assert_eq!(seen, designed);
}

#[test]
fn a_planted_arrow_is_seen() {
    let planted = r#"
        [dependencies]
        serde = "1"
        plumbline-sys.workspace = true
        short = { package = "plumbline-lab", path = "../lab" }
        [dev-dependencies]
        plumbline-testkit.workspace = true
        [target.'cfg(unix)'.dependencies]
        plumbline-report.workspace = true
    "#;
    let used = used_by(&planted.parse().unwrap());
    assert_eq!(used, ["lab", "report", "sys"].map(str::to_owned).into());
}

/// A rename in the workspace's own table would hide an arrow from the crates'.
#[test]
fn the_workspace_renames_no_crate() {
    let manifest = manifest("Cargo.toml".as_ref());
    let dependencies = manifest["workspace"]["dependencies"].as_table().unwrap();
    for (key, value) in dependencies {
        let package = value.get("package").and_then(Value::as_str);
        assert!(package.is_none_or(|package| package == key), "{key}");
    }
}
