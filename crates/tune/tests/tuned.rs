//! What is set on a machine that was made, and what becomes of it.

mod made;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use plumbline_tune::{Root, Shown, TuneError, restore, standing, while_tuned};
use tempfile::TempDir;

fn machine() -> (TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    made::machine(directory.path());
    let root = Root::at(directory.path());
    (directory, root)
}

fn read(directory: &TempDir, name: &str) -> String {
    let text = fs::read_to_string(directory.path().join(name)).unwrap();
    text.trim_end().to_owned()
}

/// Does something while it is tuned; gives what was told.
fn tuned(root: &Root, work: impl FnOnce()) -> Vec<String> {
    let mut told = Vec::new();
    while_tuned(root, &mut |line| told.push(line.to_owned()), work).unwrap();
    told
}

/// Leaves it as a killed process does: what is lost with a process is nothing on disk.
fn killed(directory: &TempDir, root: &Root) {
    let journal = directory.path().join("run/plumbline/tune.journal");
    let mut kept = (Vec::new(), BTreeMap::new());
    tuned(root, || {
        kept = (
            fs::read(&journal).unwrap(),
            made::contents(directory.path()),
        );
    });
    fs::write(journal, kept.0).unwrap();
    for (path, text) in kept.1 {
        fs::write(path, text).unwrap();
    }
}

fn never() {
    panic!("it was done");
}

fn sentences(root: &Root) -> Vec<String> {
    let mut told = Vec::new();
    restore(root, &mut |line| told.push(line.to_owned())).unwrap();
    told
}

#[test]
fn every_row_of_the_table_is_set_and_put_back() {
    let (directory, root) = machine();
    let before = made::contents(directory.path());
    let cpu3 = "sys/devices/system/cpu/cpu3";
    tuned(&root, || {
        for (file, wanted) in [
            (&*format!("{cpu3}/cpufreq/scaling_governor"), "performance"),
            (&format!("{cpu3}/cpuidle/state2/disable"), "1"),
            (&format!("{cpu3}/cpuidle/state1/disable"), "0"),
            // Near the device are CPUs 2 and 3.
            ("proc/irq/24/smp_affinity_list", "2"),
            ("proc/irq/25/smp_affinity_list", "3"),
            ("proc/irq/26/smp_affinity_list", "2"),
            ("proc/irq/30/smp_affinity_list", "0"),
            // As many queues as CPUs, or fewer.
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0"),
            ("sys/class/net/eth1/queues/rx-0/rps_cpus", "f"),
            ("sys/class/net/lo/queues/rx-0/rps_cpus", "0"),
            ("sys/class/net/eth0/queues/rx-3/rps_flow_cnt", "8192"),
            ("sys/class/net/eth1/queues/rx-0/rps_flow_cnt", "32768"),
            ("proc/sys/net/core/rps_sock_flow_entries", "32768"),
            ("sys/class/net/eth0/queues/tx-2/xps_cpus", "4"),
            ("proc/sys/kernel/numa_balancing", "0"),
            ("proc/sys/kernel/nmi_watchdog", "0"),
            ("proc/sys/kernel/timer_migration", "0"),
            ("proc/sys/vm/stat_interval", "10"),
        ] {
            assert_eq!(read(&directory, file), wanted, "{file}");
        }
        let names = standing(&root);
        assert_eq!(names.len(), 11, "{names:?}");
        assert!(names.contains(&"C-states".to_owned()));
    });
    assert_eq!(made::contents(directory.path()), before);
    assert!(standing(&root).is_empty());
}

