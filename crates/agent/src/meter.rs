//! Readings of the kernel's counters, and what happened between two of them.

use std::io;
use std::time::Duration;

use plumbline_record::{CpuTime, IdleSample, ProtocolCounters, SoftnetCounters};
use plumbline_sys::awake::SpinnerClocks;
use plumbline_sys::counters::{self, CpuTotals, OneCpu, SoftnetTotals};
use plumbline_sys::cpu::ProcessClock;

/// The machine's counters at one moment.
#[derive(Clone, Debug)]
struct MeterReading {
    cpu: CpuTotals,
    softnet: SoftnetTotals,
    ksoftirqd_ns: u64,
}

/// What the machine's counters gained over one or more windows.
#[derive(Clone, Debug)]
pub struct MachineMeter {
    /// What the kernel does soft interrupts in when there are too many, and what devices
    /// receive in that have threads of their own.
    ksoftirqd: Vec<ProcessClock>,
    /// What keeps idle CPUs from halting.
    spinners: SpinnerClocks,
    opened: Option<MeterReading>,
    /// Gains of the windows so far.
    cpu: CpuTotals,
    softnet: SoftnetCounters,
    ksoftirqd_ns: u64,
    /// How many windows there were.
    windows: usize,
}

impl Default for MachineMeter {
    fn default() -> Self {
        Self {
            ksoftirqd: ProcessClock::of_all(&["ksoftirqd/", "napi/"]),
            spinners: SpinnerClocks::of_all(),
            opened: None,
            cpu: CpuTotals::default(),
            softnet: SoftnetCounters::default(),
            ksoftirqd_ns: 0,
            windows: 0,
        }
    }
}

impl MachineMeter {
    /// A meter whose first window opens now.
    ///
    /// # Errors
    ///
    /// As [`opens`](Self::opens).
    pub fn open() -> io::Result<Self> {
        let mut meter = Self::default();
        meter.opens()?;
        Ok(meter)
    }

    /// A window opens.
    ///
    /// # Errors
    ///
    /// Counters that cannot be read.
    pub fn opens(&mut self) -> io::Result<()> {
        self.opened = Some(self.read()?);
        Ok(())
    }

    /// The window closes.
    ///
    /// # Errors
    ///
    /// As [`opens`](Self::opens).
    pub fn closes(&mut self) -> io::Result<()> {
        if let Some(opened) = self.opened.take() {
            let closed = self.read()?;
            add_gains(&mut self.cpu, &opened.cpu, &closed.cpu);
            let (before, after) = (&opened.softnet, &closed.softnet);
            self.softnet.processed += after.processed.saturating_sub(before.processed);
            self.softnet.dropped += after.dropped.saturating_sub(before.dropped);
            self.softnet.squeezed += after.squeezed.saturating_sub(before.squeezed);
            self.ksoftirqd_ns += closed.ksoftirqd_ns.saturating_sub(opened.ksoftirqd_ns);
            self.windows += 1;
        }
        Ok(())
    }

    fn read(&self) -> io::Result<MeterReading> {
        Ok(MeterReading {
            cpu: self.totals()?,
            softnet: counters::softnet()?,
            ksoftirqd_ns: self.ksoftirqd.iter().map(|clock| clock.read_ns()).sum(),
        })
    }

    /// The machine's CPU time, in which what keeps idle CPUs from halting is idle.
    pub(crate) fn totals(&self) -> io::Result<CpuTotals> {
        let mut totals = counters::cpu()?;
        self.spinners.correct(&mut totals);
        Ok(totals)
    }

    pub(crate) fn spinners(&self) -> &SpinnerClocks {
        &self.spinners
    }

    /// How many windows there were.
    pub fn windows(&self) -> usize {
        self.windows
    }

    /// CPU time in all windows together.
    pub fn cpu(&self) -> CpuTime {
        time_of(&self.cpu)
    }

    /// Receive queue counters in all windows together.
    pub fn softnet(&self) -> SoftnetCounters {
        self.softnet
    }

    /// CPU time of the kernel's threads for soft interrupts in all windows together, as
    /// far as they can be seen; nanoseconds.
    pub fn ksoftirqd_ns(&self) -> u64 {
        self.ksoftirqd_ns
    }
}

