//! What the kernel says of this machine.

use plumbline_record::Fingerprint;
use plumbline_tune::{Shown, TuneError};

use crate::finding::{Certainty, Finding};

/// Where the commands of these remedies are to be run.
const HERE: &str = "this machine";

pub(crate) fn namespaces() -> Finding {
    match plumbline_sys::namespace::can_enter_private() {
        Ok(()) => Finding::good(
            "namespaces",
            "this user may make network namespaces of its own",
        ),
        // The error says the remedy itself.
        Err(error) => Finding::bad("namespaces", "no lab can be built", error.to_string()),
    }
}

/// CPUs that this process may use: its affinity and the quota of its control group
/// count. `None` when neither can be read.
pub(crate) fn usable_cpus() -> Option<u32> {
    let usable = std::thread::available_parallelism().ok()?;
    u32::try_from(usable.get()).ok()
}

/// `usable` CPUs of the machine's.
pub(crate) fn cpus(fingerprint: &Fingerprint, usable: Option<u32>) -> Finding {
    let all = fingerprint.cpus;
    let usable = usable.unwrap_or(all);
    let of_all = if usable < all {
        format!(" of {all}")
    } else {
        String::new()
    };
    let seen = format!(
        "{usable}{of_all} for this process, {}",
        fingerprint.cpu_model
    );
    match usable {
        0..=1 => Finding::bad(
            "CPUs",
            seen,
            "sender and receiver share one CPU; give this process two or more",
        ),
        2..=3 => Finding::note(
            "CPUs",
            seen,
            "with 4 or more, sender, receiver and other programs need not share one",
        ),
        _ => Finding::good("CPUs", seen),
    }
}

pub(crate) fn governor(governor: Option<&str>) -> Finding {
    match governor {
        None => Finding::good(
            "CPU governor",
            "none: this kernel does not control the clock rate",
        ),
        Some("performance") => Finding::good("CPU governor", "performance"),
        Some(other) => Finding::bad(
            "CPU governor",
            format!("{other}: the clock changes while measuring"),
            "as root, `plumbline run --tune` sets it meanwhile; for good:",
        )
        .by(HERE, "cpupower frequency-set -g performance"),
    }
}

/// What `plumbline tune` would set, or has set.
pub(crate) fn tunables(shown: &Result<Shown, TuneError>) -> Finding {
    const WHAT: &str = "tunables";
    let shown = match shown {
        Ok(shown) => shown,
        // The error says the remedy itself.
        Err(error) => return Finding::bad(WHAT, "cannot be put back", error.to_string()),
    };
    let standing = shown.standing.len();
    if standing > 0 {
        return Finding::note(
            WHAT,
            format!("`plumbline tune` has set {standing} files"),
            "if none runs now, it was killed, and they can be put back:",
        )
        .by(HERE, "plumbline tune --restore");
    }
    let proposals = shown.proposals.iter();
    let wanted = proposals.filter(|it| !it.adjustments.is_empty());
    let names: Vec<&str> = wanted.map(|it| it.name).collect();
    if names.is_empty() {
        return Finding::good(WHAT, "`plumbline tune` would set nothing");
    }
    Finding::note(
        WHAT,
        format!("could be set for steadier figures: {}", names.join(", ")),
        "`plumbline tune --show` says how; as root, `run --tune` sets them while a run lasts",
    )
}

pub(crate) fn clock_source(fingerprint: &Fingerprint) -> Finding {
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

pub(crate) fn cpu_accounting(apart: Option<bool>) -> Finding {
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
        )
        .with(Certainty::Unknown),
    }
}

pub(crate) fn conntrack(table: Option<(u64, u64)>) -> Finding {
    match table {
        None => Finding::good("conntrack", "not loaded"),
        Some((count, max)) if count * 5 > max * 4 => Finding::bad(
            "conntrack",
            format!("{count} of {max} entries in use"),
            "above 80 % new connections suffer: let there be more",
        )
        .by(HERE, raise_tracked(max)),
        Some((count, max)) => {
            Finding::good("conntrack", format!("{count} of {max} entries in use"))
        }
    }
}

