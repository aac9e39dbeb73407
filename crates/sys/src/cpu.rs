//! CPU affinity, timer slack, and this process's CPU time and limits.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// CPU time of this process since it started, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTime {
    /// In user space.
    pub user_ns: u64,
    /// In the kernel on the process's account.
    pub system_ns: u64,
}

impl ProcessTime {
    /// The time since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

/// Reads the CPU time of this process, all its threads together (`getrusage`).
///
/// The sum is exact to a microsecond. The split into user and system is
/// sampled at timer ticks on kernels without exact accounting.
pub fn process_time() -> io::Result<ProcessTime> {
    time_used_by(UsageWho::RUSAGE_SELF)
}

/// CPU time of all children of this process that have ended and were waited
/// for, and of theirs: the difference around one wait is what that child used
/// from its start to its end. Exact as [`process_time`] is.
pub fn children_time() -> io::Result<ProcessTime> {
    time_used_by(UsageWho::RUSAGE_CHILDREN)
}

fn time_used_by(who: UsageWho) -> io::Result<ProcessTime> {
    let usage = getrusage(who)?;
    Ok(ProcessTime {
        user_ns: usage.user_time().num_nanoseconds() as u64,
        system_ns: usage.system_time().num_nanoseconds() as u64,
    })
}

/// CPU time of another process since it started, all its threads together. The
/// sum is exact; the split into user and system is that of `/proc`, which is
/// sampled at timer ticks.
///
/// # Errors
///
/// The process does not exist, or has ended and been waited for.
pub fn time_of(pid: u32) -> io::Result<ProcessTime> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid as i32))?;
    let total = clock_gettime(clock)?.num_nanoseconds() as u64;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // A product may be rounded to more.
    let user_ns = ((total as f64 * user_share(&stat)) as u64).min(total);
    Ok(ProcessTime {
        user_ns,
        system_ns: total - user_ns,
    })
}

/// The CPU clock of a process of the kernel, or of any other that this one can see.
#[derive(Clone, Copy, Debug)]
pub struct ProcessClock(ClockId);

impl ProcessClock {
    /// The clocks of all processes whose name begins with one of `names`; none where they
    /// cannot be seen, as from inside a PID namespace.
    pub fn of_all(names: &[&str]) -> Vec<Self> {
        processes_named(names).flat_map(Self::of).collect()
    }

    /// The clock of one process.
    pub(crate) fn of(pid: Pid) -> nix::Result<Self> {
        clock_getcpuclockid(pid).map(Self)
    }

    /// CPU time since it started, nanoseconds, not sampled; 0 once it has ended.
    pub fn read_ns(self) -> u64 {
        clock_gettime(self.0).map_or(0, |time| time.num_nanoseconds() as u64)
    }
}

/// All processes that can be seen here whose name begins with one of `names`.
pub(crate) fn processes_named(names: &[&str]) -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_named = move |pid: &i32| {
        let known = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        known.is_ok_and(|known| names.iter().any(|name| known.starts_with(name)))
    };
    pids.filter(is_named).map(Pid::from_raw)
}

/// The share of a process's ticks that were in user space: fields 14 and 15 of
/// proc_pid_stat(5). The name before them may hold spaces and parentheses.
pub(crate) fn user_share(stat: &str) -> f64 {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut ticks = after_name
        .split_whitespace()
        .skip(11)
        .map_while(|field| field.parse::<u64>().ok());
    let mut next = || ticks.next().unwrap_or(0) as f64;
    let (user, system) = (next(), next());
    if user + system > 0.0 {
        user / (user + system)
    } else {
        0.0
    }
}

/// CPU time of the calling thread since it started, user and system together,
/// in nanoseconds; exact, not sampled. 0 on a kernel without that clock.
pub fn thread_time_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(0, |time| time.num_nanoseconds() as u64)
}

/// Binds the calling thread, and the processes that it starts from now on, to
/// one CPU. `EINVAL` when there is no such CPU or
/// the process may not use it.
pub fn pin_thread(cpu: usize) -> io::Result<()> {
    allow_thread(&[cpu])
}

/// Lets the calling thread run on any of `cpus`, and nowhere else.
pub fn allow_thread(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// The CPUs that the calling thread may run on, in rising order.
pub fn allowed() -> io::Result<Vec<usize>> {
    Ok(allowed_to(Pid::from_raw(0))?)
}

/// The CPUs that a process's first thread may run on, in rising order.
pub(crate) fn allowed_to(pid: Pid) -> nix::Result<Vec<usize>> {
    let set = sched_getaffinity(pid)?;
    Ok((0..CpuSet::count())
        .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
        .collect())
}

/// CPUs that Linux can be built for (`CONFIG_NR_CPUS`).
const MOST: usize = 8_192;

/// The CPUs of a list as the kernel writes it, such as `0-3,8`.
pub fn listed(list: &str) -> Vec<usize> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|it| *it < MOST);
        Some(number(first)?..=number(last)?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// Whether a hypervisor is below this kernel, by the flags of its `/proc/cpuinfo`.
pub fn is_guest(cpuinfo: &str) -> bool {
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| line.split_whitespace().any(|it| it == "hypervisor"))
}

