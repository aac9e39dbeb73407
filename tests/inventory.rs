//! What the machine has, as the kernel lists it: a run that is killed leaves all of it as it was.

mod planted;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::left;
use crate::world::{self, PATIENCE};

/// Files beside settings that are none: counts, which change by themselves, what the kernel lowers
/// when it is too busy for it, and an order to count.
const NO_SETTINGS: [&str; 15] = [
    "/proc/sys/fs/aio-nr",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/fs/quota",
    "/proc/sys/kernel/hung_task_detect_count",
    "/proc/sys/kernel/hung_task_warnings",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/perf_event_max_sample_rate",
    "/proc/sys/kernel/pty/nr",
    "/proc/sys/kernel/random/entropy_avail",
    "/proc/sys/kernel/random/uuid",
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sys/vm/stat_refresh",
];

const SHARED_MEMORY: &str = "shared memory";
const NAMESPACE: &str = "namespace";
const PROCESS: &str = "process of the program";

/// What others may end meanwhile: of these only what is new counts.
const OTHERS_END: [&str; 2] = [NAMESPACE, PROCESS];

/// What every machine has, and root sees.
const ALWAYS: [&str; 6] = [NAMESPACE, "device", "mount", "address", "route", "setting"];

/// What the machine has at one moment: for each kind of thing, all of them.
#[derive(PartialEq, Eq)]
pub(crate) struct Inventory(BTreeMap<&'static str, BTreeSet<String>>);

impl Inventory {
    pub(crate) fn take() -> Self {
        let now = Self::look();
        let is_root = nix::unistd::geteuid().is_root();
        for kind in ALWAYS.iter().filter(|_| is_root) {
            assert!(!now.0[kind].is_empty(), "no {kind} is seen");
        }
        now
    }

    fn look() -> Self {
        let mut groups = BTreeSet::new();
        directories(Path::new("/sys/fs/cgroup"), &mut groups);
        let others = left::not_of_tests();
        let programs = others.iter().filter(|pid| left::is_the_program(**pid));
        Self(BTreeMap::from([
            (NAMESPACE, left::namespaces_of(&others)),
            (PROCESS, programs.map(u32::to_string).collect()),
            ("device", names(Path::new("/sys/class/net"))),
            ("named namespace", names(Path::new("/run/netns"))),
            ("pinned eBPF object", names(Path::new("/sys/fs/bpf"))),
            ("file in /run/plumbline", names(Path::new("/run/plumbline"))),
            (SHARED_MEMORY, in_shared_memory()),
            ("control group", groups),
            ("mount", lines("/proc/self/mountinfo")),
            ("address", said(&["ip", "address"])),
            ("route", said(&["ip", "route", "show", "table", "all"])),
            (
                "route of IPv6",
                said(&["ip", "-6", "route", "show", "table", "all"]),
            ),
            ("rule", said(&["ip", "rule"])),
            ("rule of IPv6", said(&["ip", "-6", "rule"])),
            ("qdisc", said(&["tc", "qdisc", "show"])),
            // Without counters.
            (
                "line of nftables",
                said(&["nft", "--stateless", "list", "ruleset"]),
            ),
            ("table of iptables", lines("/proc/net/ip_tables_names")),
            ("table of ip6tables", lines("/proc/net/ip6_tables_names")),
            ("set of ipset", said_if_it_can(&["ipset", "list", "-name"])),
            ("IPsec association", associations()),
            ("IPsec policy", said_if_it_can(&["ip", "xfrm", "policy"])),
            // Last, for what is asked above may load modules, and these have settings.
            ("setting", settings()),
            ("module", modules()),
        ]))
    }

    /// Without a kind of thing that others change meanwhile.
    pub(crate) fn without(mut self, kind: &str) -> Self {
        assert!(self.0.remove(kind).is_some(), "no such kind: {kind}");
        self
    }

    /// Waits until the machine has what it had: the kernel takes some things away later.
    #[track_caller]
    pub(crate) fn assert_unchanged(&self) {
        let take = || {
            let mut now = Self::take();
            now.0.retain(|kind, _| self.0.contains_key(kind));
            for kind in OTHERS_END {
                if let (Some(now), Some(before)) = (now.0.get_mut(kind), self.0.get(kind)) {
                    now.extend(before.iter().cloned());
                }
            }
            now
        };
        let deadline = Instant::now() + PATIENCE;
        let mut now = take();
        while now != *self && Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(100));
            now = take();
        }
        for (kind, before) in &self.0 {
            let after = &now.0[kind];
            let more: Vec<_> = after.difference(before).collect();
            let fewer: Vec<_> = before.difference(after).collect();
            assert!(before == after, "{kind}: new {more:?}, gone {fewer:?}");
        }
    }
}