/// The command that lets a kernel track twice as many connections as `max`.
pub(crate) fn raise_tracked(max: u64) -> String {
    format!("sysctl -w net.netfilter.nf_conntrack_max={}", max * 2)
}

pub(crate) fn open_files() -> Finding {
    match plumbline_sys::cpu::open_file_limit() {
        Ok(limit) if limit < 4096 => Finding::note(
            "open files",
            limit.to_string(),
            "for more connections, in the shell that starts Plumbline:",
        )
        .by(HERE, "ulimit -n 20000"),
        Ok(limit) => Finding::good("open files", limit.to_string()),
        Err(error) => Finding::note("open files", error.to_string(), "ulimit -n shows the limit")
            .with(Certainty::Unknown),
    }
}

/// Of every device that this user sees, whether it merges and splits packets.
pub(crate) fn offloads() -> Finding {
    let Ok(devices) = std::fs::read_dir("/sys/class/net") else {
        return Finding::note("offloads", "no device can be seen", "mount /sys")
            .with(Certainty::Unknown);
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
    let found = Finding::note(
        "offloads",
        format!("GRO or TSO off on {}", without.join(", ")),
        "the lab's devices are its own; between hosts these cost throughput, where the device has \
         them:",
    );
    let on =
        |found: Finding, name: &String| found.by(HERE, format!("ethtool -K {name} gro on tso on"));
    without.iter().fold(found, on)
}

#[cfg(test)]
mod tests {
    use plumbline_tune::Adjustment;

    use super::*;
    use crate::finding::Severity;

    #[test]
    fn every_bad_finding_has_a_remedy() {
        let slow = Fingerprint {
            clock_read_ns: 900,
            cpus: 1,
            ..Fingerprint::default()
        };
        let findings = [
            cpus(&slow, None),
            governor(Some("powersave")),
            clock_source(&slow),
            conntrack(Some((90, 100))),
        ];
        for finding in findings {
            assert_eq!(finding.level, Severity::Bad, "{finding:?}");
            assert!(finding.remedy.is_some_and(|r| !r.is_empty()));
        }
    }

    #[test]
    fn what_a_command_can_set_right_has_one_with_its_values() {
        let full = conntrack(Some((90, 100)));
        let command = "sysctl -w net.netfilter.nf_conntrack_max=200";
        assert_eq!(full.commands[0].command, command);
        assert_eq!(governor(Some("powersave")).commands.len(), 1);
    }

    #[test]
    fn what_a_killed_tune_has_left_is_found() {
        let left = Adjustment {
            tunable: "VM statistics".to_owned(),
            file: "/proc/sys/vm/stat_interval".to_owned(),
            before: "1".to_owned(),
            set: "10".to_owned(),
            owner: None,
        };
        let shown = Shown {
            proposals: Vec::new(),
            standing: vec![left],
        };
        let found = tunables(&Ok(shown));
        assert_eq!(found.level, Severity::Note);
        assert!(found.commands[0].command.contains("--restore"));
    }

    #[test]
    fn cpus_that_others_may_use_only_do_not_count() {
        let many = Fingerprint {
            cpus: 8,
            ..Fingerprint::default()
        };
        assert_eq!(cpus(&many, Some(8)).level, Severity::Good);
        let pinned = cpus(&many, Some(1));
        assert_eq!(pinned.level, Severity::Bad);
        assert!(pinned.evidence.contains("1 of 8"), "{pinned:?}");
    }

    #[test]
    fn what_is_not_there_disturbs_nothing() {
        assert_eq!(governor(None).level, Severity::Good);
        assert_eq!(conntrack(None).level, Severity::Good);
    }

    #[test]
    fn what_the_kernel_does_not_show_is_unknown() {
        assert_eq!(cpu_accounting(None).certainty, Certainty::Unknown);
        assert_eq!(cpu_accounting(Some(true)).certainty, Certainty::Certain);
    }
}
