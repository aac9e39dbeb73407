//! What pods send to another node's pods is encrypted, as Cilium does it with IPsec
//! (cilium/cilium@c50dcfb, `pkg/datapath/linux/ipsec/ipsec_linux.go`): ESP in tunnel mode from node
//! to node, AES in Galois counter mode (RFC 4106) with a check value of 128 bits. Cilium's marks
//! and its keys that change are not modelled; pods keep their MTU, and learn of the smaller one
//! by ICMP, where Cilium takes it off their routes.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use plumbline_experiment::{Encryption, Placement};
use plumbline_sys::netlink::EspCipher;

use super::path::{Refused, TunedPath};
use crate::error::LabError;
use crate::ipsec::{Ipsec, Secured};
use crate::journal::Journal;
use crate::network::WireFormat;
use crate::topology::Topology;

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

/// The largest packet that passes between two nodes; `None` where nothing is encrypted.
pub(crate) fn path_mtu(topology: &Topology) -> Option<u32> {
    let encryption = topology.tuning.encryption?;
    match encryption {
        Encryption::Esp => Some(ESP.path_mtu(topology)),
    }
}

/// Has the nodes encrypt, and sees that a datagram from pod to pod was.
pub(super) fn lay(path: &TunedPath<'_>, journal: &mut Journal) -> Result<(), Refused> {
    let Some(Encryption::Esp) = path.tuning.encryption else {
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
    let laid = ESP.lay_on(topology, journal);
    let secured = laid.map_err(|error| match error {
        LabError::Netlink { source, .. } if source.is_unsupported() => Refused::Lacks(format!(
            "ESP and AES-GCM ({source}); `--kernel uml` has both"
        )),
        other => Refused::Failed(other),
    })?;
    try_out(topology, &secured)
}

/// Sends datagrams to the pod of another node, where nobody listens, until one was encrypted:
/// devices may just have come up.
fn try_out(topology: &Topology, secured: &[Secured]) -> Result<(), Refused> {
    const DISCARD: u16 = 9;
    let pod_of = |node| topology.pods.iter().find(move |pod| pod.node == node);
    let (Some(from), Some(to)) = (pod_of(0), pod_of(1)) else {
        return Err(unseen());
    };
    let (here, there) = (from.reached_by(), to.reached_by());
    let send = || UdpSocket::bind((here, 0))?.send_to(b"plumbline", (there, DISCARD));
    let node = &topology.nodes[0];
    let deadline = Instant::now() + ENCRYPTED;
    while Instant::now() < deadline {
        // What fails now may not once a device is up.
        let _sent = from.place.namespace.run(send).map_err(LabError::from)?;
        thread::sleep(PAUSE);
        for one in secured {
            let [_, left] = one.packets().map_err(|error| node.failed(error))?;
            if left > 0 {
                return Ok(());
            }
        }
    }
    Err(unseen())
}

fn unseen() -> Refused {
    let needs = "a network whose nodes route what pods send to each other, as it is and by their own \
                 stack: routed, romana, host-gw, kube-router, aws-vpc, aws-cni";
    Refused::Lacks(needs.to_owned())
}
