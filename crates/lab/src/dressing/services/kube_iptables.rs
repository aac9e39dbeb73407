//! The rules of kube-proxy in its iptables mode (kubernetes/kubernetes, v1.34,
//! `pkg/proxy/iptables/proxier.go`; how many there are, `number_generated_rules_test.go`
//! beside it): a rule for each service in one chain, which is walked until one fits; behind
//! it a chain for each service, in which chance picks an endpoint, and a chain for each
//! endpoint. A new connection that goes to no service walks the whole of it too; one that
//! stands is translated by connection tracking alone.
//!
//! Services are in the order of their numbers; the real one takes that of a hash table.
//! Where the real rules have a comment these have one too, in other words. Not modelled:
//! the counter of packets that are not valid (`nfacct`), and the empty chains by which it
//! sees that somebody has flushed the tables.

use std::fmt::Write as _;

use super::ruleset::Ruleset;
use super::service_set::ServiceSet;
use crate::dressing::rule_writer::{RuleWriter, short_transactions, transaction};

/// Lines of one transaction in the tables of nftables. Root could write all in one, for which
/// `iptables-nft-restore` takes many times as long.
const PIECE: usize = 250;
/// Endpoints of all services above which kube-proxy leaves comments out where that is most
/// of a rule.
const LARGE_CLUSTER: u64 = 1_000;

/// In the kernel's own tables of iptables.
pub(super) fn legacy(set: &ServiceSet) -> Ruleset {
    ruleset(set, RuleWriter::iptables_legacy(set.family()), transaction)
}

/// By iptables in the tables of nftables.
pub(super) fn over_nftables(set: &ServiceSet) -> Ruleset {
    let writer = RuleWriter::iptables_nft(set.family());
    ruleset(set, writer, |table, lines| {
        short_transactions(table, lines, PIECE)
    })
}

fn ruleset(set: &ServiceSet, writer: RuleWriter, of: fn(&str, &[&str]) -> String) -> Ruleset {
    let nat = nat(set);
    let nat: Vec<&str> = nat.lines().collect();
    Ruleset::of_iptables(writer, of("filter", FILTER) + &of("nat", &nat))
}

/// The table `filter`, the same for any number of services that have endpoints.
#[rustfmt::skip] // a rule a line
const FILTER: &[&str] = &[
    ":KUBE-NODEPORTS - [0:0]",
    ":KUBE-SERVICES - [0:0]",
    ":KUBE-EXTERNAL-SERVICES - [0:0]",
    ":KUBE-FORWARD - [0:0]",
    ":KUBE-PROXY-FIREWALL - [0:0]",
    "-A INPUT -m conntrack --ctstate NEW -m comment --comment \"plumbline\" -j KUBE-PROXY-FIREWALL",
    "-A INPUT -m comment --comment \"plumbline\" -j KUBE-NODEPORTS",
    "-A INPUT -m conntrack --ctstate NEW -m comment --comment \"plumbline\" -j KUBE-EXTERNAL-SERVICES",
    "-A FORWARD -m conntrack --ctstate NEW -m comment --comment \"plumbline\" -j KUBE-PROXY-FIREWALL",
    "-A FORWARD -m comment --comment \"plumbline\" -j KUBE-FORWARD",
    "-A FORWARD -m conntrack --ctstate NEW -m comment --comment \"plumbline\" -j KUBE-SERVICES",
    "-A FORWARD -m conntrack --ctstate NEW -m comment --comment \"plumbline\" -j KUBE-EXTERNAL-SERVICES",
    "-A OUTPUT -m conntrack --ctstate NEW -m comment --comment \"plumbline\" -j KUBE-PROXY-FIREWALL",
    "-A OUTPUT -m conntrack --ctstate NEW -m comment --comment \"plumbline\" -j KUBE-SERVICES",
    "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP",
    "-A KUBE-FORWARD -m comment --comment \"plumbline\" -m mark --mark 0x4000/0x4000 -j ACCEPT",
    "-A KUBE-FORWARD -m comment --comment \"plumbline\" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
];

/// The lines of the table `nat` before those of services.
const NAT: &str = "\
:KUBE-NODEPORTS - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A PREROUTING -m comment --comment \"plumbline\" -j KUBE-SERVICES
-A OUTPUT -m comment --comment \"plumbline\" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment \"plumbline\" -j KUBE-POSTROUTING
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000
-A KUBE-POSTROUTING -m comment --comment \"plumbline\" -j MASQUERADE --random-fully
-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
";

/// The last rule of the chain of services.
const NODE_PORTS: &str = "-A KUBE-SERVICES -m comment --comment \"plumbline\" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS\n";

fn nat(set: &ServiceSet) -> String {
    let mut text = NAT.to_owned();
    // Behind all that they lead to: in each transaction the kernel looks through what can
    // be reached.
    let mut dispatch = String::new();
    for number in set.numbers() {
        // Writing to a string cannot fail.
        let _ = write_service(&mut text, &mut dispatch, set, number);
    }
    text + &dispatch + NODE_PORTS
}

