//! A machine that was made: every file of the table, below a directory.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Four CPUs; `eth0` with four queues and interrupts, `eth1` a virtio device with one queue,
/// `lo` without hardware.
pub(crate) fn machine(directory: &Path) {
    let write = |name: &str, value: &str| put(directory, name, value);
    fs::create_dir_all(directory.join("run")).unwrap();
    write("proc/cpuinfo", "flags\t\t: fpu sse2");
    write("proc/sys/kernel/random/boot_id", "first");
    write("proc/sys/kernel/numa_balancing", "1");
    write("proc/sys/kernel/nmi_watchdog", "1");
    write("proc/sys/kernel/timer_migration", "1");
    write("proc/sys/vm/stat_interval", "1");
    write("proc/sys/net/core/rps_sock_flow_entries", "0");
    write("sys/devices/system/cpu/online", "0-3");
    for cpu in 0..4 {
        let cpu = format!("sys/devices/system/cpu/cpu{cpu}");
        let offered = format!("{cpu}/cpufreq/scaling_available_governors");
        write(&offered, "performance powersave");
        write(&format!("{cpu}/cpufreq/scaling_governor"), "powersave");
        for (state, latency) in ["0", "2", "133"].iter().enumerate() {
            write(&format!("{cpu}/cpuidle/state{state}/latency"), latency);
            write(&format!("{cpu}/cpuidle/state{state}/disable"), "0");
        }
    }
    let device = |name: &str, queues: usize| {
        for queue in 0..queues {
            let queues = format!("sys/class/net/{name}/queues");
            write(&format!("{queues}/rx-{queue}/rps_cpus"), "0");
            write(&format!("{queues}/rx-{queue}/rps_flow_cnt"), "0");
            if queue > 0 || name == "eth0" {
                write(&format!("{queues}/tx-{queue}/xps_cpus"), "0");
            }
        }
    };
    device("eth0", 4);
    device("eth1", 1);
    device("lo", 1);
    let interrupt = |place: &str, number: usize, action: &str| {
        write(&format!("{place}/msi_irqs/{number}"), "msix");
        write(&format!("proc/irq/{number}/smp_affinity_list"), "0-3");
        fs::create_dir(directory.join(format!("proc/irq/{number}/{action}"))).unwrap();
    };
    for queue in 0..4 {
        let action = format!("eth0-TxRx-{queue}");
        interrupt("sys/class/net/eth0/device", 24 + queue, &action);
    }
    write("sys/class/net/eth0/device/local_cpulist", "2-3");
    fs::create_dir_all(directory.join("sys/devices/pci/virtio1")).unwrap();
    interrupt("sys/devices/pci", 30, "virtio1-input.0");
    let virtio = "../../../devices/pci/virtio1";
    symlink(virtio, directory.join("sys/class/net/eth1/device")).unwrap();
}

/// Writes a file of the machine.
pub(crate) fn put(directory: &Path, name: &str, value: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{value}\n")).unwrap();
}

/// What every file below `/proc` and `/sys` holds.
pub(crate) fn contents(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.join("proc"), directory.join("sys")];
    while let Some(inside) = open.pop() {
        for entry in fs::read_dir(inside).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                let text = fs::read_to_string(entry.path()).unwrap();
                found.insert(entry.path(), text.trim_end().to_owned());
            }
        }
    }
    found
}

/// How many files differ.
pub(crate) fn differing(
    one: &BTreeMap<PathBuf, String>,
    other: &BTreeMap<PathBuf, String>,
) -> usize {
    assert!(one.keys().eq(other.keys()), "files came or went");
    let pairs = one.values().zip(other.values());
    pairs.filter(|(one, other)| one != other).count()
}
