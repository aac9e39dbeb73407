//! What a network needs of the kernel, found out by really trying.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use plumbline_sys::namespace::Namespace;
use plumbline_sys::netlink::{
    CollectMetadata, Datapath, IpvlanMode, LinkSpec, NetlinkError, Vxlan,
};
use plumbline_sys::tap::Tap;
use plumbline_sys::tun::Tun;

use crate::error::LabError;
use crate::network::cni::{self, Cni};
use crate::network::{self, Network, cilium};

/// A driver that a network needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Pairs of virtual Ethernet devices.
    Veth,
    /// Bridges.
    Bridge,
    /// VXLAN devices.
    Vxlan,
    /// Macvlan devices.
    Macvlan,
    /// Ipvlan devices.
    Ipvlan,
    /// Geneve devices.
    Geneve,
    /// eBPF programs at tc, which need rights on the machine itself too.
    Ebpf,
    /// TUN devices.
    Tun,
    /// Sockets that take frames from a device, by memory that the kernel shares.
    Capture,
    /// The kernel datapath of Open vSwitch, with VXLAN.
    OpenVswitch,
}

impl Need {
    /// What is missing where it is missing, and how to get it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Veth => "needs CONFIG_VETH; try `modprobe veth`, or a kernel that has it",
            Self::Bridge => "needs CONFIG_BRIDGE; try `modprobe bridge`, or a kernel that has it",
            Self::Vxlan => "needs CONFIG_VXLAN; try `modprobe vxlan`, or a kernel that has it",
            Self::Macvlan => {
                "needs CONFIG_MACVLAN; try `modprobe macvlan`, or a kernel that has it"
            }
            Self::Tun => {
                "needs CONFIG_TUN and /dev/net/tun; try `modprobe tun`, or a kernel that has it"
            }
            Self::Capture => {
                "needs CONFIG_PACKET; try `modprobe af_packet`, or a kernel that has it"
            }
            Self::OpenVswitch => {
                "needs CONFIG_OPENVSWITCH and CONFIG_OPENVSWITCH_VXLAN; try `modprobe openvswitch`, \
                 or `--kernel uml`"
            }
            Self::Ipvlan => "needs CONFIG_IPVLAN; try `modprobe ipvlan`, or a kernel that has it",
            Self::Geneve => "needs CONFIG_GENEVE; try `modprobe geneve`, or a kernel that has it",
            Self::Ebpf => "needs eBPF at tc (CONFIG_BPF_SYSCALL, CONFIG_NET_CLS_BPF)",
        }
    }

    /// Tries it in a scratch namespace, and gives what is missing. `parent` is a
    /// device that it may be put on top of.
    fn lacks(self, scratch: &Namespace, parent: u32) -> Result<Option<String>, LabError> {
        let netlink = scratch.netlink();
        let Some(link) = self.device(parent) else {
            return match self {
                Self::Tun => missing(self, scratch, || Tun::open("probe").map(drop)),
                Self::Capture => missing(self, scratch, || Tap::open(parent).map(drop)),
                Self::OpenVswitch => missing(self, scratch, try_datapath),
                _ => cilium::attempt(netlink, parent),
            };
        };
        let made = netlink.add_link(link);
        match made.and_then(|()| netlink.delete_link(NAME)) {
            Ok(()) => Ok(None),
            Err(error) if error.is_unsupported() => Ok(Some(self.remedy().into())),
            Err(error) => Err(failed(error)),
        }
    }

    /// A device of the kind; none for what is not made by a message alone.
    fn device(self, parent: u32) -> Option<LinkSpec<'static>> {
        Some(match self {
            Self::Veth => LinkSpec::veth(NAME, LinkSpec::peer("probe-peer")),
            Self::Bridge => LinkSpec::bridge(NAME),
            Self::Vxlan => LinkSpec::vxlan(
                NAME,
                Vxlan {
                    vni: 1,
                    port: 8472,
                    local: Ipv4Addr::LOCALHOST.into(),
                    underlay: parent,
                },
            ),
            Self::Macvlan => LinkSpec::macvlan(NAME, parent),
            Self::Ipvlan => LinkSpec::ipvlan(NAME, parent, IpvlanMode::L2),
            Self::Geneve => LinkSpec::collect_metadata(NAME, CollectMetadata::Geneve, 6081),
            Self::Tun | Self::Capture | Self::OpenVswitch | Self::Ebpf => return None,
        })
    }
}

