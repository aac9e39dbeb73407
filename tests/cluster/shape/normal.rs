//! Rules as programs show them, without what differs from one machine to the next: names
//! without hashes, addresses and ports by those words, no comments. Chains have their rules in their
//! order; what is alike is counted.

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
    let rules = rules(shown);
    let own = but.map(|address| of_service(&rules, address));
    let own = own.unwrap_or_default();
    let is_foreign = |word: &&str| FOREIGN.contains(word) || *word == CANARY || own.contains(word);
    let is_wanted = |rule: &&Rule<'_>| {
        let mut words = rule.words.iter();
        words.any(|word| word.starts_with("KUBE-")) && !rule.words.iter().any(is_foreign)
    };
    let is_to = |rule: &&Rule<'_>| {
        let address = but.map(|it| format!("{it}/32"));
        !rule.words.iter().any(|it| Some(*it) == address.as_deref())
    };
    shape(rules.iter().filter(is_wanted).filter(is_to))
}

/// The chains of Calico for policies, and the rules that lead to them, as `iptables-save` shows
/// them.
pub(super) fn calico(shown: &str) -> String {
    let is_of_policies = |word: &&str| CALICO[..4].iter().any(|it| word.starts_with(it));
    let rules = rules(shown);
    shape(
        rules
            .iter()
            .filter(|it| it.words.iter().any(is_of_policies)),
    )
}

/// A rule of iptables, or the declaration of a chain.
struct Rule<'a> {
    table: &'a str,
    words: Vec<&'a str>,
}

fn rules(shown: &str) -> Vec<Rule<'_>> {
    let mut table = "";
    let mut rules = Vec::new();
    for line in shown.lines() {
        table = line.strip_prefix('*').unwrap_or(table);
        rules.extend(words(line).map(|words| Rule { table, words }));
    }
    rules
}

fn shape<'a>(rules: impl Iterator<Item = &'a Rule<'a>>) -> String {
    let mut shape = Shape::default();
    for rule in rules {
        let chain = format!("{} {}", rule.table, rule.words[1]);
        shape.add(chain, line(&rule.words));
    }
    shape.into_text()
}

/// Chains, each with its rules, and what is in none.
#[derive(Default)]
struct Shape {
    chains: BTreeMap<String, Vec<String>>,
    others: Vec<String>,
}

impl Shape {
    fn add(&mut self, chain: String, rule: String) {
        self.chains.entry(chain).or_default().push(rule);
    }

    /// Equal chains once, with how often they are there, and so equal lines.
    fn into_text(self) -> String {
        let body = |rules: Vec<String>| -> String {
            let alike = rules.chunk_by(|one, other| one == other);
            let lines = alike.map(|it| format!("\n    {} {}", it.len(), it[0]));
            "chain".to_owned() + &lines.collect::<String>()
        };
        let chains = self.chains.into_values().map(body);
        counted(self.others.into_iter().chain(chains))
    }
}

/// The chains of a service: its own, and those of its endpoints.
fn of_service<'a>(rules: &[Rule<'a>], address: IpAddr) -> Vec<&'a str> {
    let address = format!("{address}/32");
    let rules = || rules.iter().map(|it| &it.words);
    let jumps = |chain: &str| -> Vec<&'a str> {
        let of_chain = rules().filter(|it| it.len() > 1 && it[1] == chain);
        of_chain.filter_map(|it| it.last().copied()).collect()
    };
    let service =
        rules().find(|it| it.contains(&"KUBE-SERVICES") && it.contains(&address.as_str()));
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
    let is_wanted = |value: &Value| {
        let text = value.to_string();
        !but.iter().any(|word| text.contains(word))
    };
    let mut shape = Shape::default();
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
        let elements = fields
            .remove("elem")
            .unwrap_or_else(|| Value::Array(Vec::new()));
        let name = |key: &str| of[key].as_str().unwrap_or_default().to_owned();
        let elements = elements.as_array().expect("a list").iter();
        let of_set = elements.filter(|it| is_wanted(it));
        let of_set = of_set.map(|it| format!("element of {} {}", name("name"), normal(it)));
        shape.others.extend(of_set);
        if !is_wanted(&of) {
            continue;
        }
        let line = format!("{kind} {}", normal(&of));
        match &**kind {
            "chain" => shape.add(name("name"), line),
            "rule" => shape.add(name("chain"), line),
            _ => shape.others.push(line),
        }
    }
    shape.into_text()
}

fn normal(value: &Value) -> Value {
    let mut value = value.clone();
    normalise(&mut value);
    value
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
