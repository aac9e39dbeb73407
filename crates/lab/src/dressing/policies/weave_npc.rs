//! `weave-npc` (weaveworks/weave@8c847638, `prog/weave-npc/main.go`, `npc/rule.go`,
//! `analyser.go`, `namespace.go` and `controller.go`, `net/bridge.go`). What comes from
//! the bridge passes WEAVE-NPC-EGRESS, what goes to it WEAVE-NPC: known connections
//! first, then new ones by a rule for each namespace, whose set holds the pods that no
//! policy selects, and by a rule for each policy, two for egress: two sets and a port.
//! Policies that select the same pods share the set of these.
//!
//! The bridge stands for whatever device of the node leads to the pods. Multicast, which
//! has a rule of its own there, has one here.

use super::guarded_pod::GuardedPod;
use super::rule_text::{AddressSets, COMMENT, FilterTable, RuleText};

const MAIN: &str = "WEAVE-NPC";
const DEFAULT: &str = "WEAVE-NPC-DEFAULT";
const INGRESS: &str = "WEAVE-NPC-INGRESS";
const EGRESS: &str = "WEAVE-NPC-EGRESS";
const EGRESS_DEFAULT: &str = "WEAVE-NPC-EGRESS-DEFAULT";
const EGRESS_CUSTOM: &str = "WEAVE-NPC-EGRESS-CUSTOM";
const EGRESS_ACCEPT: &str = "WEAVE-NPC-EGRESS-ACCEPT";
const ALL: [&str; 7] = [
    MAIN,
    DEFAULT,
    INGRESS,
    EGRESS,
    EGRESS_DEFAULT,
    EGRESS_CUSTOM,
    EGRESS_ACCEPT,
];
const MARK: &str = "0x40000/0x40000";
const BRIDGE_PORT: &str = "vethwe-bridge";
const KIND: &str = "hash:ip comment";

pub(super) fn rules(pods: &[GuardedPod], port: u16) -> RuleText {
    let (mut sets, mut filter) = (AddressSets::default(), FilterTable::default());
    for chain in ALL {
        filter.chain(chain);
    }
    base(&mut filter);
    let without = |is_free: fn(&GuardedPod) -> bool| -> Vec<_> {
        let free = pods.iter().filter(|pod| is_free(pod));
        free.map(|pod| pod.address).collect()
    };
    let (ingress, egress) = ("weave-ingress-default-allow", "weave-egress-default-allow");
    sets.set(ingress, KIND, &without(|pod| pod.ingress.is_empty()), "");
    sets.set(egress, KIND, &without(|pod| pod.egress.is_empty()), "");
    filter.rule(
        DEFAULT,
        format!("-m set --match-set {ingress} dst -j ACCEPT {COMMENT}"),
    );
    for action in [EGRESS_ACCEPT, "RETURN"] {
        filter.rule(
            EGRESS_DEFAULT,
            format!("-m set --match-set {egress} src -j {action} {COMMENT}"),
        );
    }
    let mut number = 0;
    for (at, pod) in pods.iter().enumerate() {
        if pod.ingress.is_empty() && pod.egress.is_empty() {
            continue;
        }
        let target = format!("weave-target-{at}");
        sets.set(&target, KIND, &[pod.address], "");
        for peers in &pod.ingress {
            let peer = format!("weave-peers-{number}");
            number += 1;
            sets.set(&peer, KIND, &peers.all, "");
            let rule = rule_of(&peer, &target, port);
            filter.rule(INGRESS, format!("{rule} -j ACCEPT"));
        }
        for peers in &pod.egress {
            let peer = format!("weave-peers-{number}");
            number += 1;
            sets.set(&peer, KIND, &peers.all, "");
            let rule = rule_of(&target, &peer, port);
            for action in [EGRESS_ACCEPT, "RETURN"] {
                filter.rule(EGRESS_CUSTOM, format!("{rule} -j {action}"));
            }
        }
    }
    steer(&mut filter, pods);
    filter.with(sets)
}

/// What stands before and behind policies.
fn base(filter: &mut FilterTable) {
    let new = "-m state --state NEW";
    let known = "-m state --state RELATED,ESTABLISHED -j ACCEPT";
    let bridged = "-m physdev --physdev-is-bridged";
    let unmarked = format!("-m mark ! --mark {MARK}");
    filter.rule(MAIN, known);
    filter.rule(MAIN, "-d 224.0.0.0/4 -j ACCEPT");
    filter.rule(
        MAIN,
        format!("{bridged} --physdev-out {BRIDGE_PORT} -j ACCEPT"),
    );
    filter.rule(MAIN, format!("{new} -j {DEFAULT}"));
    filter.rule(MAIN, format!("{new} -j {INGRESS}"));
    filter.rule(EGRESS_ACCEPT, format!("-j MARK --set-xmark {MARK}"));
    filter.rule(EGRESS, known);
    filter.rule(
        EGRESS,
        format!("{bridged} --physdev-in {BRIDGE_PORT} -j RETURN"),
    );
    filter.rule(EGRESS, "-m addrtype --dst-type LOCAL -j RETURN");
    filter.rule(EGRESS, "-d 224.0.0.0/4 -j RETURN");
    filter.rule(EGRESS, format!("{new} -j {EGRESS_DEFAULT}"));
    filter.rule(EGRESS, format!("{new} {unmarked} -j {EGRESS_CUSTOM}"));
    filter.rule(
        EGRESS,
        format!("{new} {unmarked} -j NFLOG --nflog-group 86"),
    );
    filter.rule(EGRESS, format!("{unmarked} -j DROP"));
}

fn rule_of(source: &str, destination: &str, port: u16) -> String {
    format!(
        "-p tcp -m set --match-set {source} src -m set --match-set {destination} dst \
         --dport {port} {COMMENT}"
    )
}

/// Sends what comes from the pods' devices and goes to them into the chains.
fn steer(filter: &mut FilterTable, pods: &[GuardedPod]) {
    let mut devices: Vec<&str> = pods.iter().map(|pod| &*pod.device).collect();
    devices.dedup();
    // As of one bridge: all that leaves pods first, then all that goes to them.
    for device in &devices {
        filter.rule("FORWARD", format!("-i {device} {COMMENT} -j {EGRESS}"));
    }
    for device in &devices {
        filter.rule("FORWARD", format!("-o {device} {COMMENT} -j {MAIN}"));
        filter.rule(
            "FORWARD",
            format!("-o {device} -m state --state NEW -j NFLOG --nflog-group 86"),
        );
        filter.rule("FORWARD", format!("-o {device} -j DROP"));
    }
    for device in &devices {
        filter.rule("FORWARD", format!("-i {device} ! -o {device} -j ACCEPT"));
        filter.rule(
            "FORWARD",
            format!("-o {device} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"),
        );
    }
}
