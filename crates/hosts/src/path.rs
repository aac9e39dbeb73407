//! A network between two hosts that are connected.

use std::net::IpAddr;
use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_harness::{AgentLink, Leg, Path, PathSnapshot, Side, Site, TargetError};
use plumbline_protocol::{LocalAddress, LookOrder, NamespaceCounters, Sight, Way};
use plumbline_record::{DeviceCounters, DeviceFingerprint, ProtocolCounters};

use crate::choice::{Selector, list};
use crate::connection::{ConnectedHost, SshLauncher};
use crate::error::HostsError;
use crate::options::Wire;

/// The names of the two sides in records: runs between other hosts compare the
/// same devices.
const CLIENT: &str = "client";
const SERVER: &str = "server";

/// A path over one wire of a pair.
pub(crate) struct HostPath {
    client: End,
    server: End,
    two_machines: bool,
}

/// One side.
struct End {
    side: &'static str,
    connection: Arc<ConnectedHost>,
    launcher: SshLauncher,
    address: IpAddr,
    /// The device that packets to the other side leave by.
    device: DeviceFingerprint,
}

impl HostPath {
    /// Chooses the addresses and finds the devices; refuses what would take
    /// another way than the one that was asked for.
    pub(crate) fn find(
        label: &str,
        wire: &Wire,
        family: Family,
        [client, server]: [&Arc<ConnectedHost>; 2],
        may_send_to: fn(IpAddr) -> bool,
        two_machines: bool,
    ) -> Result<Self, HostsError> {
        let network = SoughtNetwork { label, family };
        let there = look(server, Vec::new())?;
        let target = network.choose(&wire.server, &there, server)?.address;
        if !may_send_to(target) {
            return Err(HostsError::Options(format!(
                "{target} of {} is a public address; say --i-own-this when it is yours to load",
                server.host()
            )));
        }
        let here = look(client, vec![target])?;
        let way = network.way(&here, client, target)?;
        let source = network.source(&wire.client, &here, client, way)?;
        let there = look(server, vec![source])?;
        let back = network.way(&there, server, source)?;
        Ok(Self {
            client: End::new(CLIENT, client, source, &here, &way.device),
            server: End::new(SERVER, server, target, &there, &back.device),
            two_machines,
        })
    }

    /// The devices of both ends as they are set up.
    pub(crate) fn devices(&self) -> Vec<DeviceFingerprint> {
        vec![self.client.device.clone(), self.server.device.clone()]
    }
}

/// What is looked for, for messages.
struct SoughtNetwork<'a> {
    label: &'a str,
    family: Family,
}

impl SoughtNetwork<'_> {
    fn missing(&self, needs: String) -> HostsError {
        HostsError::Unsupported {
            what: format!("network `{}` over IPv{}", self.label, u8::from(self.family)),
            needs,
        }
    }

    fn choose<'a>(
        &self,
        selector: &Selector,
        sight: &'a Sight,
        connection: &ConnectedHost,
    ) -> Result<&'a LocalAddress, HostsError> {
        selector
            .choose(&sight.addresses, connection.connected(), self.family)
            .ok_or_else(|| {
                self.missing(format!(
                    "{} has no address {selector}; it has {}; choose with --address",
                    connection.host(),
                    list(&sight.addresses)
                ))
            })
    }

    /// How a host sends to an address, which was the only one that was asked.
    fn way<'a>(
        &self,
        sight: &'a Sight,
        connection: &ConnectedHost,
        to: IpAddr,
    ) -> Result<&'a Way, HostsError> {
        sight.ways.first().and_then(Option::as_ref).ok_or_else(|| {
            self.missing(format!(
                "{} has no route to {to}; choose addresses with --address that reach each other",
                connection.host()
            ))
        })
    }

    /// The sender's address. The engine leaves it to the kernel, so the kernel
    /// must choose what was asked for.
    fn source(
        &self,
        selector: &Selector,
        sight: &Sight,
        connection: &ConnectedHost,
        way: &Way,
    ) -> Result<IpAddr, HostsError> {
        let by_route = way.source;
        if *selector == Selector::AsSshConnects
            && let Some(source) = by_route
        {
            return Ok(source);
        }
        let wanted = self.choose(selector, sight, connection)?.address;
        if by_route.is_none_or(|source| source == wanted) {
            return Ok(wanted);
        }
        Err(self.missing(format!(
            "{} would send from {} by {} and not from {wanted}; choose addresses of one network",
            connection.host(),
            by_route.map_or_else(String::new, |source| source.to_string()),
            way.device
        )))
    }
}

impl End {
    fn new(
        side: &'static str,
        connection: &Arc<ConnectedHost>,
        address: IpAddr,
        sight: &Sight,
        device: &str,
    ) -> Self {
        let described = sight.devices.iter().find(|one| one.device == device);
        Self {
            side,
            connection: Arc::clone(connection),
            launcher: connection.launcher(),
            address,
            device: DeviceFingerprint {
                namespace: side.to_owned(),
                device: device.to_owned(),
                ..described.cloned().unwrap_or_default()
            },
        }
    }

    fn count(&self) -> Result<(DeviceCounters, ProtocolCounters), TargetError> {
        let devices = vec![self.device.device.clone()];
        let NamespaceCounters {
            devices, protocol, ..
        } = self.connection.observer().count(devices)?;
        let namespace = self.side.to_owned();
        Ok((
            DeviceCounters {
                namespace: namespace.clone(),
                ..devices.into_iter().next().unwrap_or_default()
            },
            ProtocolCounters {
                namespace,
                ..protocol
            },
        ))
    }
}

impl Site for End {
    fn name(&self) -> &str {
        self.connection.host()
    }

    fn address(&self) -> IpAddr {
        self.address
    }

    fn start_agent(&self) -> Result<AgentLink, TargetError> {
        self.launcher.start()
    }
}

impl Path for HostPath {
    fn server(&self) -> &dyn Site {
        &self.server
    }

    fn client(&self) -> &dyn Site {
        &self.client
    }

    fn is_on_two_machines(&self) -> bool {
        self.two_machines
    }

    fn snapshot(&self) -> Result<PathSnapshot, TargetError> {
        let (client, server) = (self.client.count()?, self.server.count()?);
        Ok(PathSnapshot {
            devices: vec![client.0, server.0],
            protocols: vec![client.1, server.1],
            rules: Vec::new(),
            // What forwards between two hosts is theirs, and we do not know it.
            forwarders: None,
        })
    }

    /// What lies between the hosts has no counters that we could read, and the
    /// devices carry what others send too, so they prove no more than that the path
    /// is not another one.
    fn legs(&self) -> Vec<Leg> {
        let leg = |end: &End, side| Leg {
            devices: vec![(end.side.to_owned(), end.device.device.clone())],
            side,
            is_private: false,
        };
        vec![
            leg(&self.client, Side::Sends),
            leg(&self.server, Side::Receives),
        ]
    }
}

fn look(connection: &ConnectedHost, towards: Vec<IpAddr>) -> Result<Sight, HostsError> {
    let order = LookOrder {
        towards,
        ..LookOrder::default()
    };
    Ok(connection.observer().look(order)?)
}
