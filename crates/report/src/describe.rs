//! Workloads and other things of a run in words.

use std::collections::BTreeSet;

use plumbline_experiment::{Arrival, FACTORS, Scene, Task, Treatment, Workload, WorkloadKind};
use plumbline_record::{CniPlugin, NodeRules};

use crate::analysis::{
    Effect, FoundCluster, FoundNode, Metric, Neighbour, Summary, TreatmentSummary, Unit,
};
use crate::number;

pub(crate) use crate::foreign::{clean, first_line};

/// A task in a line.
pub(crate) fn task(task: &Task) -> String {
    match task {
        Task::Load(load) => workload(load),
        Task::Programming(change) => {
            format!("{}, {}", change.in_words(), number::rate(change.rate))
        }
        Task::Launch(launch) => {
            let when = match launch.rate {
                _ if launch.pods == 1 => String::new(),
                None => " at once".to_owned(),
                Some(rate) => format!(", {}", number::rate(rate)),
            };
            let what = launch.in_words();
            format!("{what}{when}, and followed until packets have passed both ways")
        }
        Task::Survive(survive) => {
            let (what, rate) = (survive.in_words(), number::rate(survive.rate));
            format!("{what}, {rate} of each kind: {}", clean(&survive.during))
        }
    }
}

/// A workload in a line: `TCP request/response, 64 B and 64 B back, 16
/// connections, Poisson 5,000/s`.
pub(crate) fn workload(workload: &Workload) -> String {
    let request = number::bytes(f64::from(workload.request_size));
    let response = number::bytes(f64::from(workload.response_size));
    let what = workload.in_words(&request, &response);
    let connections = match workload.connections {
        1 => "1 connection".to_owned(),
        several => format!("{several} connections"),
    };
    format!("{what}, {connections}{}", arrival(workload))
}

fn arrival(workload: &Workload) -> String {
    match workload.arrival {
        Arrival::Constant { rate } => format!(", open loop at a constant {}", number::rate(rate)),
        Arrival::Poisson { rate } => format!(", open loop, Poisson at {}", number::rate(rate)),
        Arrival::Closed if workload.kind == WorkloadKind::Stream => String::new(),
        Arrival::Closed if workload.kind == WorkloadKind::Datagram => {
            ", as fast as it goes".to_owned()
        }
        // L-4: never without its label.
        Arrival::Closed => format!(", closed loop, {} outstanding", workload.connections),
    }
}

/// The link between the nodes in a sentence, where the run asked for one: a
/// figure over a link of 1 Gbit/s must not be read as one of a bare veth pair.
pub(crate) fn link(summary: &Summary) -> Option<String> {
    (!summary.link.is_default()).then(|| format!("The link between nodes: {}.", summary.link))
}

/// What was found in a cluster: `Found: Calico with VXLAN, MTU 1450; kube-proxy with
/// iptables; nodes a (Linux 6.1) and b (Linux 6.1).`
pub(crate) fn cluster(of: &FoundCluster) -> String {
    let name = of.name.as_ref().map(|name| format!(" in {}", clean(name)));
    let network = match (&of.network, &of.transport) {
        (Some(network), Some(transport)) => format!("{network} with {transport}"),
        (Some(network), None) => format!("{network}, unknown how packets cross between nodes"),
        (None, Some(transport)) => format!("an unknown network with {transport}"),
        (None, None) => "an unknown network".to_owned(),
    };
    let mtu = of
        .mtu
        .map_or_else(|| "unknown".to_owned(), |mtu| mtu.to_string());
    let proxy = of.proxy.as_deref().unwrap_or("kube-proxy’s mode unknown");
    let policy = of
        .policy
        .then_some("; a NetworkPolicy of the run before its receiving pods");
    clean(&format!(
        "Found{}: {network}, MTU {mtu}; {proxy}{}; {}.",
        name.unwrap_or_default(),
        policy.unwrap_or_default(),
        nodes(&of.nodes)
    ))
}

