//! Many hosts, of which several pairs are measured at the same time.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plumbline_agent::{LookOrder, Sight};
use plumbline_experiment::{Ends, Family, Placement, Treatment};
use plumbline_harness::{Cpus, Fleet, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, Warning};

use crate::connection::Connection;
use crate::error::HostsError;
use crate::options::{Pair, Wire};
use crate::path::HostPath;
use crate::program::Program;
use crate::ssh::{Socket, Ssh};

/// Hosts that are connected at the same time: each takes a copy of the program
/// through this machine's link.
const AT_ONCE: usize = 16;

/// Which hosts, and how they are reached.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// What one would type after `ssh`, at least two.
    pub hosts: Vec<String>,
    /// The networks between them; what ssh connects to where there is none.
    pub wires: Vec<Wire>,
    /// The program to copy and to start as agent.
    pub program: PathBuf,
    /// A configuration file for `ssh` instead of the user's.
    pub ssh_config: Option<PathBuf>,
    /// Where on the hosts the temporary directory is made; their `TMPDIR` or
    /// `/tmp` when empty.
    pub directory: String,
    /// Whether load may go to an address (S-5c).
    pub may_send_to: fn(IpAddr) -> bool,
}

/// Many hosts. Dropping it ends everything on them;
/// [`teardown`](Target::teardown) does so too, and gives the errors.
pub struct HostFleet {
    options: FleetOptions,
    program: Option<Program>,
    /// By host.
    members: Vec<Member>,
    /// Between the first two hosts, for what needs one path only.
    first: BTreeMap<(String, Family), HostPath>,
}

/// A host, connected when first needed, and again when the connection was cut.
#[derive(Default)]
struct Member {
    connection: Mutex<Option<Arc<Connection>>>,
    sight: Option<Sight>,
}

impl HostFleet {
    /// Touches nothing yet.
    ///
    /// # Errors
    ///
    /// Hosts or networks that cannot be told apart.
    pub fn new(mut options: FleetOptions) -> Result<Self, HostsError> {
        let hosts = &options.hosts;
        for (number, host) in hosts.iter().enumerate() {
            if hosts[..number].contains(host) {
                return Err(HostsError::Options(format!(
                    "--host {host} is given twice; a pair is of two hosts"
                )));
            }
            // Checks what a pair of hosts checks.
            options.wires = Pair::new(&hosts[0], host, options.wires.clone())?.wires;
        }
        if let Some(wire) = options.wires.iter().find(|one| one.client != one.server) {
            return Err(HostsError::Options(format!(
                "--address {}: with many hosts, each sends and receives; give one network or \
                 device for all",
                wire.name
            )));
        }
        Ok(Self {
            members: hosts.iter().map(|_| Member::default()).collect(),
            options,
            program: None,
            first: BTreeMap::new(),
        })
    }

    /// What treatments call the networks, in the order in which they were given.
    pub fn networks(&self) -> Vec<String> {
        let wires = self.options.wires.iter();
        wires.map(|wire| wire.name.clone()).collect()
    }

    fn wire(&self, treatment: &Treatment) -> Result<&Wire, HostsError> {
        if treatment.scene.placement == Placement::SameNode {
            return Err(HostsError::Unsupported {
                what: "placement `same-node`".to_owned(),
                needs: "a host is one node, and this target measures between two; use --target lab"
                    .to_owned(),
            });
        }
        let mut wires = self.options.wires.iter();
        wires
            .find(|wire| wire.name == treatment.scene.network)
            .ok_or_else(|| HostsError::Unsupported {
                what: format!("network `{}`", treatment.scene.network),
                needs: format!("these hosts have {}", self.networks().join(", ")),
            })
    }

    /// Connects all hosts, some at a time, and looks at each.
    fn connect_all(&mut self) -> Result<(), HostsError> {
        if self.members.iter().all(|member| member.sight.is_some()) {
            return Ok(());
        }
        if self.program.is_none() {
            self.program = Some(Program::open(&self.options.program)?);
        }
        let numbers: Vec<usize> = (0..self.members.len()).collect();
        for some in numbers.chunks(AT_ONCE) {
            let this = &*self;
            let sights = thread::scope(|scope| {
                let look = |&number| scope.spawn(move || this.sight_of(number));
                let threads: Vec<_> = some.iter().map(look).collect();
                let joined = threads.into_iter().map(|thread| {
                    let result = thread.join();
                    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                });
                joined.collect::<Result<Vec<_>, HostsError>>()
            })?;
            for (&number, sight) in some.iter().zip(sights) {
                self.members[number].sight = Some(sight);
            }
        }
        Ok(())
    }

    fn sight_of(&self, number: usize) -> Result<Sight, HostsError> {
        let connection = self.connected(number)?;
        Ok(connection.observer().look(LookOrder::default())?)
    }

