//! In what two environments differ (C-13).

use std::collections::{BTreeMap, BTreeSet};

use plumbline_record::{CniList, DeviceFingerprint, Fingerprint, KUBE_PROXY_FACTS};
use serde::Serialize;
use serde_json::Value;

use crate::describe;

/// Facts that change from one run to the next without changing what it
/// measures: a clock is never read twice at the same cost, and memory depends
/// on what the kernel reserved at boot.
const VOLATILE: [&str; 3] = ["clock_read_ns", "conntrack", "memory_bytes"];

/// Facts that a run sees with some rights only: where one run lacks them, nothing
/// is known to differ.
const SEEN_BY_SOME: [&str; 2] = KUBE_PROXY_FACTS;

/// One fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Position of the later run among those compared, from 1.
    pub run: usize,
    /// Which fact, such as `kernel` or `sysctls.net.core.rmem_max`.
    pub fact: String,
    /// Its value in the first run.
    pub first: String,
    /// Its value in the later run.
    pub later: String,
}

/// Every fact that differs. Works on the stored form, so that a fact that is
/// added to fingerprints is compared without a change here. Devices and what made
/// a network are compared on the paths that both runs have: a run of other networks
/// on the same machine is no other environment.
pub fn differences(run: usize, first: &Fingerprint, later: &Fingerprint) -> Vec<Difference> {
    let value = |fingerprint: &Fingerprint| {
        let without_devices = Fingerprint {
            devices: BTreeMap::new(),
            cni: BTreeMap::new(),
            ..fingerprint.clone()
        };
        serde_json::to_value(without_devices).unwrap_or_default()
    };
    let mut differences = Vec::new();
    compare(run, "", &value(first), &value(later), &mut differences);
    let mut facts = Vec::new();
    for (path, ours) in &first.devices {
        if let Some(theirs) = later.devices.get(path) {
            facts.extend(devices(path, ours, theirs));
        }
    }
    for (network, ours) in &first.cni {
        if let Some(theirs) = later.cni.get(network) {
            facts.extend(cni(network, ours, theirs));
        }
    }
    differences.extend(facts.into_iter().map(|(fact, first, later)| Difference {
        run,
        fact,
        first: describe::clean(&first),
        later: describe::clean(&later),
    }));
    differences
}

/// What differs between what made one network: the first line of the list that is
/// another, and each plugin.
fn cni(network: &str, first: &CniList, later: &CniList) -> Vec<Fact> {
    let mut facts = Vec::new();
    if first.text != later.text {
        let (mut ours, mut theirs) = (first.text.lines(), later.text.lines());
        let line = |text: Option<&str>| text.map_or("absent", str::trim).to_owned();
        let pairs = std::iter::repeat_with(|| (ours.next(), theirs.next()));
        let pairs = pairs.take_while(|(ours, theirs)| ours.is_some() || theirs.is_some());
        let differing = pairs.enumerate().find(|(_, (ours, theirs))| ours != theirs);
        // Texts of the same lines differ in how these end.
        let (number, (ours, theirs)) = differing.unwrap_or_default();
        let name = format!("cni.{network}, line {}", number + 1);
        facts.push((name, line(ours), line(theirs)));
    }
    let plugins = |list: &CniList| -> BTreeMap<String, String> {
        let named = list.plugins.iter();
        named
            .map(|one| (one.kind.clone(), describe::plugin(one)))
            .collect()
    };
    let (first, later) = (plugins(first), plugins(later));
    let kinds: BTreeSet<&String> = first.keys().chain(later.keys()).collect();
    for kind in kinds {
        let (ours, theirs) = (first.get(kind), later.get(kind));
        if ours != theirs {
            let shown = |one: Option<&String>| one.map_or("absent".to_owned(), String::clone);
            facts.push((format!("cni.{network}.{kind}"), shown(ours), shown(theirs)));
        }
    }
    facts
}

/// A fact with its value in the first and in the later run.
type Fact = (String, String, String);

