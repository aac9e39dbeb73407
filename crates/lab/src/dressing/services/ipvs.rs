//! The services of kube-proxy in its IPVS mode (kubernetes/kubernetes, v1.34,
//! `pkg/proxy/ipvs/proxier.go` and `ipset.go`): every address is on a device that carries
//! nothing, so that packets to it come to the node; there IPVS finds a virtual server in a
//! hash table and translates to a real one of it, by turns. The rules of iptables are the
//! same for any number of services, over sets that have an element for each.
//!
//! IPVS has a real server once, and all endpoints are the one receiver, so a service has one
//! endpoint. Sets larger than 65,536, which kube-proxy's are not, are refused by `ipset`.

use std::sync::Arc;

use plumbline_experiment::{Family, Placement};
use plumbline_sys::netlink::{AddressSpec, Ipvs, LinkSpec, NetlinkError};

use super::ruleset::Ruleset;
use super::service_set::ServiceSet;
use crate::dressing::dressed::RuleCount;
use crate::dressing::rule_writer::RuleWriter;
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;
use crate::topology::Topology;

const DEVICE: &str = "kube-ipvs0";
/// Connections are tracked, and those whose server has gone end, as kube-proxy sets it.
const SYSCTLS: [(&str, &str); 3] = [
    ("net/ipv4/vs/conntrack", "1"),
    ("net/ipv4/vs/expire_nodest_conn", "1"),
    ("net/ipv4/vs/expire_quiescent_template", "1"),
];

/// Sets up every node. Gives how much each has.
pub(super) fn put_on(
    set: &ServiceSet,
    topology: &Topology,
    journal: &mut Journal,
) -> Result<Vec<RuleCount>, LabError> {
    if set.endpoints() > 1 {
        let needs = "needs one endpoint for each service: all endpoints are the one receiver, \
                     which IPVS has once";
        return Err(set.unsupported(needs));
    }
    let receiver = match topology.placement {
        Placement::CrossNode => 1,
        Placement::SameNode => 0,
    };
    let nodes = topology.nodes.iter().enumerate();
    nodes
        .map(|(at, node)| set_up(set, topology, (node, at == receiver), journal))
        .collect()
}

/// Sets up a node, which has the receiver or has not.
fn set_up(
    set: &ServiceSet,
    topology: &Topology,
    (node, has_receiver): (&Arc<Place>, bool),
    journal: &mut Journal,
) -> Result<RuleCount, LabError> {
    let refused = |error: NetlinkError| match error {
        error if error.is_gone() => {
            set.unsupported("needs CONFIG_IP_VS; try `modprobe ip_vs`, or `--kernel uml`")
        }
        error if error.is_forbidden() => set.unsupported(
            "needs CAP_NET_ADMIN of the machine itself; run as root, or with `--kernel uml`",
        ),
        error => node.failed(error),
    };
    let ipvs = Arc::new(node.namespace.run(Ipvs::open)?.map_err(refused)?);
    // Is it allowed? Better known before the device is made.
    ipvs.flush().map_err(refused)?;
    let sysctls = SYSCTLS.map(|(key, value)| (key.to_owned(), value.to_owned()));
    journal.sysctls(node, &sysctls)?;

    let device = journal.link(node, DEVICE, LinkSpec::dummy(DEVICE))?;
    let prefix = topology.addressing.host_prefix();
    for number in set.numbers() {
        let address = AddressSpec::new(device, set.service(number).ip(), prefix);
        // It goes with the device.
        node.ask(|netlink| netlink.add(&address))?;
    }
    let on_it = [Arc::clone(node)];
    let sets = sets(set, has_receiver).write_on(&on_it, journal)?;
    let rules = rules(set, has_receiver).write_on(&on_it, journal)?;

    let (all, place) = (Arc::clone(&ipvs), Arc::clone(node));
    journal.undo_by(move || {
        let flushed = all.flush().map_err(|error| place.failed(error));
        flushed.err().into_iter().collect()
    });
    for number in set.numbers() {
        let service = set.service(number);
        ipvs.add_service(service).map_err(refused)?;
        let added = ipvs.add_server(service, set.receiver());
        added.map_err(refused)?;
    }
    Ok(RuleCount {
        // A virtual server and a real one of each service.
        elements: sets.elements + 2 * u64::from(set.count()),
        ..rules
    })
}

