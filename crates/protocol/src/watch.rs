//! What of a machine is to be watched while treatments take turns, and what was seen.

use plumbline_experiment::Slice;
use plumbline_record::{CpuTime, IdleSample, SoftnetCounters};
use serde::{Deserialize, Serialize};

/// How to watch the CPUs during a rotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchOrder {
    /// The start of the rotation, nanoseconds of the monotonic clock of the agent.
    pub start_ns: u64,
    /// The slices of each member; the last member does not send.
    pub members: Vec<Vec<Slice>>,
    /// Whether to meter the machine in the slices of all members, and not only of the
    /// last: where no sender does.
    pub all: bool,
}

/// A machine during a rotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// The machine in the slices in which nobody sends.
    pub rest: IdleSample,
    /// The machine in the slices of each member that sends, where that was ordered;
    /// else nothing.
    pub members: Vec<MachineGains>,
    /// Idle time in the slices of each member, those in which nobody sends last. `None`
    /// where the kernel counts it in ticks alone, or where what it counts in
    /// microseconds is something else: then the ticks that the senders read are all
    /// there is.
    pub idle: Option<Vec<IdleTime>>,
}

/// What the counters of a machine gained in the slices of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineGains {
    /// CPU time.
    pub machine: CpuTime,
    /// Receive queues.
    pub softnet: SoftnetCounters,
    /// CPU time of its threads for soft interrupts, nanoseconds; 0 where they cannot be
    /// seen.
    pub ksoftirqd_ns: u64,
}

/// Idle time of all CPUs over some slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleTime {
    /// Wall time times CPUs, nanoseconds.
    pub capacity_ns: u64,
    /// Idle, nanoseconds.
    pub idle_ns: u64,
    /// What of the rest the hypervisor took, nanoseconds: their share, by what was not idle, of
    /// what it took in all. It is shown in ticks, which slices are too short for.
    pub stolen_ns: u64,
}

impl IdleTime {
    /// What the same slices cost, where only the total is known more exactly.
    pub fn correct(&self, time: &mut CpuTime) {
        let idle_ns = self.idle_ns.min(self.capacity_ns);
        time.capacity_ns = self.capacity_ns;
        time.idle_ns = idle_ns.saturating_sub(time.iowait_ns);
        time.steal_ns = self.stolen_ns;
        time.busy_ns = (self.capacity_ns - idle_ns).saturating_sub(self.stolen_ns);
    }

    /// What was not idle, nanoseconds.
    pub fn worked_ns(&self) -> u64 {
        self.capacity_ns.saturating_sub(self.idle_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn only_the_total_is_corrected() {
        let mut cpu = CpuTime {
            capacity_ns: 820 * MS,
            busy_ns: 510 * MS,
            user_ns: 100 * MS,
            iowait_ns: 10 * MS,
            steal_ns: 20 * MS,
            idle_ns: 280 * MS,
            ..CpuTime::default()
        };
        let seen = IdleTime {
            capacity_ns: 800 * MS,
            idle_ns: 305 * MS,
            stolen_ns: 13 * MS,
        };
        seen.correct(&mut cpu);
        assert_eq!((cpu.capacity_ns, cpu.idle_ns), (800 * MS, 295 * MS));
        assert_eq!((cpu.busy_ns, cpu.user_ns), (482 * MS, 100 * MS));
        assert_eq!(cpu.steal_ns, 13 * MS, "and not two ticks");
    }
}
