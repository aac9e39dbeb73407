//! CPU time by context, from `/proc/stat`.

use std::io;

use super::{malformed, read};

const PATH: &str = "/proc/stat";

/// CPU time of every online CPU since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTotals {
    /// When it was read, monotonic nanoseconds.
    pub at_ns: u64,
    /// One entry per online CPU.
    pub cpus: Vec<OneCpu>,
}

/// CPU time of one CPU since boot, in nanoseconds. The kernel shows it in
/// ticks of 10 ms on most machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneCpu {
    /// Number of the CPU.
    pub number: u32,
    /// User and nice.
    pub user_ns: u64,
    /// System.
    pub system_ns: u64,
    /// Idle.
    pub idle_ns: u64,
    /// Idle while a disk request was outstanding.
    pub iowait_ns: u64,
    /// Hardware interrupts.
    pub irq_ns: u64,
    /// Soft interrupts.
    pub softirq_ns: u64,
    /// Taken by the hypervisor.
    pub steal_ns: u64,
}

/// Reads the CPU time of the whole machine.
pub fn cpu() -> io::Result<CpuTotals> {
    let text = read(PATH)?;
    let at_ns = crate::clock::now_ns();
    let tick_ns = 1_000_000_000 / ticks_per_second();
    let cpus =
        parse(&text, tick_ns).ok_or_else(|| malformed(PATH, "no `cpuN` line that can be read"))?;
    Ok(CpuTotals { at_ns, cpus })
}

fn ticks_per_second() -> u64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .and_then(|ticks| u64::try_from(ticks).ok())
        .filter(|&ticks| ticks > 0)
        .unwrap_or(100)
}

pub(super) fn parse(text: &str, tick_ns: u64) -> Option<Vec<OneCpu>> {
    let cpus: Vec<OneCpu> = text
        .lines()
        .take_while(|line| line.starts_with("cpu"))
        .filter_map(|line| parse_line(line, tick_ns))
        .collect();
    (!cpus.is_empty()).then_some(cpus)
}

/// `cpu3 user nice system idle iowait irq softirq steal …`; `None` for the sum
/// line, which has no number.
fn parse_line(line: &str, tick_ns: u64) -> Option<OneCpu> {
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let mut next = || {
        words
            .next()
            .and_then(|w| w.parse::<u64>().ok())
            .map(|ticks| ticks.saturating_mul(tick_ns))
    };
    let (user, nice) = (next()?, next()?);
    Some(OneCpu {
        number,
        user_ns: user.saturating_add(nice),
        system_ns: next()?,
        idle_ns: next()?,
        iowait_ns: next().unwrap_or(0),
        irq_ns: next().unwrap_or(0),
        softirq_ns: next().unwrap_or(0),
        steal_ns: next().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_cpu_but_not_the_sum() {
        let text =
            "cpu  10 1 2 3 4 5 6 7 0 0\ncpu0 10 1 2 3 4 5 6 7 0 0\ncpu9 1 0 0 0 0 0 0 0\nintr 5\n";
        let cpus = parse(text, 10).unwrap();
        assert_eq!(cpus.len(), 2);
        assert_eq!(cpus[0].user_ns, 110);
        assert_eq!(cpus[0].steal_ns, 70);
        assert_eq!(cpus[1].number, 9);
    }

    #[test]
    fn nonsense_is_no_cpu() {
        assert_eq!(parse("cpu0 a b c\n", 10), None);
        assert_eq!(parse("", 10), None);
    }

    #[test]
    fn this_machine_has_cpus_and_time_goes_on() {
        let totals = cpu().unwrap();
        assert!(!totals.cpus.is_empty());
        assert!(
            totals
                .cpus
                .iter()
                .map(|c| c.idle_ns + c.user_ns + c.system_ns)
                .sum::<u64>()
                > 0
        );
    }
}