/// The sets of kube-proxy without their prefix, and what they hold.
const SETS: [(&str, &str); 17] = [
    ("LOOP-BACK", "hash:ip,port,ip"),
    ("CLUSTER-IP", "hash:ip,port"),
    ("EXTERNAL-IP", "hash:ip,port"),
    ("EXTERNAL-IP-LOCAL", "hash:ip,port"),
    ("LOAD-BALANCER", "hash:ip,port"),
    ("LOAD-BALANCER-FW", "hash:ip,port"),
    ("LOAD-BALANCER-LOCAL", "hash:ip,port"),
    ("LOAD-BALANCER-SOURCE-IP", "hash:ip,port,ip"),
    ("LOAD-BALANCER-SOURCE-CIDR", "hash:ip,port,net"),
    ("NODE-PORT-TCP", "bitmap:port"),
    ("NODE-PORT-LOCAL-TCP", "bitmap:port"),
    ("NODE-PORT-UDP", "bitmap:port"),
    ("NODE-PORT-LOCAL-UDP", "bitmap:port"),
    ("NODE-PORT-SCTP-HASH", "hash:ip,port"),
    ("NODE-PORT-LOCAL-SCTP-HASH", "hash:ip,port"),
    ("HEALTH-CHECK-NODE-PORT", "bitmap:port"),
    ("IPVS-IPS", "hash:ip"),
];
/// Characters of the longest name that a set can have.
const LONGEST: usize = 31;

/// The name of a set; those of IPv6 have others.
fn name(family: Family, set: &str) -> String {
    let prefix = match family {
        Family::V4 => "KUBE-",
        Family::V6 => "KUBE-6-",
    };
    let mut name = format!("{prefix}{set}");
    name.truncate(LONGEST);
    name
}

fn sets(set: &ServiceSet, has_receiver: bool) -> Ruleset {
    let family = match set.family() {
        Family::V4 => "inet",
        Family::V6 => "inet6",
    };
    let name = |of: &str| name(set.family(), of);
    let create = |(of, kind): (&str, &str)| {
        let options = match kind {
            "bitmap:port" => "range 0-65535".to_owned(),
            _ => format!("family {family} hashsize 1024 maxelem 65536"),
        };
        format!("create {} {kind} {options}\n", name(of))
    };
    let mut lines: Vec<String> = SETS.into_iter().map(create).collect();
    let (clusters, addresses) = (name("CLUSTER-IP"), name("IPVS-IPS"));
    for number in set.numbers() {
        let service = set.service(number);
        let (address, port) = (service.ip(), service.port());
        lines.push(format!("add {clusters} {address},tcp:{port}\n"));
        lines.push(format!("add {addresses} {address}\n"));
    }
    if has_receiver {
        let (address, port) = (set.receiver().ip(), set.receiver().port());
        let own = name("LOOP-BACK");
        lines.push(format!("add {own} {address},tcp:{port},{address}\n"));
    }
    Ruleset {
        writer: RuleWriter::IPSET,
        count: RuleCount {
            elements: (lines.len() - SETS.len()) as u64,
            ..RuleCount::default()
        },
        texts: vec![lines.concat()],
        rest: None,
        removal: (RuleWriter::IPSET, RuleWriter::NO_SETS.to_owned()),
    }
}

fn rules(set: &ServiceSet, has_receiver: bool) -> Ruleset {
    let writer = RuleWriter::iptables_legacy(set.family());
    Ruleset::of_iptables(writer, rule_text(set, has_receiver))
}