/// The name of the device that is made for a try.
const NAME: &str = "probe";

/// Answers whether networks can be built here. Each driver is tried once.
///
/// It also knows networks by name: the ones of this program and those that are
/// in a file.
pub struct Probe {
    known: RefCell<BTreeMap<Need, Option<String>>>,
    /// Networks in files, by their names.
    files: RefCell<BTreeMap<String, &'static Cni>>,
    cni_directories: Vec<PathBuf>,
}

impl Default for Probe {
    fn default() -> Self {
        Self::new(cni::default_directories())
    }
}

impl Probe {
    /// CNI plugins are looked for in these directories.
    pub fn new(cni_directories: Vec<PathBuf>) -> Self {
        Self {
            known: RefCell::default(),
            files: RefCell::default(),
            cni_directories,
        }
    }

    /// The network of this name or alias, or of the configuration list that
    /// `cni:FILE` names. A file is read once.
    pub fn find(&self, name: &str) -> Result<&'static dyn Network, LabError> {
        let Some(file) = name.strip_prefix(cni::PREFIX) else {
            return network::find(name);
        };
        let mut files = self.files.borrow_mut();
        if let Some(known) = files.get(name) {
            return Ok(*known);
        }
        // Networks live as long as the program; it is given a handful of files.
        let name: &'static str = name.to_owned().leak();
        let network = Cni::read(name, Path::new(file), &self.cni_directories)?;
        let network: &'static Cni = Box::leak(Box::new(network));
        files.insert(name.into(), network);
        Ok(network)
    }

    /// What the network lacks; `None` when it can be built.
    pub fn missing(&self, network: &dyn Network) -> Result<Option<String>, LabError> {
        let needs = network.about().needs;
        let mut known = self.known.borrow_mut();
        if needs.iter().any(|need| !known.contains_key(need)) {
            let scratch = Namespace::create()?;
            for need in needs {
                let verdict = attempt(*need, &scratch)?;
                known.insert(*need, verdict);
            }
        }
        match needs.iter().find_map(|need| known[need].clone()) {
            Some(missing) => Ok(Some(missing)),
            None => network.lacks(),
        }
    }
}

fn attempt(need: Need, scratch: &Namespace) -> Result<Option<String>, LabError> {
    const PARENT: &str = "parent";
    let netlink = scratch.netlink();
    let parent = match netlink.link(PARENT) {
        Ok(link) => link.index,
        Err(_) => match netlink.add_link(LinkSpec::veth(PARENT, LinkSpec::peer("parent-peer"))) {
            Ok(()) => netlink.link(PARENT).map_err(failed)?.index,
            Err(error) if error.is_unsupported() => return Ok(Some(Need::Veth.remedy().into())),
            Err(error) => return Err(failed(error)),
        },
    };
    need.lacks(scratch, parent)
}

fn failed(source: NetlinkError) -> LabError {
    LabError::Netlink {
        place: "a scratch namespace".into(),
        source,
    }
}

/// What a program opens is tried by opening it.
fn missing<E: std::fmt::Display + Send>(
    need: Need,
    scratch: &Namespace,
    open: impl FnOnce() -> Result<(), E> + Send,
) -> Result<Option<String>, LabError> {
    let opened = scratch.run(open)?;
    // Whatever the reason: without it this network cannot be built.
    Ok(opened
        .err()
        .map(|error| format!("{} ({error})", need.remedy())))
}

fn try_datapath() -> Result<(), NetlinkError> {
    let datapath = Datapath::create(NAME)?;
    let added = datapath.add_vxlan("probe-vxlan", 6784);
    added.and(datapath.delete())
}
