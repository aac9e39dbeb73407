//! The arrows between the rooms (design, section 2), that no crate has a circle of
//! files, and that the name of a type stands for one thing.

mod circles;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use toml::{Table, Value};

use circles::{Crate, DefinedType};

/// What each crate may use of the workspace, tests aside.
const MAY_USE: &[(&str, &[&str])] = &[
    ("experiment", &[]),
    ("record", &["experiment"]),
    ("sys", &[]),
    ("build", &["record"]),
    ("protocol", &["record", "experiment"]),
    (
        "engine",
        &["protocol", "stats", "sys", "record", "experiment"],
    ),
    (
        "agent",
        &[
            "engine",
            "build",
            "protocol",
            "sys",
            "tracer",
            "tune",
            "record",
            "experiment",
        ],
    ),
    (
        "harness",
        &["build", "protocol", "stats", "sys", "record", "experiment"],
    ),
    (
        "generator",
        &["harness", "engine", "sys", "record", "experiment"],
    ),
    (
        "kubernetes",
        &[
            "harness",
            "build",
            "protocol",
            "sys",
            "record",
            "experiment",
        ],
    ),
    (
        "lab",
        &[
            "harness",
            "agent",
            "build",
            "protocol",
            "sys",
            "record",
            "experiment",
        ],
    ),
    (
        "hosts",
        &[
            "harness",
            "build",
            "protocol",
            "sys",
            "record",
            "experiment",
        ],
    ),
    (
        "doctor",
        &[
            "harness", "agent", "protocol", "sys", "tracer", "tune", "record",
        ],
    ),
    (
        "session",
        &[
            "harness",
            "build",
            "report",
            "stats",
            "sys",
            "record",
            "experiment",
        ],
    ),
    ("gate", &["report", "record", "experiment"]),
    ("stats", &[]),
    ("report", &["stats", "record", "experiment"]),
    ("testkit", &["sys"]),
    ("tracer", &["protocol", "sys"]),
    ("tune", &["sys"]),
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
    (
        "xray",
        &[
            "lab",
            "harness",
            "protocol",
            "report",
            "stats",
            "sys",
            "tracer",
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

fn manifest(path: &Path) -> Table {
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

/// A controller runs on other systems too. `sys` has what it has of them apart from the
/// rest; no other crate that a controller needs knows which system it is on.
#[test]
fn a_controller_needs_nothing_that_is_for_linux_only() {
    let program = manifest("Cargo.toml".as_ref());
    let only = &program["target"]["cfg(target_os = \"linux\")"];
    let linux = used_by(only.as_table().expect("a table of dependencies"));
    assert!(linux.contains("lab"), "{linux:?}");
    let mut needed: Vec<String> = used_by(&program).difference(&linux).cloned().collect();
    let mut at = 0;
    while let Some(name) = needed.get(at).cloned() {
        let folder = Path::new("crates").join(&name);
        let used = used_by(&manifest(&folder.join("Cargo.toml")));
        assert!(used.is_disjoint(&linux), "{name} uses {used:?}");
        let asks = files_that_have(&folder.join("src"), "target_os");
        assert!(name == "sys" || asks.is_empty(), "{asks:?}");
        let mut new = Vec::from_iter(used);
        new.retain(|it| !needed.contains(it));
        needed.extend(new);
        at += 1;
    }
    assert!(needed.iter().any(|it| it == "protocol"), "{needed:?}");
}

/// The files below a folder in which a text stands.
fn files_that_have(folder: &Path, text: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the checkout");
    let found = entries.map(|entry| match entry.unwrap().path() {
        path if path.is_dir() => files_that_have(&path, text),
        path => match fs::read(&path).unwrap() {
            bytes if String::from_utf8_lossy(&bytes).contains(text) => vec![path],
            _ => Vec::new(),
        },
    });
    found.flatten().collect()
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

/// The crates with their names, the binary among them. It takes seconds to read them.
static CRATES: LazyLock<Vec<(String, Crate)>> = LazyLock::new(|| {
    let mut roots = vec![("plumbline".to_owned(), Path::new("src/main.rs").to_owned())];
    for entry in fs::read_dir("crates").expect("cargo runs tests in the directory of the package") {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        roots.push((name, path.join("src/lib.rs")));
    }
    let read = |(name, root): (String, PathBuf)| (name, Crate::read(&root));
    roots.into_iter().map(read).collect()
});

#[test]
fn no_crate_has_a_circle_of_files() {
    let mut found = String::new();
    for (name, read) in CRATES.iter() {
        let circles = read.circles();
        found.extend(
            circles
                .iter()
                .map(|circle| format!("{name} has {circle}\n")),
        );
    }
    assert!(found.is_empty(), "{found}");
}

/// Names that stand for several types, at least one of which other files may use, each
/// with the files that define it.
fn shared_names<'a>(crates: impl Iterator<Item = &'a Crate>) -> Vec<String> {
    let mut named: BTreeMap<&str, Vec<&DefinedType>> = BTreeMap::new();
    for defined in crates.flat_map(Crate::types) {
        named.entry(&defined.name).or_default().push(defined);
    }
    let shared = named
        .into_iter()
        .filter(|(_, types)| types.len() > 1 && types.iter().any(|defined| defined.is_visible));
    let show = |(name, types): (&str, Vec<&DefinedType>)| {
        let files: Vec<_> = types.iter().map(|it| it.file.to_string_lossy()).collect();
        format!("{name}: {}", files.join(", "))
    };
    shared.map(show).collect()
}

#[test]
fn a_type_name_stands_for_one_thing() {
    let shared = shared_names(CRATES.iter().map(|(_, read)| read));
    assert!(shared.is_empty(), "{}", shared.join("\n"));
}

/// A crate of these files.
fn planted(files: &[(&str, &str)]) -> Crate {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Crate::read(&folder.path().join("lib.rs"))
}

#[test]
fn a_planted_type_of_the_same_name_is_seen() {
    let one = planted(&[
        ("lib.rs", "mod a; mod b; pub struct Link; struct Own;"),
        ("a.rs", "pub(crate) enum Step {} struct Own; type Key = u8;"),
        (
            "b.rs",
            "trait Step {} fn f() { struct Link; } #[cfg(test)] mod tests { pub struct Key; }",
        ),
    ]);
    let other = planted(&[("lib.rs", "pub type Key = u16; pub struct Link;")]);
    let shared = shared_names([&one, &other].into_iter());
    let names: Vec<_> = shared
        .iter()
        .filter_map(|it| it.split(':').next())
        .collect();
    assert_eq!(names, ["Key", "Link", "Step"]);
}

#[test]
fn a_planted_circle_of_files_is_seen() {
    let lib = "mod a; mod b; pub use a::A; pub use b::B;";
    let circles: &[&[(&str, &str)]] = &[
        // By imports, through what the crate passes on.
        &[
            ("a.rs", "use crate::B; pub struct A(B);"),
            ("b.rs", "pub struct B; impl B { fn a(_: &crate::A) {} }"),
        ],
        // Inside of a macro.
        &[
            (
                "a.rs",
                "pub struct A; pub fn one() -> u8 { super::b::B::TWO }",
            ),
            (
                "b.rs",
                "pub struct B; impl B { pub const TWO: u8 = max!(crate::a::one(), 2); }",
            ),
        ],
        // A parent that uses its child, which uses it.
        &[
            ("a.rs", "pub struct A;"),
            (
                "b.rs",
                "mod inner; pub struct B; pub fn b() { inner::b(); }",
            ),
            ("b/inner.rs", "use super::B; pub fn b() -> B { B }"),
        ],
        // By a method that another file adds to the type.
        &[
            ("a.rs", "pub struct A; pub fn a(a: A) { a.added(); }"),
            (
                "b.rs",
                "use crate::a::A; pub struct B; impl A { pub fn added(self) {} }",
            ),
        ],
        // By the name of a function in an attribute.
        &[
            (
                "a.rs",
                "pub struct A; pub fn is_zero(_: &u8) -> bool { B::NO }\nuse crate::B;",
            ),
            (
                "b.rs",
                "pub struct B { #[serde(skip_serializing_if = \"crate::a::is_zero\")] b: u8 }",
            ),
        ],
    ];
    for files in circles {
        let circles = planted(&[&[("lib.rs", lib)], *files].concat()).circles();
        assert_eq!(circles.len(), 1, "{files:?}: {circles:?}");
        assert!(circles[0].starts_with("a circle of 2 files"), "{circles:?}");
    }
}

#[test]
fn what_is_no_circle_is_not_taken_for_one() {
    let files = [
        (
            "lib.rs",
            "mod a; mod b; pub use a::A; pub use b::{B, Inner};",
        ),
        // What the crate passes on is defined elsewhere; tests may use everything.
        (
            "a.rs",
            "pub struct A(crate::B); #[cfg(test)] mod tests { use crate::b::b; }",
        ),
        // A parent that only passes on what its child has.
        (
            "b/mod.rs",
            "mod inner; pub use inner::Inner; pub struct B; pub fn b() {}",
        ),
        (
            "b/inner.rs",
            "use super::B; pub struct Inner(B); #[test] fn t() { crate::A; }",
        ),
    ];
    assert_eq!(planted(&files).circles(), Vec::<String>::new());
}

/// Most lines of the command line, tests included: it is glue.
const MOST_GLUE: usize = 2_500;

fn lines_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).expect("cargo runs tests in the directory of the package");
    let lines = entries.map(|entry| match entry.unwrap().path() {
        path if path.is_dir() => lines_below(&path),
        path => fs::read_to_string(path).unwrap().lines().count(),
    });
    lines.sum()
}

#[test]
fn the_command_line_is_glue() {
    let lines = lines_below("src".as_ref());
    assert!(lines > 0, "nothing was counted");
    assert!(
        lines <= MOST_GLUE,
        "{lines} lines; at most {MOST_GLUE}: move what is no glue to a crate"
    );
}
