//! Keeping idle CPUs from halting, and telling the CPU time that this takes from work.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, Pid, access, getpgid, getppid, setpgid, setsid};

use crate::cgroup;
use crate::counters::{self, CpuTotals};
use crate::cpu::{self, ProcessClock};
use crate::forwarder::{Carrier, Forwarder};

/// Where processes say how soon an idle CPU has to be back (PM QoS).
const WAKE_UP: &str = "/dev/cpu_dma_latency";
/// What it shows where nobody says anything, microseconds.
const NO_DEMAND_US: i32 = 2_000_000_000;
/// Name of the processes that spin.
const SPINNER: &CStr = c"plumbline-awake";
/// How long one may take until it spins.
const SPINS_WITHIN: Duration = Duration::from_secs(2);
/// The weight of a session in the scheduler (sched(7), "The autogroup feature"), and the least
/// that anybody may give one. The kernel takes ten such words a second of all users together.
const AUTOGROUP: &str = "/proc/self/autogroup";
const LEAST: &str = "19";
const TRIES: usize = 15;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);
/// For how long at a stretch one asks to run, nanoseconds: the longest that the kernel grants.
/// Whoever asks for less has the CPU at once (Linux 6.12 and later).
const STRETCH_NS: u64 = 100_000_000;

/// Keeps idle CPUs from halting, as long as it lives: they poll for work instead. In a
/// virtual machine one that halts comes back when the hypervisor lets it.
#[derive(Debug)]
pub enum Awake {
    /// The kernel polls. It forgets the demand when this is closed.
    Demanded(File),
    /// A process of idle priority spins on each CPU.
    Spinning(Vec<Forwarder>),
}

impl Awake {
    /// Demands it of all CPUs of the machine.
    ///
    /// # Errors
    ///
    /// Whoever is not root may not; a kernel without cpuidle has nothing to ask.
    pub fn demand() -> io::Result<Self> {
        let mut demand = File::options().write(true).open(WAKE_UP)?;
        demand.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self::Demanded(demand))
    }

    /// Starts a process on each CPU that spins when nothing else wants to run there
    /// (`SCHED_IDLE`, sched(7)), which anybody may. The kernel kills them when **the thread
    /// that called this** ends. Their CPU time is idle time: see [`SpinnerClocks`].
    ///
    /// # Errors
    ///
    /// CPUs of the machine that this process may not use: there idle time would mean
    /// something else. A limit of its cgroup's CPU time, which spinning would use up.
    pub fn spin() -> io::Result<Self> {
        let allowed = cpu::allowed()?;
        let online = counters::cpu()?.cpus.len();
        if allowed.len() != online {
            return Err(io::Error::other(format!(
                "this process may use {} of {online} CPUs",
                allowed.len()
            )));
        }
        if let Some(group) = limited_group() {
            return Err(io::Error::other(format!("{group} limits the CPU time")));
        }
        let spinners = allowed.into_iter().map(|cpu| {
            let spinner = Forwarder::start(SPINNER, &mut Spinner { cpu })?;
            wait_for(&spinner, cpu)?;
            Ok(spinner)
        });
        spinners.collect::<io::Result<_>>().map(Self::Spinning)
    }
}

/// The file of a cgroup that gives this process only so much CPU time.
fn limited_group() -> Option<String> {
    cgroup::own()?.ancestors().find_map(|group| {
        let file = group.join("cpu.max");
        let limit = std::fs::read_to_string(&file).ok()?;
        (!limit.starts_with("max")).then(|| file.display().to_string())
    })
}

