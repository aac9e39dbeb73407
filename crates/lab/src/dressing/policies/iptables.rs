//! `iptables`: the plain reference. One chain for a pod and direction with a rule for
//! each peer of each policy, read one after the other until one allows the packet, and
//! a rule at the end that drops. What belongs to an allowed connection passes before.

use super::guarded_pod::{GuardedPod, Peers};
use super::rule_text::{AddressSets, FilterTable, RuleText};

pub(super) fn rules(pods: &[GuardedPod], port: u16) -> RuleText {
    let mut filter = FilterTable::default();
    filter.rule(
        "FORWARD",
        "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    );
    // A packet between two pods of a node has to pass both, so the first only returns.
    for (number, pod) in pods.iter().enumerate() {
        let chain = format!("POLICY-OUT-{number}");
        let jump = format!("-s {} -j {chain}", pod.address);
        list(&mut filter, &chain, &jump, &pod.egress, "-d", port);
    }
    for (number, pod) in pods.iter().enumerate() {
        let chain = format!("POLICY-IN-{number}");
        let jump = format!("-d {} -j {chain}", pod.address);
        list(&mut filter, &chain, &jump, &pod.ingress, "-s", port);
    }
    filter.with(AddressSets::default())
}

fn list(
    filter: &mut FilterTable,
    chain: &str,
    jump: &str,
    policies: &[Peers],
    side: &str,
    port: u16,
) {
    if policies.is_empty() {
        return;
    }
    filter.chain(chain);
    filter.rule("FORWARD", jump);
    for peer in policies.iter().flat_map(|it| &it.all) {
        filter.rule(
            chain,
            format!("{side} {peer} -p tcp -m tcp --dport {port} -j RETURN"),
        );
    }
    filter.rule(chain, "-j DROP");
}