/// Nodes with their kernels, of many of them the first: `nodes a (Linux 6.1), b (Linux 6.1), c
/// (Linux 6.1) and 2 others (Linux 6.1, Linux 6.2)`.
fn nodes(of: &[FoundNode]) -> String {
    let kernel = |it: &FoundNode| match &it.kernel {
        Some(kernel) => format!("Linux {kernel}"),
        None => "kernel unknown".to_owned(),
    };
    let (named, others) = of.split_at(match of.len() {
        all if all <= MOST_NAMED + 1 => all,
        _ => MOST_NAMED,
    });
    let named = named
        .iter()
        .map(|it| format!("{} ({})", it.name, kernel(it)));
    let kernels: BTreeSet<String> = others.iter().map(kernel).collect();
    let kernels = Vec::from_iter(kernels).join(", ");
    let rest = (!others.is_empty()).then(|| format!("{} others ({kernels})", others.len()));
    let parts: Vec<String> = named.chain(rest).collect();
    match &*parts {
        [] => "nodes unknown".to_owned(),
        [one] => format!("node {one}"),
        [first @ .., last] => format!("nodes {} and {last}", first.join(", ")),
    }
}

/// Where a treatment runs: `cross-node, IPv4`; and whether several builds of
/// Plumbline ran it, whose figures are not to be mixed in silence.
pub(crate) fn place(summary: &Summary, treatment: &Treatment) -> String {
    let common = common_dressing(summary).map(|it| format!("; {it}"));
    let scene = scene(&treatment.scene) + &common.unwrap_or_default();
    match summary.builds {
        0 | 1 => scene,
        builds => format!("{scene}; by {builds} builds of Plumbline"),
    }
}

/// Whether the same is laid on all paths of a run.
pub(crate) fn are_dressed_alike(summary: &Summary) -> bool {
    let mut pairs = summary.treatments.windows(2);
    pairs.all(|two| {
        let [one, other] = [0, 1].map(|at| &two[at].treatment.scene);
        one.is_dressed_as(other)
    })
}

/// What all that is laid on paths has in common, where it is not the same on all: their
/// labels say the rest.
fn common_dressing(summary: &Summary) -> Option<String> {
    let scenes = summary.treatments.iter().map(|one| &one.treatment.scene);
    let dressed: Vec<&Scene> = scenes.filter(|it| it.is_dressed()).collect();
    if are_dressed_alike(summary) {
        return None;
    }
    let first = dressed.first()?;
    let common = FACTORS.iter().filter_map(|factor| {
        let said = (factor.heading)(first)?;
        let is_of_the_dressing = (factor.heading)(&first.undressed()) != Some(said.clone());
        let mut others = dressed.iter();
        let is_common = others.all(|it| (factor.heading)(it).as_ref() == Some(&said));
        (is_of_the_dressing && is_common).then_some(said)
    });
    let common: Vec<String> = common.collect();
    let what = match dressed.iter().any(|it| it.has_rules()) {
        true => "rules",
        false => "neighbours",
    };
    (!common.is_empty()).then(|| format!("{what}: {}", common.join(", ")))
}

/// What stood on the node that had most of it, such as `25,003 rules, 10,004 chains, 16 tracked
/// connections`.
pub(crate) fn rules(of: &[NodeRules]) -> Option<String> {
    let most = of
        .iter()
        .max_by_key(|it| (it.rules + it.elements, it.connections))?;
    let parts = [
        (most.rules, "rule"),
        (most.chains, "chain"),
        (most.elements, "element"),
        (most.connections, "tracked connection"),
    ];
    let there = parts.into_iter().filter(|(number, _)| *number > 0);
    let said = there.map(|(number, what)| number::counted(number, what));
    Some(said.collect::<Vec<_>>().join(", "))
}

/// What neighbours did, such as `9.1 Gbit/s by 1.4 CPUs`.
pub(crate) fn neighbour(of: &Neighbour) -> String {
    let cpus = number::significant(of.cpus.median);
    let per_second = of.per_second.median;
    let did = match of.unit() {
        "bits" => number::bit_rate(per_second),
        "cpus" => return format!("{cpus} CPUs"),
        unit => format!("{} {unit}", number::rate(per_second)),
    };
    format!("{did} by {cpus} CPUs")
}

