//! Which address of a host is meant.

use std::fmt;
use std::net::IpAddr;

use plumbline_experiment::Family;
use plumbline_protocol::LocalAddress;

use crate::error::HostsError;

/// The longest name that a device can have (`IFNAMSIZ`, without the zero).
const LONGEST_DEVICE: usize = 15;

/// How an address is picked among those of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The one that ssh connected to, or another family's on its device.
    AsSshConnects,
    /// The one in a network.
    Network {
        /// The network's address.
        address: IpAddr,
        /// Length of its prefix in bits.
        prefix: u8,
    },
    /// This one.
    Address(IpAddr),
    /// The one of a device.
    Device(String),
}

impl Selector {
    /// Reads `10.0.0.0/24`, `10.0.0.7` or `eth1`.
    ///
    /// # Errors
    ///
    /// Text that is none of these.
    pub fn parse(text: &str) -> Result<Self, HostsError> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        if let Some((address, prefix)) = text.split_once('/')
            && let (Ok(address), Ok(prefix)) = (address.parse::<IpAddr>(), prefix.parse::<u8>())
            && prefix <= bits(address)
        {
            return Ok(Self::Network { address, prefix });
        }
        let is_device = !text.is_empty()
            && text.len() <= LONGEST_DEVICE
            && !text.contains(|c: char| c == '/' || c.is_whitespace());
        if is_device {
            return Ok(Self::Device(text.to_owned()));
        }
        Err(HostsError::Options(format!(
            "--address {text}: write a network such as 10.0.0.0/24, an address or a device"
        )))
    }

    /// The address that is meant, of those that a host has. `connected` is the
    /// one that ssh connected to, where it is known.
    ///
    /// Addresses that are valid on one link only are left out: an engine that
    /// connects to one would have to name the device too.
    pub(crate) fn choose<'a>(
        &self,
        addresses: &'a [LocalAddress],
        connected: Option<IpAddr>,
        family: Family,
    ) -> Option<&'a LocalAddress> {
        let mut usable = addresses
            .iter()
            .filter(|one| family.holds(one.address) && !is_link_local(one.address));
        match self {
            Self::Address(wanted) => usable.find(|one| one.address == *wanted),
            Self::Network { address, prefix } => {
                usable.find(|one| contains(*address, *prefix, one.address))
            }
            Self::Device(wanted) => usable.find(|one| one.device == *wanted),
            Self::AsSshConnects => {
                let connected = connected?;
                if family.holds(connected) {
                    return usable.find(|one| one.address == connected);
                }
                let device = &addresses
                    .iter()
                    .find(|one| one.address == connected)?
                    .device;
                usable.find(|one| one.device == *device)
            }
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsSshConnects => f.write_str("that ssh connects to"),
            Self::Network { address, prefix } => write!(f, "in {address}/{prefix}"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Device(device) => write!(f, "on {device}"),
        }
    }
}

/// The addresses of a host, for a message: `eth0 10.0.0.7, wg0 10.9.0.1`.
pub(crate) fn list(addresses: &[LocalAddress]) -> String {
    let words: Vec<String> = addresses
        .iter()
        .filter(|one| !one.address.is_loopback() && !is_link_local(one.address))
        .map(|one| format!("{} {}", one.device, one.address))
        .collect();
    if words.is_empty() {
        return "none".to_owned();
    }
    words.join(", ")
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn contains(network: IpAddr, prefix: u8, address: IpAddr) -> bool {
    if network.is_ipv4() != address.is_ipv4() {
        return false;
    }
    let number = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    };
    let host_bits = u32::from(bits(network) - prefix);
    // A shift by all 128 bits is no shift in Rust: a prefix of 0 holds all.
    let high = |address| number(address).checked_shr(host_bits).unwrap_or(0);
    high(network) == high(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Vec<LocalAddress> {
        [
            ("lo", "127.0.0.1", 8),
            ("eth0", "10.0.0.7", 24),
            ("eth0", "fe80::7", 64),
            ("eth0", "fd00::7", 64),
            ("wg0", "10.9.0.7", 16),
        ]
        .map(|(device, address, prefix)| LocalAddress {
            device: device.into(),
            address: address.parse().unwrap(),
            prefix,
        })
        .into()
    }

    fn chosen(selector: &str, connected: Option<&str>, family: Family) -> Option<String> {
        let selector = match selector {
            "" => Selector::AsSshConnects,
            text => Selector::parse(text).unwrap(),
        };
        let connected = connected.map(|text| text.parse().unwrap());
        let addresses = addresses();
        let one = selector.choose(&addresses, connected, family)?;
        Some(format!("{} {}", one.device, one.address))
    }

    #[test]
    fn an_address_is_chosen_by_what_was_typed() {
        let v4 = |text| chosen(text, None, Family::V4);
        assert_eq!(v4("10.9.0.0/16").as_deref(), Some("wg0 10.9.0.7"));
        assert_eq!(v4("0.0.0.0/0").as_deref(), Some("lo 127.0.0.1"));
        assert_eq!(v4("eth0").as_deref(), Some("eth0 10.0.0.7"));
        assert_eq!(v4("10.0.0.7").as_deref(), Some("eth0 10.0.0.7"));
        assert_eq!(v4("10.0.0.8"), None);
        assert_eq!(v4("192.168.0.0/16"), None);
        let v6 = |text| chosen(text, None, Family::V6);
        assert_eq!(
            v6("eth0").as_deref(),
            Some("eth0 fd00::7"),
            "not the link's"
        );
        assert_eq!(v6("::/0").as_deref(), Some("eth0 fd00::7"));
        assert_eq!(v6("wg0"), None);
    }

    #[test]
    fn without_a_word_it_is_what_ssh_connected_to() {
        let by_ssh = |connected, family| chosen("", connected, family);
        assert_eq!(
            by_ssh(Some("10.0.0.7"), Family::V4).as_deref(),
            Some("eth0 10.0.0.7")
        );
        assert_eq!(
            by_ssh(Some("10.0.0.7"), Family::V6).as_deref(),
            Some("eth0 fd00::7"),
            "the other family's on that device"
        );
        assert_eq!(by_ssh(Some("203.0.113.1"), Family::V4), None, "behind NAT");
        assert_eq!(by_ssh(None, Family::V4), None);
    }

    #[test]
    fn a_network_holds_its_addresses_and_no_others() {
        let holds = |network: &str, prefix, address: &str| {
            contains(network.parse().unwrap(), prefix, address.parse().unwrap())
        };
        assert!(holds("10.0.0.0", 8, "10.255.0.1"));
        assert!(!holds("10.0.0.0", 8, "11.0.0.1"));
        assert!(holds("10.0.0.1", 32, "10.0.0.1"));
        assert!(holds("fd00::", 8, "fd12::1"));
        assert!(holds("::", 0, "2001:db8::1"));
        assert!(!holds("::", 0, "10.0.0.1"));
    }
}
