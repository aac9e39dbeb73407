//! What can be set, as a table: what the authors of studies set by hand, or by the profiles
//! of `tuned`. docs/tune.md says what is left out, and why.

use plumbline_sys::cpu;

use crate::root::Root;

/// Something of a machine that is set for as long as a command runs.
pub(crate) struct Tunable {
    /// What it is.
    pub(crate) name: &'static str,
    files: Files,
    /// What a file is to hold; `None` where it is best left as it is.
    pub(crate) wanted: fn(&Root, &Candidate) -> Option<String>,
    /// Why figures become steadier by it.
    pub(crate) why: &'static str,
    /// What is missing where there is no such file.
    pub(crate) lacks: &'static str,
}

/// Which files a tunable has.
enum Files {
    /// By their names.
    Named(&'static str),
    /// Those of the queues of each physical network device.
    OfQueues(&'static str),
    /// Those of the interrupts of each physical network device.
    OfInterrupts,
}

/// A file of a tunable.
pub(crate) struct Candidate {
    pub(crate) file: String,
    /// What it holds.
    pub(crate) now: String,
    /// What shows that it is still the same thing's.
    pub(crate) owner: Option<String>,
    /// Its place among the files of its device, and their number.
    index: usize,
    of: usize,
    /// The CPUs that are near its device.
    cpus: Vec<usize>,
}

/// A state that an idle CPU takes longer to leave is not entered, microseconds.
const SLOW_US: u64 = 2;
/// Flows that RFS follows, as the kernel's documentation proposes.
const FLOWS: usize = 32_768;

pub(crate) const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "CPU governor",
        files: Files::Named("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
        wanted: |root, it| {
            let offered = it.beside(root, "scaling_available_governors")?;
            let mut offered = offered.split_whitespace();
            offered.find(|it| *it == "performance").map(str::to_owned)
        },
        why: "the clock rate does not follow the load",
        lacks: "cpufreq: neither this kernel nor the hypervisor lets the clock rate be set",
    },
    Tunable {
        name: "C-states",
        files: Files::Named("/sys/devices/system/cpu/cpu*/cpuidle/state*/disable"),
        wanted: |root, it| {
            let us: u64 = it.beside(root, "latency")?.parse().ok()?;
            (us > SLOW_US).then(|| "1".to_owned())
        },
        why: "an idle CPU is back within 2 µs, however long it was idle",
        lacks: "cpuidle: this kernel has one idle state, or leaves them to the hypervisor",
    },
    Tunable {
        name: "interrupts",
        files: Files::OfInterrupts,
        wanted: |_, it| {
            let is_pinned = cpu::listed(&it.now).len() < 2;
            let cpu = it.cpus.get(it.index % it.cpus.len().max(1))?;
            (!is_pinned).then(|| cpu.to_string())
        },
        why: "each interrupt of a network device stays on one CPU",
        lacks: "a network device with interrupts of its own (MSI)",
    },
    Tunable {
        name: "RPS",
        files: Files::OfQueues("rx-*/rps_cpus"),
        wanted: |_, it| {
            let too_few = it.of < it.cpus.len();
            (too_few && is_empty(&it.now)).then(|| mask(&it.now, &it.cpus))
        },
        why: "a device with fewer queues than CPUs does not leave all packets to a few CPUs",
        lacks: "a physical network device, or a kernel with CONFIG_RPS",
    },
    Tunable {
        name: "RFS",
        files: Files::OfQueues("rx-*/rps_flow_cnt"),
        wanted: |_, it| {
            let flows = FLOWS / it.of.next_power_of_two();
            (it.cpus.len() > 1 && it.now == "0").then(|| flows.to_string())
        },
        why: "packets are handled where their program runs, not where a hash puts them",
        lacks: "a physical network device, or a kernel with CONFIG_RPS",
    },
    Tunable {
        name: "RFS table",
        files: Files::Named("/proc/sys/net/core/rps_sock_flow_entries"),
        wanted: |root, it| {
            let has_queues = !queues(root, "rx-*/rps_flow_cnt").is_empty();
            (has_queues && it.cpus.len() > 1 && it.now == "0").then(|| FLOWS.to_string())
        },
        why: "RFS needs to know where programs run",
        lacks: "a kernel with CONFIG_RPS, or the machine's own network namespace",
    },
    Tunable {
        name: "XPS",
        files: Files::OfQueues("tx-*/xps_cpus"),
        wanted: |_, it| {
            let own = it.cpus.iter().filter(|&cpu| cpu % it.of == it.index);
            let own: Vec<usize> = own.copied().collect();
            (it.of > 1 && is_empty(&it.now)).then(|| mask(&it.now, &own))
        },
        why: "each CPU sends by a queue of its own, and not by one that a hash picks",
        lacks: "a physical network device with several queues to send, or CONFIG_XPS",
    },
    Tunable {
        name: "NUMA balancing",
        files: Files::Named("/proc/sys/kernel/numa_balancing"),
        wanted: |_, _| Some("0".to_owned()),
        why: "no page faults only to see which CPU uses which memory",
        lacks: "a kernel with CONFIG_NUMA_BALANCING",
    },
    Tunable {
        name: "NMI watchdog",
        files: Files::Named("/proc/sys/kernel/nmi_watchdog"),
        wanted: |_, _| Some("0".to_owned()),
        why: "no interrupts that look for CPUs that hang",
        lacks: "a kernel with CONFIG_HARDLOCKUP_DETECTOR",
    },
    Tunable {
        name: "timer migration",
        files: Files::Named("/proc/sys/kernel/timer_migration"),
        wanted: |_, _| Some("0".to_owned()),
        why: "a timer acts on the CPU that set it, and wakes no other",
        lacks: "a kernel with CONFIG_NO_HZ_COMMON and CONFIG_SMP",
    },
    Tunable {
        name: "VM statistics",
        files: Files::Named("/proc/sys/vm/stat_interval"),
        wanted: |_, it| {
            let seconds: u64 = it.now.parse().ok()?;
            (seconds < 10).then(|| "10".to_owned())
        },
        why: "CPUs add up counters of memory every 10 s, not every second",
        lacks: "a kernel with CONFIG_SMP",
    },
];

impl Tunable {
    /// Its files that can be read.
    pub(crate) fn found(&self, root: &Root) -> Vec<Candidate> {
        match self.files {
            Files::Named(pattern) => found(root, root.matching(pattern), &online(root)),
            Files::OfQueues(pattern) => queues(root, pattern),
            Files::OfInterrupts => {
                let devices = devices(root).into_iter();
                devices.flat_map(|it| interrupts(root, &it)).collect()
            }
        }
    }
}

impl Candidate {
    /// What a file in the same directory holds.
    fn beside(&self, root: &Root, name: &str) -> Option<String> {
        let (directory, _) = self.file.rsplit_once('/')?;
        root.read(&format!("{directory}/{name}")).ok()
    }
}

/// Those of the files that can be read.
fn found(root: &Root, files: Vec<String>, cpus: &[usize]) -> Vec<Candidate> {
    let of = files.len();
    let look = |(index, file): (usize, String)| {
        let now = root.read(&file).ok()?;
        Some(Candidate {
            file,
            now,
            owner: None,
            index,
            of,
            cpus: cpus.to_vec(),
        })
    };
    files.into_iter().enumerate().filter_map(look).collect()
}

/// The directories of the network devices that stand for hardware, or for a hypervisor's.
fn devices(root: &Root) -> Vec<String> {
    let links = root.matching("/sys/class/net/*/device");
    let devices = links.iter().filter_map(|it| it.strip_suffix("/device"));
    devices.map(str::to_owned).collect()
}

fn queues(root: &Root, pattern: &str) -> Vec<Candidate> {
    let online = online(root);
    let of_device = |device: String| {
        let files = root.matching(&format!("{device}/queues/{pattern}"));
        found(root, files, &online)
    };
    devices(root).into_iter().flat_map(of_device).collect()
}

/// A virtio device has none itself, but the one that it is a part of.
fn interrupts(root: &Root, device: &str) -> Vec<Candidate> {
    let places = [format!("{device}/device"), format!("{device}/device/..")];
    let has_any = |place: &&String| root.exists(&format!("{place}/msi_irqs"));
    let Some(place) = places.iter().find(has_any) else {
        return Vec::new();
    };
    let files = root.matching(&format!("{place}/msi_irqs/*"));
    let numbers = files.iter().filter_map(|it| it.rsplit('/').next());
    let files = numbers.map(|number| format!("/proc/irq/{number}/smp_affinity_list"));
    let online = online(root);
    let near = root.read(&format!("{place}/local_cpulist"));
    let mut near = cpu::listed(&near.unwrap_or_default());
    near.retain(|cpu| online.contains(cpu));
    let cpus = if near.is_empty() { online } else { near };
    let mut found = found(root, files.collect(), &cpus);
    for one in &mut found {
        one.owner = action(root, &one.file);
    }
    found
}

/// Who an interrupt is for: the kernel has a directory of that name beside its settings.
fn action(root: &Root, file: &str) -> Option<String> {
    let (directory, _) = file.rsplit_once('/')?;
    let inside = root.matching(&format!("{directory}/*"));
    inside.into_iter().find(|it| root.path(it).is_dir())
}

fn online(root: &Root) -> Vec<usize> {
    let list = root.read("/sys/devices/system/cpu/online");
    cpu::listed(&list.unwrap_or_default())
}

fn is_empty(mask: &str) -> bool {
    mask.chars().all(|it| it == '0' || it == ',')
}

/// A set of CPUs as the kernel writes it, with as many digits as in `like`: so that what
/// is read later can be compared with what was written.
fn mask(like: &str, cpus: &[usize]) -> String {
    let group = |(number, digits): (usize, &str)| {
        let inside = cpus.iter().filter(|&cpu| cpu / 32 == number);
        let bits = inside.fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
        format!("{bits:0width$x}", width = digits.len())
    };
    let mut groups: Vec<String> = like.rsplit(',').enumerate().map(group).collect();
    groups.reverse();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_cpus_is_written_as_the_kernel_does() {
        assert_eq!(mask("0", &[0, 1]), "3");
        assert_eq!(mask("00", &[0, 7]), "81");
        assert_eq!(mask("00000000,00000000", &[1, 32]), "00000001,00000002");
        assert_eq!(mask("f,00000000", &[33]), "2,00000000");
        assert!(is_empty("00000000,00000000") && !is_empty("00000000,00000002"));
    }
}