/// What is in a directory: nothing where there is none, as on a machine without what keeps it.
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

/// All that the kernel has below `/proc/sys`.
fn settings() -> BTreeSet<String> {
    let mut settings = BTreeSet::new();
    values(Path::new("/proc/sys"), &mut settings);
    settings
}

/// All files below a directory that can be read, with what is in them.
fn values(within: &Path, all: &mut BTreeSet<String>) {
    for entry in fs::read_dir(within).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        if NO_SETTINGS.iter().any(|it| path == Path::new(it)) {
            continue;
        }
        if kind.is_ok_and(|kind| kind.is_dir()) {
            values(&path, all);
        } else if let Ok(value) = fs::read_to_string(&path) {
            all.insert(format!("{} = {}", path.display(), value.trim()));
        }
    }
}

/// What is ours in memory that programs share: others come and go there.
fn in_shared_memory() -> BTreeSet<String> {
    let all = names(Path::new("/dev/shm")).into_iter();
    all.filter(|name| name.contains("plumbline")).collect()
}

/// Who they are between. Below that stand keys, counters and times.
fn associations() -> BTreeSet<String> {
    let lines = said_if_it_can(&["ip", "xfrm", "state"]).into_iter();
    lines.filter(|line| line.starts_with("src ")).collect()
}

/// The lines of a file: none where there is none, as on a kernel without what it lists.
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

/// What a program prints about something that not every machine has; nothing where it cannot.
fn said_if_it_can(command: &[&str]) -> BTreeSet<String> {
    let output = Command::new(command[0]).args(&command[1..]).output();
    let output = output.ok().filter(|it| it.status.success());
    let text = output.map_or_else(String::new, |it| world::stdout(&it));
    text.lines().map(str::to_owned).collect()
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

#[test]
fn what_is_left_is_found_in_an_inventory() {
    let test = "what_is_left_is_found_in_an_inventory";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let before = Inventory::take();
    let left = tempfile::Builder::new()
        .prefix("plumbline-left-")
        .tempfile_in("/dev/shm")
        .expect("it is everybody's");
    let now = Inventory::take();
    let is_new = now.0[SHARED_MEMORY].difference(&before.0[SHARED_MEMORY]);
    assert_eq!(is_new.count(), 1);
    assert!(now != before);
    let without = now.without(SHARED_MEMORY);
    assert!(!without.0.contains_key(SHARED_MEMORY));
    drop(left);
    before.assert_unchanged();

    let stand = r#""$0" "$@" >/dev/null 2>&1 & echo $!"#;
    let lab = world::plumbline(&["lab", "up", "vxlan"]);
    let orphan = Command::new("sh")
        .args(["-c", stand])
        .arg(lab.get_program())
        .args(lab.get_args())
        .output();
    let pid: i32 = world::stdout(&orphan.unwrap()).trim().parse().unwrap();
    world::eventually("a lab that no test has is found", PATIENCE, || {
        let now = Inventory::take();
        OTHERS_END
            .iter()
            .all(|kind| now.0[kind].difference(&before.0[kind]).count() > 0)
    });
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it is ours");
    before.assert_unchanged();
}