/// Waits until a process spins on its CPU.
fn wait_for(spinner: &Forwarder, cpu: usize) -> io::Result<()> {
    let since = Instant::now();
    let pid = Pid::from_raw(spinner.pid() as i32);
    while spinner.is_running() && since.elapsed() < SPINS_WITHIN {
        if has_idle_priority(pid) && cpu::allowed_to(pid).is_ok_and(|it| it == [cpu]) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let why = format!("no process of idle priority could be started on CPU {cpu}");
    Err(io::Error::other(why))
}

/// Spins on one CPU.
struct Spinner {
    cpu: usize,
}

impl Carrier for Spinner {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn carry(&mut self) {
        // Its priority and its CPU show that it spins.
        if leave_session().is_ok() && idle_priority().is_ok() && cpu::pin_thread(self.cpu).is_ok() {
            loop {
                std::hint::spin_loop();
            }
        }
    }
}

/// Goes into a session of its own, of the least weight. `SCHED_IDLE` says who goes first within
/// a session; the kernel's own threads and other sessions compete with this one as a whole, and
/// one that also has those in it who work may run on for seconds in which its idle CPU owes
/// nothing to it. A kernel that does not group by session needs none of this.
///
/// # Errors
///
/// A kernel that does not take the word in time: a session of full weight would take the CPU
/// from those who work.
fn leave_session() -> io::Result<()> {
    if access(AUTOGROUP, AccessFlags::W_OK).is_err() {
        return Ok(());
    }
    // Whoever leads a process group may not, and this one has led its own since it was forked.
    setpgid(Pid::from_raw(0), getpgid(Some(getppid()))?)?;
    setsid()?;
    for _ in 0..TRIES {
        match std::fs::write(AUTOGROUP, LEAST) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(BETWEEN_TRIES);
            }
            said => return said,
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// `struct sched_attr` (sched_setattr(2)) in its first version.
#[repr(C)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Lets the calling thread run only where nothing else wants to, and then for long.
fn idle_priority() -> nix::Result<()> {
    let normal = SchedulingAttributes {
        size: size_of::<SchedulingAttributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: 19,
        priority: 0,
        runtime_ns: STRETCH_NS,
        deadline_ns: 0,
        period_ns: 0,
    };
    let idle = SchedulingAttributes {
        policy: libc::SCHED_IDLE as u32,
        ..normal
    };
    // The first sets for how long; the policy of the second takes no such wish, and keeps it.
    [normal, idle].iter().try_for_each(|attributes| {
        // By number: the C library of a static build has no such function. SAFETY: reads a
        // structure of the size in it, which lives until it returns.
        let code = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) };
        Errno::result(code).map(drop)
    })
}

/// Whether a process runs only where nothing else wants to.
fn has_idle_priority(pid: Pid) -> bool {
    // By number, as above. SAFETY: it takes a number and gives one.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, pid.as_raw()) };
    policy == libc::SCHED_IDLE.into()
}

/// How soon an idle CPU has to be back, microseconds, by the strictest demand. `None` where
/// nobody demands anything, and where that is not shown, which it is to root.
pub fn wake_up_limit_us() -> Option<u32> {
    let mut shown = [0; 4];
    File::open(WAKE_UP).ok()?.read_exact(&mut shown).ok()?;
    let limit = i32::from_ne_bytes(shown);
    (limit < NO_DEMAND_US).then(|| limit.max(0) as u32)
}

/// The clocks of the processes that [`Awake::spin`] started, of any process on this machine.
/// What they show is idle time, exact to a nanosecond; the kernel counts it as work.
#[derive(Clone, Debug, Default)]
pub struct SpinnerClocks {
    /// With the number of its CPU.
    clocks: Vec<(u32, ProcessClock)>,
}

impl SpinnerClocks {
    /// Those of the processes that run now; none where they cannot be seen, as from inside a
    /// PID namespace.
    pub fn of_all() -> Self {
        let names = [&*SPINNER.to_string_lossy()];
        let spinners = cpu::processes_named(&names).filter_map(|pid| {
            let [cpu] = cpu::allowed_to(pid).ok()?[..] else {
                return None;
            };
            Some((cpu as u32, ProcessClock::of(pid).ok()?))
        });
        Self {
            clocks: spinners.collect(),
        }
    }

