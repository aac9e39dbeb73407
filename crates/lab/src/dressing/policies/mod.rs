//! Network policies on the nodes of a path: what systems that enforce them write into
//! the kernel. One file for each system.
//!
//! A policy allows one TCP port of the pods that it selects to its peers, or that port
//! of its peers to the pods. One policy has the other end of the path among its peers, at
//! a chosen position; the peers of all others are addresses that nobody has. What no
//! policy allows is refused, and pods that no policy selects are not restricted.

mod calico;
mod calico_ebpf;
mod calico_iptables;
mod calico_nftables;
mod cilium;
pub(super) mod enforcement;
mod guarded_pod;
mod iptables;
mod kube_router;
mod nft;
mod policy_program;
mod romana;
mod romana_1;
mod rule_text;
mod weave_npc;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plumbline_experiment::{Enforcer, Family, Policies, PolicyDirection, PolicyPeers, Selected};
use plumbline_sys::bpf::{BpfError, BpfObject};

use super::dressed::{BarePath, Dressed, RuleCount};
use super::rule_writer::RuleWriter;
use crate::addressing::Addressing;
use crate::ebpf;
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;
use crate::topology::{Pod, Topology, UPLINK};
use guarded_pod::{GuardedPod, peers};
use rule_text::RuleText;

use enforcement::Enforcement;

/// Makes the table `filter` as empty as it was.
const EMPTY_FILTER: &str = "*filter\nCOMMIT\n";
/// The receiver's port, where nothing else says which.
const PORT: u16 = 8080;

/// The programs of those who have programs: for what goes to a pod, and for what it sends.
const PROGRAMS: [&str; 2] = ["to_pod", "from_pod"];

/// Writes the rules on the nodes of all pods, or gives the pods programs, and sees that they
/// act: with them a connection is refused that got through without. Gives what is laid on
/// the path then.
pub(super) fn put_on(
    policies: Policies,
    path: BarePath<'_>,
    mut dressed: Dressed,
    journal: &mut Journal,
) -> Result<Dressed, LabError> {
    if dressed.port == 0 {
        dressed.port = PORT;
    }
    let port = dressed.port;
    let topology = path.topology;
    let family = topology.addressing.family();
    let unsupported = |needs| unsupported(&policies, needs);
    let enforcement = enforcement(&policies, topology, port).ok_or_else(|| {
        unsupported("needs a network with pods; rules on a node are for those".to_owned())
    })?;
    if let Some(wrong) = enforcement.check_bare() {
        return Err(unsupported(format!(
            "needs a path that carries TCP; {wrong}"
        )));
    }
    let nodes = 0..topology.nodes.len();
    let guarded = nodes.map(|at| guarded_pods(&policies, topology, at));
    let guarded = guarded.collect::<Result<Vec<_>, _>>()?;
    if guarded
        .iter()
        .any(|pods| are_mixed_up(policies.enforcer, pods))
    {
        return Err(unsupported(
            "the system knows pods by their devices, and here two share one; use a network \
             without a bridge, such as routed"
                .to_owned(),
        ));
    }
    for (at, node) in topology.nodes.iter().enumerate() {
        let mut pods = topology.pods.iter().filter(|pod| pod.node == at).peekable();
        if pods.peek().is_none() {
            continue;
        }
        let Some(load) = loader(policies.enforcer) else {
            let text = rules_of(policies.enforcer, &guarded[at], port, family);
            let iptables = iptables(policies.enforcer, family);
            let no_sets = no_sets(&text.ipset, dressed.has_sets);
            dressed.count(node, write(text, (iptables, no_sets), node, journal)?);
            continue;
        };
        for (pod, guarded_pod) in pods.zip(&guarded[at]) {
            let lacking = |needs: &str| unsupported(needs.to_owned());
            let loaded = load(guarded_pod, &guarded, port);
            let (mut object, count) = loaded.map_err(|error| ebpf::refused(error, lacking))?;
            let device = (&pod.place, pod.place.index(UPLINK)?);
            ebpf::attach(&mut object, PROGRAMS, device, journal, lacking)?;
            // An array of programs is emptied when nobody has it open.
            journal.keep(object);
            dressed.count(node, count);
        }
    }
    if let Some(wrong) = enforcement.check() {
        return Err(unsupported(format!(
            "needs a network whose packets meet the rules of their nodes; {wrong}"
        )));
    }
    dressed.enforcement = Some(enforcement);
    Ok(dressed)
}

