//! What on this machine will disturb the numbers, each with its remedy.
//! It only looks: nothing is changed.

use std::time::Duration;

use plumbline_agent::Reading;
use plumbline_record::{CpuTime, Fingerprint};
use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// As it should be.
    Good,
    /// Worth knowing; the numbers stand.
    Note,
    /// Numbers suffer, or a run is not possible.
    Bad,
}

/// One thing looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) level: Level,
    pub(crate) finding: String,
    pub(crate) remedy: Option<String>,
}

impl Finding {
    fn good(check: &'static str, finding: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Good,
            finding: finding.into(),
            remedy: None,
        }
    }

    fn note(check: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Note,
            finding: finding.into(),
            remedy: Some(remedy.into()),
        }
    }

    fn bad(check: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            level: Level::Bad,
            ..Self::note(check, finding, remedy)
        }
    }
}

/// How long the machine is watched for load and steal.
const WATCH: Duration = Duration::from_secs(1);

/// Looks at everything. Takes a second, to see load and steal.
pub(crate) fn examine() -> Vec<Finding> {
    let mut findings = vec![namespaces()];
    let fingerprint = plumbline_agent::fingerprint();
    findings.extend([
        cpus(&fingerprint),
        governor(fingerprint.governor.as_deref()),
        clock_source(&fingerprint),
        cpu_accounting(fingerprint.irq_time_accounting),
        conntrack(fingerprint.conntrack),
        open_files(),
        offloads(),
    ]);
    match watch() {
        Ok(time) => findings.extend([other_load(&time), steal(&time)]),
        Err(error) => findings.push(Finding::bad("other load", error, "mount /proc")),
    }
    findings
}

fn watch() -> Result<CpuTime, String> {
    let before = Reading::take().map_err(|e| e.to_string())?;
    std::thread::sleep(WATCH);
    Ok(Reading::take()
        .map_err(|e| e.to_string())?
        .cpu_since(&before))
}

fn namespaces() -> Finding {
    match plumbline_sys::namespace::can_enter_private() {
        Ok(()) => Finding::good(
            "namespaces",
            "this user may make network namespaces of its own",
        ),
        // The error says the remedy itself.
        Err(error) => Finding::bad("namespaces", "no lab can be built", error.to_string()),
    }
}

fn cpus(fingerprint: &Fingerprint) -> Finding {
    let cpus = fingerprint.cpus;
    let seen = format!("{cpus} for this process, {}", fingerprint.cpu_model);
    match cpus {
        0..=1 => Finding::bad(
            "CPUs",
            seen,
            "sender and receiver share one CPU; give this process two or more",
        ),
        2..=3 => Finding::note(
            "CPUs",
            seen,
            "with 4 or more, sender, receiver and the rest do not meet in the tail",
        ),
        _ => Finding::good("CPUs", seen),
    }
}

fn governor(governor: Option<&str>) -> Finding {
    match governor {
        None => Finding::good(
            "CPU governor",
            "none to be seen: the clock is not this kernel's to change",
        ),
        Some("performance") => Finding::good("CPU governor", "performance"),
        Some(other) => Finding::bad(
            "CPU governor",
            format!("{other}: the clock changes while measuring"),
            "cpupower frequency-set -g performance",
        ),
    }
}

fn clock_source(fingerprint: &Fingerprint) -> Finding {
    let seen = format!(
        "{}, {} ns to read",
        fingerprint.clock_source, fingerprint.clock_read_ns
    );
    if fingerprint.clock_read_ns > 200 {
        return Finding::bad(
            "clock source",
            seen,
            "boot with clocksource=tsc if the TSC is stable here",
        );
    }
    Finding::good("clock source", seen)
}

fn cpu_accounting(apart: Option<bool>) -> Finding {
    match apart {
        Some(true) => Finding::good("CPU accounting", "interrupt time is accounted apart"),
        Some(false) => Finding::note(
            "CPU accounting",
            "by ticks: the split of CPU time by context is a sample",
            "totals are exact; for the split use a kernel with CONFIG_IRQ_TIME_ACCOUNTING",
        ),
        None => Finding::note(
            "CPU accounting",
            "this kernel does not show how it was configured",
            "read the split of CPU time by context as a sample; totals are exact",
        ),
    }
}

