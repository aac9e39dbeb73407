//! What a run in a cluster costs besides the load itself.

use std::time::{Duration, Instant};

use super::{cluster, read, short, statuses};
use crate::world::{eventually, run_directory, trials};

/// Seconds from the command to the first trial, with the image on the nodes.
const TO_FIRST_TRIAL_S: f64 = 10.0;
/// Memory of the controller while a trial runs.
const MEMORY_BYTES: u64 = 20_000_000;
/// Percent of a core that the controller takes while a trial runs.
const CPU_PERCENT: f64 = 1.0;
/// What a trial takes beyond its warm-up and its window.
const BESIDE_TRIAL_S: f64 = 1.0;

#[test]
fn a_run_starts_soon_and_its_controller_takes_little() {
    let Some(cluster) = cluster() else { return };
    let started = Instant::now();
    let flags = ["--network", "pod", "--duration", "5s", "--blocks", "4"];
    let mut run = cluster.start(&short(&flags));
    // It is made when all pods and paths stand, just before the first trial.
    eventually("the run is made", Duration::from_secs(60), || {
        cluster.run_directory().is_some()
    });
    let to_first_trial = started.elapsed().as_secs_f64();

    let directory = run_directory(cluster.out());
    eventually("a trial has ended", Duration::from_secs(60), || {
        trials(&directory) > 0
    });
    // Past the start of the agents of the next trial, and still within it.
    std::thread::sleep(Duration::from_millis(1_500));
    let pid = run.pid();
    let (before, clock) = (cpu_seconds(pid), Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let percent = 100.0 * (cpu_seconds(pid) - before) / clock.elapsed().as_secs_f64();
    let memory = memory_bytes(pid);
    assert!(run.wait(Duration::from_secs(60)).is_some());

    let (record, all) = read(&directory);
    let timing = &record["plan"]["treatments"][0]["timing"];
    let of_trial = ["warm_up_ns", "measure_ns"].map(|it| timing[it].as_u64().unwrap());
    let of_trial: u64 = of_trial.iter().sum();
    let ran = all.iter().filter(|it| it["observation"].is_object());
    let mut beside: Vec<f64> = ran
        .map(|it| it["took_ns"].as_u64().unwrap().saturating_sub(of_trial) as f64 / 1e9)
        .collect();
    beside.sort_by(f64::total_cmp);
    assert!(!beside.is_empty(), "{:?}", statuses(&all));
    let beside_trial = beside[beside.len() / 2];
    eprintln!(
        "to the first trial {to_first_trial:.1} s; controller {:.1} MB, {percent:.1} % of a core; \
         a trial takes {beside_trial:.2} s beside itself ({beside:.2?})",
        memory as f64 / 1e6
    );
    assert!(to_first_trial <= TO_FIRST_TRIAL_S, "{to_first_trial} s");
    assert!(memory <= MEMORY_BYTES, "{memory} bytes");
    assert!(percent <= CPU_PERCENT, "{percent} %");
    assert!(beside_trial <= BESIDE_TRIAL_S, "{beside:.2?} s");
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
