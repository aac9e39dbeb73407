//! The rules of kube-proxy in its nftables mode (kubernetes/kubernetes, v1.34,
//! `pkg/proxy/nftables/proxier.go`; what it writes, `baseRules` in `proxier_test.go` beside
//! it): one lookup in a map finds the chain of a service, however many there are. Only new
//! connections get as far.
//!
//! Node ports are of the first node on both, which no packet of a lab asks.

use plumbline_experiment::Family;
use plumbline_sys::netlink::{
    NetlinkError, NftElement, NftExpression, NftFamily, NftVerdict, NftWriter, octets,
};

use super::ruleset::Ruleset;
use super::service_set::ServiceSet;
use crate::dressing::dressed::RuleCount;
use crate::dressing::rule_writer::{RuleWriter, family_of_table};

const TABLE: &str = "kube-proxy";
/// Where connections go that are to look as if they came from the node.
const MASQUERADE: NftExpression<'_> =
    NftExpression::Verdict(NftVerdict::Jump("mark-for-masquerade"));
/// As packets name TCP.
const TCP: [u8; 1] = [6];

/// All of it: what is there for any number of services by `nft`, those by netlink.
pub(super) fn ruleset(set: &ServiceSet) -> Ruleset {
    let (base, family) = (base(set), family_of_table(set.family()));
    let count = |what: &str| base.lines().filter(|line| line.starts_with(what)).count() as u64;
    let (services, endpoints) = (set.numbers().count() as u64, set.all_endpoints());
    let set = *set;
    Ruleset {
        writer: RuleWriter::NFT,
        count: RuleCount {
            rules: count("add rule") + 2 * services + 2 * endpoints,
            chains: count("add chain") + services + endpoints,
            elements: count("add element") + 2 * services,
        },
        removal: (
            RuleWriter::NFT,
            RuleWriter::no_table(&format!("{family} {TABLE}")),
        ),
        texts: vec![base],
        rest: Some(Box::new(move || write_services(&set))),
    }
}

fn base(set: &ServiceSet) -> String {
    let family = family_of_table(set.family());
    let kind = match set.family() {
        Family::V4 => "ipv4_addr",
        Family::V6 => "ipv6_addr",
    };
    let (range, prefix) = set.range();
    let node = set.node();
    let t = format!("{family} {TABLE}");
    format!(
        "add table {t} {{ comment \"plumbline\" ; }}
add set {t} cluster-ips {{ type {kind} ; }}
add set {t} nodeport-ips {{ type {kind} ; }}
add map {t} firewall-ips {{ type {kind} . inet_proto . inet_service : verdict ; }}
add map {t} no-endpoint-nodeports {{ type inet_proto . inet_service : verdict ; }}
add map {t} no-endpoint-services {{ type {kind} . inet_proto . inet_service : verdict ; }}
add map {t} service-ips {{ type {kind} . inet_proto . inet_service : verdict ; }}
add map {t} service-nodeports {{ type inet_proto . inet_service : verdict ; }}
add chain {t} cluster-ips-check
add chain {t} filter-prerouting-pre-dnat {{ type filter hook prerouting priority -110 ; }}
add chain {t} filter-output-pre-dnat {{ type filter hook output priority -110 ; }}
add chain {t} filter-forward {{ type filter hook forward priority 0 ; }}
add chain {t} filter-input {{ type filter hook input priority 0 ; }}
add chain {t} filter-output {{ type filter hook output priority 0 ; }}
add chain {t} firewall-check
add chain {t} mark-for-masquerade
add chain {t} masquerading
add chain {t} nat-output {{ type nat hook output priority -100 ; }}
add chain {t} nat-postrouting {{ type nat hook postrouting priority 100 ; }}
add chain {t} nat-prerouting {{ type nat hook prerouting priority -100 ; }}
add chain {t} nodeport-endpoints-check
add chain {t} reject-chain
add chain {t} services
add chain {t} service-endpoints-check
add rule {t} cluster-ips-check {family} daddr @cluster-ips reject comment \"plumbline\"
add rule {t} cluster-ips-check {family} daddr {{ {range}/{prefix} }} drop comment \"plumbline\"
add rule {t} filter-prerouting-pre-dnat ct state new jump firewall-check
add rule {t} filter-forward ct state new jump service-endpoints-check
add rule {t} filter-forward ct state new jump cluster-ips-check
add rule {t} filter-input ct state new jump nodeport-endpoints-check
add rule {t} filter-input ct state new jump service-endpoints-check
add rule {t} filter-output ct state new jump service-endpoints-check
add rule {t} filter-output-pre-dnat ct state new jump firewall-check
add rule {t} filter-output ct state new jump cluster-ips-check
add rule {t} firewall-check {family} daddr . meta l4proto . th dport vmap @firewall-ips
add rule {t} mark-for-masquerade mark set mark or 0x4000
add rule {t} masquerading mark and 0x4000 == 0 return
add rule {t} masquerading mark set mark xor 0x4000
add rule {t} masquerading masquerade fully-random
add rule {t} nat-output jump services
add rule {t} nat-postrouting jump masquerading
add rule {t} nat-prerouting jump services
add rule {t} nodeport-endpoints-check {family} daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports
add rule {t} reject-chain reject
add rule {t} services {family} daddr . meta l4proto . th dport vmap @service-ips
add rule {t} services {family} daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
add element {t} nodeport-ips {{ {node} }}
add rule {t} service-endpoints-check {family} daddr . meta l4proto . th dport vmap @no-endpoint-services
"
    )
}

