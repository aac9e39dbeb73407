//! What the machine has, as the kernel lists it: a run that is killed leaves all of it as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::world::{self, PATIENCE};

/// Settings that are counts, and change by themselves.
const COUNTS: [&str; 1] = ["/proc/sys/net/netfilter/nf_conntrack_count"];

/// What the machine has at one moment: for each kind of thing, all of them.
#[derive(PartialEq, Eq)]
pub(crate) struct Inventory(BTreeMap<&'static str, BTreeSet<String>>);

impl Inventory {
    pub(crate) fn take() -> Self {
        let mut settings = BTreeSet::new();
        values(Path::new("/proc/sys/net"), &mut settings);
        let mut groups = BTreeSet::new();
        directories(Path::new("/sys/fs/cgroup"), &mut groups);
        Self(BTreeMap::from([
            ("device", names(Path::new("/sys/class/net"))),
            ("named namespace", names(Path::new("/run/netns"))),
            ("pinned eBPF object", names(Path::new("/sys/fs/bpf"))),
            ("control group", groups),
            ("mount", lines("/proc/self/mountinfo")),
            ("module", modules()),
            ("setting", settings),
            ("address", said(&["ip", "address"])),
            ("route", said(&["ip", "route", "show", "table", "all"])),
            (
                "route of IPv6",
                said(&["ip", "-6", "route", "show", "table", "all"]),
            ),
            ("rule", said(&["ip", "rule"])),
            ("rule of IPv6", said(&["ip", "-6", "rule"])),
            // Without counters.
            (
                "line of nftables",
                said(&["nft", "--stateless", "list", "ruleset"]),
            ),
        ]))
    }

    /// Waits until the machine has what it had: the kernel takes some things away later.
    #[track_caller]
    pub(crate) fn assert_unchanged(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut now = Self::take();
        while now != *self && Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(100));
            now = Self::take();
        }
        for (kind, before) in &self.0 {
            let after = &now.0[kind];
            let more: Vec<_> = after.difference(before).collect();
            let fewer: Vec<_> = before.difference(after).collect();
            assert!(before == after, "{kind}: new {more:?}, gone {fewer:?}");
        }
    }
}

/// What is in a directory.
pub(crate) fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(name).collect()
}

/// All directories below one.
fn directories(within: &Path, all: &mut BTreeSet<String>) {
    for entry in fs::read_dir(within).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.insert(entry.path().display().to_string());
            directories(&entry.path(), all);
        }
    }
}

/// All files below a directory that can be read, with what is in them.
fn values(within: &Path, all: &mut BTreeSet<String>) {
    for entry in fs::read_dir(within).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        if kind.is_ok_and(|kind| kind.is_dir()) {
            values(&path, all);
        } else if let Ok(value) = fs::read_to_string(&path) {
            let line = format!("{} = {}", path.display(), value.trim());
            if !COUNTS.iter().any(|it| path == Path::new(it)) {
                all.insert(line);
            }
        }
    }
}

fn lines(file: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn modules() -> BTreeSet<String> {
    let name = |line: String| line.split(' ').next().unwrap_or_default().to_owned();
    lines("/proc/modules").into_iter().map(name).collect()
}

/// What a program prints. Nothing, and a counted skip, where it cannot look; nothing where it
/// refuses an ordinary user, who cannot change either what may not even be seen.
fn said(command: &[&str]) -> BTreeSet<String> {
    let text = match Command::new(command[0]).args(&command[1..]).output() {
        Ok(output) if output.status.success() => world::stdout(&output),
        Ok(_) if !nix::unistd::geteuid().is_root() => String::new(),
        Ok(output) => skipped(command, &world::stderr(&output)),
        Err(error) => skipped(command, &error.to_string()),
    };
    // How long an address or a route stays is no property of it.
    let stays = |line: &&str| !line.trim_start().starts_with("valid_lft");
    text.lines().filter(stays).map(str::to_owned).collect()
}

/// Once for each command: an inventory is taken many times a test.
fn skipped(command: &[&str], reason: &str) -> String {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let name = format!("inventory by `{}`", command.join(" "));
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(&name) {
        world::skip(&name, reason.trim());
        said.insert(name);
    }
    String::new()
}
