//! The arrows between the rooms (design, section 2).

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// What each crate may use of the workspace, tests aside.
const MAY_USE: &[(&str, &[&str])] = &[
    ("experiment", &[]),
    ("record", &["experiment"]),
    ("sys", &[]),
    ("engine", &["sys", "record", "experiment"]),
    ("agent", &["engine", "sys", "record", "experiment"]),
    ("harness", &["agent", "sys", "record", "experiment"]),
    ("lab", &["harness", "agent", "sys", "record", "experiment"]),
    ("stats", &[]),
    ("report", &["stats", "record", "experiment"]),
    ("testkit", &["sys"]),
];

#[test]
fn crates_use_only_what_the_design_allows() {
    if !std::path::Path::new("Cargo.toml").exists() {
        return crate::world::skip(
            "crates_use_only_what_the_design_allows",
            "no source tree here",
        );
    }
    let metadata = match MetadataCommand::new().no_deps().exec() {
        Ok(metadata) => metadata,
        Err(error) => {
            return crate::world::skip(
                "crates_use_only_what_the_design_allows",
                &format!("cargo does not run here: {error}"),
            );
        }
    };
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut seen = BTreeSet::new();
    for package in &metadata.packages {
        let Some(name) = package.name.strip_prefix("plumbline-") else {
            continue;
        };
        seen.insert(name.to_owned());
        let may_use = allowed
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not in the design"));
        for dependency in package
            .dependencies
            .iter()
            .filter(|d| d.kind == DependencyKind::Normal)
        {
            if let Some(used) = dependency.name.strip_prefix("plumbline-") {
                assert!(may_use.contains(&used), "{name} may not use {used}");
            }
        }
    }
    let designed: BTreeSet<String> = allowed.keys().map(|&name| name.to_owned()).collect();
    assert_eq!(seen, designed);
}
