//! The eBPF programs of one node and what they look up. The layout of keys and
//! values is that of `bpf/maps.h`.

use std::net::IpAddr;
use std::sync::Arc;

use plumbline_sys::bpf::{BpfError, BpfObject, ObjectFile};
use plumbline_sys::netlink::{Hooks, Mac, NetlinkError, NetlinkSocket};

use crate::addressing::octets;
use crate::ebpf;
use crate::error::LabError;
use crate::hop::Meter;
use crate::journal::Journal;
use crate::need::{self, Presence};
use crate::place::Place;

static OBJECT: &ObjectFile<[u8]> = &ObjectFile(*include_bytes!("../../../bpf/cilium.o"));

/// Cilium's identity of pods; the same number is in `bpf/cilium.c`.
const POD_IDENTITY: u32 = 10_000;
/// Bits of a remote's key before the address, which are always compared.
const REMOTE_STATIC_BITS: u32 = 32;

/// A program, by whose packets it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CiliumProgram {
    /// On the node's end of a pod's veth.
    Container,
    /// On the node's uplink.
    Netdev,
    /// On the device that takes packets out of the tunnel.
    Overlay,
}

impl CiliumProgram {
    fn name(self) -> &'static str {
        match self {
            Self::Container => "from_container",
            Self::Netdev => "from_netdev",
            Self::Overlay => "from_overlay",
        }
    }
}

/// The maps and programs of one node.
#[derive(Debug)]
pub(super) struct CiliumDatapath {
    place: Arc<Place>,
    object: BpfObject,
    encapsulating: bool,
}

impl CiliumDatapath {
    /// `encapsulating` is the index of the tunnel device, where there is one.
    pub(super) fn load(place: &Arc<Place>, encapsulating: Option<u32>) -> Result<Self, LabError> {
        let constants = [("encap_ifindex", encapsulating.unwrap_or(0))];
        let object =
            BpfObject::load(&OBJECT.0, &constants).map_err(|source| failed(&place.name, source))?;
        Ok(Self {
            place: Arc::clone(place),
            object,
            encapsulating: encapsulating.is_some(),
        })
    }

    /// Records which node a pod is behind.
    pub(super) fn remember_pod(&mut self, pod: IpAddr, node: IpAddr) -> Result<(), LabError> {
        let mut key = [0; 20];
        key[3] = family(pod);
        key[4..].copy_from_slice(&octets(pod));
        let bits = REMOTE_STATIC_BITS + if pod.is_ipv4() { 32 } else { 128 };
        let mut value = [0; 24];
        value[..4].copy_from_slice(&POD_IDENTITY.to_ne_bytes());
        value[4..20].copy_from_slice(&octets(node));
        value[20] = u8::from(self.encapsulating);
        let set = self.object.set_prefix("remotes", bits, key, value);
        set.map_err(|source| failed(&self.place.name, source))
    }

    /// Makes a pod of this node known: its address, the index of the node's end
    /// of its veth, and the hardware addresses of both ends.
    pub(super) fn add_endpoint(
        &mut self,
        pod: IpAddr,
        port: u32,
        pod_mac: Mac,
        port_mac: Mac,
    ) -> Result<(), LabError> {
        let mut key = [0; 20];
        key[..16].copy_from_slice(&octets(pod));
        key[16] = family(pod);
        let mut value = [0; 16];
        value[..4].copy_from_slice(&port.to_ne_bytes());
        value[4..10].copy_from_slice(&pod_mac);
        value[10..].copy_from_slice(&port_mac);
        let mut own = [0; 8];
        own[..6].copy_from_slice(&port_mac);
        self.object
            .set("endpoints", key, value)
            .and_then(|()| self.object.set_at("ports", port, own))
            .map_err(|source| failed(&self.place.name, source))
    }

    /// Attaches a program to what comes in through a device.
    pub(super) fn attach(
        &mut self,
        journal: &mut Journal,
        device: u32,
        program: CiliumProgram,
    ) -> Result<(), LabError> {
        let name = program.name();
        let fd = self.object.classifier(name);
        let fd = fd.map_err(|source| failed(&self.place.name, source))?;
        journal.ingress_program(&self.place, device, name, &fd)
    }
}

/// The programs of a node failed, or what they look up.
#[derive(Debug, thiserror::Error)]
#[error("for {place}: {source}")]
struct DatapathError {
    place: String,
    source: BpfError,
}

fn failed(place: &str, source: BpfError) -> LabError {
    LabError::network(DatapathError {
        place: place.into(),
        source,
    })
}

/// Loads the programs and attaches them to `device`, which has no hooks yet.
pub(super) fn attempt(netlink: &NetlinkSocket, device: u32) -> Result<Presence, LabError> {
    match try_programs(netlink, device) {
        Ok(Ok(())) => Ok(Presence::Present),
        // The kernel's answer to a kind that it does not know.
        Ok(Err(error)) if error.is_unsupported() || error.is_gone() => {
            Ok(Presence::Otherwise(ebpf::HOOKS))
        }
        Ok(Err(error)) => Err(need::failed(error)),
        Err(error) => match ebpf::needs(&error) {
            Some(needs) => Ok(Presence::Otherwise(needs)),
            None => Err(failed("a scratch namespace", error)),
        },
    }
}

fn try_programs(
    netlink: &NetlinkSocket,
    device: u32,
) -> Result<Result<(), NetlinkError>, BpfError> {
    let mut object = BpfObject::load(&OBJECT.0, &[])?;
    for program in [CiliumProgram::Container, CiliumProgram::Overlay] {
        object.classifier(program.name())?;
    }
    let name = CiliumProgram::Netdev.name();
    let fd = object.classifier(name)?;
    let hooked = netlink.add(&Hooks(device));
    Ok(hooked.and_then(|()| netlink.add_ingress_program(device, name, &fd)))
}

/// Counts what the programs took from a pod and handed to it; the pod's veth has its
/// end on the node at index `port`.
pub(super) fn meter(datapath: &Arc<CiliumDatapath>, port: u32) -> Meter {
    let datapath = Arc::clone(datapath);
    Arc::new(move |device| {
        let counted = datapath.object.sum("counters", port);
        let [tx_packets, tx_bytes, rx_packets, rx_bytes] =
            counted.map_err(|source| failed(&datapath.place.name, source))?;
        (device.tx_packets, device.tx_bytes) = (tx_packets, tx_bytes);
        (device.rx_packets, device.rx_bytes) = (rx_packets, rx_bytes);
        Ok(())
    })
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 1,
        IpAddr::V6(_) => 2,
    }
}