fn conntrack(table: Option<(u64, u64)>) -> Finding {
    match table {
        None => Finding::good("conntrack", "not loaded"),
        Some((count, max)) if count * 5 > max * 4 => Finding::bad(
            "conntrack",
            format!("{count} of {max} entries in use"),
            "raise net.netfilter.nf_conntrack_max: above 80 % new connections suffer",
        ),
        Some((count, max)) => {
            Finding::good("conntrack", format!("{count} of {max} entries in use"))
        }
    }
}

fn open_files() -> Finding {
    match plumbline_sys::cpu::open_file_limit() {
        Ok(limit) if limit < 4096 => Finding::note(
            "open files",
            limit.to_string(),
            "for more connections raise it: ulimit -n 20000",
        ),
        Ok(limit) => Finding::good("open files", limit.to_string()),
        Err(error) => Finding::note("open files", error.to_string(), "ulimit -n shows the limit"),
    }
}

/// Of every device that this user sees, whether it merges and splits packets.
fn offloads() -> Finding {
    let Ok(devices) = std::fs::read_dir("/sys/class/net") else {
        return Finding::note("offloads", "no device can be seen", "mount /sys");
    };
    let mut without = Vec::new();
    let mut seen = 0;
    for device in devices.flatten() {
        let name = device.file_name().to_string_lossy().into_owned();
        let Ok(features) = plumbline_sys::ethtool::active_features(&name) else {
            continue;
        };
        seen += 1;
        let gro = features.iter().any(|f| f == "rx-gro");
        let tso = features.iter().any(|f| f == "tx-tcp-segmentation");
        if name != "lo" && !(gro && tso) {
            without.push(name);
        }
    }
    if without.is_empty() {
        return Finding::good("offloads", format!("GRO and TSO on, {seen} devices"));
    }
    Finding::note(
        "offloads",
        format!("GRO or TSO off on {}", without.join(", ")),
        "the lab's devices are its own; for two hosts compare with: ethtool -k DEVICE",
    )
}

fn other_load(time: &CpuTime) -> Finding {
    let share = time.busy_ns as f64 / time.capacity_ns.max(1) as f64;
    let seen = format!("{:.1} % of the CPU time in use without us", share * 100.0);
    if share > 0.05 {
        return Finding::bad(
            "other load",
            seen,
            "stop what else runs: trials beside it are not counted",
        );
    }
    Finding::good("other load", seen)
}

fn steal(time: &CpuTime) -> Finding {
    let share = time.steal_ns as f64 / time.capacity_ns.max(1) as f64;
    let seen = format!("{:.1} % taken by the hypervisor", share * 100.0);
    if share > 0.02 {
        return Finding::bad("steal", seen, "use a dedicated machine, or more blocks");
    }
    Finding::good("steal", seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bad_finding_has_a_remedy() {
        let busy = CpuTime {
            capacity_ns: 100,
            busy_ns: 30,
            steal_ns: 10,
            ..CpuTime::default()
        };
        let slow = Fingerprint {
            clock_read_ns: 900,
            cpus: 1,
            ..Fingerprint::default()
        };
        let findings = [
            cpus(&slow),
            governor(Some("powersave")),
            clock_source(&slow),
            conntrack(Some((90, 100))),
            other_load(&busy),
            steal(&busy),
        ];
        for finding in findings {
            assert_eq!(finding.level, Level::Bad, "{finding:?}");
            assert!(finding.remedy.is_some_and(|r| !r.is_empty()));
        }
    }

    #[test]
    fn a_quiet_machine_is_good() {
        let quiet = CpuTime {
            capacity_ns: 1000,
            busy_ns: 5,
            ..CpuTime::default()
        };
        assert_eq!(other_load(&quiet).level, Level::Good);
        assert_eq!(steal(&quiet).level, Level::Good);
        assert_eq!(governor(None).level, Level::Good);
        assert_eq!(conntrack(None).level, Level::Good);
    }
}
