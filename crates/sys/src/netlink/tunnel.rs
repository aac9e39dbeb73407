//! Devices that encapsulate packets between two hosts.

use std::net::IpAddr;

use netlink_packet_core::DefaultNla;
use netlink_packet_route::link::{
    InfoData, InfoGeneve, InfoGre, InfoGre6, InfoIpTunnel, InfoKind, Ip6TunnelFlags,
};

use super::LinkSpec;

/// `IP6_TNL_F_IGN_ENCAP_LIMIT` (linux/ip6_tunnel.h): no option that limits
/// nesting, which would cost eight bytes.
const NO_ENCAP_LIMIT: u32 = 1;
/// `IFLA_GRE_FLAGS` (linux/if_tunnel.h).
const IFLA_GRE_FLAGS: u16 = 13;
/// `IFLA_IPTUN_PROTO` for IPv6 in IPv6.
const PROTOCOL_IPV6: u8 = 41;

/// The two ends of a tunnel, both of one IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelEnds {
    /// Source address of the outer packets.
    pub local: IpAddr,
    /// The other end; `None` for a device whose routes name it as gateway.
    pub remote: Option<IpAddr>,
}

impl LinkSpec<'_> {
    /// IP in IP of one version (RFC 2003, RFC 2473): module `ipip`, or
    /// `ip6_tunnel` between IPv6 addresses, there without a limit of nesting.
    pub fn ip_in_ip(name: &str, ends: TunnelEnds) -> Self {
        let mut data = vec![InfoIpTunnel::Local(ends.local)];
        data.extend(ends.remote.map(InfoIpTunnel::Remote));
        let (label, kind) = if ends.local.is_ipv4() {
            data.push(InfoIpTunnel::PMtuDisc(true));
            ("ipip", InfoKind::IpIp)
        } else {
            data.push(InfoIpTunnel::Ipv6Flags(Ip6TunnelFlags::IgnEncapLimit));
            data.push(InfoIpTunnel::Protocol(PROTOCOL_IPV6.into()));
            ("ip6tnl", InfoKind::Ip6Tnl)
        };
        Self::new(name, label).with_info(kind, Some(InfoData::IpTunnel(data)))
    }

    /// The device that takes all IPv4 in IPv4 that no other device takes:
    /// neither end is set, and routes name the far end as gateway.
    pub fn any_ip_in_ip(name: &str) -> Self {
        let data = InfoData::IpTunnel(vec![InfoIpTunnel::PMtuDisc(true)]);
        Self::new(name, "ipip").with_info(InfoKind::IpIp, Some(data))
    }

    /// GRE with IP inside (RFC 2784), without keys or checksums; `ttl` of the
    /// outer packets, 0 for that of the inner ones.
    pub fn gre(name: &str, ends: TunnelEnds, ttl: u8) -> Self {
        let remote = ends.remote;
        match ends.local {
            IpAddr::V4(local) => {
                let mut data = vec![InfoGre::Local(local), InfoGre::PathMTUDiscovery(true)];
                if let Some(IpAddr::V4(remote)) = remote {
                    data.push(InfoGre::Remote(remote));
                }
                data.push(InfoGre::Ttl(ttl));
                Self::new(name, "gre").with_info(InfoKind::GreTun, Some(InfoData::GreTun(data)))
            }
            IpAddr::V6(local) => {
                let flags = DefaultNla::new(IFLA_GRE_FLAGS, NO_ENCAP_LIMIT.to_ne_bytes().to_vec());
                let mut data = vec![InfoGre6::Local(local), InfoGre6::Other(flags)];
                if let Some(IpAddr::V6(remote)) = remote {
                    data.push(InfoGre6::Remote(remote));
                }
                // Without a limit the kernel would send packets that no router
                // forwards.
                data.push(InfoGre6::Ttl(if ttl == 0 { 64 } else { ttl }));
                Self::new(name, "ip6gre")
                    .with_info(InfoKind::GreTun6, Some(InfoData::GreTun6(data)))
            }
        }
    }

    /// Geneve with Ethernet inside (RFC 8926) to one other end, with UDP
    /// checksums as the kernel has them by default.
    pub fn geneve(name: &str, vni: u32, port: u16, remote: IpAddr) -> Self {
        let remote = match remote {
            IpAddr::V4(address) => InfoGeneve::Remote(address),
            IpAddr::V6(address) => InfoGeneve::Remote6(address),
        };
        let data = vec![InfoGeneve::Id(vni), remote, InfoGeneve::Port(port)];
        Self::new(name, "geneve").with_info(InfoKind::Geneve, Some(InfoData::Geneve(data)))
    }

    /// A WireGuard device, to be set up by
    /// [`Wireguard`](super::Wireguard).
    pub fn wireguard(name: &str) -> Self {
        Self::new(name, "wireguard").with_info(InfoKind::Wireguard, None)
    }
}