/// What the rows are whose network has settings of its own: `vxlan+no-gro: vxlan with GRO
/// off`.
pub(crate) fn variants(summary: &Summary) -> Option<String> {
    let scenes = summary.treatments.iter().map(|one| &one.treatment.scene);
    let mut all: Vec<String> = Vec::new();
    for scene in scenes {
        let Some(variant) = &scene.variant else {
            continue;
        };
        let (name, network) = (clean(&variant.name), clean(&scene.network));
        let one = format!("{name}: {network} with {}", variant.tuning);
        if !all.contains(&one) {
            all.push(one);
        }
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// The same for what is no treatment.
pub(crate) fn scene(scene: &Scene) -> String {
    let levels = FACTORS.iter().filter_map(|factor| (factor.heading)(scene));
    levels.collect::<Vec<_>>().join(", ")
}

/// A value of a metric with its unit.
pub(crate) fn value(metric: &Metric, value: f64) -> String {
    in_unit(metric.unit, value)
}

/// Why a comparison of the CPU of processes may decide nothing.
pub(crate) const UNSEEN: &str = "what the network’s own processes use is not seen here";

/// A change, always signed: `+31 %`.
pub(crate) fn change(effect: &Effect) -> String {
    number::signed_hundredths(effect.change(), effect.unit())
}

/// The interval of a change: `27 to 35 %`; `None` with too few blocks.
pub(crate) fn interval(effect: &Effect) -> Option<String> {
    Some(number::interval(effect.ends()?, effect.unit()))
}

/// A margin of a change, or another of its kind, by its size.
pub(crate) fn margin(effect: &Effect, margin: f64) -> String {
    number::hundredths(effect.told(margin), effect.unit())
}

/// A number with its unit.
pub(crate) fn in_unit(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanoseconds => number::duration(value),
        // 1 ns for a byte is 1 s for a gigabyte.
        Unit::NanosecondsPerByte => number::duration(value * 1e9),
        Unit::BitsPerSecond => number::bit_rate(value),
        Unit::SentPerReceived => number::percent(1.0 - 1.0 / value),
        Unit::RequestsPerSecond => number::rate(value),
    }
}

/// The name of a treatment where its workload is not plain from the place.
pub(crate) fn full_label(summary: &Summary, treatment: &TreatmentSummary) -> String {
    let label = clean(&treatment.treatment.label);
    let has_namesake = |other: &TreatmentSummary| {
        other.id() != treatment.id() && other.treatment.label == treatment.treatment.label
    };
    if summary.treatments.iter().any(has_namesake) {
        format!("{label} ({})", clean(treatment.treatment.task.name()))
    } else {
        label
    }
}

/// How many of many are named; a single other is named rather than counted.
const MOST_NAMED: usize = 3;

/// `host, routed, vxlan and 4 others`.
pub(crate) fn some(mut labels: Vec<&str>) -> String {
    if labels.len() <= MOST_NAMED + 1 {
        return labels.join(", ");
    }
    let others = labels.split_off(MOST_NAMED).len();
    format!("{} and {others} others", labels.join(", "))
}

/// The program of a CNI plugin: the version that it says, and its digest.
pub(crate) fn plugin(plugin: &CniPlugin) -> String {
    let version = plugin.version.as_ref().map(|it| format!("{it}, "));
    format!("{}SHA-256 {}", version.unwrap_or_default(), plugin.sha256)
}

/// A time in RFC 3339 and UTC to the minute, `2026-01-01 12:00 UTC`; any other
/// text as it is.
pub(crate) fn time(text: &str) -> String {
    let minute = text
        .strip_suffix('Z')
        .and_then(|text| text.get(..16))
        .and_then(|text| text.split_once('T'));
    match minute {
        Some((date, time)) => format!("{} {} UTC", clean(date), clean(time)),
        None => clean(text),
    }
}
