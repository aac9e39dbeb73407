//! What is set differently on a network that stands: on the devices of its path, and in the
//! namespaces that it crosses. One row for each setting.

pub(crate) mod encryption;
mod knob;
mod namespace;
mod path;
mod queue;

use plumbline_experiment::{Tuning, Variant};
use plumbline_sys::cpu;
use plumbline_sys::ethtool::Offload;
use plumbline_sys::netlink::LinkNumber;

use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::network::About;
use crate::topology::Topology;
use knob::Knob;
use path::{Refused, TunedPath};

/// How a setting is laid on a path, where it is set.
struct Row {
    key: &'static str,
    lay: fn(&TunedPath<'_>, &mut Journal) -> Result<(), Refused>,
}

const ROWS: &[Row] = &[
    // Nodes and pods were made with it.
    row("mtu", |_, _| Ok(())),
    // First of all others, for it may make a device that they are of.
    row("encryption", encryption::lay),
    row("gro", |path, journal| {
        Knob::Offload(Offload::Gro).turn(path, path.tuning.gro, journal)
    }),
    row("gso", |path, journal| {
        Knob::Offload(Offload::Gso).turn(path, path.tuning.gso, journal)
    }),
    row("tso", |path, journal| {
        Knob::Offload(Offload::Tso).turn(path, path.tuning.tso, journal)
    }),
    row("checksum", |path, journal| {
        let wanted = path.tuning.checksum;
        Knob::Offload(Offload::TxChecksum).turn(path, wanted, journal)?;
        Knob::Offload(Offload::RxChecksum).turn(path, wanted, journal)
    }),
    row("vxlan_checksum", |path, _| namespace::check_vxlan(path)),
    row("vxlan_source_ports", |path, _| namespace::check_vxlan(path)),
    row("bridge_nf_call_iptables", namespace::bridge_netfilter),
    row("conntrack", namespace::conntrack),
    row("rps", |path, journal| {
        Knob::Receivers.turn(path, path.tuning.rps, journal)
    }),
    row("xps", senders),
    row("threaded_napi", |path, journal| {
        Knob::Threads.turn(path, path.tuning.threaded_napi, journal)
    }),
    row("txqueuelen", queue::length),
    row("rp_filter", namespace::reverse_path_filter),
    row("gso_max_size", |path, journal| {
        let number = path.of_family([LinkNumber::GsoIpv4MaxSize, LinkNumber::GsoMaxSize]);
        Knob::Number(number).turn(path, path.tuning.gso_max_size, journal)
    }),
    row("gro_max_size", |path, journal| {
        let number = path.of_family([LinkNumber::GroIpv4MaxSize, LinkNumber::GroMaxSize]);
        Knob::Number(number).turn(path, path.tuning.gro_max_size, journal)
    }),
    row("qdisc", queue::discipline),
    row("bandwidth", queue::bandwidth),
    row("tcp_slow_start_after_idle", |path, journal| {
        let wanted = path.tuning.tcp_slow_start_after_idle;
        let key = "net/ipv4/tcp_slow_start_after_idle";
        namespace::of_endpoints(path, key, wanted.map(namespace::switch), journal)
    }),
    row("tcp_rmem", |path, journal| {
        namespace::buffers(path, "net.ipv4.tcp_rmem", journal)
    }),
    row("tcp_wmem", |path, journal| {
        namespace::buffers(path, "net.ipv4.tcp_wmem", journal)
    }),
    row("tcp_congestion_control", |path, journal| {
        let wanted = path.tuning.tcp_congestion_control;
        let key = "net/ipv4/tcp_congestion_control";
        namespace::of_endpoints(path, key, wanted.map(|it| it.as_str()), journal)
    }),
];

/// What a lab makes sends by one queue until it has one for each CPU.
fn senders(path: &TunedPath<'_>, journal: &mut Journal) -> Result<(), Refused> {
    if path.tuning.xps == Some(true) {
        let cpus = cpu::allowed().map_or(1, |it| it.len() as u64);
        // What cannot have more may have several already.
        let _ = Knob::SendQueues.turn(path, Some(cpus), journal);
    }
    Knob::Senders.turn(path, path.tuning.xps, journal)
}

const fn row(
    key: &'static str,
    lay: fn(&TunedPath<'_>, &mut Journal) -> Result<(), Refused>,
) -> Row {
    Row { key, lay }
}

/// Sets on a network that stands what its topology was made for; the journal sets it back.
///
/// # Errors
///
/// [`LabError::Unsupported`] where the kernel or the network lacks what a setting is of, or
/// has it so already.
pub(crate) fn lay_on(
    about: &About,
    topology: &Topology,
    hops: &[Hop],
    journal: &mut Journal,
) -> Result<(), LabError> {
    let tuning = topology.tuning;
    let path = TunedPath {
        tuning,
        about,
        topology,
        hops,
    };
    for (key, words) in tuning.all_set() {
        let row = ROWS.iter().find(|row| row.key == key);
        let laid = match row {
            Some(row) => (row.lay)(&path, journal),
            None => Err(Refused::Lacks("a lab does not set it".to_owned())),
        };
        laid.map_err(|refused| match refused {
            Refused::Lacks(needs) => LabError::Unsupported {
                what: format!("`{key}` ({words})"),
                needs,
            },
            Refused::Failed(error) => error,
        })?;
    }
    Ok(())
}

/// What a scene sets on its network; nothing where it is the network as it is.
pub(crate) fn of(variant: &Option<Variant>) -> Tuning {
    variant.as_ref().map_or(Tuning::default(), |it| it.tuning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_row() {
        let rows: Vec<&str> = ROWS.iter().map(|row| row.key).collect();
        assert_eq!(rows, Tuning::KEYS);
    }
}
