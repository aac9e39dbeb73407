//! What the controller of a run in a cluster takes.

use std::fs;
use std::time::{Duration, Instant};

use super::{lasting, read, short, statuses};
use crate::observed::exit_code;
use crate::world::{eventually, run_directory, trials};

/// Memory of the controller while a trial runs.
const MEMORY_BYTES: u64 = 20_000_000;
/// How often in a second its threads begin to run then, all of them together.
const WAKES: f64 = 100.0;
/// How long they are counted.
const LOOK: Duration = Duration::from_secs(3);

/// Times are told, for they are the machine's, too; a machine that is busy makes wakes fewer.
#[test]
fn a_controller_takes_little_while_a_trial_runs() {
    let Some(cluster) = lasting() else { return };
    let started = Instant::now();
    let flags = ["--network", "pod", "--duration", "5s", "--blocks", "4"];
    let mut run = cluster.start(&short(&flags));
    // It is made when all pods and paths stand, just before the first trial.
    eventually("the run is made", Duration::from_secs(60), || {
        cluster.run_directory().is_some()
    });
    let to_first_trial = started.elapsed();

    let directory = run_directory(cluster.out());
    eventually("a trial has ended", Duration::from_secs(60), || {
        trials(&directory) > 0
    });
    // Past the start of the agents of the next trial, and still within it.
    std::thread::sleep(Duration::from_millis(1_500));
    let pid = run.pid();
    let (before, cpu, clock) = (wakes(pid), cpu_seconds(pid), Instant::now());
    std::thread::sleep(LOOK);
    let seconds = clock.elapsed().as_secs_f64();
    let wakes = wakes(pid).saturating_sub(before) as f64 / seconds;
    let cpu_percent = 100.0 * (cpu_seconds(pid) - cpu) / seconds;
    let memory = memory_bytes(pid);
    let code = run.wait(Duration::from_secs(60));
    assert_eq!(code, Some(exit_code(&directory)), "{}", cluster.said());

    let (record, all) = read(&directory);
    let timing = &record["plan"]["treatments"][0]["timing"];
    let of_trial = ["warm_up_ns", "measure_ns"].map(|it| timing[it].as_u64().unwrap());
    let of_trial: u64 = of_trial.iter().sum();
    let ran = all.iter().filter(|it| it["observation"].is_object());
    let beside = ran.map(|it| it["took_ns"].as_u64().unwrap().saturating_sub(of_trial));
    let beside: Vec<Duration> = beside.map(Duration::from_nanos).collect();
    assert!(!beside.is_empty(), "{:?}", statuses(&all));
    eprintln!(
        "{to_first_trial:.2?} to the first trial; {wakes:.0} wakes in a second, {cpu_percent:.2} % \
         of a CPU, {memory} bytes; trials took {beside:.2?} beside themselves"
    );
    assert!(memory <= MEMORY_BYTES, "{memory} bytes");
    assert!(wakes <= WAKES, "{wakes} wakes in a second");
}

/// How often the threads of a process have waited for something (proc(5)).
fn wakes(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of_thread = |it: fs::DirEntry| {
        // It may have ended meanwhile.
        let status = fs::read_to_string(it.path().join("status")).ok()?;
        number(&status, "voluntary_ctxt_switches:")
    };
    threads.filter_map(of_thread).sum()
}

/// User and system time of a process (proc(5)).
fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name is in parentheses, and may contain spaces.
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap()..].split(' ').collect();
    let ticks: u64 = fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap();
    // USER_HZ, which is 100 wherever this runs.
    ticks as f64 / 100.0
}

fn memory_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    number(&status, "VmRSS:").expect("it runs") * 1024
}

/// The number in a line of a status that begins so.
fn number(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
