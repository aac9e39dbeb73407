//! The drivers of the kernel, found out by really trying.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use plumbline_sys::namespace::Namespace;
use plumbline_sys::netlink::{
    CollectMetadata, Datapath, Distance, EspState, IpvlanMode, LinkSpec, NetlinkError, Parent,
    TokenBucket, TunnelEnds, Vxlan, XfrmSocket,
};
use plumbline_sys::tap::Tap;
use plumbline_sys::tun::Tun;

use crate::error::LabError;
use crate::network::{cilium, kopeio_ipsec};
use crate::topology::has_bridge_netfilter;

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
    /// Ipvlan devices in mode L3S.
    IpvlanL3s,
    /// IPv4 in IPv4.
    IpIp,
    /// IPv6 in IPv6.
    Ip6Tunnel,
    /// GRE over IPv4.
    Gre,
    /// GRE over IPv6.
    Ip6Gre,
    /// Geneve devices.
    Geneve,
    /// WireGuard devices.
    Wireguard,
    /// Netfilter for what bridges carry.
    BridgeNetfilter,
    /// IPsec's ESP with AES in counter mode.
    Esp,
    /// eBPF programs at tc, which need rights on the machine itself too.
    Ebpf,
    /// TUN devices.
    Tun,
    /// Sockets that take frames from a device, by memory that the kernel shares.
    Capture,
    /// The kernel datapath of Open vSwitch, with VXLAN.
    OpenVswitch,
    /// The queueing discipline that limits a rate.
    TokenBucket,
    /// The queueing discipline that delays and loses.
    Netem,
}

