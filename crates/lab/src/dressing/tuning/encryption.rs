//! What pods send to another node's pods is encrypted, by the nodes.
//!
//! ESP as Cilium has it with IPsec (cilium/cilium@c50dcfb,
//! `pkg/datapath/linux/ipsec/ipsec_linux.go`): in tunnel mode from node to node, AES in Galois
//! counter mode (RFC 4106) with a check value of 128 bits. Cilium's marks and its keys that
//! change are not modelled.
//!
//! WireGuard as Calico has it (projectcalico/calico@0160f8e, `felix/wireguard/wireguard.go`;
//! @00157c1, `felix/dataplane/linux/int_dataplane.go`; @0039c9c,
//! `felix/config/config_params.go`): a device `wireguard.cali`, a rule of priority 99 for a table
//! of its own, in it a route by that device to each remote node's pods, and the MTU of the nodes
//! less 60 bytes, or 80 over IPv6. The rule spares what the device itself sends, by a mark: here
//! that goes to nodes, which the table does not know. For IPv6 Calico has a device of another
//! name, `wg-v6.cali`, on port 51821.
//!
//! Pods keep their MTU, and learn of the smaller one by ICMP, where Cilium takes it off their
//! routes and Calico off their devices.

use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use plumbline_experiment::{Encryption, Family, Placement};
use plumbline_sys::netlink::{EspCipher, RuleSelector, RuleSpec};

use super::path::{Refused, TunedPath};
use crate::error::LabError;
use crate::hop::Hop;
use crate::ipsec::{Ipsec, Secured};
use crate::journal::Journal;
use crate::network::WireFormat;
use crate::topology::{Topology, UPLINK};
use crate::wireguard::{WIREGUARD, WireguardMesh};

/// How long a network may take until it encrypts.
const ENCRYPTED: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);

/// The key, of 128 bits and a salt of 32, protects nothing: all labs have it.
static ESP: Ipsec = Ipsec {
    cipher: EspCipher {
        name: "rfc4106(gcm(aes))",
        key: b"plumbline is no vpn!",
        check_bits: Some(128),
    },
    between: |addressing, own, remote| {
        let pods = |number| (addressing.subnet(number), addressing.subnet_prefix());
        vec![(pods(own), pods(remote))]
    },
};

/// The routing table of the WireGuard device: the first that is free.
const TABLE: u32 = 1;
const PRIORITY: u32 = 99;

/// Bytes of a datagram that is more than all that WireGuard sends by itself within
/// [`ENCRYPTED`]: handshakes of 148 and 92 bytes each way, and a keepalive of 32.
const TRIAL_BYTES: u64 = 1000;

/// A device on each node, beneath whose MTU are an IP header, that of UDP (8 bytes), and
/// WireGuard's own with its check value (32).
fn mesh(topology: &Topology) -> WireguardMesh {
    let (device, port) = match topology.addressing.family() {
        Family::V4 => ("wireguard.cali", 51820),
        Family::V6 => ("wg-v6.cali", 51821),
    };
    WireguardMesh {
        device,
        port,
        mtu: topology.mtu - topology.addressing.header_bytes() - 8 - 32,
    }
}

/// Puts the devices that encrypt on the path, where there are such: that of the first node
/// before its uplink, and that of the second behind.
pub(crate) fn lead_through(topology: &Topology, hops: &mut Vec<Hop>) {
    let by_devices = topology.tuning.encryption == Some(Encryption::Wireguard);
    if !by_devices || topology.placement == Placement::SameNode {
        return;
    }
    let device = mesh(topology).device;
    let [first, second] = [&topology.nodes[0], &topology.nodes[1]];
    let uplink_of = |node| move |hop: &Hop| Arc::ptr_eq(&hop.place, node) && hop.device == UPLINK;
    if let Some(at) = hops.iter().position(uplink_of(first)) {
        hops.insert(at, Hop::sends(first, device));
    }
    if let Some(at) = hops.iter().position(uplink_of(second)) {
        hops.insert(at + 1, Hop::receives(second, device));
    }
}

/// The largest packet that passes between two nodes; `None` where their devices say it.
pub(crate) fn path_mtu(topology: &Topology) -> Option<u32> {
    let by_esp = topology.tuning.encryption == Some(Encryption::Esp);
    by_esp.then(|| ESP.path_mtu(topology))
}