/// What an enforcer writes for the pods of a node.
fn rules_of(enforcer: Enforcer, pods: &[GuardedPod], port: u16, family: Family) -> RuleText {
    match enforcer {
        // A network without a system of its own has the plain reference.
        Enforcer::Own | Enforcer::Nft => nft::rules(pods, port, family),
        Enforcer::Iptables => iptables::rules(pods, port),
        Enforcer::Romana => romana::rules(pods, port),
        Enforcer::Romana1 => romana_1::rules(pods, port),
        Enforcer::KubeRouter => kube_router::rules(pods, port, family),
        Enforcer::WeaveNpc => weave_npc::rules(pods, port),
        Enforcer::CalicoIptables => calico_iptables::rules(pods, port, family),
        Enforcer::CalicoIptablesNft => calico_iptables::rules(pods, port, family).over_nftables(),
        Enforcer::CalicoNftables => calico_nftables::rules(pods, port, family),
        // No rules, but programs.
        Enforcer::CalicoEbpf | Enforcer::Cilium => RuleText::default(),
    }
}

/// What an enforcer of `iptables` writes its table with.
fn iptables(enforcer: Enforcer, family: Family) -> RuleWriter {
    match enforcer {
        Enforcer::CalicoIptablesNft => RuleWriter::iptables_nft(family),
        _ => RuleWriter::iptables_legacy(family),
    }
}

/// Loads the programs of a pod, with the port and what all pods are guarded by.
type Loader = fn(&GuardedPod, &[Vec<GuardedPod>], u16) -> Result<(BpfObject, RuleCount), BpfError>;

/// That of an enforcer which gives pods programs of their own; `None` where it writes rules on
/// nodes.
fn loader(enforcer: Enforcer) -> Option<Loader> {
    match enforcer {
        Enforcer::CalicoEbpf => Some(calico_ebpf::load),
        Enforcer::Cilium => Some(cilium::load),
        _ => None,
    }
}

/// Whether policies see what a pod sends before its node does.
pub(super) fn are_before_the_node(policies: &Policies) -> bool {
    let restricts = !policies.is_none() && policies.direction != PolicyDirection::Ingress;
    restricts && are_programs(policies)
}

/// Whether pods have programs that enforce policies, and their nodes no rules.
pub(super) fn are_programs(policies: &Policies) -> bool {
    loader(policies.enforcer).is_some()
}

/// Whether two pods are behind one device, and the enforcer knows pods by their devices.
fn are_mixed_up(enforcer: Enforcer, pods: &[GuardedPod]) -> bool {
    let mut devices: Vec<&str> = pods.iter().map(|pod| &*pod.device).collect();
    devices.sort_unstable();
    devices.dedup();
    matches!(
        enforcer,
        Enforcer::CalicoIptables | Enforcer::CalicoIptablesNft | Enforcer::CalicoNftables
    ) && devices.len() < pods.len()
}

/// Whether an enforcer can enforce these policies.
///
/// # Errors
///
/// [`LabError::Unsupported`] when it cannot.
pub(super) fn check(policies: &Policies, family: Family) -> Result<(), LabError> {
    lacks(policies, family).map_or(Ok(()), |needs| Err(unsupported(policies, needs)))
}

fn unsupported(policies: &Policies, needs: String) -> LabError {
    LabError::Unsupported {
        what: format!("policies of {}", policies.enforcer.as_str()),
        needs,
    }
}

/// Why an enforcer cannot enforce these policies; `None` when it can.
fn lacks(policies: &Policies, family: Family) -> Option<String> {
    use Enforcer::{Romana, Romana1, WeaveNpc};

    let enforcer = policies.enforcer;
    let is_v4_only = matches!(enforcer, Romana | Romana1 | WeaveNpc);
    let is_ingress_only = matches!(enforcer, Romana | Romana1);
    let is_ingress = policies.direction == PolicyDirection::Ingress;
    if is_v4_only && family == Family::V6 {
        return Some("the system has IPv4 only; use family 4".to_owned());
    }
    if is_ingress_only && !is_ingress {
        let needs = "the system's policies for egress deny and do not allow; use direction ingress";
        return Some(needs.to_owned());
    }
    if policies.selects == Selected::Others && !is_ingress {
        let needs = "policies on others restrict what comes to them; use direction ingress";
        return Some(needs.to_owned());
    }
    let members = u64::from(policies.count) * u64::from(policies.members);
    // The other end of the path, which is named by labels, stands for an address.
    let rules = match policies.peers {
        PolicyPeers::Pods => u64::from(policies.count),
        PolicyPeers::Addresses => members,
    };
    let room = match enforcer {
        Enforcer::Cilium => Some(("map of a pod's policies", cilium::MOST_ENTRIES, "entries")),
        Enforcer::CalicoEbpf => Some(("program of a pod", calico_ebpf::MOST_RULES, "rules")),
        _ => None,
    };
    if let Some((holder, most, what)) = room.filter(|(_, most, _)| rules > u64::from(*most)) {
        return Some(format!(
            "the {holder} holds {most} {what}, and they need {rules}; use fewer policies or members"
        ));
    }
    let most = u64::from(Addressing::STRANGERS);
    (members > most).then(|| {
        format!(
            "they have {members} peers, and the lab {most} addresses for those; use fewer members"
        )
    })
}