/// What differs between the devices of one path: a fact for each field.
fn devices(path: &str, first: &[DeviceFingerprint], later: &[DeviceFingerprint]) -> Vec<Fact> {
    let by_place = |devices: &[DeviceFingerprint]| -> BTreeMap<_, _> {
        let named = devices.iter().cloned();
        named
            .map(|one| (format!("{}/{}", one.namespace, one.device), one))
            .collect()
    };
    let (first, later) = (by_place(first), by_place(later));
    let places: BTreeSet<&String> = first.keys().chain(later.keys()).collect();
    let mut facts = Vec::new();
    for place in places {
        let name = |field: &str| format!("devices.{path}.{place}{field}");
        match (first.get(place), later.get(place)) {
            (Some(ours), Some(theirs)) => {
                let pairs = fields(ours).into_iter().zip(fields(theirs));
                let differing = pairs.filter(|(ours, theirs)| ours != theirs);
                facts.extend(
                    differing.map(|((field, ours), (_, theirs))| (name(field), ours, theirs)),
                );
                let offloads = offloads(ours, theirs);
                facts.extend(
                    offloads.map(|(offload, was, is)| (name(&format!(".{offload}")), was, is)),
                );
            }
            (ours, theirs) => {
                let driver = |one: Option<&DeviceFingerprint>| {
                    one.map_or("absent".to_owned(), |one| one.driver.clone())
                };
                facts.push((name(""), driver(ours), driver(theirs)));
            }
        }
    }
    facts
}

fn fields(device: &DeviceFingerprint) -> [(&'static str, String); 4] {
    let route_mtu = device.route_mtu.map(|mtu| mtu.to_string());
    let route_mtu = route_mtu.unwrap_or_else(|| "that of the device".to_owned());
    [
        (".driver", device.driver.clone()),
        (".mtu", device.mtu.to_string()),
        (".route_mtu", route_mtu),
        (".qdisc", device.qdisc.clone()),
    ]
}

/// The offloads that only one of both has on.
fn offloads<'a>(
    ours: &'a DeviceFingerprint,
    theirs: &'a DeviceFingerprint,
) -> impl Iterator<Item = (&'a str, String, String)> {
    let ours: BTreeSet<&str> = ours.offloads.iter().map(String::as_str).collect();
    let theirs: BTreeSet<&str> = theirs.offloads.iter().map(String::as_str).collect();
    let state = |is_on| if is_on { "on" } else { "off" }.to_owned();
    let differing: Vec<&str> = ours.symmetric_difference(&theirs).copied().collect();
    differing.into_iter().map(move |name| {
        (
            name,
            state(ours.contains(name)),
            state(theirs.contains(name)),
        )
    })
}

fn compare(run: usize, fact: &str, first: &Value, later: &Value, found: &mut Vec<Difference>) {
    // The same facts of other machines stand under their names.
    let last = fact.rsplit('.').next().unwrap_or(fact);
    if VOLATILE.contains(&last) || first == later {
        return;
    }
    if SEEN_BY_SOME.contains(&last) && (first.is_null() || later.is_null()) {
        return;
    }
    if let (Value::Object(ours), Value::Object(theirs)) = (first, later) {
        let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for key in keys {
            let name = if fact.is_empty() {
                key.clone()
            } else {
                format!("{fact}.{key}")
            };
            let of =
                |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
            compare(run, &name, &of(ours), &of(theirs), found);
        }
        return;
    }
    found.push(Difference {
        run,
        fact: fact.to_owned(),
        first: shown(first),
        later: shown(later),
    });
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => describe::clean(text),
        other => describe::clean(&other.to_string()),
    }
}

/// A line for each difference.
pub(super) fn list(differences: &[Difference]) -> String {
    let line = |one: &Difference| {
        format!(
            "  run {}: {} is {}, was {}\n",
            one.run + 1,
            describe::clean(&one.fact),
            one.later,
            one.first
        )
    };
    differences.iter().map(line).collect()
}
