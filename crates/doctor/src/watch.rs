//! What the machine does while it is watched.

use std::io;
use std::time::Duration;

use plumbline_agent::MachineMeter;
use plumbline_record::CpuTime;

use crate::finding::{Certainty, Finding};

/// How long the machine is watched for load and steal.
const WATCH: Duration = Duration::from_secs(1);

/// Watches the machine for a second.
pub(crate) fn watch() -> Vec<Finding> {
    match cpu_time() {
        Ok(time) => vec![other_load(&time), steal(&time)],
        Err(error) => {
            let unseen = Finding::bad("other load", error.to_string(), "mount /proc");
            vec![unseen.with(Certainty::Unknown)]
        }
    }
}

fn cpu_time() -> io::Result<CpuTime> {
    let mut meter = MachineMeter::open()?;
    std::thread::sleep(WATCH);
    meter.closes()?;
    Ok(meter.cpu())
}

/// CPU time that others used.
fn other_load(time: &CpuTime) -> Finding {
    let share = time.busy_ns as f64 / time.capacity_ns.max(1) as f64;
    let seen = format!(
        "{:.1} % of the CPU time used by other programs",
        share * 100.0
    );
    if share > 0.05 {
        return Finding::bad(
            "other load",
            seen,
            "stop what else runs: trials beside it are not counted",
        )
        .with(Certainty::Sampled);
    }
    Finding::good("other load", seen).with(Certainty::Sampled)
}

/// CPU time that the hypervisor gave to others.
fn steal(time: &CpuTime) -> Finding {
    let share = time.steal_ns as f64 / time.capacity_ns.max(1) as f64;
    let seen = format!("{:.1} % taken by the hypervisor", share * 100.0);
    if share > 0.02 {
        return Finding::bad(
            "steal",
            seen,
            "use a dedicated machine, more blocks, or `plumbline run --awake`",
        )
        .with(Certainty::Sampled);
    }
    Finding::good("steal", seen).with(Certainty::Sampled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    #[test]
    fn a_busy_machine_is_bad_and_has_a_remedy() {
        let busy = CpuTime {
            capacity_ns: 100,
            busy_ns: 30,
            steal_ns: 10,
            ..CpuTime::default()
        };
        for finding in [other_load(&busy), steal(&busy)] {
            assert_eq!(finding.level, Severity::Bad, "{finding:?}");
            assert_eq!(finding.certainty, Certainty::Sampled);
            assert!(finding.remedy.is_some_and(|r| !r.is_empty()));
        }
    }

    #[test]
    fn a_quiet_machine_is_good() {
        let quiet = CpuTime {
            capacity_ns: 1000,
            busy_ns: 5,
            ..CpuTime::default()
        };
        assert_eq!(other_load(&quiet).level, Severity::Good);
        assert_eq!(steal(&quiet).level, Severity::Good);
    }
}
