//! The machine's part of the fingerprint (C-13).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use plumbline_record::Fingerprint;
use plumbline_sys::cpu::is_guest;
use plumbline_sys::user_mode;

/// Sysctls that change what a network costs.
const SYSCTLS: &[&str] = &[
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.ip_local_port_range",
    "kernel.sched_rt_runtime_us",
];

/// Names the CPU where the kernel itself is a program; the process that started
/// that kernel sets it.
const HOST_CPU: &str = "PLUMBLINE_HOST_CPU";

/// Reads what identifies this machine. What a kernel does not show is left out,
/// never guessed. The target adds the devices of the paths.
pub fn fingerprint() -> Fingerprint {
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    Fingerprint {
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
        kernel_command_line: kernel_command_line(&read("/proc/cmdline").unwrap_or_default()),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu_model: std::env::var(HOST_CPU)
            .ok()
            .or_else(|| cpuinfo_value(&cpuinfo, "model name"))
            .unwrap_or_else(|| "unknown".to_owned()),
        microcode: cpuinfo_value(&cpuinfo, "microcode"),
        cpus: read("/sys/devices/system/cpu/online").map_or(0, |list| number_listed(&list)),
        threads_per_core: read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
            .map(|list| number_listed(&list)),
        hypervisor: hypervisor(&cpuinfo),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        wake_up_limit_us: plumbline_sys::awake::wake_up_limit_us(),
        spinning_cpus: spinning_cpus(),
        tuned: plumbline_tune::standing(&plumbline_tune::Root::of_this_machine()),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_else(|| "unknown".to_owned()),
        clock_read_ns: clock_read_ns(),
        memory_bytes: memory_bytes(&read("/proc/meminfo").unwrap_or_default()),
        irq_time_accounting: irq_time_accounting(),
        sysctls: sysctls(),
        devices: BTreeMap::new(),
        conntrack: conntrack(),
        versions: BTreeMap::new(),
        cni: BTreeMap::new(),
        machine: None,
        others: BTreeMap::new(),
    }
}

fn spinning_cpus() -> Option<u32> {
    let cpus = plumbline_sys::awake::SpinnerClocks::of_all().cpus() as u32;
    (cpus > 0).then_some(cpus)
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

pub(crate) fn cpuinfo_value(cpuinfo: &str, key: &str) -> Option<String> {
    let line = cpuinfo
        .lines()
        .find(|line| line.split(':').next().is_some_and(|k| k.trim() == key))?;
    line.split_once(':')
        .map(|(_, value)| value.trim().to_owned())
}

/// How many CPUs are in a list of the kernel's.
fn number_listed(list: &str) -> u32 {
    plumbline_sys::cpu::listed(list).len() as u32
}

/// The command line without the name of the first program: it affects no
/// packet, and may differ at each start of a kernel that is a program.
pub(crate) fn kernel_command_line(line: &str) -> String {
    let words = line
        .split_whitespace()
        .filter(|word| !word.starts_with("init="));
    words.collect::<Vec<_>>().join(" ")
}

/// What the kernel runs on, unless that is a bare machine.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    if let Some(host) = user_mode::host() {
        return Some(format!("User-mode Linux on {host}"));
    }
    is_guest(cpuinfo).then(|| {
        read("/sys/class/dmi/id/sys_vendor")
            .filter(|v| !v.is_empty())
            .unwrap_or_else(|| "unknown".into())
    })
}

/// Median cost of reading the clock twice in a row, in nanoseconds (L-16).
fn clock_read_ns() -> u64 {
    let mut costs: Vec<u64> = (0..101)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..10 {
                plumbline_sys::clock::now_ns();
            }
            start.elapsed().as_nanos() as u64 / 10
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}

pub(crate) fn memory_bytes(meminfo: &str) -> u64 {
    let kilobytes =
        cpuinfo_value(meminfo, "MemTotal").and_then(|v| v.split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0).saturating_mul(1024)
}

/// Known only where the kernel ships its configuration.
fn irq_time_accounting() -> Option<bool> {
    let release = read("/proc/sys/kernel/osrelease")?;
    let config = read(format!("/boot/config-{release}"))?;
    Some(
        config
            .lines()
            .any(|line| line == "CONFIG_IRQ_TIME_ACCOUNTING=y"),
    )
}

fn sysctls() -> BTreeMap<String, String> {
    SYSCTLS
        .iter()
        .filter_map(|&name| {
            let value = read(format!("/proc/sys/{}", name.replace('.', "/")))?;
            Some((
                name.to_owned(),
                value.split_whitespace().collect::<Vec<_>>().join(" "),
            ))
        })
        .collect()
}

fn conntrack() -> Option<(u64, u64)> {
    let number = |name| {
        read(format!("/proc/sys/net/netfilter/{name}"))?
            .parse()
            .ok()
    };
    Some((number("nf_conntrack_count")?, number("nf_conntrack_max")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_program_is_not_part_of_the_environment() {
        assert_eq!(kernel_command_line("ro init=/tmp/a/init quiet"), "ro quiet");
    }

    #[test]
    fn this_machine_is_identified() {
        let fingerprint = fingerprint();
        assert!(!fingerprint.kernel.is_empty());
        assert!(fingerprint.cpus >= 1);
        assert!(fingerprint.memory_bytes > 0);
        assert!(
            fingerprint.sysctls.contains_key("net.core.rmem_max"),
            "{:?}",
            fingerprint.sysctls
        );
    }
}