fn rule_text(set: &ServiceSet, has_receiver: bool) -> String {
    let own = match set.family() {
        Family::V4 => "127.0.0.0/8",
        Family::V6 => "::1/128",
    };
    let pods = set.pods();
    let comment = "-m comment --comment \"plumbline\"";
    let in_set = |of: &str, fields: &str| {
        let name = name(set.family(), of);
        format!("-m set --match-set {name} {fields}")
    };
    let clusters = in_set("CLUSTER-IP", "dst,dst");
    let balancers = in_set("LOAD-BALANCER", "dst,dst");
    let externals = in_set("EXTERNAL-IP", "dst,dst");
    let locals = in_set("EXTERNAL-IP-LOCAL", "dst,dst");
    let checks = in_set("HEALTH-CHECK-NODE-PORT", "dst");
    let addresses = in_set("IPVS-IPS", "dst");
    // An endpoint of the node that asks itself; kube-proxy has no rule over an empty set.
    let loops = in_set("LOOP-BACK", "dst,dst,src");
    let loops = match has_receiver {
        true => format!("-A KUBE-POSTROUTING {comment} {loops} -j MASQUERADE\n"),
        false => String::new(),
    };
    format!(
        "*filter
:KUBE-FORWARD - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SOURCE-RANGES-FIREWALL - [0:0]
:KUBE-IPVS-FILTER - [0:0]
:KUBE-IPVS-OUT-FILTER - [0:0]
-A INPUT {comment} -j KUBE-IPVS-FILTER
-A INPUT {comment} -j KUBE-PROXY-FIREWALL
-A INPUT {comment} -j KUBE-NODE-PORT
-A FORWARD {comment} -j KUBE-PROXY-FIREWALL
-A FORWARD {comment} -j KUBE-FORWARD
-A OUTPUT {comment} -j KUBE-IPVS-OUT-FILTER
-A KUBE-SOURCE-RANGES-FIREWALL -j DROP
-A KUBE-FORWARD {comment} -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD {comment} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-NODE-PORT {comment} {checks} -j ACCEPT
-A KUBE-IPVS-FILTER {balancers} -j RETURN
-A KUBE-IPVS-FILTER {clusters} -j RETURN
-A KUBE-IPVS-FILTER {externals} -j RETURN
-A KUBE-IPVS-FILTER {locals} -j RETURN
-A KUBE-IPVS-FILTER {checks} -j RETURN
-A KUBE-IPVS-FILTER -m conntrack --ctstate NEW {addresses} -j REJECT
COMMIT
*nat
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-LOAD-BALANCER - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A PREROUTING {comment} -j KUBE-SERVICES
-A OUTPUT {comment} -j KUBE-SERVICES
-A POSTROUTING {comment} -j KUBE-POSTROUTING
-A KUBE-SERVICES -s {own} -j RETURN
{loops}-A KUBE-SERVICES {comment} {clusters} ! -s {pods} -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT
-A KUBE-LOAD-BALANCER -j KUBE-MARK-MASQ
-A KUBE-SERVICES {clusters} -j ACCEPT
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000
-A KUBE-POSTROUTING {comment} -j MASQUERADE --random-fully
-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
COMMIT
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dressing::services::service_set::tests::set;

    /// By `writeIptablesRules` and `iptablesJumpChain` of the source: 9 jumps, 9 rules of
    /// `nat` and 10 of `filter`, and one more for endpoints of the node.
    #[test]
    fn the_rules_are_the_same_for_any_number_of_services() {
        for services in [1, 10, 100] {
            for (has_receiver, more) in [(false, 0), (true, 1)] {
                let set = set(services, 1, Family::V4);
                let expected = RuleCount {
                    rules: 9 + 9 + 10 + more,
                    chains: 5 + 6,
                    elements: 0,
                };
                assert_eq!(rules(&set, has_receiver).count, expected);
                let elements = 2 * u64::from(services) + more;
                let sets = sets(&set, has_receiver);
                assert_eq!(sets.count.elements, elements);
                let created = sets.texts[0].lines().filter(|it| it.starts_with("create "));
                assert_eq!(created.count(), SETS.len());
            }
        }
    }

    #[test]
    fn every_rule_is_over_a_set_that_there_is() {
        for family in [Family::V4, Family::V6] {
            let set = set(3, 1, family);
            let created = sets(&set, true).texts.concat();
            let rules = rules(&set, true).texts.concat();
            let mut words = rules.split(' ').peekable();
            let mut matched = 0;
            while let Some(word) = words.next() {
                if word == "--match-set" {
                    let name = words.peek().expect("a name");
                    assert!(created.contains(&format!("create {name} ")), "{name}");
                    matched += 1;
                }
            }
            assert_eq!(matched, 10);
        }
        let longest = name(Family::V6, "NODE-PORT-LOCAL-SCTP-HASH");
        assert_eq!(longest, "KUBE-6-NODE-PORT-LOCAL-SCTP-HAS");
    }

    #[test]
    fn an_element_names_a_service() {
        let v4 = sets(&set(2, 1, Family::V4), true).texts.concat();
        assert!(v4.contains("add KUBE-CLUSTER-IP 10.96.0.2,tcp:80\n"));
        assert!(v4.contains("add KUBE-LOOP-BACK 198.19.2.2,tcp:8080,198.19.2.2\n"));
        let v6 = sets(&set(1, 1, Family::V6), false).texts.concat();
        assert!(v6.contains("add KUBE-6-IPVS-IPS fd00:10:96::1\n"));
        assert!(!v6.contains("add KUBE-6-LOOP-BACK"));
    }
}
