//! The environment of a run (C-13).

use plumbline_record::{DeviceFingerprint, Fingerprint, Run};

use crate::figures::{Table, head};
use crate::{describe, number};

/// The machine and the versions, one fact in each row.
pub(super) fn table(run: &Run) -> Table {
    let fingerprint = &run.fingerprint;
    let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "not known".to_owned());
    let mut facts: Vec<(String, String)> = [
        ("command", run.provenance.command.join(" ")),
        ("Plumbline", run.provenance.version.clone()),
        ("kernel", fingerprint.kernel.clone()),
        (
            "kernel command line",
            fingerprint.kernel_command_line.clone(),
        ),
        ("architecture", fingerprint.architecture.clone()),
        ("CPU", fingerprint.cpu_model.clone()),
        ("microcode", optional(&fingerprint.microcode)),
        ("CPUs online", fingerprint.cpus.to_string()),
        (
            "threads per core",
            optional(
                &fingerprint
                    .threads_per_core
                    .map(|threads| threads.to_string()),
            ),
        ),
        ("hypervisor", hypervisor(fingerprint)),
        ("CPU governor", optional(&fingerprint.governor)),
        ("clock source", fingerprint.clock_source.clone()),
        (
            "reading the clock",
            number::duration(fingerprint.clock_read_ns as f64),
        ),
        (
            "the generator's own round trip (p50, p99)",
            run.provenance.floor.map_or_else(
                || "not measured".to_owned(),
                |floor| {
                    format!(
                        "{}, {}",
                        number::duration(floor.p50_ns as f64),
                        number::duration(floor.p99_ns as f64)
                    )
                },
            ),
        ),
        ("memory", number::bytes(fingerprint.memory_bytes as f64)),
        (
            "interrupt time accounted apart",
            optional(&fingerprint.irq_time_accounting.map(|is| is.to_string())),
        ),
        (
            "conntrack entries",
            fingerprint.conntrack.map_or_else(
                || "no table".to_owned(),
                |(used, size)| format!("{used} of {size}"),
            ),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    facts.extend(fingerprint.sysctls.clone());
    facts.extend(fingerprint.versions.clone());
    for (network, list) in &fingerprint.cni {
        let plugins = list.plugins.iter();
        facts.extend(plugins.map(|one| (format!("{network} {}", one.kind), describe::plugin(one))));
    }
    for (name, other) in &fingerprint.others {
        facts.extend(machine(name, other));
    }
    let row =
        |(name, value): (String, String)| vec![describe::clean(&name), describe::clean(&value)];
    Table {
        head: head(["", ""]),
        rows: facts.into_iter().map(row).collect(),
    }
}

/// Another machine that took part, in short: `run.json` has all of it.
fn machine(name: &str, other: &Fingerprint) -> [(String, String); 4] {
    [
        ("kernel", other.kernel.clone()),
        ("CPU", other.cpu_model.clone()),
        ("CPUs online", other.cpus.to_string()),
        ("hypervisor", hypervisor(other)),
    ]
    .map(|(fact, value)| (format!("{name}: {fact}"), value))
}

fn hypervisor(fingerprint: &Fingerprint) -> String {
    let seen = fingerprint.hypervisor.clone();
    seen.unwrap_or_else(|| "none seen".to_owned())
}

/// The device's, and that of the routes by it where they have another.
fn mtu(device: &DeviceFingerprint) -> String {
    match device.route_mtu {
        Some(own) if own != device.mtu => format!("{}, routes {own}", device.mtu),
        _ => device.mtu.to_string(),
    }
}

/// The devices of each network's path.
pub(super) fn devices(run: &Run) -> Table {
    let devices = run.fingerprint.devices.iter();
    let rows = devices.flat_map(|(network, devices)| {
        devices.iter().map(|device| {
            let cells = [
                network.clone(),
                device.namespace.clone(),
                device.device.clone(),
                device.driver.clone(),
                mtu(device),
                device.qdisc.clone(),
                device.offloads.join(", "),
            ];
            cells.map(|cell| describe::clean(&cell)).into()
        })
    });
    Table {
        head: head([
            "network", "where", "device", "driver", "MTU", "qdisc", "offloads",
        ]),
        rows: rows.collect(),
    }
}
