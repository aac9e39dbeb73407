//! Settings of namespaces: sysctls, connection tracking; and what the devices between them
//! were made with.

use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::sysctl::{self, SysctlError};

use super::path::{Refused, TunedPath, is_so_already};
use crate::dressing::rule_writer::{RuleWriter, family_of_table};
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;

/// A switch as sysctls write it.
pub(super) fn switch(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

/// Sets a sysctl of the endpoints.
pub(super) fn of_endpoints(
    path: &TunedPath<'_>,
    key: &str,
    wanted: Option<&str>,
    journal: &mut Journal,
) -> Result<(), Refused> {
    set(&path.ends(), key, wanted, journal)
}

/// How far the buffers of the endpoints' connections may grow, by the sysctl of this name.
pub(super) fn buffers(
    path: &TunedPath<'_>,
    name: &str,
    journal: &mut Journal,
) -> Result<(), Refused> {
    let mut buffers = path.tuning.buffers().into_iter();
    let wanted = buffers.find(|(of, _)| *of == name);
    // As the kernel shows them, to tell what is so already.
    let wanted = wanted.map(|(_, values)| values.map(|it| it.to_string()).join("\t"));
    of_endpoints(path, &name.replace('.', "/"), wanted.as_deref(), journal)
}

/// A packet is dropped whose sender would not be answered by the device that it came by.
pub(super) fn reverse_path_filter(
    path: &TunedPath<'_>,
    journal: &mut Journal,
) -> Result<(), Refused> {
    if path.topology.addressing.family() == Family::V6 {
        let needs = "IPv4: the kernel has none for IPv6 but by rules of netfilter";
        return Err(Refused::Lacks(needs.to_owned()));
    }
    let wanted = path.tuning.rp_filter.map(|it| it.to_string());
    let nodes: Vec<&Arc<Place>> = path.topology.nodes.iter().collect();
    // The kernel takes the greater of this and the device's own.
    let key = "net/ipv4/conf/all/rp_filter";
    set(&nodes, key, wanted.as_deref(), journal)
}

/// Bridged packets pass the rules of routed ones.
pub(super) fn bridge_netfilter(path: &TunedPath<'_>, journal: &mut Journal) -> Result<(), Refused> {
    let nodes: Vec<&Arc<Place>> = path.topology.nodes.iter().collect();
    let mut has_bridge = false;
    for node in &nodes {
        let links = node.ask(|netlink| netlink.links())?;
        has_bridge |= links.iter().any(|link| link.kind == "bridge");
    }
    if !has_bridge {
        return Err(Refused::Lacks("a network with bridges".to_owned()));
    }
    let key = path.of_family([
        "net/bridge/bridge-nf-call-iptables",
        "net/bridge/bridge-nf-call-ip6tables",
    ]);
    let wanted = path.tuning.bridge_nf_call_iptables.map(switch);
    set(&nodes, key, wanted, journal)
}

/// Sets a sysctl in places.
fn set(
    places: &[&Arc<Place>],
    key: &str,
    wanted: Option<&str>,
    journal: &mut Journal,
) -> Result<(), Refused> {
    let Some(wanted) = wanted else { return Ok(()) };
    let mut is_changed = false;
    for place in places {
        let old = sysctl::get(&place.namespace, key).map_err(|error| lacking(error, place))?;
        if old == wanted {
            continue;
        }
        is_changed = true;
        let setting = [(key.to_owned(), wanted.to_owned())];
        journal
            .sysctls(place, &setting)
            .map_err(|error| match error {
                LabError::Sysctl { source, .. } => lacking(source, place),
                other => Refused::Failed(other),
            })?;
    }
    match is_changed {
        true => Ok(()),
        false => Err(is_so_already()),
    }
}

/// A sysctl that is not there, or lacks what it is to choose.
fn lacking(error: SysctlError, place: &Place) -> Refused {
    if error.is_missing() {
        let needs = format!("{error}; `--kernel uml` may have it");
        return Refused::Lacks(needs);
    }
    Refused::Failed(LabError::Sysctl {
        place: place.name.clone(),
        source: error,
    })
}

/// Rules that have the nodes track connections, or that exempt those of the path.
pub(super) fn conntrack(path: &TunedPath<'_>, journal: &mut Journal) -> Result<(), Refused> {
    const TABLE: &str = "plumbline-tuning";
    let Some(tracks) = path.tuning.conntrack else {
        return Ok(());
    };
    let ip = family_of_table(path.topology.addressing.family());
    let rules = match tracks {
        // As any firewall begins, and the rules of kube-proxy.
        true => "\tchain forward {\n\
                 \t\ttype filter hook forward priority filter; policy accept;\n\
                 \t\tct state established,related accept\n\t}\n"
            .to_owned(),
        false => {
            let topology = path.topology;
            let pods = topology.pods.iter().map(|pod| pod.reached_by());
            let nodes = topology.numbered();
            let nodes = nodes.map(|(number, _)| topology.addressing.node(number));
            let ends: Vec<String> = match topology.pods.is_empty() {
                true => nodes.map(|it| it.to_string()).collect(),
                false => pods.map(|it| it.to_string()).collect(),
            };
            let ends = ends.join(", ");
            let chain = |hook: &str| {
                format!(
                    "\tchain {hook} {{\n\t\ttype filter hook {hook} priority raw; policy accept;\n\
                     \t\t{ip} saddr {{ {ends} }} {ip} daddr {{ {ends} }} notrack\n\t}}\n"
                )
            };
            chain("prerouting") + &chain("output")
        }
    };
    let table = format!("{ip} {TABLE}");
    let text = format!("table {table} {{\n{rules}}}\n");
    let removal = (RuleWriter::NFT, RuleWriter::no_table(&table));
    let nodes = &path.topology.nodes;
    Ok(RuleWriter::NFT.lay_on(nodes, &[text], removal, journal)?)
}

/// Whether the nodes' VXLAN devices are as they are wanted, which only those are that the
/// network makes itself.
pub(super) fn check_vxlan(path: &TunedPath<'_>) -> Result<(), Refused> {
    let tuning = path.tuning;
    let needs = "a network with VXLAN devices that are its own: vxlan, calico-vxlan, kopeio-vxlan";
    if tuning.vxlan_checksum == Some(true) {
        return Err(is_so_already());
    }
    for node in &path.topology.nodes {
        let links = node.ask(|netlink| netlink.links())?;
        let states: Vec<_> = links.iter().filter_map(|link| link.vxlan).collect();
        let is_as_wanted = states.iter().all(|it| {
            let (first, last) = it.source_ports;
            let ports = u32::from(last.saturating_sub(first));
            tuning.vxlan_checksum.is_none_or(|on| it.udp_checksum == on)
                && tuning.vxlan_source_ports.is_none_or(|count| ports == count)
        });
        if states.is_empty() || !is_as_wanted {
            return Err(Refused::Lacks(needs.to_owned()));
        }
    }
    Ok(())
}
