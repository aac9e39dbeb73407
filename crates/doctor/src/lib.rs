//! What on this machine will disturb the numbers, and what is wrong with a path, each with
//! its remedy. It only looks: nothing is changed, but for what a trial of offloads puts
//! back, and what remedies that are tried in a lab do there.

mod finding;
mod machine;
mod maps;
mod path;
mod watch;

use plumbline_tune::{Root, Shown};

pub use finding::{Certainty, Finding, RemedyCommand, Severity, Tried};
pub use path::{PathTrials, examine_path};

/// Looks at everything. Takes a second, to see load and steal. Call it while
/// the process has no thread and its own namespaces are the machine's: it tries
/// whether namespaces may be made, and lists the devices that are seen.
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![machine::namespaces()];
    let fingerprint = plumbline_agent::fingerprint();
    findings.extend([
        machine::cpus(&fingerprint, machine::usable_cpus()),
        machine::governor(fingerprint.governor.as_deref()),
        machine::clock_source(&fingerprint),
        machine::cpu_accounting(fingerprint.irq_time_accounting),
        machine::conntrack(fingerprint.conntrack),
        maps::judge(plumbline_sys::bpf::network_maps()),
        machine::open_files(),
        machine::offloads(),
        machine::tunables(&Shown::of(&Root::of_this_machine())),
    ]);
    findings.extend(watch::watch());
    findings
}
