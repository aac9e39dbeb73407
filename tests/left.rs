//! What a run has, and what it leaves: processes and namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::world::{self, PATIENCE, eventually};

/// The machine for one test alone, as root, who may enter the namespaces of a program; `None`,
/// and a counted skip, for anybody else.
pub(crate) fn enterable_lab(test: &str) -> Option<MutexGuard<'static, ()>> {
    world::lab_as_root(test, "only root may enter the namespaces of a program")
}

/// The environment variable that marks every process of a run. A process that
/// lost its parent is still found by it.
pub(crate) const MARK: &str = "PLUMBLINE_TEST_MARK";

/// Every process of this user whose mark begins so, zombies aside. One that the
/// kernel is just replacing with another program shows no mark for a moment.
pub(crate) fn marked(beginning: &str) -> BTreeSet<u32> {
    let wanted = format!("{MARK}={beginning}").into_bytes();
    let carries = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable.starts_with(&wanted))
    };
    running().filter(carries).collect()
}

/// Every process below `root`, itself included.
pub(crate) fn family(root: u32) -> BTreeSet<u32> {
    let mut family = BTreeSet::from([root]);
    loop {
        let before = family.len();
        for (pid, parent) in processes() {
            if family.contains(&parent) {
                family.insert(pid);
            }
        }
        if family.len() == before {
            return family;
        }
    }
}

/// Every process that no test has started, or whose parents have ended.
pub(crate) fn not_of_tests() -> BTreeSet<u32> {
    let tests = family(std::process::id());
    running().filter(|pid| !tests.contains(pid)).collect()
}

/// Whether a process is Plumbline, of whatever build.
pub(crate) fn is_the_program(pid: u32) -> bool {
    let file = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(" (deleted)") == "plumbline"
}

fn running() -> impl Iterator<Item = u32> {
    processes().into_iter().map(|(pid, _)| pid)
}

/// Pairs of process and parent. Zombies are none: they run nothing and hold no
/// network, and how long they stay is up to whoever reaps the machine's orphans.
fn processes() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // `pid (name) state parent …`; the name may hold anything, even `)`.
            let mut words = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
            let (state, parent) = (words.next()?, words.next()?);
            (!["Z", "X"].contains(&state)).then_some((pid, parent.parse().ok()?))
        })
        .collect()
}

/// The network namespaces that a program holds, each once.
pub(crate) fn held_namespaces(program: u32) -> Vec<PathBuf> {
    let held = fs::read_dir(format!("/proc/{program}/fd"))
        .into_iter()
        .flatten();
    let held = held.filter_map(|entry| {
        let file = entry.ok()?.path();
        let target = fs::read_link(&file).ok()?.to_string_lossy().into_owned();
        target.starts_with("net:[").then_some((target, file))
    });
    held.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// Does something inside a network namespace, as root, by a thread that does not come back.
pub(crate) fn inside<T: Send>(namespace: &File, work: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        setns(namespace, CloneFlags::CLONE_NEWNET).expect("root may enter it");
        work()
    };
    let done = thread::scope(|scope| scope.spawn(enter).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Namespaces that processes of the given set are in, and those of the network that they hold
/// open.
pub(crate) fn namespaces_of(pids: &BTreeSet<u32>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for pid in pids {
        for kind in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
            found.extend(link_text(&format!("/proc/{pid}/ns/{kind}")));
        }
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            continue;
        };
        for file in files.flatten() {
            let text = fs::read_link(file.path()).map(|p| p.to_string_lossy().into_owned());
            found.extend(text.ok().filter(|t| t.starts_with("net:[")));
        }
    }
    found
}

fn link_text(path: &str) -> Option<String> {
    Some(
        fs::read_link(Path::new(path))
            .ok()?
            .to_string_lossy()
            .into_owned(),
    )
}

/// Namespaces that exist only because of `pids`.
pub(crate) fn own_namespaces(pids: &BTreeSet<u32>) -> BTreeSet<String> {
    let everybody_else = namespaces_of(&BTreeSet::from([std::process::id()]));
    namespaces_of(pids)
        .difference(&everybody_else)
        .cloned()
        .collect()
}

/// Nothing of a run is left: no process of it, and no process in its namespaces.
#[track_caller]
pub(crate) fn nothing_left(pids: &BTreeSet<u32>, namespaces: &BTreeSet<String>) {
    eventually("every process of the run has ended", PATIENCE, || {
        running().all(|pid| !pids.contains(&pid))
    });
    eventually("no namespace of the run is held", PATIENCE, || {
        namespaces_of(&running().collect()).is_disjoint(namespaces)
    });
}
