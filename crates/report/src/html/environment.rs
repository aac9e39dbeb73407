//! The environment of a run (C-13).

use plumbline_record::{DeviceFingerprint, Fingerprint, Run};

use crate::figures::{Table, head};
use crate::{describe, number};

/// The machine and the versions, one fact in each row.
pub(super) fn table(run: &Run) -> Table {
    let of = &run.fingerprint;
    let known = |text: Option<String>| text.unwrap_or_else(|| "not known".to_owned());
    let floor = run.provenance.floor.map(|floor| {
        let duration = |ns: u64| number::duration(ns as f64);
        format!("{}, {}", duration(floor.p50_ns), duration(floor.p99_ns))
    });
    let conntrack = of.conntrack.map(|(used, size)| format!("{used} of {size}"));
    let mut facts: Vec<(String, String)> = [
        ("command", run.provenance.command.join(" ")),
        ("Plumbline", run.provenance.version.clone()),
        ("kernel", of.kernel.clone()),
        ("kernel command line", of.kernel_command_line.clone()),
        ("architecture", of.architecture.clone()),
        ("CPU", of.cpu_model.clone()),
        ("microcode", known(of.microcode.clone())),
        ("CPUs online", of.cpus.to_string()),
        (
            "threads per core",
            known(of.threads_per_core.map(|it| it.to_string())),
        ),
        ("hypervisor", hypervisor(of)),
        ("CPU governor", known(of.governor.clone())),
        ("clock source", of.clock_source.clone()),
        (
            "reading the clock",
            number::duration(of.clock_read_ns as f64),
        ),
        (
            "the generator's own round trip (p50, p99)",
            floor.unwrap_or_else(|| "not measured".to_owned()),
        ),
        ("memory", number::bytes(of.memory_bytes as f64)),
        (
            "interrupt time accounted apart",
            known(of.irq_time_accounting.map(|it| it.to_string())),
        ),
        (
            "conntrack entries",
            conntrack.unwrap_or_else(|| "no table".to_owned()),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let limit = of.wake_up_limit_us.map(|us| match us {
        0 => "at once: they do not halt".to_owned(),
        us => format!("within {}", number::duration(f64::from(us) * 1e3)),
    });
    let spinning = of.spinning_cpus;
    let limit =
        limit.or(spinning.map(|cpus| format!("at once: a process spins on {cpus} of them")));
    facts.extend(limit.map(|it| ("idle CPUs are back".to_owned(), it)));
    let tuned = (!of.tuned.is_empty()).then(|| of.tuned.join(", "));
    facts.extend(tuned.map(|it| ("set by `plumbline tune`".to_owned(), it)));
    facts.extend(of.sysctls.clone());
    facts.extend(of.versions.clone());
    for (network, list) in &of.cni {
        let plugins = list.plugins.iter();
        facts.extend(plugins.map(|one| (format!("{network} {}", one.kind), describe::plugin(one))));
    }
    for (name, other) in &of.others {
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
