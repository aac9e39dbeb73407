//! The rules of kube-proxy in its nftables mode (kubernetes/kubernetes, v1.34,
//! `pkg/proxy/nftables/proxier.go`; what it writes, `baseRules` in `proxier_test.go` beside
//! it): one lookup in a map finds the chain of a service, however many there are. Only new
//! connections get as far.
//!
//! Node ports are of the first node on both, which no packet of a lab asks.

use std::fmt::Write as _;

use plumbline_experiment::Family;
use plumbline_sys::namespace::in_user_namespace;

use super::ruleset::Ruleset;
use super::service_set::ServiceSet;
use crate::dressing::dressed::RuleCount;
use crate::dressing::rule_writer::RuleWriter;

/// Endpoints of one transaction of an ordinary user: `nft` may then send no more at once
/// than `net.core.wmem_default` bytes. Root sends all in one transaction, as kube-proxy
/// does, which is faster by far: for each `nft` asks the kernel for all that is there.
const PIECE: u32 = 80;

/// All of it.
pub(super) fn ruleset(set: &ServiceSet) -> Ruleset {
    let mut texts = vec![base(set)];
    let services: Vec<u32> = set.numbers().collect();
    let of_a_piece = match in_user_namespace() {
        true => (PIECE / set.endpoints()).max(1) as usize,
        false => services.len().max(1),
    };
    texts.extend(services.chunks(of_a_piece).map(|some| {
        let mut text = String::new();
        for number in some {
            // Writing to a string cannot fail.
            let _ = write_service(&mut text, set, *number);
        }
        text
    }));
    let count = |what: &str| {
        let lines = texts.iter().flat_map(|it| it.lines());
        lines.filter(|line| line.starts_with(what)).count() as u64
    };
    let family = family(set);
    let writer = RuleWriter {
        program: "nft",
        arguments: &["-f"],
        package: "nftables",
    };
    Ruleset {
        writer,
        count: RuleCount {
            rules: count("add rule"),
            chains: count("add chain"),
            elements: count("add element"),
        },
        // The first makes the second possible where the table is not there.
        removal: (
            writer,
            format!("add table {family} kube-proxy\ndelete table {family} kube-proxy\n"),
        ),
        texts,
    }
}

fn family(set: &ServiceSet) -> &'static str {
    match set.family() {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    }
}

fn base(set: &ServiceSet) -> String {
    let family = family(set);
    let kind = match set.family() {
        Family::V4 => "ipv4_addr",
        Family::V6 => "ipv6_addr",
    };
    let (range, prefix) = set.range();
    let node = set.node();
    let t = format!("{family} kube-proxy");
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

fn write_service(text: &mut String, set: &ServiceSet, number: u32) -> std::fmt::Result {
    let (family, pods) = (family(set), set.pods());
    let (service, receiver) = (set.service(number), set.receiver());
    let t = format!("{family} kube-proxy");
    // As long as the real ones, which have a hash.
    let chain = format!("service-{number:08}-plumbline/s{number}/tcp/");
    let endpoint = |of: u32| {
        let (address, port) = (receiver.ip(), receiver.port());
        // A name has no colons.
        let address = address.to_string().replace(':', ".");
        format!("endpoint-{number:05}{of:03}-plumbline/s{number}/tcp/__{address}/{port}")
    };
    let (address, port) = (service.ip(), service.port());
    writeln!(text, "add chain {t} {chain}")?;
    for of in 0..set.endpoints() {
        let chain = endpoint(of);
        let backend = receiver.ip();
        writeln!(text, "add chain {t} {chain}")?;
        writeln!(
            text,
            "add rule {t} {chain} {family} saddr {backend} jump mark-for-masquerade"
        )?;
        writeln!(
            text,
            "add rule {t} {chain} meta l4proto tcp dnat to {receiver}"
        )?;
    }
    let choices = (0..set.endpoints()).map(|of| format!("{of} : goto {}", endpoint(of)));
    let choices: Vec<String> = choices.collect();
    let daddr = format!("{family} daddr {address}");
    writeln!(
        text,
        "add rule {t} {chain} {daddr} {family} saddr != {pods} jump mark-for-masquerade"
    )?;
    writeln!(
        text,
        "add rule {t} {chain} numgen random mod {} vmap {{ {} }}",
        set.endpoints(),
        choices.join(" , ")
    )?;
    writeln!(text, "add element {t} cluster-ips {{ {address} }}")?;
    writeln!(
        text,
        "add element {t} service-ips {{ {address} . tcp . {port} : goto {chain} }}"
    )
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
    fn one_lookup_finds_a_service() {
        let rules = ruleset(&set(150, 1, Family::V6)).texts;
        assert!(rules[0].contains("add rule ip6 kube-proxy services ip6 daddr"));
        let last = rules.last().unwrap();
        let goes = "{ fd00:10:96::96 . tcp . 80 : goto service-00000149-plumbline/s149/tcp/ }";
        assert!(last.contains(goes), "{last}");
        assert!(last.contains("dnat to [2001:2:0:2::2]:8080"));
    }
}
