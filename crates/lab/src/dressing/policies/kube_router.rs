//! `kube-router` (cloudnativelabs/kube-router@7c2c2779, v2.11, `pkg/controllers/netpol`:
//! `npc_iptables.go`, `pod.go`, `policy.go`), by iptables, as it does unless asked for
//! nftables. Every packet, of known connections too, walks KUBE-ROUTER-FORWARD, which
//! has four rules for each pod of the node, two of them for bridged packets. In the
//! pod's chain: what is common to all (invalid, known, ICMP), what the node itself
//! sends, a jump for each policy, and what becomes of a packet that none has marked. A
//! policy has two rules, of equal matches: one marks, the other returns if that was done.
//! A policy that has marked ends nothing: all that follow are asked too.
//!
//! Sets have members with a timeout of 0, which is none. A cluster has some rules more
//! in KUBE-ROUTER-INPUT, for addresses and ports of services; no packet of a lab meets
//! them. Names end in 16 letters, a hash there and a number here.

use std::net::IpAddr;

use plumbline_experiment::{Family, PolicyDirection};

use super::guarded_pod::{GuardedPod, Peers};
use super::rule_text::{AddressSets, COMMENT, FilterTable, RuleText};

const ROUTER: [(&str, &str); 3] = [
    ("INPUT", "KUBE-ROUTER-INPUT"),
    ("FORWARD", "KUBE-ROUTER-FORWARD"),
    ("OUTPUT", "KUBE-ROUTER-OUTPUT"),
];
const FORWARD: &str = "KUBE-ROUTER-FORWARD";
const OUTPUT: &str = "KUBE-ROUTER-OUTPUT";
const DEFAULT: &str = "KUBE-NWPLCY-DEFAULT";
const COMMON: &str = "KUBE-NWPLCY-COMMON";
const TAIL: &str = "KUBE-NWPLCY-TAIL";
/// A policy has allowed the packet.
const ALLOWED: &str = "0x10000/0x10000";
/// The packet has passed the chain of a pod.
const PASSED: &str = "0x20000/0x20000";

pub(super) fn rules(pods: &[GuardedPod], port: u16, family: Family) -> RuleText {
    let (mut sets, mut filter) = (AddressSets::default(), FilterTable::default());
    for (built_in, chain) in ROUTER {
        filter.chain(chain);
        filter.rule(built_in, format!("{COMMENT} -j {chain}"));
    }
    common(&mut filter, family);
    let mut number = 0;
    for (at, pod) in pods.iter().enumerate() {
        let chain = format!("KUBE-POD-FW-{at:0>16}");
        filter.chain(&chain);
        let mut jumps = Vec::new();
        let of_pod = [
            (PolicyDirection::Ingress, &pod.ingress, "-d"),
            (PolicyDirection::Egress, &pod.egress, "-s"),
        ];
        for (direction, policies, side) in of_pod {
            for peers in policies {
                let policy = policy(
                    &mut sets,
                    &mut filter,
                    (number, pod.address),
                    peers,
                    direction,
                    port,
                    family,
                );
                number += 1;
                jumps.push(format!("{side} {} {} -j {policy}", pod.address, COMMENT));
            }
        }
        pod_chain(&mut filter, &chain, pod, &jumps);
        intercept(&mut filter, &chain, pod.address);
    }
    for (_, chain) in ROUTER {
        filter.rule(chain, format!("{COMMENT} -j {TAIL}"));
        filter.rule(
            chain,
            format!("{COMMENT} -m mark --mark {PASSED} -j ACCEPT"),
        );
    }
    filter.with(sets)
}

