//! CPU affinity, timer slack, and this process's CPU time and limits.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
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
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(ProcessTime {
        user_ns: usage.user_time().num_nanoseconds() as u64,
        system_ns: usage.system_time().num_nanoseconds() as u64,
    })
}

/// CPU time of all children of this process that have ended and were waited
/// for, and of theirs: the difference around one wait is what that child used
/// from its start to its end. Exact as [`process_time`] is.
pub fn children_time() -> io::Result<ProcessTime> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok(ProcessTime {
        user_ns: usage.user_time().num_nanoseconds() as u64,
        system_ns: usage.system_time().num_nanoseconds() as u64,
    })
}

/// CPU time of the calling thread since it started, user and system together,
/// in nanoseconds; exact, not sampled. 0 on a kernel without that clock.
pub fn thread_time_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(0, |time| time.num_nanoseconds() as u64)
}

/// CPU time of another process since it started, all its threads together
/// (`/proc/PID/stat`), in ticks of 10 ms.
pub fn time_of(process: u32) -> io::Result<ProcessTime> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?;
    let tick_ns = 1_000_000_000 / ticks.unwrap_or(100).max(1) as u64;
    stat_times(&text, tick_ns).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The times in the text of a `stat` file, behind the program's name, which may
/// hold anything.
fn stat_times(text: &str, tick_ns: u64) -> Option<ProcessTime> {
    let (_, rest) = text.rsplit_once(')')?;
    // The state is field 3, the times are fields 14 and 15 (proc_pid_stat(5)).
    let mut times = rest.split_whitespace().skip(11);
    let mut next = || times.next()?.parse::<u64>().ok();
    Some(ProcessTime {
        user_ns: next()? * tick_ns,
        system_ns: next()? * tick_ns,
    })
}

/// Binds the calling thread, and the processes that it starts from now on, to
/// one CPU. `EINVAL` when there is no such CPU or
/// the process may not use it.
pub fn pin_thread(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
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
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count())
        .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
        .collect())
}

/// Sets how late the kernel may wake the calling thread from a timed sleep, in
/// nanoseconds; the usual default is 50 µs, the least is 1 ns (L-18).
pub fn set_timer_slack_ns(slack: u64) -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory.
    let code = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack as libc::c_ulong) };
    if code < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// How many files this process may have open (the soft limit).
pub fn open_file_limit() -> io::Result<u64> {
    Ok(getrlimit(Resource::RLIMIT_NOFILE)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        while crate::clock::now_ns() - start < 20_000_000 {}
        let spent = process_time().unwrap().since(before);
        assert!(spent.user_ns + spent.system_ns > 1_000_000, "{spent:?}");
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
    }
}
