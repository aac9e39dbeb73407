//! `romana`: version 2 (romana/core@2d72a8e and v2.0.0, `agent/enforcer/base.go`,
//! `agent/enforcer/enforcer.go`, `pkg/policytools/blueprint.go` and
//! `data/policy.tsv`, `cni/divert_rules.go`). What goes to a pod passes
//! ROMANA-FORWARD-IN: known connections, the operator's policies, a jump for each
//! policy, a drop. A policy has three chains: its own asks a set for the target,
//! `_X` asks a set for the peer, `_R` for the port. A policy that selects other pods
//! costs a jump and a look-up, one that selects ours a jump and a look-up more.
//!
//! Sets hold the blocks of addresses of a tenant's segment; here a block is one
//! address. Each policy has a set of peers by CIDR too, which is empty. A tenant that is
//! not isolated has a policy that allows everything. Policies for egress deny, so there
//! are none. Not modelled: the hashes in names, which only differ, and the chains for
//! what goes to the node itself, which no packet of a lab meets.

use super::guarded_pod::GuardedPod;
use super::rule_text::{AddressSets, FilterTable, RuleText};

/// What goes to pods.
pub(super) const IN: &str = "ROMANA-FORWARD-IN";
/// What comes from pods.
pub(super) const OUT: &str = "ROMANA-FORWARD-OUT";
/// The end of chains that hold jumps to policies.
pub(super) const FOOTER: &str = "-m comment --comment POLICY_CHAIN_FOOTER -j RETURN";
const KIND: &str = "hash:net";

pub(super) fn rules(pods: &[GuardedPod], port: u16) -> RuleText {
    let (mut sets, mut filter) = (AddressSets::default(), FilterTable::default());
    let local: Vec<_> = pods.iter().map(|pod| pod.address).collect();
    sets.set("localBlocks", KIND, &local, "");
    for chain in [IN, OUT, "ROMANA-OP", "ROMANA-OP-IN"] {
        filter.chain(chain);
    }
    filter.rule(OUT, format!("-m set --match-set localBlocks dst -j {IN}"));
    filter.rule(OUT, "-m comment --comment Egress -j ACCEPT");
    filter.rule(
        IN,
        "-m comment --comment Ingress -m state --state RELATED,ESTABLISHED -j ACCEPT",
    );
    filter.rule(IN, "-j ROMANA-OP");
    let mut number = 0;
    for (segment, pod) in pods.iter().enumerate() {
        let target = set_name('a', segment);
        sets.set(&target, KIND, &[pod.address], "");
        for peers in &pod.ingress {
            let (policy, peer) = (policy_name(number), set_name('b', number));
            number += 1;
            sets.set(&format!("{policy}_s"), KIND, &[], "");
            sets.set(&peer, KIND, &peers.all, "");
            filter.chain(format!("{policy}_R"));
            filter.rule(
                format!("{policy}_X"),
                format!("-m set --match-set {peer} src -j {policy}_R"),
            );
            filter.rule(
                format!("{policy}_R"),
                format!("-p tcp --dport {port} -j ACCEPT"),
            );
            apply(&mut filter, &policy, &target);
        }
    }
    for (segment, _) in pods
        .iter()
        .enumerate()
        .filter(|(_, it)| it.ingress.is_empty())
    {
        let policy = policy_name(number);
        number += 1;
        filter.rule(format!("{policy}_X"), "-j ACCEPT");
        apply(&mut filter, &policy, &set_name('a', segment));
    }
    filter.rule(IN, "-m comment --comment DefaultDrop -j DROP");
    filter.rule("ROMANA-OP", FOOTER);
    filter.rule("ROMANA-OP-IN", FOOTER);
    divert(&mut filter, pods);
    filter.with(sets)
}

/// Lets what goes to a target pass the chains of a policy.
fn apply(filter: &mut FilterTable, policy: &str, target: &str) {
    filter.chain(policy);
    filter.chain(format!("{policy}_X"));
    filter.rule(IN, format!("-j {policy}"));
    filter.rule(
        policy,
        format!("-m set --match-set {target} dst -j {policy}_X"),
    );
}

/// Sends what pods send and receive into the chains; the same in both versions.
pub(super) fn divert(filter: &mut FilterTable, pods: &[GuardedPod]) {
    let mut devices: Vec<&str> = pods.iter().map(|pod| &*pod.device).collect();
    devices.dedup();
    for device in devices {
        filter.rule("FORWARD", format!("-i {device} -j {OUT}"));
        filter.rule("FORWARD", format!("-o {device} -j {IN}"));
    }
}

fn policy_name(number: usize) -> String {
    format!("ROMANA-P-{number:016x}")
}

/// A set of a tenant's segment, told apart from those of another kind.
fn set_name(kind: char, number: usize) -> String {
    format!("ROMANA-{kind}{number:015x}")
}
