//! Which hosts, and which of their networks: what was typed, understood.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::choice::Selector;
use crate::error::HostsError;

/// The name of the network of a pair where none was given.
pub const DEFAULT_NETWORK: &str = "host";

/// How a target of hosts is made.
#[derive(Clone, Debug)]
pub struct HostsOptions {
    /// Which machines are measured with which.
    pub between: Between,
    /// The program to copy and to start as agent.
    pub program: PathBuf,
    /// A configuration file for `ssh` instead of the user's.
    pub ssh_config: Option<PathBuf>,
    /// Where on the hosts the temporary directory is made; their `TMPDIR` or
    /// `/tmp` when empty.
    pub directory: String,
    /// Whether load may go to an address (S-5c).
    pub may_send_to: fn(IpAddr) -> bool,
    /// Set when the user wants to stop: connecting ends at once.
    pub interrupted: &'static AtomicBool,
}

/// Which machines are measured with which.
#[derive(Clone, Debug)]
pub enum Between {
    /// Pairs, each as a network of its own; at least one.
    Pairs(Vec<Pair>),
    /// Any two of many, over the same networks. [`all`](Self::all) checks them.
    All {
        /// What one would type after `ssh`, at least two.
        hosts: Vec<String>,
        /// The networks between them; at least one.
        wires: Vec<Wire>,
    },
}

impl Between {
    /// Any two of these hosts; over what ssh connects to where there is no wire.
    ///
    /// # Errors
    ///
    /// Hosts or networks that have the same name.
    pub fn all(hosts: Vec<String>, mut wires: Vec<Wire>) -> Result<Self, HostsError> {
        for (number, host) in hosts.iter().enumerate() {
            if hosts[..number].contains(host) {
                return Err(HostsError::Options(format!(
                    "--host {host} is given twice; a pair is of two hosts"
                )));
            }
            // Checks what a pair of hosts checks.
            wires = Pair::new(&hosts[0], host, wires)?.wires;
        }
        if let Some(wire) = wires.iter().find(|one| one.client != one.server) {
            return Err(HostsError::Options(format!(
                "--address {}: with many hosts, each sends and receives; give one network or \
                 device for all",
                wire.name
            )));
        }
        Ok(Self::All { hosts, wires })
    }

    /// All machines, those of pairs one after the other.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &str> {
        let all: Vec<&str> = match self {
            Self::Pairs(pairs) => {
                let both = pairs.iter().flat_map(|it| [&*it.client, &*it.server]);
                both.collect()
            }
            Self::All { hosts, .. } => hosts.iter().map(String::as_str).collect(),
        };
        all.into_iter()
    }
}

/// Two machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Name in tables; empty for the only pair.
    pub name: String,
    /// Where the sender runs: what one would type after `ssh`.
    pub client: String,
    /// Where the receiver runs.
    pub server: String,
    /// The networks between them; at least one.
    pub wires: Vec<Wire>,
}

/// A network between two machines, by the address that each has in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Name in tables.
    pub name: String,
    /// Which address of the sender.
    pub client: Selector,
    /// Which address of the receiver.
    pub server: Selector,
}

impl Wire {
    /// Reads `[NAME=]WHAT[,WHAT]`, where `WHAT` is a network such as
    /// `10.0.0.0/24`, an address or a device, for both hosts or for each.
    ///
    /// # Errors
    ///
    /// Text of another form.
    pub fn parse(text: &str) -> Result<Self, HostsError> {
        let (name, what) = text.split_once('=').unwrap_or((DEFAULT_NETWORK, text));
        check_name(name)?;
        let (client, server) = what.split_once(',').unwrap_or((what, what));
        Ok(Self {
            name: name.to_owned(),
            client: Selector::parse(client)?,
            server: Selector::parse(server)?,
        })
    }
}

