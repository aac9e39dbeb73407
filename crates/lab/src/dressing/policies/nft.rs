//! `nft`: the plain reference without a list. The peers of all policies of a pod are
//! keys of one verdict map, address and port together, so that a packet costs one
//! look-up however many there are.

use plumbline_experiment::Family;

use super::guarded_pod::{GuardedPod, Peers};
use super::rule_text::RuleText;
use crate::dressing::rule_writer::family_of_table;

/// The table that holds all of it.
const TABLE: &str = "plumbline-policies";

/// What policies restrict, and how rules name the pod and its peers there.
struct Restriction {
    name: &'static str,
    own: &'static str,
    far: &'static str,
    policies: fn(&GuardedPod) -> &[Peers],
}

const RESTRICTIONS: [Restriction; 2] = [
    Restriction {
        name: "egress",
        own: "saddr",
        far: "daddr",
        policies: |pod| &pod.egress,
    },
    Restriction {
        name: "ingress",
        own: "daddr",
        far: "saddr",
        policies: |pod| &pod.ingress,
    },
];

pub(super) fn rules(pods: &[GuardedPod], port: u16, family: Family) -> RuleText {
    let ip = family_of_table(family);
    let mut maps = String::new();
    let mut forward = "\t\tct state established,related accept\n".to_owned();
    let mut text = RuleText {
        rules: 1,
        chains: 1,
        ..RuleText::default()
    };
    for of in RESTRICTIONS {
        let far = format!("{ip} {} . tcp dport", of.far);
        let mut jumps = Vec::new();
        for (number, pod) in pods.iter().enumerate() {
            let peers = (of.policies)(pod).iter().flat_map(|it| &it.all);
            // A packet between two pods of a node has to pass both, so a verdict only
            // returns.
            let keys: Vec<String> = peers.map(|it| format!("{it} . {port} : return")).collect();
            if keys.is_empty() {
                continue;
            }
            let chain = format!("{}-{number}", of.name);
            maps += &format!(
                "\tmap {chain} {{\n\t\ttypeof {far} : verdict\n\t\telements = {{ {} }}\n\t}}\n",
                keys.join(", ")
            );
            maps += &format!("\tchain {chain} {{\n\t\t{far} vmap @{chain}\n\t\tdrop\n\t}}\n");
            jumps.push(format!("{} : jump {chain}", pod.address));
            text.chains += 1;
            text.rules += 2;
            text.elements += keys.len() as u64;
        }
        if !jumps.is_empty() {
            forward += &format!("\t\t{ip} {} vmap {{ {} }}\n", of.own, jumps.join(", "));
            text.rules += 1;
        }
    }
    text.nft = vec![format!(
        "table {ip} {TABLE} {{\n{maps}\tchain forward {{\n\
         \t\ttype filter hook forward priority filter; policy accept;\n{forward}\t}}\n}}\n"
    )];
    text.nft_table = format!("{ip} {TABLE}");
    text
}
