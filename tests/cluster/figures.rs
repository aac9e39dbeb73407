//! What a run in a cluster costs besides the load itself.

use std::time::{Duration, Instant};

use super::{Cluster, cluster, read, short, statuses};
use crate::world::{eventually, run_directory, trials};

/// Seconds from the command to the first trial, with the image on the nodes.
const TO_FIRST_TRIAL_S: f64 = 10.0;
/// Memory of the controller while a trial runs.
const MEMORY_BYTES: u64 = 20_000_000;
/// Percent of a core that the controller takes while a trial runs.
const CPU_PERCENT: f64 = 1.0;
/// What a trial takes beyond its warm-up and its window.
const BESIDE_TRIAL_S: f64 = 1.0;

/// What a run costs.
#[derive(Debug)]
struct Figures {
    to_first_trial_s: f64,
    memory_bytes: u64,
    cpu_percent: f64,
    /// Of all trials, in order.
    beside_trials_s: Vec<f64>,
}

impl Figures {
    fn are_small(&self) -> bool {
        self.to_first_trial_s <= TO_FIRST_TRIAL_S
            && self.memory_bytes <= MEMORY_BYTES
            && self.cpu_percent <= CPU_PERCENT
            && self.beside_trials_s[self.beside_trials_s.len() / 2] <= BESIDE_TRIAL_S
    }
}

#[test]
fn a_run_starts_soon_and_its_controller_takes_little() {
    let Some(cluster) = cluster() else { return };
    // What others do on the machine meanwhile is in all of it but the memory.
    let mut told = Vec::new();
    let are_small = (0..3).any(|_| {
        let figures = figures(&cluster);
        eprintln!("{figures:.2?}");
        assert!(figures.memory_bytes <= MEMORY_BYTES, "{figures:?}");
        let are_small = figures.are_small();
        told.push(figures);
        are_small
    });
    assert!(are_small, "{told:#?}");
}

/// Those of a run, of which nothing is left then.
fn figures(cluster: &Cluster) -> Figures {
    let started = Instant::now();
    let flags = ["--network", "pod", "--duration", "5s", "--blocks", "4"];
    let mut run = cluster.start(&short(&flags));
    // It is made when all pods and paths stand, just before the first trial.
    eventually("the run is made", Duration::from_secs(60), || {
        cluster.run_directory().is_some()
    });
    let to_first_trial_s = started.elapsed().as_secs_f64();

    let directory = run_directory(cluster.out());
    eventually("a trial has ended", Duration::from_secs(60), || {
        trials(&directory) > 0
    });
    // Past the start of the agents of the next trial, and still within it.
    std::thread::sleep(Duration::from_millis(1_500));
    let pid = run.pid();
    let (before, clock) = (cpu_seconds(pid), Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let cpu_percent = 100.0 * (cpu_seconds(pid) - before) / clock.elapsed().as_secs_f64();
    let memory_bytes = memory_bytes(pid);
    assert!(run.wait(Duration::from_secs(60)).is_some());

    let (record, all) = read(&directory);
    let timing = &record["plan"]["treatments"][0]["timing"];
    let of_trial = ["warm_up_ns", "measure_ns"].map(|it| timing[it].as_u64().unwrap());
    let of_trial: u64 = of_trial.iter().sum();
    let ran = all.iter().filter(|it| it["observation"].is_object());
    let mut beside_trials_s: Vec<f64> = ran
        .map(|it| it["took_ns"].as_u64().unwrap().saturating_sub(of_trial) as f64 / 1e9)
        .collect();
    beside_trials_s.sort_by(f64::total_cmp);
    assert!(!beside_trials_s.is_empty(), "{:?}", statuses(&all));
    std::fs::remove_dir_all(directory).unwrap();
    Figures {
        to_first_trial_s,
        memory_bytes,
        cpu_percent,
        beside_trials_s,
    }
}

/// User and system time of a process (proc(5)).
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name is in parentheses, and may contain spaces.
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap()..].split(' ').collect();
    let ticks: u64 = fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap();
    // USER_HZ, which is 100 wherever this runs.
    ticks as f64 / 100.0
}

fn memory_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kibibytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kibibytes.parse::<u64>().unwrap() * 1024
}
