//! Rules as programs show them, without what differs from one machine to the next: names
//! without hashes, addresses and ports by those words, no comments, equal lines counted.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

/// What other programs than a proxy write into tables that they share with one.
const FOREIGN: [&str; 4] = [
    "KUBE-FIREWALL",
    "KUBE-IPTABLES-HINT",
    "KUBE-KUBELET-CANARY",
    "KUBE-MARK-DROP",
];
/// What the names of Calico's chains begin with, those for policies first.
const CALICO: [&str; 6] = [
    "cali-pi-", "cali-po-", "cali-gi-", "cali-go-", "cali-tw-", "cali-fw-",
];
/// By which kube-proxy sees that somebody has flushed its rules. A lab has none.
const CANARY: &str = "KUBE-PROXY-CANARY";

/// The tables of iptables as `iptables-save` shows them, as far as they are of a proxy.
/// Without the service of this address, which each cluster has.
pub(super) fn iptables(shown: &str, but: Option<IpAddr>) -> String {
    let rules: Vec<Vec<&str>> = shown.lines().filter_map(words).collect();
    let own = but.map(|address| of_service(&rules, address));
    let own = own.unwrap_or_default();
    let is_foreign = |word: &&str| FOREIGN.contains(word) || *word == CANARY || own.contains(word);
    let is_wanted = |rule: &&Vec<&str>| {
        rule.iter().any(|word| word.starts_with("KUBE-")) && !rule.iter().any(is_foreign)
    };
    let is_to = |rule: &&Vec<&str>| {
        let address = but.map(|it| format!("{it}/32"));
        !rule.iter().any(|word| Some(*word) == address.as_deref())
    };
    let lines = rules.iter().filter(is_wanted).filter(is_to);
    counted(lines.map(|rule| line(rule)))
}

/// The chains of Calico for policies, and the rules that lead to them, as `iptables-save` shows
/// them.
pub(super) fn calico(shown: &str) -> String {
    let is_of_policies = |word: &&str| CALICO[..4].iter().any(|it| word.starts_with(it));
    let rules = shown.lines().filter_map(words);
    let rules = rules.filter(|rule| rule.iter().any(is_of_policies));
    counted(rules.map(|rule| line(&rule)))
}

/// The chains of a service: its own, and those of its endpoints.
fn of_service<'a>(rules: &[Vec<&'a str>], address: IpAddr) -> Vec<&'a str> {
    let address = format!("{address}/32");
    let jumps = |chain: &str| -> Vec<&'a str> {
        let of_chain = rules.iter().filter(|it| it.len() > 1 && it[1] == chain);
        of_chain.filter_map(|it| it.last().copied()).collect()
    };
    let service = rules
        .iter()
        .find(|it| it.contains(&"KUBE-SERVICES") && it.contains(&address.as_str()));
    let Some(chain) = service.and_then(|it| it.last().copied()) else {
        return Vec::new();
    };
    let endpoints = jumps(chain)
        .into_iter()
        .filter(|it| it.starts_with("KUBE-SEP-"));
    endpoints.chain([chain]).collect()
}

/// The words of a rule or of the declaration of a chain, without comments and counters.
fn words(line: &str) -> Option<Vec<&str>> {
    if let Some(chain) = line.strip_prefix(':') {
        return Some(vec![":", chain.split(' ').next()?]);
    }
    let mut rest = line.starts_with("-A ").then_some(line)?;
    let mut words = Vec::new();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word);
        rest = after.trim_start();
    }
    for (dropped, values) in [
        ("comment", 0),
        ("--comment", 1),
        ("nfacct", 0),
        ("--nfacct-name", 1),
    ] {
        while let Some(at) = words.iter().position(|it| *it == dropped) {
            let from = if dropped.starts_with("--") {
                at
            } else {
                at - 1
            };
            words.drain(from..=at + values);
        }
    }
    Some(words)
}

fn line(rule: &[&str]) -> String {
    let mut words: Vec<String> = rule.iter().map(|it| word(it)).collect();
    for at in 1..words.len() {
        if matches!(&*words[at - 1], "--dport" | "--dports") {
            words[at] = "PORT".to_owned();
        }
    }
    words.join(" ")
}

/// A word without what is this machine's.
fn word(word: &str) -> String {
    for prefix in ["KUBE-SVC-", "KUBE-SEP-", "cali40s:"].iter().chain(&CALICO) {
        if word.starts_with(prefix) {
            return format!("{prefix}*");
        }
    }
    for prefix in ["service-", "endpoint-"] {
        // Not `service-ips` and the like, which are names for good.
        if word.starts_with(prefix) && word.contains('/') {
            return format!("{prefix}*");
        }
    }
    let (address, port) = match word.rsplit_once(':') {
        Some((address, port)) if port.parse::<u16>().is_ok() => (address, ":PORT"),
        _ => (word, ""),
    };
    let bare = address.split('/').next().unwrap_or(address);
    match bare.parse::<IpAddr>() {
        Ok(_) => format!("ADDRESS{port}"),
        Err(_) => word.to_owned(),
    }
}

/// The table of a proxy as `nft -j list table` shows it. Without what has one of these
/// words: of the service that each cluster has.
pub(super) fn nftables(shown: &str, but: &[&str]) -> String {
    let shown: Value = serde_json::from_str(shown).expect("JSON");
    let all = shown["nftables"].as_array().expect("a list");
    let mut lines = Vec::new();
    for object in all {
        let object = object.as_object().expect("an object");
        let (kind, of) = object.iter().next().expect("one kind");
        if kind == "metainfo" {
            continue;
        }
        let mut of = of.clone();
        let fields = of.as_object_mut().expect("an object");
        for dropped in ["handle", "comment", "table", "family"] {
            fields.remove(dropped);
        }
        let elements = fields.remove("elem");
        let name = fields.get("name").cloned().unwrap_or_default();
        for element in elements
            .iter()
            .flat_map(|it| it.as_array().expect("a list"))
        {
            lines.push((
                "element of ".to_owned() + name.as_str().expect("a name"),
                element.clone(),
            ));
        }
        lines.push((kind.clone(), of));
    }
    lines.retain(|(_, value)| {
        let text = value.to_string();
        !but.iter().any(|word| text.contains(word))
    });
    counted(lines.into_iter().map(|(kind, mut value)| {
        normalise(&mut value);
        format!("{kind} {value}")
    }))
}

fn normalise(value: &mut Value) {
    match value {
        Value::String(text) => *text = word(text),
        Value::Array(values) => values.iter_mut().for_each(normalise),
        Value::Object(fields) => {
            fields.remove("comment");
            for (key, value) in fields {
                normalise(value);
                match &**key {
                    "port" if value.is_number() => *value = "PORT".into(),
                    // Of a prefix.
                    "len" => *value = "LENGTH".into(),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Equal lines once, with how often they are there.
fn counted(lines: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines {
        *counts.entry(line).or_default() += 1;
    }
    let lines = counts
        .iter()
        .map(|(line, count)| format!("{count} {line}\n"));
    lines.collect()
}