    /// The connection of a host, made anew when it was cut: the trial that
    /// noticed has failed, the next ones need not.
    fn connected(&self, number: usize) -> Result<Arc<Connection>, HostsError> {
        let slot = &self.members[number].connection;
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = slot.as_ref().filter(|one| one.observer().is_alive()) {
            return Ok(Arc::clone(connection));
        }
        *slot = None;
        let Some(program) = &self.program else {
            return Err(HostsError::Host {
                host: self.options.hosts[number].clone(),
                why: "no path was asked for yet".to_owned(),
            });
        };
        let ssh = Ssh {
            host: self.options.hosts[number].clone(),
            config: self.options.ssh_config.clone(),
            socket: Socket::new()?,
        };
        let connection = Connection::open(ssh, &self.options.directory, program)?;
        let connection = Arc::new(connection);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// The kernel of a host, by the number that it drew when it was booted.
    fn boot(&self, number: usize) -> Option<&str> {
        let sight = self.members[number].sight.as_ref();
        sight
            .map(|sight| &*sight.boot)
            .filter(|boot| !boot.is_empty())
    }

    fn find(&self, treatment: &Treatment, [client, server]: Ends) -> Result<HostPath, HostsError> {
        let wire = self.wire(treatment)?;
        let two_machines = match (self.boot(client), self.boot(server)) {
            (Some(here), Some(there)) => here != there,
            _ => true,
        };
        let (client, server) = (self.connected(client)?, self.connected(server)?);
        HostPath::find(
            &treatment.scene.network,
            wire,
            treatment.scene.family,
            [&client, &server],
            self.options.may_send_to,
            two_machines,
        )
    }
}

impl Fleet for HostFleet {
    fn nodes(&self) -> Vec<String> {
        self.options.hosts.clone()
    }

    /// Also when only some are: whoever shares a kernel disturbs the others.
    fn is_one_kernel(&self) -> bool {
        let boots: Vec<&str> = (0..self.members.len())
            .filter_map(|number| self.boot(number))
            .collect();
        let is_again = |(number, boot): (usize, &&str)| boots[..number].contains(boot);
        boots.iter().enumerate().any(is_again)
    }

    fn path_between(
        &self,
        treatment: &Treatment,
        ends: Ends,
    ) -> Result<Box<dyn Path + Send>, TargetError> {
        Ok(Box::new(self.find(treatment, ends)?))
    }

    fn rest(&self, node: usize, length: Duration) -> Result<IdleSample, TargetError> {
        self.connected(node)?.observer().rest(length)
    }
}

impl Target for HostFleet {
    fn name(&self) -> &'static str {
        "hosts"
    }

    fn validate(&self, treatments: &[Treatment]) -> Result<(), TargetError> {
        for treatment in treatments {
            self.wire(treatment)?;
        }
        Ok(())
    }

    /// Between the first two hosts.
    fn path(&mut self, treatment: &Treatment) -> Result<&mut dyn Path, TargetError> {
        self.connect_all()?;
        let path = self.find(treatment, [0, 1])?;
        let key = (treatment.scene.network.clone(), treatment.scene.family);
        self.first.insert(key.clone(), path);
        match self.first.get_mut(&key) {
            Some(path) => Ok(path),
            None => unreachable!("it was just put there"),
        }
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        self.connect_all()?;
        let one_kernel = self.is_one_kernel();
        let mut whole = Fingerprint::default();
        let hosts = self.options.hosts.iter().zip(&self.members).enumerate();
        for (number, (host, member)) in hosts {
            let Some(sight) = &member.sight else { continue };
            match number {
                0 => whole = sight.fingerprint.clone(),
                _ if one_kernel => {}
                _ => {
                    let fingerprint = sight.fingerprint.clone();
                    whole.others.insert(host.clone(), fingerprint);
                }
            }
        }
        for ((network, family), path) in &self.first {
            let name = match family {
                Family::V4 => network.clone(),
                Family::V6 => format!("{network} v6"),
            };
            whole.devices.insert(name, path.devices());
        }
        Ok(whole)
    }

    /// On the first host.
    fn floor(&mut self, _: Cpus, interrupted: &AtomicBool) -> Result<Option<Floor>, TargetError> {
        if interrupted.load(Ordering::SeqCst) {
            return Ok(None);
        }
        self.connected(0)?.observer().floor(Cpus::default())
    }

    fn idle_sample(&mut self, _: &Treatment, length: Duration) -> Result<IdleSample, TargetError> {
        self.connect_all()?;
        self.rest(0, length)
    }

    fn warnings(&self) -> Vec<Warning> {
        if self.is_one_kernel() {
            vec![Warning::OneKernel]
        } else {
            Vec::new()
        }
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        self.first.clear();
        let taken = self.members.iter_mut().filter_map(|member| {
            let slot = member.connection.get_mut();
            slot.unwrap_or_else(PoisonError::into_inner).take()
        });
        let closed = taken.filter_map(|connection| connection.close().err());
        closed.map(TargetError::from).collect()
    }
}

impl Drop for HostFleet {
    fn drop(&mut self) {
        // Best effort: whoever wants the errors calls `teardown` before.
        self.teardown();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(hosts: &[&str], wires: &[&str]) -> Result<HostFleet, HostsError> {
        HostFleet::new(FleetOptions {
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            wires: wires
                .iter()
                .map(|wire| Wire::parse(wire).unwrap())
                .collect(),
            program: PathBuf::new(),
            ssh_config: None,
            directory: String::new(),
            may_send_to: |_| true,
        })
    }

    #[test]
    fn hosts_are_many_and_each_is_one() {
        let fleet = fleet(&["a", "b", "me@c"], &["fast=10.0.0.0/24", "eth0"]).unwrap();
        assert_eq!(fleet.nodes(), ["a", "b", "me@c"]);
        assert_eq!(fleet.networks(), ["fast", "host"]);
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        let said = |hosts: &[&str], wires: &[&str]| {
            let error = fleet(hosts, wires).err().map(|error| error.to_string());
            error.expect("it is refused")
        };
        assert!(said(&["a", "b", "a"], &[]).contains("twice"));
        assert!(said(&["a", "-oProxyCommand=x"], &[]).contains("no host"));
        assert!(said(&["a", "b"], &["eth0,eth1"]).contains("for all"));
        assert!(said(&["a", "b"], &["eth0", "eth1"]).contains("name them"));
    }
}