#[test]
fn it_says_what_would_be_set_and_sets_nothing() {
    let (directory, root) = machine();
    fs::remove_dir_all(directory.path().join("sys/devices/system/cpu/cpu0/cpufreq")).unwrap();
    fs::remove_file(directory.path().join("proc/sys/kernel/nmi_watchdog")).unwrap();
    made::put(directory.path(), "proc/sys/kernel/numa_balancing", "0");
    let before = made::contents(directory.path());
    let shown = Shown::of(&root).unwrap();
    let text = shown.text();
    for line in [
        "CPU governor     powersave → performance  \
         /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor and 2 more: the clock rate",
        "interrupts       0-3 → 2  /proc/irq/24/smp_affinity_list and 1 more: each",
        "NMI watchdog     cannot be set here; lacks a kernel with CONFIG_HARDLOCKUP_DETECTOR",
        "NUMA balancing   nothing to set",
        "idle CPUs        cannot be set here; lacks a hypervisor",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
    assert_eq!(made::contents(directory.path()), before);
    assert!(!directory.path().join("run/plumbline").exists());
}

#[test]
fn what_somebody_has_set_meanwhile_stays_and_is_told() {
    let (directory, root) = machine();
    let file = "proc/sys/vm/stat_interval";
    let told = tuned(&root, || made::put(directory.path(), file, "4"));
    assert_eq!(read(&directory, file), "4");
    let left: Vec<_> = told
        .iter()
        .filter(|it| it.contains("left as it is"))
        .collect();
    assert_eq!(left.len(), 1, "{told:?}");
    assert!(
        left[0].contains("/proc/sys/vm/stat_interval holds 4"),
        "{left:?}"
    );
    assert_eq!(read(&directory, "proc/sys/kernel/numa_balancing"), "1");
    assert_eq!(
        sentences(&root),
        ["nothing is left of a killed `plumbline tune`"]
    );
}

thread_local! {
    /// The machine on which somebody else sets a file.
    static MEDDLED_WITH: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Somebody else sets a file, once, when the journal is there and nothing is set yet.
fn meddle() {
    let has_journal = |it: &mut PathBuf| it.join("run/plumbline/tune.journal").exists();
    if let Some(machine) = MEDDLED_WITH.with_borrow_mut(|it| it.take_if(has_journal)) {
        made::put(&machine, "proc/sys/vm/stat_interval", "4");
    }
}

/// After the machine was looked at, and before the turn of that file.
#[test]
fn what_somebody_has_just_set_is_told_and_left() {
    let (directory, root) = machine();
    let root = root.with_step(meddle);
    let file = "proc/sys/vm/stat_interval";
    MEDDLED_WITH.set(Some(directory.path().to_owned()));
    let told = tuned(&root, || assert_eq!(read(&directory, file), "4"));
    assert_eq!(read(&directory, file), "4");
    for said in [
        "not set: /proc/sys/vm/stat_interval: somebody has just set 4",
        "left as it is: /proc/sys/vm/stat_interval holds 4",
    ] {
        let times = told.iter().filter(|it| it.starts_with(said)).count();
        assert_eq!(times, 1, "{said}: {told:?}");
    }
    assert_eq!(read(&directory, "proc/sys/kernel/numa_balancing"), "1");
}

#[test]
fn the_next_one_puts_back_first_what_a_killed_one_has_left() {
    let (directory, root) = machine();
    let before = made::contents(directory.path());
    killed(&directory, &root);
    assert!(!standing(&root).is_empty());
    assert!(Shown::of(&root).unwrap().text().contains("--restore"));
    let told = tuned(&root, || {});
    assert!(told[0].starts_with("put back"), "{told:?}");
    assert_eq!(
        made::differing(&made::contents(directory.path()), &before),
        0
    );
}

#[test]
fn what_was_left_before_the_machine_was_started_anew_is_forgotten() {
    let (directory, root) = machine();
    killed(&directory, &root);
    made::put(directory.path(), "proc/sys/kernel/random/boot_id", "second");
    let now = made::contents(directory.path());
    assert!(standing(&root).is_empty());
    assert_eq!(
        sentences(&root),
        ["nothing is left of a killed `plumbline tune`"]
    );
    assert_eq!(made::contents(directory.path()), now);
}

/// Its number may be that of another device's interrupt.
#[test]
fn the_interrupt_of_a_device_that_has_gone_is_left_alone() {
    let (directory, root) = machine();
    killed(&directory, &root);
    let irq = directory.path().join("proc/irq/24");
    fs::rename(irq.join("eth0-TxRx-0"), irq.join("nvme0q1")).unwrap();
    fs::remove_dir_all(directory.path().join("sys/class/net/eth1")).unwrap();
    sentences(&root);
    assert_eq!(read(&directory, "proc/irq/24/smp_affinity_list"), "2");
    assert_eq!(read(&directory, "proc/irq/25/smp_affinity_list"), "0-3");
}

/// No user may write this file; and this kernel's version is not the one that is wanted.
#[test]
fn what_the_kernel_refuses_is_told_and_the_rest_is_set() {
    let (directory, root) = machine();
    let file = directory.path().join("proc/sys/kernel/numa_balancing");
    fs::remove_file(&file).unwrap();
    symlink("/proc/sys/kernel/osrelease", &file).unwrap();
    let told = tuned(&root, || {
        assert_eq!(read(&directory, "proc/sys/vm/stat_interval"), "10");
        assert!(!standing(&root).contains(&"NUMA balancing".to_owned()));
    });
    let refused = "not set: /proc/sys/kernel/numa_balancing: ";
    assert!(told.iter().any(|it| it.starts_with(refused)), "{told:?}");
    assert!(
        !told.iter().any(|it| it.contains("left as it is")),
        "{told:?}"
    );
}

#[test]
fn where_nothing_can_be_set_nothing_is_done() {
    let directory = tempfile::tempdir().unwrap();
    made::put(directory.path(), "proc/sys/kernel/random/boot_id", "first");
    let file = directory.path().join("proc/sys/kernel/numa_balancing");
    symlink("/proc/sys/kernel/osrelease", file).unwrap();
    let root = Root::at(directory.path());
    let refused = while_tuned(&root, &mut |_| {}, never);
    assert!(
        matches!(refused, Err(TuneError::Refused { .. })),
        "{refused:?}"
    );
    assert!(standing(&root).is_empty());
}

#[test]
fn a_machine_has_one_owner_at_a_time() {
    let (_directory, root) = machine();
    tuned(&root, || {
        let second = while_tuned(&root, &mut |_| {}, never);
        assert!(matches!(second, Err(TuneError::InUse)), "{second:?}");
        assert!(matches!(restore(&root, &mut |_| {}), Err(TuneError::InUse)));
    });
}

#[test]
fn nothing_is_put_back_by_a_journal_that_others_can_write() {
    let (directory, root) = machine();
    killed(&directory, &root);
    let refused = |name: &str, mode: u32| {
        let path = directory.path().join(name);
        let was = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let before = made::contents(directory.path());
        let refused = restore(&root, &mut |_| {});
        assert!(
            matches!(refused, Err(TuneError::Foreign { .. })),
            "{refused:?}"
        );
        assert_eq!(made::contents(directory.path()), before);
        fs::set_permissions(&path, was).unwrap();
    };
    refused("run/plumbline", 0o777);
    refused("run/plumbline/tune.journal", 0o666);
    fs::write(directory.path().join("run/plumbline/tune.journal"), "{}").unwrap();
    let unreadable = restore(&root, &mut |_| {});
    assert!(
        matches!(unreadable, Err(TuneError::Unreadable { .. })),
        "{unreadable:?}"
    );
    assert!(standing(&root).is_empty());
}

#[test]
fn a_machine_without_anything_to_set_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::at(directory.path());
    let mut done = false;
    let told = tuned(&root, || done = true);
    assert!(done);
    assert_eq!(told, ["tuned: there is nothing to set on this machine"]);
    assert!(standing(&root).is_empty());
}