/// Sets how late the kernel may wake the calling thread from a timed sleep, in
/// nanoseconds; the usual default is 50 µs, the least is 1 ns (L-18).
pub fn set_timer_slack_ns(slack: u64) -> io::Result<()> {
    Ok(nix::sys::prctl::set_timerslack(slack as libc::c_ulong)?)
}

/// How many files this process may have open (the soft limit).
pub fn open_file_limit() -> io::Result<u64> {
    Ok(getrlimit(Resource::RLIMIT_NOFILE)?.0)
}

/// Lets this process have `needed` files open, as far as it may: raises the
/// soft limit towards the hard one, which needs no privilege. Returns the
/// resulting limit.
pub fn allow_open_files(needed: u64) -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = needed.min(hard);
    if wanted <= soft {
        return Ok(soft);
    }
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)?;
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(listed("0"), [0]);
        assert_eq!(listed("0,64"), [0, 64]);
        assert_eq!(listed("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(listed(""), [0_usize; 0]);
        assert_eq!(listed("7,0-18446744073709551615"), [7]);
    }

    #[test]
    fn a_guest_is_told_by_a_flag() {
        let cpuinfo = "processor\t: 0\nmodel name\t: a hypervisor\nflags\t\t: fpu hypervisor lm\n";
        assert!(is_guest(cpuinfo));
        assert!(!is_guest(&cpuinfo.replace("fpu hypervisor", "fpu")));
        assert!(!is_guest(""));
    }

    #[test]
    fn a_pinned_thread_may_use_one_cpu() {
        std::thread::spawn(|| {
            let last = *allowed().unwrap().last().unwrap();
            pin_thread(last).unwrap();
            assert_eq!(allowed().unwrap(), [last]);
            assert!(pin_thread(CpuSet::count() + 1).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_a_child_used_shows_once_it_was_waited_for() {
        let before = children_time().unwrap();
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"])
            .spawn()
            .unwrap();
        child.wait().unwrap();
        let spent = children_time().unwrap().since(before);
        assert!(spent.user_ns + spent.system_ns > 1_000_000, "{spent:?}");
    }

    #[test]
    fn the_time_of_another_process_is_read_while_it_runs() {
        let mut child = std::process::Command::new("/bin/sh")
            .args([
                "-c",
                "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; read end",
            ])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let spent = loop {
            let spent = time_of(child.id()).unwrap();
            if spent.user_ns + spent.system_ns > 1_000_000 {
                break spent;
            }
            assert!(std::time::Instant::now() < deadline, "{spent:?}");
        };
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(spent.user_ns + spent.system_ns > 1_000_000);
        assert!(time_of(child.id()).is_err(), "it was waited for");
    }

    #[test]
    fn processes_are_found_by_the_beginning_of_their_name() {
        let name = std::fs::read_to_string("/proc/self/comm").unwrap();
        let found = ProcessClock::of_all(&[name.trim_end()]);
        assert!(found.iter().any(|it| it.read_ns() > 0), "{name}");
        assert!(ProcessClock::of_all(&["no such process"]).is_empty());
    }

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 30 10 0 0 20 0 1 0 100";
        assert_eq!(user_share(stat), 0.75);
        assert_eq!(
            user_share("7 (new) S 1 7 7 0 -1 4194560 100 0 0 0 0 0 0 0"),
            0.0
        );
        assert_eq!(user_share("nonsense"), 0.0);
        let stat = "7 (new) S 1 7 7 0 -1 4194560 100 0 0 0 30 -10 0 0";
        assert_eq!(user_share(stat), 1.0, "no more than all of it");
    }

    #[test]
    fn a_thread_may_get_its_cpus_back() {
        std::thread::spawn(|| {
            let all = allowed().unwrap();
            pin_thread(all[0]).unwrap();
            allow_thread(&all).unwrap();
            assert_eq!(allowed().unwrap(), all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn work_costs_cpu_time() {
        let before = process_time().unwrap();
        let start = crate::clock::now_ns();
        loop {
            let spent = process_time().unwrap().since(before);
            if spent.user_ns + spent.system_ns > 1_000_000 {
                break;
            }
            let worked_ns = crate::clock::now_ns() - start;
            assert!(worked_ns < 10_000_000_000, "{spent:?}");
        }
    }

    #[test]
    fn a_thread_pays_for_its_own_work_only() {
        let before = thread_time_ns();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let asleep = thread_time_ns();
        assert!(asleep - before < 10_000_000, "sleep costs no CPU");
        let mut sum = 0_u64;
        while thread_time_ns() - asleep < 5_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }

    #[test]
    fn timer_slack_can_be_set() {
        set_timer_slack_ns(1).unwrap();
        assert_eq!(nix::sys::prctl::get_timerslack(), Ok(1));
    }
}
