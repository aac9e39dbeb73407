//! `romana-1`: version 1, as Pani's study had it (romana/core@9ea680f,
//! `pkg/policy/enforcer/base.go`, `enforcer.go` and `helpers.go`,
//! `pkg/util/firewall/iptables.go`). Tenant and segment are bits of the address, and
//! `u32` looks at them: what goes to a pod passes ROMANA-FORWARD-IN, the chain of its
//! tenant, the chain of its segment, and there a jump for each policy. A policy has a
//! rule for each segment that it allows, whose jump leads to the port. So one that does
//! not match costs a jump and as many `u32` as it has peers.
//!
//! Which bits they are is configured there. Here 8 bits are the network, 8 the node, 8
//! the tenant and 8 the segment, so that each pod is a segment of its own. A segment
//! without a policy has the one that allows everything, of a tenant that is not isolated.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::guarded_pod::GuardedPod;
use super::romana::{FOOTER, IN, OUT, divert};
use super::rule_text::{AddressSets, FilterTable, RuleText};

const TENANT: u32 = 0xff00_ff00;
const SEGMENT: u32 = 0xff00_ffff;
/// Where the addresses are in the header of a packet.
const SOURCE: u32 = 12;
const DESTINATION: u32 = 16;

pub(super) fn rules(pods: &[GuardedPod], port: u16) -> RuleText {
    let mut filter = FilterTable::default();
    for chain in [IN, OUT, "ROMANA-OP", "ROMANA-OP-IN"] {
        filter.chain(chain);
    }
    filter.rule(OUT, "-m comment --comment Outgoing -j RETURN");
    filter.rule(OUT, "-j DROP");
    filter.rule(IN, "-m state --state RELATED,ESTABLISHED -j ACCEPT");
    filter.rule(IN, "-j ROMANA-OP");
    let tenants: BTreeSet<u32> = pods.iter().map(|pod| bits(pod.address, TENANT)).collect();
    let mut number = 0;
    for (tenant, bits_of_tenant) in tenants.into_iter().enumerate() {
        let (chain, wide) = (
            format!("ROMANA-FW-T{tenant}"),
            format!("ROMANA-T{tenant}-W"),
        );
        filter.chain(&chain);
        filter.chain(&wide);
        let into = u32_match(DESTINATION, TENANT, bits_of_tenant);
        filter.rule(IN, format!("{into} -j {chain}"));
        let own = pods
            .iter()
            .filter(|pod| bits(pod.address, TENANT) == bits_of_tenant);
        for (at, pod) in own.enumerate() {
            let segment = format!("ROMANA-T{tenant}-S{at}");
            let into = u32_match(DESTINATION, SEGMENT, bits(pod.address, SEGMENT));
            filter.chain(&segment);
            filter.rule(&chain, format!("{into} -j {segment}"));
            for peers in &pod.ingress {
                let peers: BTreeSet<u32> = peers.all.iter().map(|it| bits(*it, SEGMENT)).collect();
                let peers = peers.into_iter().map(|it| u32_match(SOURCE, SEGMENT, it));
                let port = format!("-p tcp --dport {port}");
                policy(&mut filter, &segment, number, peers, &port);
                number += 1;
            }
            if pod.ingress.is_empty() {
                policy(
                    &mut filter,
                    &segment,
                    number,
                    [String::new()].into_iter(),
                    "",
                );
                number += 1;
            }
            filter.rule(&segment, FOOTER);
        }
        filter.rule(&chain, format!("-j {wide}"));
        filter.rule(
            &wide,
            "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
        );
        filter.rule(&wide, FOOTER);
    }
    filter.rule(IN, "-m comment --comment DefaultDrop -j DROP");
    filter.rule("ROMANA-OP", FOOTER);
    filter.rule("ROMANA-OP-IN", FOOTER);
    divert(&mut filter, pods);
    filter.with(AddressSets::default())
}

/// A policy of a segment: what it allows from each of its peers.
fn policy(
    filter: &mut FilterTable,
    segment: &str,
    number: usize,
    peers: impl Iterator<Item = String>,
    allowed: &str,
) {
    let chain = format!("ROMANA-P-{number:012x}_");
    let ingress = format!("ROMANA-P-{number:012x}-IN_0");
    filter.chain(&chain);
    filter.chain(&ingress);
    filter.rule(segment, format!("-j {chain}"));
    for peer in peers {
        filter.rule(&chain, format!("{peer} -j {ingress}"));
    }
    filter.rule(&ingress, format!("{allowed} -j ACCEPT"));
}

fn u32_match(offset: u32, mask: u32, value: u32) -> String {
    format!("-m u32 --u32 \"0x{offset:x}&0x{mask:x}=0x{value:x}\"")
}

fn bits(address: IpAddr, mask: u32) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits() & mask,
        IpAddr::V6(_) => unreachable!("romana-1 has IPv4 only, and that was checked"),
    }
}
