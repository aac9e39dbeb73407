//! What a network needs of the kernel, found out by really trying.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use plumbline_sys::namespace::Namespace;
use plumbline_sys::netlink::{IpvlanMode, LinkSpec, NetlinkError, Socket, Vxlan};
use plumbline_sys::tun::Tun;

use crate::error::LabError;
use crate::network::Network;

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
    /// TUN devices.
    Tun,
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
            Self::Ipvlan => "needs CONFIG_IPVLAN; try `modprobe ipvlan`, or a kernel that has it",
        }
    }

    /// Makes such a device and deletes it again. `parent` is a device that it
    /// may be put on top of.
    ///
    /// A TUN device is made by the program that opens it: see [`missing_tun`].
    fn attempt(self, netlink: &Socket, parent: u32) -> Result<(), NetlinkError> {
        const NAME: &str = "probe";
        let link = match self {
            Self::Tun => return Ok(()),
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
        };
        netlink.add_link(link)?;
        netlink.delete_link(NAME)
    }
}

/// Answers whether networks can be built here. Each driver is tried once.
#[derive(Debug, Default)]
pub struct Probe {
    known: RefCell<BTreeMap<Need, Option<String>>>,
}

impl Probe {
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
        Ok(needs.iter().find_map(|need| known[need].clone()))
    }
}

fn attempt(need: Need, scratch: &Namespace) -> Result<Option<String>, LabError> {
    const PARENT: &str = "parent";
    let failed = |source| LabError::Netlink {
        place: "a scratch namespace".into(),
        source,
    };
    let netlink = scratch.netlink();
    let parent = match netlink.link(PARENT) {
        Ok(link) => link.index,
        Err(_) => match netlink.add_link(LinkSpec::veth(PARENT, LinkSpec::peer("parent-peer"))) {
            Ok(()) => netlink.link(PARENT).map_err(failed)?.index,
            Err(error) if error.is_unsupported() => return Ok(Some(Need::Veth.remedy().into())),
            Err(error) => return Err(failed(error)),
        },
    };
    if need == Need::Tun {
        return missing_tun(scratch);
    }
    match need.attempt(netlink, parent) {
        Ok(()) => Ok(None),
        Err(error) if error.is_unsupported() => Ok(Some(need.remedy().into())),
        Err(error) => Err(failed(error)),
    }
}

/// A device of a program is made by opening it.
fn missing_tun(scratch: &Namespace) -> Result<Option<String>, LabError> {
    let opened = scratch.run(|| Tun::open("probe").map(drop))?;
    // Whatever the reason: without it this network cannot be built.
    Ok(opened
        .err()
        .map(|error| format!("{} ({error})", Need::Tun.remedy())))
}
