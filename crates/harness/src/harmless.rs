//! Where load may go without a word more.

use std::net::{IpAddr, Ipv6Addr};

/// Where a cloud answers for the whole machine, among addresses that are private.
const CLOUD: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Whether load may go to an address without `--i-own-this`: loopback and private
/// addresses, those of one link in IPv6, and those set aside for benchmarks (S-5c).
/// In IPv4 the addresses of a link are where clouds answer for the whole machine
/// (169.254.169.254).
pub fn is_harmless(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let benchmark = v4.octets()[0] == 198 && v4.octets()[1] & 0xfe == 18;
            v4.is_loopback() || v4.is_private() || benchmark
        }
        IpAddr::V6(v6) => {
            let benchmark = v6.segments()[..3] == [0x2001, 2, 0];
            let is_near = v6.is_unique_local() || v6.is_unicast_link_local();
            v6.is_loopback() || benchmark || (is_near && v6 != CLOUD)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_others_need_a_word() {
        for harmless in [
            "127.0.0.1",
            "10.1.2.3",
            "198.19.255.1",
            "::1",
            "fd00::1",
            "2001:2::5",
        ] {
            assert!(is_harmless(harmless.parse().unwrap()), "{harmless}");
        }
        for asked in [
            "8.8.8.8",
            "169.254.169.254",
            "169.254.0.1",
            "fd00:ec2::254",
            "198.20.0.1",
            "2001:db8::1",
            "2606::1",
        ] {
            assert!(!is_harmless(asked.parse().unwrap()), "{asked}");
        }
    }
}
