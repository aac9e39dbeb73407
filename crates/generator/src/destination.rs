//! Where a load goes, as people write it.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use plumbline_experiment::WorkloadKind;
use plumbline_harness::is_harmless;
use plumbline_sys::netlink::NetlinkSocket;

/// `http://HOST:PORT/PATH` of any server, or `HOST:PORT` of `plumbline serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Host and, if given, port.
    pub authority: String,
    /// Path of the URL, query included; `/` where there is none.
    pub path: String,
    /// Whether it was written as a URL.
    pub is_url: bool,
}

/// Why a destination has no address.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DestinationError {
    #[error(
        "https is not measured: TLS would dominate the cost of the network; use an http:// address"
    )]
    Tls,
    #[error("`{0}` has no port; write HOST:PORT or http://HOST")]
    NoPort(String),
    #[error("`{authority}` cannot be resolved: {source}")]
    Unresolved {
        authority: String,
        source: io::Error,
    },
    #[error("`{0}` has no address")]
    NoAddress(String),
}

impl DestinationError {
    /// Whether it was written wrongly, rather than not found.
    pub fn is_bad_usage(&self) -> bool {
        matches!(self, Self::Tls | Self::NoPort(_))
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        if text.starts_with("https://") {
            return Err(DestinationError::Tls);
        }
        let Some(rest) = text.strip_prefix("http://") else {
            return Ok(Self {
                authority: text.to_owned(),
                path: "/".to_owned(),
                is_url: false,
            });
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Ok(Self {
            authority: authority.to_owned(),
            path: if path.is_empty() { "/" } else { path }.to_owned(),
            is_url: true,
        })
    }
}

impl Destination {
    /// The kind of load that it suggests.
    pub fn kind(&self) -> WorkloadKind {
        if self.is_url {
            WorkloadKind::Http
        } else {
            WorkloadKind::Rr
        }
    }

    /// Its first address.
    ///
    /// # Errors
    ///
    /// A missing port, and names that the system does not know.
    pub fn resolve(&self) -> Result<SocketAddr, DestinationError> {
        let authority = &self.authority;
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let with_port = match (has_port, self.is_url) {
            (true, _) => authority.clone(),
            (false, true) => format!("{authority}:80"),
            (false, false) => return Err(DestinationError::NoPort(authority.clone())),
        };
        let addresses = with_port.to_socket_addrs();
        let mut addresses = addresses.map_err(|source| DestinationError::Unresolved {
            authority: authority.clone(),
            source,
        })?;
        addresses
            .next()
            .ok_or_else(|| DestinationError::NoAddress(authority.clone()))
    }
}

/// The public address at which a server that listens on `at` can be found, if there is
/// one. Where this machine's addresses cannot be read, all of them may be public.
pub fn public_address(at: IpAddr) -> Option<IpAddr> {
    let mut reached = vec![at];
    if at.is_unspecified()
        && let Ok(all) = NetlinkSocket::open().and_then(|it| it.addresses())
    {
        let all = all.into_iter().map(|it| it.address);
        // [::] takes IPv4 too.
        reached = all.filter(|it| at.is_ipv6() || it.is_ipv4()).collect();
    }
    reached.into_iter().find(|it| !is_harmless(*it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(text: &str) -> Destination {
        text.parse().unwrap()
    }

    #[test]
    fn targets_are_read_as_people_write_them() {
        let url = destination("http://127.0.0.1:8080/a/b?c");
        assert_eq!(
            (url.authority.as_str(), url.path.as_str(), url.is_url),
            ("127.0.0.1:8080", "/a/b?c", true)
        );
        assert_eq!(destination("http://h").path, "/");
        assert!(!destination("10.0.0.1:7117").is_url);
        assert!("https://h".parse::<Destination>().is_err());
        let address = |text| destination(text).resolve();
        assert_eq!(address("http://127.0.0.1").unwrap().port(), 80);
        assert_eq!(address("[::1]:99").unwrap().to_string(), "[::1]:99");
        assert!(address("127.0.0.1").is_err());
    }

    #[test]
    fn a_server_that_others_can_find_needs_a_word() {
        let public = |at: &str| public_address(at.parse().unwrap());
        assert_eq!(public("127.0.0.1"), None);
        assert_eq!(public("8.8.8.8"), "8.8.8.8".parse().ok());
        // Of all addresses here, those that are named by themselves decide.
        if let Some(address) = public("0.0.0.0") {
            assert_eq!(public(&address.to_string()), Some(address));
        }
    }
}
