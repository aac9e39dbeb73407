//! What would be set on a machine.

use std::collections::BTreeSet;
use std::fs::File;

use plumbline_sys::awake;
use plumbline_sys::cpu::is_guest;
use serde::{Deserialize, Serialize};

use crate::root::Root;
use crate::tunable::{self, TUNABLES, Tunable};

/// What would be set, of one tunable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// What it is: `CPU governor`.
    pub name: &'static str,
    /// Why figures become steadier by it.
    pub why: &'static str,
    /// What is missing, where kernel or machine have nothing of it.
    pub missing: Option<&'static str>,
    /// Whether it ends with the process that asked for it, and so is in no journal.
    pub held: bool,
    /// The files that would be set; none where all is as it should be.
    pub adjustments: Vec<Adjustment>,
}

/// A file, what it holds, and what it is to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjustment {
    /// Of which tunable.
    pub tunable: String,
    /// The file, by its full path.
    pub file: String,
    /// What it holds now, or held before it was set.
    pub before: String,
    /// What it is set to.
    pub set: String,
    /// What has to be there for the file still to be that of the same thing: the number of
    /// an interrupt may go to another device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// What would be set on a machine, by tunable.
pub(crate) fn proposals(root: &Root) -> Vec<Proposal> {
    let mut seen = BTreeSet::new();
    let mut proposals: Vec<Proposal> = TUNABLES
        .iter()
        .map(|tunable| proposal(root, tunable, &mut seen))
        .collect();
    proposals.push(idle_cpus(root));
    proposals
}

/// Two devices may have the same interrupts: each file is set once.
fn proposal(root: &Root, tunable: &Tunable, seen: &mut BTreeSet<String>) -> Proposal {
    let found = tunable.found(root);
    let adjust = |it: &tunable::Candidate| {
        let set = (tunable.wanted)(root, it).filter(|set| *set != it.now)?;
        seen.insert(it.file.clone()).then(|| Adjustment {
            tunable: tunable.name.to_owned(),
            file: it.file.clone(),
            before: it.now.clone(),
            set,
            owner: it.owner.clone(),
        })
    };
    Proposal {
        name: tunable.name,
        why: tunable.why,
        missing: found.is_empty().then_some(tunable.lacks),
        held: false,
        adjustments: found.iter().filter_map(adjust).collect(),
    }
}

/// Where processes say how soon an idle CPU has to be back (PM QoS). The kernel forgets
/// that with the process.
const WAKE_UP: &str = "/dev/cpu_dma_latency";

/// What `run --awake` does. On bare metal the C-states are enough: a CPU that polls takes
/// turns from its sibling, and clock rate from others.
fn idle_cpus(root: &Root) -> Proposal {
    const NAME: &str = "idle CPUs";
    let cpuinfo = root.read("/proc/cpuinfo").unwrap_or_default();
    let missing = match (is_guest(&cpuinfo), root.exists(WAKE_UP)) {
        (false, _) => Some("a hypervisor: elsewhere the C-states are enough"),
        (true, false) => Some("/dev/cpu_dma_latency: this kernel has no cpuidle"),
        (true, true) => None,
    };
    let limit = awake::wake_up_limit_us().filter(|_| missing.is_none());
    let is_wanted = missing.is_none() && limit != Some(0);
    let before = match limit {
        Some(us) => format!("{us} µs"),
        None if File::open(root.path(WAKE_UP)).is_ok() => "no limit".to_owned(),
        None => "not shown to this user".to_owned(),
    };
    let adjustment = Adjustment {
        tunable: NAME.to_owned(),
        file: WAKE_UP.to_owned(),
        before,
        set: "0 µs".to_owned(),
        owner: None,
    };
    Proposal {
        name: NAME,
        why: "one that halts comes back when the hypervisor lets it; so they poll",
        missing,
        held: true,
        adjustments: is_wanted.then_some(adjustment).into_iter().collect(),
    }
}
