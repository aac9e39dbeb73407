//! Network policies on the nodes of a path: what systems that enforce them write into
//! the kernel. One file for each system.
//!
//! A policy allows one TCP port of the pods that it selects to its peers, or that port
//! of its peers to the pods. One policy has the other end of the path among its peers, at
//! a chosen position; the peers of all others are addresses that nobody has. What no
//! policy allows is refused, and pods that no policy selects are not restricted.

pub(super) mod enforcement;
mod guarded_pod;
mod iptables;
mod kube_router;
mod nft;
mod romana;
mod romana_1;
mod rule_text;
mod weave_npc;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plumbline_experiment::{Enforcer, Family, Policies, PolicyDirection, Selected};

use super::dressed::{BarePath, Dressed, RuleCount};
use super::rule_writer::RuleWriter;
use crate::addressing::Addressing;
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;
use crate::topology::{Pod, Topology};
use guarded_pod::{GuardedPod, peers};
use rule_text::RuleText;

use enforcement::Enforcement;

const NFT: RuleWriter = RuleWriter {
    program: "nft",
    arguments: &["-f"],
    package: "nftables",
};
const IPSET: RuleWriter = RuleWriter {
    program: "ipset",
    arguments: &["restore", "-file"],
    package: "ipset",
};
const IPTABLES: RuleWriter = RuleWriter {
    program: "iptables-legacy-restore",
    arguments: &["--noflush"],
    package: "iptables",
};
const IP6TABLES: RuleWriter = RuleWriter {
    program: "ip6tables-legacy-restore",
    ..IPTABLES
};
/// Makes the table `filter` as empty as it was.
const EMPTY_FILTER: &str = "*filter\n-F\n-X\nCOMMIT\n";
/// All sets of a node, at once: one by one each waits for the kernel.
const NO_SETS: &str = "destroy\n";

/// The receiver's port, where nothing else says which.
const PORT: u16 = 8080;

/// Writes the rules on the nodes of all pods, and sees that they act: with them a
/// connection is refused that got through without. Gives what is laid on the path then.
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
    let unsupported = |needs| LabError::Unsupported {
        what: format!("policies of {}", policies.enforcer.as_str()),
        needs,
    };
    if let Some(needs) = lacks(&policies, family) {
        return Err(unsupported(needs));
    }
    let enforcement = enforcement(&policies, topology, port).ok_or_else(|| {
        unsupported("needs a network with pods; rules on a node are for those".to_owned())
    })?;
    if let Some(wrong) = enforcement.check_bare() {
        return Err(unsupported(format!(
            "needs a path that carries TCP; {wrong}"
        )));
    }
    for (at, node) in topology.nodes.iter().enumerate() {
        let pods = guarded_pods(&policies, topology, at)?;
        if pods.is_empty() {
            continue;
        }
        let text = rules_of(policies.enforcer, &pods, port, family);
        let count = RuleCount {
            rules: text.rules,
            chains: text.chains,
            elements: text.elements,
        };
        write(text, node, family, journal)?;
        forget_soon(node, journal)?;
        dressed.count(node, count);
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
        Enforcer::Nft => nft::rules(pods, port, family),
        Enforcer::Iptables => iptables::rules(pods, port),
        Enforcer::Romana => romana::rules(pods, port),
        Enforcer::Romana1 => romana_1::rules(pods, port),
        Enforcer::KubeRouter => kube_router::rules(pods, port, family),
        Enforcer::WeaveNpc => weave_npc::rules(pods, port),
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
    let peers = u64::from(policies.count) * u64::from(policies.members);
    let most = u64::from(Addressing::STRANGERS);
    (peers > most).then(|| {
        format!(
            "they have {peers} peers, and the lab {most} addresses for those; use fewer members"
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
            device: device_of(pod, topology.home(pod))?,
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
    for other in others {
        attempt(other, policies.selects == Selected::Others);
    }
    Some(enforcement)
}

/// Writes rules on a node, sets first, and remembers how to take them away.
fn write(
    text: RuleText,
    node: &Arc<Place>,
    family: Family,
    journal: &mut Journal,
) -> Result<(), LabError> {
    let iptables = match family {
        Family::V4 => IPTABLES,
        Family::V6 => IP6TABLES,
    };
    let parts = [
        (IPSET, text.ipset, NO_SETS.to_owned()),
        (iptables, text.iptables, EMPTY_FILTER.to_owned()),
        (NFT, text.nft, nft::removal(family)),
    ];
    for (writer, text, removal) in parts {
        if text.is_empty() {
            continue;
        }
        writer.write_on(&[Arc::clone(node)], &[text])?;
        let node = Arc::clone(node);
        journal.undo_by(move || {
            let removed = writer.write_on(&[node], &[removal]);
            removed.err().into_iter().collect()
        });
    }
    Ok(())
}

/// Has a node forget a connection a second after it has ended, lest the table of
/// connections fill with those.
fn forget_soon(node: &Arc<Place>, journal: &mut Journal) -> Result<(), LabError> {
    let key = "net/netfilter/nf_conntrack_tcp_timeout_time_wait".to_owned();
    journal.sysctls(node, &[(key, "1".to_owned())])
}

#[cfg(test)]
mod tests;