/// What is of a service alone, and its rule among those of all.
fn write_service(
    text: &mut String,
    dispatch: &mut String,
    set: &ServiceSet,
    number: u32,
) -> std::fmt::Result {
    let (service, receiver) = (set.service(number), set.receiver());
    let (name, pods) = (format!("plumbline/s{number}"), set.pods());
    // As long as the real ones, which end in a hash.
    let chain = format!("KUBE-SVC-{number:016}");
    let endpoint = |of: u32| format!("KUBE-SEP-{number:010}{of:06}");
    let comment = |comment: &str| match set.all_endpoints() > LARGE_CLUSTER {
        true => String::new(),
        false => format!("-m comment --comment \"{comment}\" "),
    };
    let is_service = format!(
        "-m comment --comment \"{name} cluster IP\" -m tcp -p tcp -d {} --dport {}",
        service.ip(),
        service.port()
    );
    writeln!(text, ":{chain} - [0:0]")?;
    for of in 0..set.endpoints() {
        writeln!(text, ":{} - [0:0]", endpoint(of))?;
    }
    writeln!(dispatch, "-A KUBE-SERVICES {is_service} -j {chain}")?;
    writeln!(
        text,
        "-A {chain} {is_service} ! -s {pods} -j KUBE-MARK-MASQ"
    )?;
    for of in 0..set.endpoints() {
        let to = comment(&format!("{name} -> {receiver}"));
        let chance = match set.endpoints() - of {
            1 => String::new(),
            left => {
                let share = 1.0 / f64::from(left);
                format!("-m statistic --mode random --probability {share:.10} ")
            }
        };
        writeln!(text, "-A {chain} {to}{chance}-j {}", endpoint(of))?;
    }
    for of in 0..set.endpoints() {
        let (from, chain) = (comment(&name), endpoint(of));
        let address = receiver.ip();
        writeln!(text, "-A {chain} {from}-s {address} -j KUBE-MARK-MASQ")?;
        writeln!(
            text,
            "-A {chain} {from}-m tcp -p tcp -j DNAT --to-destination {receiver}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::Family;

    use super::*;
    use crate::dressing::services::service_set::tests::set;

    fn lines<'a>(rules: &'a Ruleset, table: &str) -> Vec<&'a str> {
        let mut inside = "";
        let mut found = Vec::new();
        for line in rules.texts[0].lines() {
            match line.strip_prefix('*') {
                Some(name) => inside = name,
                None if inside == table => found.push(line),
                None => {}
            }
        }
        found
    }

    /// The formula that the real one's test of numbers holds.
    #[test]
    fn there_are_as_many_rules_as_kube_proxy_writes() {
        for services in [1, 10, 100] {
            for endpoints in [1, 3] {
                let set = set(services, endpoints, Family::V4);
                for rules in [legacy(&set), over_nftables(&set)] {
                    let of = |table, start: &str| {
                        let lines = lines(&rules, table).into_iter();
                        lines.filter(|line| line.starts_with(start)).count() as u32
                    };
                    let both = services * endpoints;
                    assert_eq!(of("nat", "-A KUBE-"), 5 + 2 * services + 3 * both);
                    assert_eq!(of("filter", "-A KUBE-"), 3);
                    assert_eq!(of("nat", "-A KUBE-SERVICES"), services + 1);
                    assert_eq!(of("nat", ":KUBE-"), 4 + services + both);
                    assert_eq!(of("filter", ":KUBE-"), 5);
                    // The jumps of the kernel's own chains: nine and three.
                    let rules_of_all = 9 + 3 + 3 + 5 + 2 * services + 3 * both;
                    assert_eq!(rules.count.rules, u64::from(rules_of_all));
                    assert_eq!(rules.count.chains, u64::from(5 + 4 + services + both));
                }
            }
        }
    }

    #[test]
    fn the_rule_of_node_ports_stays_the_last() {
        let rules = over_nftables(&set(100, 1, Family::V4));
        let nat = lines(&rules, "nat");
        let mut services = nat.iter().filter(|it| it.starts_with("-A KUBE-SERVICES"));
        let last = services.next_back();
        assert!(last.is_some_and(|it| it.contains("dst-type LOCAL")));
    }

    #[test]
    fn a_large_cluster_leaves_comments_out_as_kube_proxy_does() {
        let comments = |services| {
            let rules = legacy(&set(services, 1, Family::V4));
            let nat = lines(&rules, "nat").into_iter();
            let of_endpoints = nat.filter(|it| it.starts_with("-A KUBE-SEP"));
            of_endpoints.filter(|it| it.contains("--comment")).count()
        };
        assert_eq!((comments(1_000), comments(1_001)), (2_000, 0));
    }

    #[test]
    fn transactions_of_an_ordinary_user_are_short() {
        let rules = over_nftables(&set(1, 500, Family::V6));
        for transaction in rules.texts[0].split("COMMIT\n") {
            assert!(transaction.lines().count() <= PIECE + 1);
        }
        assert!(rules.texts[0].contains("DNAT --to-destination [2001:2:0:2::2]:8080"));
    }
}