impl Pair {
    /// The pair of two hosts, with no name.
    ///
    /// # Errors
    ///
    /// A host that ssh would take for an option.
    pub fn new(client: &str, server: &str, wires: Vec<Wire>) -> Result<Self, HostsError> {
        for host in [client, server] {
            check_host(host)?;
        }
        let wires = if wires.is_empty() {
            vec![Wire {
                name: DEFAULT_NETWORK.to_owned(),
                client: Selector::AsSshConnects,
                server: Selector::AsSshConnects,
            }]
        } else {
            wires
        };
        for (position, wire) in wires.iter().enumerate() {
            if wires[..position]
                .iter()
                .any(|other| other.name == wire.name)
            {
                return Err(HostsError::Options(format!(
                    "--address: there are two networks `{}`; name them, as in fast=10.0.0.0/24",
                    wire.name
                )));
            }
        }
        Ok(Self {
            name: String::new(),
            client: client.to_owned(),
            server: server.to_owned(),
            wires,
        })
    }

    /// Reads `NAME=CLIENT,SERVER`.
    ///
    /// # Errors
    ///
    /// Text of another form, and as [`new`](Self::new).
    pub fn parse(text: &str, wires: Vec<Wire>) -> Result<Self, HostsError> {
        let parts = text
            .split_once('=')
            .and_then(|(name, hosts)| Some((name, hosts.split_once(',')?)));
        let Some((name, (client, server))) = parts else {
            return Err(HostsError::Options(format!(
                "--pair {text}: write NAME=HOST,HOST, such as vm=user@a,user@b"
            )));
        };
        check_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            ..Self::new(client, server, wires)?
        })
    }

    /// What a network of this pair is called in experiments and tables.
    pub fn label(&self, wire: &Wire) -> String {
        match (self.name.is_empty(), self.wires.len()) {
            (true, _) => wire.name.clone(),
            (false, 1) => self.name.clone(),
            (false, _) => format!("{}-{}", self.name, wire.name),
        }
    }
}

/// Names stand in tables, in file names and after `--network`.
fn check_name(name: &str) -> Result<(), HostsError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name == "all" || !name.chars().all(is_plain) {
        return Err(HostsError::Options(format!(
            "`{name}` is no name for a network; use letters, digits, `-`, `_` and `.`"
        )));
    }
    Ok(())
}

fn check_host(host: &str) -> Result<(), HostsError> {
    if host.is_empty() || host.starts_with('-') || host.contains(char::is_whitespace) {
        return Err(HostsError::Options(format!(
            "`{host}` is no host; write what you would after `ssh`, such as user@host"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_for_both_hosts_or_for_each() {
        let both = Wire::parse("fast=10.1.0.0/24").unwrap();
        assert_eq!(both.name, "fast");
        assert_eq!(both.client, both.server);
        let each = Wire::parse("eth1,ens3").unwrap();
        assert_eq!(each.name, DEFAULT_NETWORK);
        assert_eq!(each.client, Selector::Device("eth1".into()));
        assert_eq!(each.server, Selector::Device("ens3".into()));
        for wrong in ["", "=eth0", "a b=eth0", "all=eth0", "10.0.0.0/33", "eth0,"] {
            assert!(Wire::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pair_names_two_hosts() {
        let pair = Pair::parse("vm=me@a,me@b", Vec::new()).unwrap();
        assert_eq!((&*pair.client, &*pair.server), ("me@a", "me@b"));
        assert_eq!(pair.label(&pair.wires[0]), "vm");
        for wrong in ["vm", "vm=a", "=a,b", "vm=-oProxyCommand=x,b", "vm=a,b c"] {
            assert!(Pair::parse(wrong, Vec::new()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn networks_of_a_pair_have_names_of_their_own() {
        let wire = |text| Wire::parse(text).unwrap();
        let pair = Pair::parse("vm=a,b", vec![wire("eth0"), wire("wg=wg0")]).unwrap();
        let labels: Vec<String> = pair.wires.iter().map(|one| pair.label(one)).collect();
        assert_eq!(labels, ["vm-host", "vm-wg"]);
        let error = Pair::new("a", "b", vec![wire("eth0"), wire("eth1")]).unwrap_err();
        assert!(error.to_string().contains("name them"), "{error}");
    }
}
