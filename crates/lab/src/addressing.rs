//! Which addresses a lab uses: the ranges set aside for benchmarks, so that
//! nothing can leak to a real network (S-5c).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use plumbline_experiment::Family;

/// The addresses of a lab of one family: 198.18.0.0/15 (RFC 2544) or
/// 2001:2::/48 (RFC 5180).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addressing {
    family: Family,
}

/// The last part of the router's address between nodes.
const ROUTER: u8 = 254;
/// The last part of the address of an interface that a node has for its pods.
const INTERFACE: u8 = 253;
/// The third part of the first address that nobody has, of IPv4.
const FIRST_STRANGER: u8 = 64;

impl Addressing {
    /// How many addresses there are that look like those of pods, and that nobody has.
    pub const STRANGERS: u32 = (256 - FIRST_STRANGER as u32) * 256;

    /// The plan for a family.
    pub fn new(family: Family) -> Self {
        Self { family }
    }

    /// The family.
    pub fn family(self) -> Family {
        self.family
    }

    /// Node `number`, from 1, on the underlay.
    pub fn node(self, number: u8) -> IpAddr {
        self.build([18, 0], 0, number)
    }

    /// The router between nodes, where there is one.
    pub fn router(self) -> IpAddr {
        self.node(ROUTER)
    }

    /// Prefix length of the underlay, in bits.
    pub fn underlay_prefix(self) -> u8 {
        self.pick(24, 64)
    }

    /// The network address of the pods of node `number`.
    pub fn subnet(self, number: u8) -> IpAddr {
        self.build([19, number], u16::from(number), 0)
    }

    /// Prefix length of a node's pods, in bits.
    pub fn subnet_prefix(self) -> u8 {
        self.pick(24, 64)
    }

    /// The gateway of the pods of node `number`, where pods have one of their
    /// own subnet.
    pub fn gateway(self, number: u8) -> IpAddr {
        self.build([19, number], u16::from(number), 1)
    }

    /// Pod `index`, from 0, of node `number`.
    pub fn pod(self, number: u8, index: u8) -> IpAddr {
        self.build([19, number], u16::from(number), 2 + index)
    }

    /// Address `index`, below [`STRANGERS`](Self::STRANGERS), among those that look like
    /// pods of other nodes and that nobody has.
    pub(crate) fn stranger(self, index: u32) -> IpAddr {
        let [_, _, high, low] = index.to_be_bytes();
        match self.family {
            Family::V4 => Ipv4Addr::new(198, 19, FIRST_STRANGER + high, low).into(),
            Family::V6 => {
                let last = u16::from_be_bytes([high, low]);
                Ipv6Addr::new(0x2001, 2, 0, 0xffff, 0, 0, 0, last).into()
            }
        }
    }

    /// The address of the default route.
    pub fn everywhere(self) -> IpAddr {
        self.pick(Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into())
    }

    /// The own address of an interface that node `number` has for its pods.
    pub fn interface(self, number: u8) -> IpAddr {
        self.build([19, number], u16::from(number), INTERFACE)
    }

    /// The network address of the pods of all nodes.
    pub fn cluster(self) -> IpAddr {
        self.build([19, 0], 0, 0)
    }

    /// Prefix length that holds the pods of all nodes, in bits.
    pub fn cluster_prefix(self) -> u8 {
        self.pick(16, 48)
    }

    /// Prefix length of a single address, in bits.
    pub fn host_prefix(self) -> u8 {
        self.pick(32, 128)
    }

    /// Bytes of the IP header.
    pub fn header_bytes(self) -> u32 {
        self.pick(20, 40)
    }

    /// Node `number` on the underlay of a network that is of IPv4 only.
    pub(crate) fn node_v4(self, number: u8) -> Ipv4Addr {
        v4(self.node(number))
    }

    /// The pods of node `number`, as [`subnet`](Self::subnet), where there is IPv4 only.
    pub(crate) fn subnet_v4(self, number: u8) -> Ipv4Addr {
        v4(self.subnet(number))
    }

    fn pick<T>(self, v4: T, v6: T) -> T {
        match self.family {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }

    fn build(self, v4: [u8; 2], v6: u16, last: u8) -> IpAddr {
        match self.family {
            Family::V4 => Ipv4Addr::new(198, v4[0], v4[1], last).into(),
            Family::V6 => Ipv6Addr::new(0x2001, 2, 0, v6, 0, 0, 0, u16::from(last)).into(),
        }
    }
}

/// The bytes of an address; for IPv4 the first four, the rest zero.
pub(crate) fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&address.octets());
            octets
        }
        IpAddr::V6(address) => address.octets(),
    }
}

fn v4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => unreachable!("the network is of IPv4 only, and was checked to be"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_inside_the_benchmark_ranges() {
        let v4 = Addressing::new(Family::V4);
        assert_eq!(v4.node(2).to_string(), "198.18.0.2");
        assert_eq!(v4.subnet(2).to_string(), "198.19.2.0");
        assert_eq!(v4.pod(1, 0).to_string(), "198.19.1.2");
        assert_eq!(v4.stranger(0).to_string(), "198.19.64.0");
        let last = v4.stranger(Addressing::STRANGERS - 1);
        assert_eq!(last.to_string(), "198.19.255.255");
        let v6 = Addressing::new(Family::V6);
        assert_eq!(v6.node(2).to_string(), "2001:2::2");
        assert_eq!(v6.pod(2, 1).to_string(), "2001:2:0:2::3");
        assert_eq!(v6.router().to_string(), "2001:2::fe");
        assert_eq!(v6.stranger(0x1234).to_string(), "2001:2:0:ffff::1234");
    }
}