/// The chains that all pods share.
fn common(filter: &mut FilterTable, family: Family) {
    for chain in [DEFAULT, COMMON, TAIL] {
        filter.chain(chain);
    }
    filter.rule(DEFAULT, format!("{COMMENT} -j MARK --set-xmark {ALLOWED}"));
    filter.rule(
        COMMON,
        format!("{COMMENT} -m conntrack --ctstate INVALID -j DROP"),
    );
    filter.rule(
        COMMON,
        format!("{COMMENT} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"),
    );
    let (protocol, option, kinds): (_, _, &[&str]) = match family {
        Family::V4 => (
            "icmp",
            "--icmp-type",
            &["echo-request", "destination-unreachable", "time-exceeded"],
        ),
        Family::V6 => (
            "ipv6-icmp",
            "--icmpv6-type",
            &[
                "echo-request",
                "destination-unreachable",
                "time-exceeded",
                "neighbor-solicitation",
                "neighbor-advertisement",
                "echo-reply",
            ],
        ),
    };
    for kind in kinds {
        filter.rule(
            COMMON,
            format!("{COMMENT} -p {protocol} {option} {kind} -j ACCEPT"),
        );
    }
    filter.rule(TAIL, format!("{COMMENT} -m mark --mark {PASSED} -j ACCEPT"));
}

/// A policy with its sets; gives its chain.
fn policy(
    sets: &mut AddressSets,
    filter: &mut FilterTable,
    (number, pod): (usize, IpAddr),
    peers: &Peers,
    direction: PolicyDirection,
    port: u16,
    family: Family,
) -> String {
    // Sets of IPv6 are told apart by a prefix.
    let (prefix, family) = match family {
        Family::V4 => ("", "inet"),
        Family::V6 => ("inet6:", "inet6"),
    };
    let kind = format!("hash:ip family {family} hashsize 1024 maxelem 65536 timeout 0");
    let source = format!("{prefix}KUBE-SRC-{number:0>16}");
    let destination = format!("{prefix}KUBE-DST-{number:0>16}");
    let (own, far) = match direction {
        PolicyDirection::Egress => (&source, &destination),
        _ => (&destination, &source),
    };
    sets.set(own, &kind, &[pod], " timeout 0");
    sets.set(far, &kind, &peers.all, " timeout 0");
    let chain = format!("KUBE-NWPLCY-{number:0>16}");
    filter.chain(&chain);
    let matches = format!(
        "{COMMENT} -m set --match-set {source} src -m set --match-set {destination} dst \
         -p tcp --dport {port}"
    );
    filter.rule(&chain, format!("{matches} -j MARK --set-xmark {ALLOWED}"));
    filter.rule(
        &chain,
        format!("{matches} -m mark --mark {ALLOWED} -j RETURN"),
    );
    chain
}

/// What a packet to or from a pod passes.
fn pod_chain(filter: &mut FilterTable, chain: &str, pod: &GuardedPod, jumps: &[String]) {
    let address = pod.address;
    filter.rule(chain, format!("{COMMENT} -j {COMMON}"));
    filter.rule(
        chain,
        format!("{COMMENT} -m addrtype --src-type LOCAL -d {address} -j ACCEPT"),
    );
    if pod.egress.is_empty() {
        filter.rule(chain, format!("-s {address} {COMMENT} -j {DEFAULT}"));
    }
    if pod.ingress.is_empty() {
        filter.rule(chain, format!("-d {address} {COMMENT} -j {DEFAULT}"));
    }
    for jump in jumps {
        filter.rule(chain, jump);
    }
    filter.rule(
        chain,
        format!(
            "{COMMENT} -m mark ! --mark {ALLOWED} -j NFLOG --nflog-group 100 \
             -m limit --limit 10/minute --limit-burst 10"
        ),
    );
    filter.rule(
        chain,
        format!("{COMMENT} -m mark ! --mark {ALLOWED} -j REJECT"),
    );
    filter.rule(chain, "-j MARK --set-mark 0/0x10000");
    filter.rule(chain, format!("{COMMENT} -j MARK --set-mark {PASSED}"));
}

/// Sends what a pod receives and sends into its chain.
fn intercept(filter: &mut FilterTable, chain: &str, address: IpAddr) {
    let bridged = "-m physdev --physdev-is-bridged";
    filter.rule(FORWARD, format!("{COMMENT} -d {address} -j {chain}"));
    filter.rule(OUTPUT, format!("{COMMENT} -d {address} -j {chain}"));
    filter.rule(
        FORWARD,
        format!("{bridged} {COMMENT} -d {address} -j {chain}"),
    );
    for (_, router) in ROUTER {
        filter.rule(router, format!("{COMMENT} -s {address} -j {chain}"));
    }
    filter.rule(
        FORWARD,
        format!("{bridged} {COMMENT} -s {address} -j {chain}"),
    );
}