/// Adds what was gained between two readings. Rounding may give a CPU more idle time
/// than the window was long; over many windows that evens out, so nothing is clamped
/// here.
fn add_gains(sum: &mut CpuTotals, before: &CpuTotals, after: &CpuTotals) {
    sum.at_ns += after.at_ns.saturating_sub(before.at_ns);
    for late in &after.cpus {
        let Some(early) = before.cpus.iter().find(|c| c.number == late.number) else {
            continue;
        };
        let at = sum.cpus.iter().position(|c| c.number == late.number);
        let at = at.unwrap_or_else(|| {
            sum.cpus.push(OneCpu {
                number: late.number,
                ..OneCpu::default()
            });
            sum.cpus.len() - 1
        });
        let cpu = &mut sum.cpus[at];
        // A counter may go back a little, and the sum with it.
        let add = |sum: &mut u64, part: fn(&OneCpu) -> u64| {
            *sum = sum.wrapping_add(part(late)).wrapping_sub(part(early));
        };
        add(&mut cpu.user_ns, |c| c.user_ns);
        add(&mut cpu.system_ns, |c| c.system_ns);
        add(&mut cpu.idle_ns, |c| c.idle_ns);
        add(&mut cpu.iowait_ns, |c| c.iowait_ns);
        add(&mut cpu.irq_ns, |c| c.irq_ns);
        add(&mut cpu.softirq_ns, |c| c.softirq_ns);
        add(&mut cpu.steal_ns, |c| c.steal_ns);
    }
}

/// What CPUs gained, in all. Busy is time that was neither idle nor waiting nor
/// stolen: the tickless kernel keeps idle time itself, while the split by context
/// is sampled at ticks (N-10; docs/method.md).
fn time_of(gains: &CpuTotals) -> CpuTime {
    // Once for all CPUs and windows: each is rounded to a tick, up as often as down.
    let all = |part: fn(&OneCpu) -> u64| {
        let sum: i64 = gains.cpus.iter().map(|cpu| part(cpu) as i64).sum();
        sum.max(0) as u64
    };
    let capacity_ns = gains.at_ns * gains.cpus.len() as u64;
    let away = |cpu: &OneCpu| {
        let idle = cpu.idle_ns.wrapping_add(cpu.iowait_ns);
        idle.wrapping_add(cpu.steal_ns)
    };
    let busiest = gains.cpus.iter().map(|cpu| cpu.softirq_ns as i64).max();
    CpuTime {
        capacity_ns,
        busy_ns: capacity_ns.saturating_sub(all(away)),
        user_ns: all(|cpu| cpu.user_ns),
        system_ns: all(|cpu| cpu.system_ns),
        irq_ns: all(|cpu| cpu.irq_ns),
        softirq_ns: all(|cpu| cpu.softirq_ns),
        iowait_ns: all(|cpu| cpu.iowait_ns),
        steal_ns: all(|cpu| cpu.steal_ns),
        idle_ns: all(|cpu| cpu.idle_ns),
        busiest_softirq_ns: busiest.map_or(0, |ns| ns.max(0) as u64),
    }
}

/// Measures the machine without load for a while.
pub fn idle_sample(length: Duration) -> io::Result<IdleSample> {
    let mut meter = MachineMeter::open()?;
    std::thread::sleep(length);
    meter.closes()?;
    let time = meter.cpu();
    Ok(IdleSample {
        busy_ns: time.busy_ns,
        capacity_ns: time.capacity_ns,
    })
}

