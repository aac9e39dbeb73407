//! The scripts of docs/ci.md, from the download on, as the services run them: with an archive
//! as `packaging/archive` makes it, whose program ends as it is told.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::world::{stderr, stdout};

/// Writes a shell script.
fn put(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What each service runs.
fn scripts() -> [String; 2] {
    let page = fs::read_to_string("docs/ci.md").unwrap();
    let blocks = page.split("```yaml\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let jobs: Vec<Value> = blocks
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect();
    let steps = jobs[0]["jobs"]["gate"]["steps"].as_array().unwrap();
    let github = steps.iter().filter_map(|step| step["run"].as_str());
    let lines = jobs[1]["network-cost"]["script"].as_array().unwrap();
    let gitlab = lines.iter().map(|line| line.as_str().unwrap());
    let from_download = |all: &mut dyn Iterator<Item = &str>| {
        let rest = all.skip_while(|it| !it.contains("curl "));
        Vec::from_iter(rest).join("\n")
    };
    [
        from_download(&mut { github }),
        from_download(&mut { gitlab }),
    ]
}

/// What is wrong with a download.
#[derive(Clone, Copy, PartialEq)]
enum Download {
    IsRight,
    HasAnotherSum,
    IsNoArchive,
}

/// The exit code of a script when the program's is `code`, and it leaves `gate.xml` or not. One of
/// the run before lies there.
fn ends(script: &str, code: i32, leaves: bool, download: Download) -> Option<i32> {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    for directory in ["bin", "job"] {
        fs::create_dir(at(directory)).unwrap();
    }
    put(&at("bin/sudo"), "exec \"$@\"");
    let curl = "while [ \"$1\" != --output ]; do shift; done\ncp \"$3\" \"$2\"";
    put(&at("bin/curl"), curl);
    let files = if leaves { "touch gate.xml\n" } else { "" };
    put(&at("program"), &format!("{files}exit {code}"));
    let made = Command::new("packaging/archive")
        .arg(at("program"))
        .args(["1.2.3", "amd64"])
        .arg(at("release"))
        .output()
        .expect("bash is there");
    let archive = stdout(&made).trim().to_owned();
    if download == Download::IsNoArchive {
        fs::write(&archive, "no archive").unwrap();
    }
    let summed = Command::new("sha256sum").arg(&archive).output().unwrap();
    let sum = match download {
        Download::HasAnotherSum => "0".repeat(64),
        _ => stdout(&summed)[..64].to_owned(),
    };
    fs::write(at("job/gate.xml"), "an older one").unwrap();
    // A file of the project, which the archive has too.
    fs::write(at("job/LICENSE"), "ours").unwrap();
    let path = format!("{}:{}", at("bin").display(), env::var("PATH").unwrap());
    let ran = Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c", script])
        .current_dir(at("job"))
        .env("PATH", path)
        .env("PLUMBLINE_URL", &archive)
        .env("PLUMBLINE_SHA256", sum)
        .env("GITHUB_STEP_SUMMARY", at("summary"))
        .output()
        .expect("bash starts");
    let license = fs::read_to_string(at("job/LICENSE")).unwrap();
    assert_eq!(license, "ours", "{}", stderr(&ran));
    ran.status.code()
}

#[test]
fn workflow_files_end_as_the_gate_does_and_take_no_error_for_undecided() {
    let [github, gitlab] = scripts();
    for (code, leaves, in_github, in_gitlab) in [
        (0, true, 0, 0),
        (1, true, 1, 1),
        (2, true, 2, 2),
        // What `allow_failure` lets pass is undecided, and no error.
        (2, false, 2, 3),
        (64, false, 64, 64),
    ] {
        let ends = |script| ends(script, code, leaves, Download::IsRight);
        assert_eq!(ends(&github), Some(in_github));
        assert_eq!(ends(&gitlab), Some(in_gitlab));
    }
    // `tar` ends with 2, too.
    for (download, in_github) in [(Download::HasAnotherSum, 1), (Download::IsNoArchive, 2)] {
        assert_eq!(ends(&github, 0, true, download), Some(in_github));
        assert_eq!(ends(&gitlab, 0, true, download), Some(3));
    }
}
