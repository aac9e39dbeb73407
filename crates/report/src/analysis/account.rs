//! What became of the planned trials: nothing vanishes.

use std::collections::BTreeMap;

use plumbline_experiment::Plan;
use plumbline_record::{GateFailure, Trial, TrialStatus};

use super::ledger::{Ledger, Slot};
use crate::describe;

/// Counts over the slots of a plan: one treatment in one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Cells of the plan: `kept + failed + missing`.
    pub planned: usize,
    /// Cells with a valid trial.
    pub kept: usize,
    /// Trials that were run again, over all slots: attempts after the first.
    pub repeated: usize,
    /// Cells whose every attempt failed.
    pub failed: usize,
    /// Cells that were never run, because the run was cut off.
    pub missing: usize,
    /// Why trials did not count, the most frequent reason first.
    pub failures: Vec<Failure>,
}

/// One reason for which trials did not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In a few words, such as `disturbed by other-load`.
    pub reason: String,
    /// What to do about it.
    pub remedy: &'static str,
    /// Trials with this reason; a trial that failed two gates has two.
    pub trials: usize,
}

impl Account {
    /// Counts all treatments of a plan.
    pub(crate) fn new(plan: &Plan, ledger: &Ledger<'_>) -> Self {
        let pairs = plan.pairs();
        let slots = plan.blocks.iter().enumerate().flat_map(|(block, order)| {
            let blocks = block * pairs..(block + 1) * pairs;
            blocks.flat_map(move |block| order.iter().map(move |&id| ledger.slot(id, block as u32)))
        });
        Self::of_slots(slots)
    }

    /// Counts one treatment of a plan.
    pub(crate) fn of_treatment(id: usize, ledger: &Ledger<'_>) -> Self {
        Self::of_slots(ledger.slots_of(id).map(|(_, slot)| Some(slot)))
    }

    /// Trials that were run, those of all attempts.
    pub fn attempts(&self) -> usize {
        self.kept + self.failed + self.repeated
    }

    fn of_slots<'a, 'c: 'a>(slots: impl Iterator<Item = Option<&'a Slot<'c>>>) -> Self {
        let mut account = Self::default();
        let mut failures: BTreeMap<_, Failure> = BTreeMap::new();
        for slot in slots {
            account.planned += 1;
            let Some(slot) = slot else {
                account.missing += 1;
                continue;
            };
            account.repeated += slot.trials.len().saturating_sub(1);
            match slot.kept() {
                Some(_) => account.kept += 1,
                None => account.failed += 1,
            }
            let is_void = |it: &&&Trial| slot.is_void && it.status == TrialStatus::Valid;
            let void = slot.trials.iter().filter(is_void).map(|_| void());
            let own = slot.trials.iter().flat_map(|trial| reasons_of(trial));
            for (reason, remedy) in own.chain(void) {
                let failure = Failure {
                    reason,
                    remedy,
                    trials: 0,
                };
                let alike = failures.entry(without_figures(&failure.reason));
                alike.or_insert(failure).trials += 1;
            }
        }
        account.failures = failures.into_values().collect();
        // Stable, so that equally frequent reasons stay in alphabetical order.
        account
            .failures
            .sort_by_key(|failure| std::cmp::Reverse(failure.trials));
        account
    }
}

/// Processes have other numbers each time, and times are seldom equal: what differs in nothing
/// else is one reason.
fn without_figures(reason: &str) -> String {
    reason.split(|it: char| it.is_ascii_digit()).collect()
}

/// A reason without its figures, so that equal ones add up, and its remedy.
pub(crate) type Reason = (String, &'static str);

/// Of a trial that is itself well.
fn void() -> Reason {
    (
        "in a block without enforcement".to_owned(),
        "`run --resume` measures the block again",
    )
}

fn reasons_of(trial: &Trial) -> Vec<Reason> {
    match &trial.status {
        TrialStatus::Valid if trial.observation.is_some() => Vec::new(),
        TrialStatus::Valid => vec![(
            "nothing observed".to_owned(),
            "the file was changed or made by another program; run again",
        )],
        TrialStatus::Invalid { gates } => gates.iter().map(reason_of).collect(),
        TrialStatus::Failed { error } => vec![(
            format!("failed: {}", describe::first_line(error)),
            "`plumbline doctor` checks what a run needs of this machine",
        )],
    }
}

/// Why a gate failed, and what to do.
pub(crate) fn reason_of(gate: &GateFailure) -> Reason {
    let fixed = |reason: &str, remedy| (reason.to_owned(), remedy);
    match gate {
        GateFailure::SendLag { .. } => fixed(
            "sent too late",
            "set wait = \"spin\", lower the rate, or use a machine with more CPUs",
        ),
        GateFailure::AchievedRate { .. } => fixed(
            "rate not achieved",
            "lower the rate, or raise the number of connections",
        ),
        GateFailure::Disturbed { by, .. } if by == "steal" => fixed(
            "disturbed by steal",
            "`plumbline run --awake` keeps this machine's CPUs from others; else use one that is \
             not shared",
        ),
        GateFailure::Disturbed { by, .. } => (
            format!("disturbed by {}", describe::clean(by)),
            "stop what else runs on this machine; `plumbline doctor` shows what disturbs it",
        ),
        GateFailure::WrongPath { .. } => fixed(
            "wrong path or content",
            "something redirects or answers this traffic; look for proxies and packet filters",
        ),
        GateFailure::NotEnforced { .. } => fixed(
            "policies not enforced",
            "the network carries this traffic past the rules, or another program changed them",
        ),
        GateFailure::NoChange { .. } => fixed(
            "change not seen",
            "give it a longer `duration`; if it never acts, look at the cluster's proxy or network",
        ),
        GateFailure::NoNetwork { .. } => fixed(
            "pods without network",
            "launch fewer pods, or fewer in a second; if none gets its network, look at its plugins",
        ),
        GateFailure::Unwell { .. } => fixed(
            "not well before the command",
            "let the path come to rest: a longer `warm_up`, or a rate that it carries",
        ),
        GateFailure::PathFault { .. } => fixed(
            "checksum errors or fragments",
            "lower the MTU or the message size, and check the offloads of the devices",
        ),
        GateFailure::ConntrackFull { .. } => fixed(
            "table of tracked connections full",
            "lower the rate, or raise `sysctl net.netfilter.nf_conntrack_max`",
        ),
        GateFailure::IdleNeighbour => fixed(
            "neighbour did nothing",
            "the machine had no time for it; lower the rate, or use a machine with more CPUs",
        ),
        GateFailure::NoSteadyState { .. } => fixed(
            "no steady state",
            "lengthen the warm_up, and stop what else runs on this machine",
        ),
        GateFailure::GeneratorBusy { .. } => fixed(
            "sender too busy",
            "lower the rate, or use a machine with more CPUs",
        ),
        GateFailure::Errors { .. } => fixed(
            "errors or lost answers",
            "lower the rate or the number of connections, or give the drain more time",
        ),
    }
}