/// Writes what stands for each service.
fn write_services(set: &ServiceSet) -> Result<(), NetlinkError> {
    let family = match set.family() {
        Family::V4 => NftFamily::Ip,
        Family::V6 => NftFamily::Ip6,
    };
    let mut writer = NftWriter::open(family, TABLE)?;
    for number in set.numbers() {
        write_service(&mut writer, set, number)?;
    }
    writer.finish()
}

fn write_service(
    writer: &mut NftWriter,
    set: &ServiceSet,
    number: u32,
) -> Result<(), NetlinkError> {
    use NftExpression::{
        Destination, DestinationNat, Equal, NotEqual, Random, Source, TransportProtocol,
        VerdictByNumber,
    };
    let receiver = set.receiver();
    let backend = octets(receiver.ip());
    let endpoints = (0..set.endpoints()).map(|of| endpoint_chain(set, number, of));
    let endpoints: Vec<String> = endpoints.collect();
    for chain in &endpoints {
        writer.chain(chain)?;
        let bytes = backend.len() as u32;
        writer.rule(chain, &[Source { bytes }, Equal(&backend), MASQUERADE])?;
        let translated = [TransportProtocol, Equal(&TCP), DestinationNat(receiver)];
        writer.rule(chain, &translated)?;
    }
    let (service, port) = (set.service(number), set.service(number).port());
    let address = octets(service.ip());
    let chain = service_chain(number);
    writer.chain(&chain)?;
    // Their prefix is of whole bytes.
    let (pods, prefix) = set.pod_network();
    let pods = &octets(pods)[..usize::from(prefix / 8)];
    let from_outside = [
        Destination,
        Equal(&address),
        Source {
            bytes: pods.len() as u32,
        },
        NotEqual(pods),
        MASQUERADE,
    ];
    writer.rule(&chain, &from_outside)?;
    let choices = endpoints.iter().map(|chain| NftVerdict::Goto(chain));
    let choices: Vec<NftVerdict<'_>> = choices.collect();
    let chosen = [Random(set.endpoints()), VerdictByNumber(&choices)];
    writer.rule(&chain, &chosen)?;
    writer.elements("cluster-ips", &[NftElement::new(&[&address])])?;
    let key = NftElement::new(&[&address, &TCP, &port.to_be_bytes()]);
    writer.elements("service-ips", &[key.verdict(NftVerdict::Goto(&chain))])
}

/// As long as the real ones, which have a hash.
fn service_chain(number: u32) -> String {
    format!("service-{number:08}-plumbline/s{number}/tcp/")
}

fn endpoint_chain(set: &ServiceSet, number: u32, of: u32) -> String {
    let (address, port) = (set.receiver().ip(), set.receiver().port());
    // A name has no colons.
    let address = address.to_string().replace(':', ".");
    format!("endpoint-{number:05}{of:03}-plumbline/s{number}/tcp/__{address}/{port}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dressing::services::service_set::tests::set;

    /// What the real one's tests show for each service.
    #[test]
    fn there_are_as_many_rules_as_kube_proxy_writes() {
        for services in [1, 10, 100] {
            for endpoints in [1, 3] {
                let rules = ruleset(&set(services, endpoints, Family::V4));
                let expected = RuleCount {
                    chains: u64::from(16 + services * (1 + endpoints)),
                    rules: u64::from(23 + services * (2 + 2 * endpoints)),
                    elements: u64::from(1 + 2 * services),
                };
                assert_eq!(rules.count, expected, "{services} of {endpoints}");
            }
        }
    }

    #[test]
    fn chains_have_names_of_their_own() {
        let set = set(10, 3, Family::V6);
        let names = set.numbers().flat_map(|number| {
            let endpoints = (0..3).map(move |of| endpoint_chain(&set, number, of));
            endpoints.chain([service_chain(number)])
        });
        let names: std::collections::BTreeSet<String> = names.collect();
        assert_eq!(names.len(), 40);
        // What `nft` can read again.
        let fine = |c: char| c.is_ascii_alphanumeric() || "-/_.".contains(c);
        assert!(names.iter().all(|name| name.chars().all(fine)), "{names:?}");
    }
}