impl Need {
    /// What is missing where it is missing, and how to get it.
    pub fn remedy(self) -> &'static str {
        macro_rules! needs {
            ($option:literal, $module:literal) => {
                concat!(
                    "needs ",
                    $option,
                    "; try `modprobe ",
                    $module,
                    "`, or `--kernel uml`"
                )
            };
        }
        match self {
            Self::Veth => needs!("CONFIG_VETH", "veth"),
            Self::Bridge => needs!("CONFIG_BRIDGE", "bridge"),
            Self::Vxlan => needs!("CONFIG_VXLAN", "vxlan"),
            Self::Macvlan => needs!("CONFIG_MACVLAN", "macvlan"),
            Self::Ipvlan => needs!("CONFIG_IPVLAN", "ipvlan"),
            Self::IpvlanL3s => needs!("CONFIG_IPVLAN with CONFIG_IPVLAN_L3S", "ipvlan"),
            Self::IpIp => needs!("CONFIG_NET_IPIP", "ipip"),
            Self::Ip6Tunnel => needs!("CONFIG_IPV6_TUNNEL", "ip6_tunnel"),
            Self::Gre => needs!("CONFIG_NET_IPGRE", "ip_gre"),
            Self::Ip6Gre => needs!("CONFIG_IPV6_GRE", "ip6_gre"),
            Self::Geneve => needs!("CONFIG_GENEVE", "geneve"),
            // User-mode Linux is packaged without it.
            Self::Wireguard => {
                "needs CONFIG_WIREGUARD; try `modprobe wireguard`, or a kernel that has it"
            }
            Self::BridgeNetfilter => needs!("CONFIG_BRIDGE_NETFILTER", "br_netfilter"),
            Self::Esp => {
                "needs CONFIG_XFRM_USER, CONFIG_INET_ESP and CONFIG_CRYPTO_CTR; \
                 try `modprobe -a xfrm_user esp4`, or `--kernel uml`"
            }
            Self::Ebpf => "needs eBPF at tc (CONFIG_BPF_SYSCALL, CONFIG_NET_CLS_BPF)",
            Self::Tun => needs!("CONFIG_TUN and /dev/net/tun", "tun"),
            Self::Capture => needs!("CONFIG_PACKET", "af_packet"),
            Self::OpenVswitch => {
                "needs CONFIG_OPENVSWITCH and CONFIG_OPENVSWITCH_VXLAN; try `modprobe openvswitch`, \
                 or `--kernel uml`"
            }
            Self::TokenBucket => needs!("CONFIG_NET_SCH_TBF for a rate", "sch_tbf"),
            Self::Netem => needs!("CONFIG_NET_SCH_NETEM for delay and loss", "sch_netem"),
        }
    }

    /// Tries it in a scratch namespace, and gives what is missing. `parent` is a
    /// device that it may be put on top of.
    pub(crate) fn lacks(
        self,
        scratch: &Namespace,
        parent: u32,
    ) -> Result<Option<String>, LabError> {
        let netlink = scratch.netlink();
        let tried = match self {
            Self::BridgeNetfilter => {
                return Ok((!has_bridge_netfilter()).then(|| self.remedy().into()));
            }
            Self::Tun => return missing(self, scratch, || Tun::open(NAME).map(drop)),
            Self::Capture => return missing(self, scratch, || Tap::open(parent).map(drop)),
            Self::OpenVswitch => return missing(self, scratch, try_datapath),
            Self::Ebpf => return cilium::attempt(netlink, parent),
            Self::Esp => attempt_esp(scratch)?,
            Self::TokenBucket => netlink
                .add_token_bucket(parent, Parent::Root, &BUCKET)
                .and_then(|()| netlink.delete_discipline(parent)),
            Self::Netem => netlink
                .add_distance(parent, Parent::Root, &DISTANCE)
                .and_then(|()| netlink.delete_discipline(parent)),
            _ => self.device(parent).map_or(Ok(()), |link| {
                let made = netlink.add_link(link);
                made.and_then(|()| netlink.delete_link(NAME))
            }),
        };
        match tried {
            Ok(()) => Ok(None),
            Err(error) if error.is_unsupported() => Ok(Some(self.remedy().into())),
            // What the kernel says of a discipline that it does not know.
            Err(error) if error.is_gone() && matches!(self, Self::TokenBucket | Self::Netem) => {
                Ok(Some(self.remedy().into()))
            }
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
            Self::IpvlanL3s => LinkSpec::ipvlan(NAME, parent, IpvlanMode::L3s),
            Self::IpIp => LinkSpec::ip_in_ip(NAME, ends(Ipv4Addr::LOCALHOST)),
            Self::Ip6Tunnel => LinkSpec::ip_in_ip(NAME, ends(Ipv6Addr::LOCALHOST)),
            Self::Gre => LinkSpec::gre(NAME, ends(Ipv4Addr::LOCALHOST), 0),
            Self::Ip6Gre => LinkSpec::gre(NAME, ends(Ipv6Addr::LOCALHOST), 0),
            Self::Geneve => LinkSpec::collect_metadata(NAME, CollectMetadata::Geneve, 6081),
            Self::Wireguard => LinkSpec::wireguard(NAME),
            Self::BridgeNetfilter
            | Self::Esp
            | Self::Ebpf
            | Self::Tun
            | Self::Capture
            | Self::OpenVswitch
            | Self::TokenBucket
            | Self::Netem => return None,
        })
    }
}

/// The name of the device that is made for a try.
const NAME: &str = "probe";

/// What a scratch device may have.
const BUCKET: TokenBucket = TokenBucket {
    rate: 1_000_000,
    burst: 10_000,
    limit: 10_000,
};
const DISTANCE: Distance = Distance {
    delay: Duration::ZERO,
    loss: 0.0,
    limit: 1000,
};

/// A tunnel from an address to itself: nothing is ever sent.
fn ends(address: impl Into<IpAddr>) -> TunnelEnds {
    let local = address.into();
    TunnelEnds {
        local,
        remote: Some(local),
    }
}

/// Adds what IPsec needs for one direction, and takes it away again.
fn attempt_esp(scratch: &Namespace) -> Result<Result<(), NetlinkError>, LabError> {
    let state = EspState {
        source: Ipv4Addr::LOCALHOST.into(),
        destination: Ipv4Addr::LOCALHOST.into(),
        spi: 1,
        cipher: kopeio_ipsec::CIPHER,
        key: kopeio_ipsec::KEY.to_vec(),
    };
    Ok(scratch.run(|| {
        let xfrm = XfrmSocket::open()?;
        xfrm.add_state(&state)?;
        xfrm.delete_state(&state)
    })?)
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

/// An error that says nothing of the driver.
pub(crate) fn failed(source: NetlinkError) -> LabError {
    LabError::Netlink {
        place: "a scratch namespace".into(),
        source,
    }
}