/// Protocol counters of the calling thread's namespace, which is named `namespace`.
///
/// # Errors
///
/// A `/proc` that is not mounted, or cannot be read.
pub fn protocol_counters(namespace: &str) -> io::Result<ProtocolCounters> {
    let totals = counters::protocol()?;
    Ok(ProtocolCounters {
        namespace: namespace.to_owned(),
        tcp_retransmits: totals.tcp_retransmits,
        tcp_timeouts: totals.tcp_timeouts,
        checksum_errors: totals.checksum_errors,
        udp_receive_buffer_errors: totals.udp_receive_buffer_errors,
        udp_send_buffer_errors: totals.udp_send_buffer_errors,
        ip_fragments: totals.ip_fragments,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(number: u32, user_ms: u64, idle_ms: u64, softirq_ms: u64, steal_ms: u64) -> OneCpu {
        let ns = |ms| ms * 1_000_000;
        OneCpu {
            number,
            user_ns: ns(user_ms),
            idle_ns: ns(idle_ms),
            softirq_ns: ns(softirq_ms),
            steal_ns: ns(steal_ms),
            ..OneCpu::default()
        }
    }

    fn cpu_time(before: &CpuTotals, after: &CpuTotals) -> CpuTime {
        let mut gains = CpuTotals::default();
        add_gains(&mut gains, before, after);
        time_of(&gains)
    }

    #[test]
    fn busy_is_the_complement_of_idle_and_steal() {
        let before = CpuTotals {
            at_ns: 0,
            cpus: vec![one(0, 100, 1000, 5, 0), one(1, 0, 2000, 0, 0)],
        };
        let after = CpuTotals {
            at_ns: 100_000_000,
            cpus: vec![one(0, 150, 1030, 15, 10), one(1, 0, 2100, 2, 0)],
        };
        let time = cpu_time(&before, &after);
        assert_eq!(time.capacity_ns, 200_000_000);
        assert_eq!(time.busy_ns, 60_000_000);
        assert_eq!(time.softirq_ns, 12_000_000);
        assert_eq!(time.busiest_softirq_ns, 10_000_000);
        assert_eq!(time.steal_ns, 10_000_000);
    }

    #[test]
    fn what_one_window_rounds_up_the_next_rounds_down() {
        let totals = |at_ms: u64, idle_ms| CpuTotals {
            at_ns: at_ms * 1_000_000,
            cpus: vec![one(0, 0, idle_ms, 0, 0)],
        };
        // 8 ms of 25 are idle, which a clock of 10 ms shows as 10, 10, 0, 10, …
        let mut sum = CpuTotals::default();
        for (before, after) in [(0, 10), (10, 20), (30, 30), (30, 40), (40, 50)] {
            add_gains(&mut sum, &totals(0, before), &totals(25, after));
        }
        let meter = MachineMeter {
            cpu: sum,
            ..MachineMeter::default()
        };
        let time = meter.cpu();
        assert_eq!((time.capacity_ns, time.busy_ns), (125_000_000, 85_000_000));
        // All of a window idle, rounded up: busy is less than nothing there.
        let mut sum = CpuTotals::default();
        add_gains(&mut sum, &totals(0, 0), &totals(25, 30));
        add_gains(&mut sum, &totals(0, 30), &totals(25, 40));
        let meter = MachineMeter {
            cpu: sum,
            ..MachineMeter::default()
        };
        assert_eq!(meter.cpu().busy_ns, 10_000_000);
    }

    #[test]
    fn a_counter_that_goes_back_is_made_good_by_the_next_window() {
        let totals = |at_ms: u64, iowait_ms: u64| CpuTotals {
            at_ns: at_ms * 1_000_000,
            cpus: vec![OneCpu {
                iowait_ns: iowait_ms * 1_000_000,
                ..OneCpu::default()
            }],
        };
        let mut sum = CpuTotals::default();
        add_gains(&mut sum, &totals(0, 40), &totals(25, 30));
        assert_eq!(time_of(&sum).iowait_ns, 0);
        add_gains(&mut sum, &totals(25, 30), &totals(50, 50));
        let time = time_of(&sum);
        assert_eq!((time.iowait_ns, time.busy_ns), (10_000_000, 40_000_000));
    }

    #[test]
    fn a_cpu_that_went_online_does_not_count() {
        let before = CpuTotals {
            at_ns: 0,
            cpus: vec![one(0, 0, 0, 0, 0)],
        };
        let after = CpuTotals {
            at_ns: 10_000_000,
            cpus: vec![one(0, 10, 0, 0, 0), one(1, 0, 0, 0, 0)],
        };
        assert_eq!(cpu_time(&before, &after).capacity_ns, 10_000_000);
    }
}