/// Has the nodes encrypt, and sees that a datagram from pod to pod was.
pub(super) fn lay(path: &TunedPath<'_>, journal: &mut Journal) -> Result<(), Refused> {
    let Some(encryption) = path.tuning.encryption else {
        return Ok(());
    };
    let topology = path.topology;
    if topology.placement == Placement::SameNode {
        let needs = "ends on two nodes: what stays on one is not encrypted";
        return Err(Refused::Lacks(needs.to_owned()));
    }
    if path.about.wire != WireFormat::Plain || topology.pods.is_empty() {
        return Err(unseen());
    }
    match encryption {
        Encryption::Esp => {
            let secured = ESP.lay_on(topology, journal).map_err(|error| {
                or_lacks(error, |why| {
                    format!("ESP and AES-GCM ({why}); `--kernel uml` has both")
                })
            })?;
            try_out(topology, || some_left(topology, &secured))
        }
        Encryption::Wireguard => {
            let mesh = mesh(topology);
            let devices = mesh.lay_on(topology, journal);
            let devices = devices.map_err(|error| or_lacks(error, |_| WIREGUARD.remedy()))?;
            let all = path.of_family([RuleSelector::AllV4, RuleSelector::AllV6]);
            for ((own, node), device) in topology.numbered().zip(devices) {
                journal.add(node, RuleSpec::new(all, TABLE, PRIORITY))?;
                for remote in topology.remotes(own) {
                    let pods = topology.pods_of(remote).dev(device);
                    journal.add(node, pods.table(TABLE))?;
                }
            }
            let receiver = &topology.nodes[1];
            try_out(topology, || {
                Ok(receiver.link(mesh.device)?.stats.rx_bytes >= TRIAL_BYTES)
            })
        }
    }
}

/// What is missing, where the kernel says that it lacks something.
fn or_lacks(error: LabError, needs: impl FnOnce(String) -> String) -> Refused {
    match error {
        LabError::Netlink { source, .. } if source.is_unsupported() => {
            Refused::Lacks(needs(source.to_string()))
        }
        other => Refused::Failed(other),
    }
}

/// Whether the first node has sent by ESP.
fn some_left(topology: &Topology, secured: &[Secured]) -> Result<bool, LabError> {
    for one in secured {
        let [_, left] = one
            .packets()
            .map_err(|error| topology.nodes[0].failed(error))?;
        if left > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Sends datagrams to the pod of another node, where nobody listens, until one was encrypted:
/// devices may just have come up.
fn try_out(
    topology: &Topology,
    is_encrypted: impl Fn() -> Result<bool, LabError>,
) -> Result<(), Refused> {
    const DISCARD: u16 = 9;
    let pod_of = |node| topology.pods.iter().find(move |pod| pod.node == node);
    let (Some(from), Some(to)) = (pod_of(0), pod_of(1)) else {
        return Err(unseen());
    };
    let (here, there) = (from.reached_by(), to.reached_by());
    let payload = [0; TRIAL_BYTES as usize];
    let send = || UdpSocket::bind((here, 0))?.send_to(&payload, (there, DISCARD));
    let deadline = Instant::now() + ENCRYPTED;
    while Instant::now() < deadline {
        // What fails now may not once a device is up.
        let _sent = from.place.namespace.run(send).map_err(LabError::from)?;
        thread::sleep(PAUSE);
        if is_encrypted()? {
            return Ok(());
        }
    }
    Err(unseen())
}

fn unseen() -> Refused {
    let needs = "a network whose nodes route what pods send to each other, as it is and by their own \
                 stack: routed, romana, host-gw, kube-router, aws-vpc";
    Refused::Lacks(needs.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::catalogue;

    #[test]
    fn a_refusal_names_each_network_whose_nodes_could_encrypt() {
        // Around the nodes' own stack, or by another interface than that between the nodes.
        let around = ["cilium", "macvlan", "ipvlan", "aws-cni"];
        let goes_around = |name: &str| around.iter().any(|it| name.starts_with(*it));
        let all = catalogue::ALL.iter().map(|network| network.about());
        let plain = all.filter(|it| it.pods && it.wire == WireFormat::Plain);
        let names: Vec<&str> = plain
            .map(|it| it.name)
            .filter(|name| !goes_around(name))
            .collect();
        let Refused::Lacks(needs) = unseen() else {
            panic!("it lacks nothing");
        };
        let last = format!(": {}", names.join(", "));
        assert!(needs.ends_with(&last), "{needs}");
    }
}
