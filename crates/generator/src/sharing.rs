//! Whether sender and receiver must share a CPU: each then measures the other's
//! work as well (N-12). Known only where both are in sight.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use plumbline_engine::LoadPlan;
use plumbline_record::LoadWarning;
use plumbline_sys::cpu;
use plumbline_sys::waiting::waiting_on;

/// Warnings about CPUs that sender and receiver share. To be called while the
/// receiver runs.
pub fn warnings(plan: &LoadPlan) -> Vec<LoadWarning> {
    let Ok(allowed) = cpu::allowed() else {
        return Vec::new();
    };
    let ours = workers_cpus(plan, &allowed);
    let mut warnings = Vec::new();
    if ours.len() < plan.threads {
        warnings.push(LoadWarning::WorkersShareCpus {
            workers: plan.threads,
            cpus: ours.iter().copied().collect(),
        });
    }
    let theirs = receivers_cpus(plan);
    if theirs
        .iter()
        .any(|cpus| must_share(&ours, plan.threads, cpus))
    {
        warnings.push(LoadWarning::EndsShareCpus {
            cpus: ours.into_iter().collect(),
        });
    }
    warnings
}

/// The CPUs on which the workers may run.
fn workers_cpus(plan: &LoadPlan, allowed: &[usize]) -> BTreeSet<usize> {
    if plan.cpus.is_empty() {
        return allowed.iter().copied().collect();
    }
    let workers = plan.cpus.iter().cycle().take(plan.threads);
    workers.copied().collect()
}

/// Whether a thread that may run on `theirs` only finds CPUs that the workers
/// take up.
fn must_share(ours: &BTreeSet<usize>, workers: usize, theirs: &BTreeSet<usize>) -> bool {
    !theirs.is_empty() && ours.len() <= workers && theirs.is_subset(ours)
}

/// For each thread of the processes that hold the target's socket: its CPUs.
/// Empty when the target is on another machine, or its process is another user's.
fn receivers_cpus(plan: &LoadPlan) -> Vec<BTreeSet<usize>> {
    let waiting = waiting_on("self", plan.target.port(), plan.workload.is_udp());
    let inodes = BTreeSet::from_iter(waiting);
    if inodes.is_empty() || !is_local(plan.target) {
        return Vec::new();
    }
    entries(Path::new("/proc"))
        .filter(|process| holds(process, &inodes))
        .flat_map(|process| entries(&process.join("task")))
        .filter_map(|task| fs::read_to_string(task.join("status")).ok())
        .filter_map(|status| cpus_in(&status))
        .collect()
}

/// Whether an address belongs to this machine: then it can be bound to.
fn is_local(target: SocketAddr) -> bool {
    std::net::UdpSocket::bind((target.ip(), 0)).is_ok()
}

/// Numbered entries of a directory of `/proc`.
fn entries(directory: &Path) -> impl Iterator<Item = std::path::PathBuf> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            let name = entry.file_name();
            name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
        })
        .map(|entry| entry.path())
}

fn holds(process: &Path, inodes: &BTreeSet<u64>) -> bool {
    entries(&process.join("fd")).any(|fd| {
        fs::read_link(fd).is_ok_and(|link| {
            let link = link.to_string_lossy();
            let inode = link
                .strip_prefix("socket:[")
                .and_then(|it| it.strip_suffix(']'));
            inode.is_some_and(|it| it.parse().is_ok_and(|it| inodes.contains(&it)))
        })
    })
}

/// `Cpus_allowed_list` of a status of `/proc`.
fn cpus_in(status: &str) -> Option<BTreeSet<usize>> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(cpu::listed(list).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::{Workload, WorkloadKind};

    use super::*;

    fn set(cpus: &[usize]) -> BTreeSet<usize> {
        cpus.iter().copied().collect()
    }

    #[test]
    fn sharing_is_told_only_where_it_cannot_be_avoided() {
        assert!(must_share(&set(&[0]), 1, &set(&[0])));
        assert!(must_share(&set(&[0, 1]), 2, &set(&[1])));
        assert!(!must_share(&set(&[0]), 1, &set(&[1])));
        assert!(!must_share(&set(&[0]), 1, &set(&[0, 1])));
        assert!(!must_share(&set(&[0, 1]), 1, &set(&[0, 1])));
    }

    #[test]
    fn lists_of_cpus_are_read() {
        let status = "Name:\tx\nCpus_allowed_list:\t0-2,5\nMems_allowed:\t1\n";
        assert_eq!(cpus_in(status), Some(set(&[0, 1, 2, 5])));
        assert_eq!(cpus_in("Name:\tx\n"), None);
    }

    /// The listener is this very process, bound to the CPU that the load names.
    #[test]
    fn a_receiver_on_the_same_cpu_is_found() {
        let cpus = cpu::allowed().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let plan = LoadPlan {
            cpus: vec![cpus[0]],
            ..LoadPlan::new(
                Workload::of_kind(WorkloadKind::Rr),
                listener.local_addr().unwrap(),
            )
        };
        std::thread::spawn(move || {
            cpu::pin_thread(cpus[0]).unwrap();
            let warnings = warnings(&plan);
            let cpus = vec![cpus[0]];
            assert_eq!(
                warnings,
                [LoadWarning::EndsShareCpus { cpus: cpus.clone() }]
            );
            let twice = LoadPlan { threads: 2, ..plan };
            let workers = 2;
            assert_eq!(
                super::warnings(&twice)[0],
                LoadWarning::WorkersShareCpus { workers, cpus }
            );
        })
        .join()
        .unwrap();
    }
}