/// The pods of a node, with the policies that select them.
fn guarded_pods(
    policies: &Policies,
    topology: &Topology,
    node: usize,
) -> Result<Vec<GuardedPod>, LabError> {
    let [client, server, ..] = &topology.pods[..] else {
        return Ok(Vec::new());
    };
    let restricts = |way| [way, PolicyDirection::Both].contains(&policies.direction);
    let selects = |pod: &Pod, ours: &Pod| match policies.selects {
        Selected::Ours => pod.number == ours.number,
        Selected::Others => ![client.number, server.number].contains(&pod.number),
    };
    let guarded = |pod: &Pod| {
        let of = |way, ours, far: &Pod| match restricts(way) && selects(pod, ours) {
            true => peers(policies, far.reached_by(), topology.addressing),
            false => Vec::new(),
        };
        Ok(GuardedPod {
            address: pod.reached_by(),
            device: match loader(policies.enforcer) {
                Some(_) => UPLINK.to_owned(),
                None => device_of(pod, topology.home(pod))?,
            },
            ingress: of(PolicyDirection::Ingress, server, client),
            egress: of(PolicyDirection::Egress, client, server),
        })
    };
    let pods = topology.pods.iter().filter(|pod| pod.node == node);
    pods.map(guarded).collect()
}

/// The device by which a node forwards packets to a pod.
fn device_of(pod: &Pod, node: &Place) -> Result<String, LabError> {
    let route = node.netlink().route_to(pod.reached_by());
    let route = route.map_err(|error| LabError::Unsupported {
        what: "policies on this network".to_owned(),
        needs: format!("needs one whose nodes forward packets to their pods: {error}"),
    })?;
    let links = node.ask(|netlink| netlink.links())?;
    let device = links.into_iter().find(|link| link.index == route.device);
    // A device that is gone meanwhile has no name, and no rule fits it.
    Ok(device.map_or_else(String::new, |link| link.name))
}

/// The connections that show whether policies act; `None` where there are no pods.
fn enforcement(policies: &Policies, topology: &Topology, port: u16) -> Option<Enforcement> {
    let [client, server, others @ ..] = &topology.pods[..] else {
        return None;
    };
    let delay = Duration::from_nanos(topology.link.delay_ns.saturating_mul(2));
    let mut enforcement = Enforcement::from(&client.place, delay);
    let mut attempt = |pod: &Pod, is_guarded| {
        for (port, is_forbidden) in [(port, false), (port + 1, is_guarded)] {
            let address = SocketAddr::new(pod.reached_by(), port);
            enforcement.attempt(&pod.place, address, is_forbidden);
        }
    };
    attempt(server, policies.selects == Selected::Ours);
    for other in others.iter().take(topology.company.idle) {
        attempt(other, policies.selects == Selected::Others);
    }
    Some(enforcement)
}

/// What takes the sets of policies away. Those of services, which stand beside some, are still
/// named by rules then.
fn no_sets(made: &str, are_beside_others: bool) -> String {
    match are_beside_others {
        true => RuleWriter::no_sets_of(made),
        false => RuleWriter::NO_SETS.to_owned(),
    }
}

/// Writes rules on a node, sets first, and remembers how to take them away. Has the node
/// forget a connection a second after it has ended, lest the table of connections fill with
/// those.
fn write(
    text: RuleText,
    (iptables, no_sets): (RuleWriter, String),
    node: &Arc<Place>,
    journal: &mut Journal,
) -> Result<RuleCount, LabError> {
    let count = RuleCount {
        rules: text.rules,
        chains: text.chains,
        elements: text.elements,
    };
    let one = |text: String| match text.is_empty() {
        true => Vec::new(),
        false => vec![text],
    };
    let no_rules = (iptables.that_empties(), EMPTY_FILTER.to_owned());
    let no_table = RuleWriter::no_table(&text.nft_table);
    let parts = [
        (
            RuleWriter::IPSET,
            one(text.ipset),
            (RuleWriter::IPSET, no_sets),
        ),
        (iptables, one(text.iptables), no_rules),
        (RuleWriter::NFT, text.nft, (RuleWriter::NFT, no_table)),
    ];
    for (writer, texts, removal) in parts {
        if !texts.is_empty() {
            writer.lay_on(&[Arc::clone(node)], &texts, removal, journal)?;
        }
    }
    let key = "net/netfilter/nf_conntrack_tcp_timeout_time_wait".to_owned();
    journal.sysctls(node, &[(key, "1".to_owned())])?;
    Ok(count)
}

#[cfg(test)]
mod tests;