    /// How many CPUs are kept from halting.
    pub fn cpus(&self) -> usize {
        let mut cpus: Vec<u32> = self.clocks.iter().map(|(cpu, _)| *cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus.len()
    }

    /// Those of one CPU.
    pub(crate) fn on(&self, cpu: u32) -> impl Iterator<Item = ProcessClock> {
        let here = self.clocks.iter().filter(move |(at, _)| *at == cpu);
        here.map(|(_, clock)| *clock)
    }

    /// Counts as idle what was counted as work. Of one reading nothing follows: only
    /// the difference of two is CPU time, and wraps around.
    pub fn correct(&self, totals: &mut CpuTotals) {
        for (cpu, clock) in &self.clocks {
            let of_it = totals.cpus.iter_mut().find(|it| it.number == *cpu);
            if let Some(one) = of_it {
                let spun_ns = clock.read_ns();
                one.idle_ns = one.idle_ns.wrapping_add(spun_ns);
                one.user_ns = one.user_ns.wrapping_sub(spun_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Others may run beside it, and spin too.
    #[test]
    fn what_spins_counts_as_idle_and_ends_with_its_owner() {
        let cpus = cpu::allowed().unwrap().len();
        let ours = std::fs::read_to_string(AUTOGROUP).ok();
        let awake = match Awake::spin() {
            Ok(awake) => awake,
            Err(error) => {
                let is_limited = limited_group().is_some();
                let online = counters::cpu().unwrap().cpus.len();
                assert!(is_limited || online != cpus, "{error}");
                return;
            }
        };
        let Awake::Spinning(spinners) = &awake else {
            panic!("nothing was demanded");
        };
        let pids: Vec<i32> = spinners.iter().map(|it| it.pid() as i32).collect();
        assert_eq!(pids.len(), cpus);
        for pid in &pids {
            let session = nix::unistd::getsid(Some(Pid::from_raw(*pid)));
            assert_eq!(session, Ok(Pid::from_raw(*pid)), "it has its own");
        }
        if ours.is_some() {
            let of = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/autogroup"));
            let theirs = pids.iter().map(|pid| of(pid).expect("it runs"));
            let has_least = |it: String| it.trim().ends_with(&format!("nice {LEAST}"));
            assert!(theirs.into_iter().all(has_least));
            assert_eq!(std::fs::read_to_string(AUTOGROUP).ok(), ours);
        }
        let clocks = SpinnerClocks::of_all();
        assert_eq!(clocks.cpus(), cpus);
        let spun = |it: &SpinnerClocks| it.clocks.iter().map(|(_, it)| it.read_ns()).sum::<u64>();
        let since = Instant::now();
        while spun(&clocks) < 1_000_000 {
            assert!(since.elapsed() < Duration::from_secs(10), "nobody spins");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut totals = counters::cpu().unwrap();
        let raw = totals.clone();
        clocks.correct(&mut totals);
        let idle = |it: &CpuTotals| it.cpus.iter().map(|it| it.idle_ns).sum::<u64>();
        assert!(idle(&totals) >= idle(&raw) + 1_000_000);
        for (one, was) in totals.cpus.iter().zip(&raw.cpus) {
            let (idle, user) = (
                one.idle_ns - was.idle_ns,
                was.user_ns.wrapping_sub(one.user_ns),
            );
            assert_eq!(idle, user, "moved from one to the other");
        }
        drop(awake);
        let is_there = |pid: &i32| ProcessClock::of(Pid::from_raw(*pid)).is_ok();
        assert!(!pids.iter().any(is_there), "{pids:?}");
    }

    #[test]
    fn a_limit_that_is_shown_is_one_that_somebody_demands() {
        let Ok(awake) = Awake::demand() else {
            assert!(wake_up_limit_us().is_none_or(|it| it < NO_DEMAND_US as u32));
            return;
        };
        assert_eq!(wake_up_limit_us(), Some(0));
        drop(awake);
    }
}
