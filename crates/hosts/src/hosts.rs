//! The Target: pairs of hosts, connected when first asked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plumbline_agent::{LookOrder, Sight};
use plumbline_experiment::{Family, Placement, Treatment};
use plumbline_harness::{Cpus, Path, Target, TargetError};
use plumbline_record::{Fingerprint, Floor, IdleSample, Warning};

use crate::connection::Connection;
use crate::error::HostsError;
use crate::options::{HostsOptions, Pair, Wire};
use crate::path::HostPath;
use crate::program::Program;
use crate::ssh::{Socket, Ssh};

/// Fewer CPUs than this, and two ends on one kernel compete with what is
/// between them.
const CPUS_FOR_TWO: usize = 4;

/// Pairs of machines. Dropping it ends everything on them;
/// [`teardown`](Target::teardown) does so too, and gives the errors.
pub struct Hosts {
    options: HostsOptions,
    /// By pair.
    linked: Vec<Option<Linked>>,
    program: Option<Program>,
}

/// A pair that is connected.
struct Linked {
    client: Arc<Connection>,
    server: Arc<Connection>,
    client_cpus: Vec<usize>,
    server_cpus: Vec<usize>,
    /// Both ends run on one kernel, as in two namespaces.
    one_kernel: bool,
    paths: BTreeMap<(String, Family), HostPath>,
}

impl Hosts {
    /// Touches nothing yet.
    ///
    /// # Errors
    ///
    /// Pairs whose networks cannot be told apart.
    pub fn new(options: HostsOptions) -> Result<Self, HostsError> {
        let hosts = Self {
            linked: options.pairs.iter().map(|_| None).collect(),
            options,
            program: None,
        };
        let names = hosts.networks();
        for (position, name) in names.iter().enumerate() {
            if names[..position].contains(name) {
                return Err(HostsError::Options(format!(
                    "--pair: there are two networks `{name}`; give each pair a name of its own"
                )));
            }
        }
        Ok(hosts)
    }

    /// What treatments call the networks, in the order in which they were given.
    pub fn networks(&self) -> Vec<String> {
        self.wires().map(|(_, label, _)| label).collect()
    }

    /// Each network with its pair and its name.
    fn wires(&self) -> impl Iterator<Item = (usize, String, &Wire)> {
        let pairs = self.options.pairs.iter().enumerate();
        pairs.flat_map(|(number, pair)| {
            let wires = pair.wires.iter();
            wires.map(move |wire| (number, pair.label(wire), wire))
        })
    }

    fn find(&self, treatment: &Treatment) -> Result<(usize, Wire), HostsError> {
        if treatment.scene.placement == Placement::SameNode {
            return Err(HostsError::Unsupported {
                what: "placement `same-node`".to_owned(),
                needs: "a host is one node, and this target measures between two; use --target lab"
                    .to_owned(),
            });
        }
        let found = self
            .wires()
            .find(|(_, label, _)| *label == treatment.scene.network);
        found
            .map(|(number, _, wire)| (number, wire.clone()))
            .ok_or_else(|| HostsError::Unsupported {
                what: format!("network `{}`", treatment.scene.network),
                needs: format!("these hosts have {}", self.networks().join(", ")),
            })
    }

    /// The pair, connected. One whose connection was cut is connected anew:
    /// the trial that noticed has failed, the next ones need not.
    fn link(&mut self, number: usize) -> Result<&mut Linked, HostsError> {
        let is_alive =
            |one: &Linked| one.client.observer().is_alive() && one.server.observer().is_alive();
        if self.linked[number]
            .as_ref()
            .is_none_or(|one| !is_alive(one))
        {
            self.linked[number] = None;
            let linked = self.connect(number)?;
            self.linked[number] = Some(linked);
        }
        match &mut self.linked[number] {
            Some(linked) => Ok(linked),
            None => unreachable!("it was just connected"),
        }
    }

    fn connect(&mut self, number: usize) -> Result<Linked, HostsError> {
        if self.program.is_none() {
            self.program = Some(Program::open(&self.options.program)?);
        }
        let Some(program) = &self.program else {
            unreachable!("it was just opened");
        };
        let options = &self.options;
        let Pair { client, server, .. } = &options.pairs[number];
        let open = |host: &str| {
            let ssh = Ssh {
                host: host.to_owned(),
                config: options.ssh_config.clone(),
                socket: Socket::new()?,
            };
            Connection::open(ssh, &options.directory, program).map(Arc::new)
        };
        let (client, server) = thread::scope(|scope| {
            let server = scope.spawn(|| open(server));
            let client = open(client);
            let server = server.join();
            (
                client,
                server.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        });
        let (client, server) = (client?, server?);
        let look = |one: &Connection| one.observer().look(LookOrder::default());
        let (here, there): (Sight, Sight) = (look(&client)?, look(&server)?);
        Ok(Linked {
            client,
            server,
            one_kernel: !here.boot.is_empty() && here.boot == there.boot,
            client_cpus: here.cpus,
            server_cpus: there.cpus,
            paths: BTreeMap::new(),
        })
    }
}

impl Linked {
    /// Both machines, or the only one.
    fn connections(&self) -> Vec<(&'static str, &Arc<Connection>)> {
        let mut all = vec![("client", &self.client)];
        if !self.one_kernel {
            all.push(("server", &self.server));
        }
        all
    }

    /// All machines at once, so that the sample is of one moment.
    fn rest(&self, length: Duration) -> Result<IdleSample, TargetError> {
        let samples = thread::scope(|scope| {
            let threads: Vec<_> = self
                .connections()
                .into_iter()
                .map(|(_, one)| scope.spawn(move || one.observer().rest(length)))
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect::<Result<Vec<_>, _>>()
        })?;
        Ok(samples
            .into_iter()
            .fold(IdleSample::default(), |sum, one| IdleSample {
                busy_ns: sum.busy_ns + one.busy_ns,
                capacity_ns: sum.capacity_ns + one.capacity_ns,
            }))
    }
}

impl Target for Hosts {
    fn name(&self) -> &'static str {
        "hosts"
    }

    fn validate(&self, treatments: &[Treatment]) -> Result<(), TargetError> {
        for treatment in treatments {
            self.find(treatment)?;
        }
        Ok(())
    }

    fn path(&mut self, treatment: &Treatment) -> Result<&mut dyn Path, TargetError> {
        let (number, wire) = self.find(treatment)?;
        let may_send_to = self.options.may_send_to;
        let linked = self.link(number)?;
        let key = (treatment.scene.network.clone(), treatment.scene.family);
        if !linked.paths.contains_key(&key) {
            let path = HostPath::find(
                &treatment.scene.network,
                &wire,
                treatment.scene.family,
                [&linked.client, &linked.server],
                may_send_to,
                !linked.one_kernel,
            )?;
            linked.paths.insert(key.clone(), path);
        }
        match linked.paths.get_mut(&key) {
            Some(path) => Ok(path),
            None => unreachable!("it was just inserted"),
        }
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        let mut whole: Option<Fingerprint> = None;
        let mut devices = BTreeMap::new();
        for (pair, linked) in self.options.pairs.iter().zip(&self.linked) {
            let Some(linked) = linked else { continue };
            for (side, connection) in linked.connections() {
                let sight = connection.observer().look(LookOrder::default())?;
                let Some(whole) = &mut whole else {
                    whole = Some(sight.fingerprint);
                    continue;
                };
                let name = format!("{} {side}", pair.name).trim().to_owned();
                whole.others.insert(name, sight.fingerprint);
            }
            for ((network, family), path) in &linked.paths {
                let name = match family {
                    Family::V4 => network.clone(),
                    Family::V6 => format!("{network} v6"),
                };
                devices.insert(name, path.devices());
            }
        }
        let mut whole = whole.unwrap_or_default();
        whole.devices = devices;
        Ok(whole)
    }

    /// Away from the first CPU, where most interrupts arrive; any where there is
    /// no choice.
    fn cpus(&self) -> Cpus {
        let linked: Vec<&Linked> = self.linked.iter().flatten().collect();
        let common = |of: fn(&Linked) -> &Vec<usize>| -> Vec<usize> {
            let Some((first, rest)) = linked.split_first() else {
                return Vec::new();
            };
            let everywhere = |cpu: &&usize| rest.iter().all(|one| of(one).contains(cpu));
            of(first).iter().filter(everywhere).copied().collect()
        };
        let client = common(|one| &one.client_cpus);
        let server = common(|one| &one.server_cpus);
        if linked.iter().any(|one| one.one_kernel) {
            return match (&client[..], &server[..]) {
                ([first, ..], [.., last]) if first != last => Cpus {
                    client: vec![*first],
                    server: vec![*last],
                },
                _ => Cpus::default(),
            };
        }
        let last = |cpus: &[usize]| match cpus {
            [] | [_] => Vec::new(),
            [.., last] => vec![*last],
        };
        Cpus {
            client: last(&client),
            server: last(&server),
        }
    }

    /// On the first sender, whose CPUs are its own: two of them, whatever the
    /// trials use.
    fn floor(&mut self, _: Cpus, interrupted: &AtomicBool) -> Result<Option<Floor>, TargetError> {
        let stands = self.linked.iter().flatten().next();
        let Some(linked) = stands.filter(|_| !interrupted.load(Ordering::SeqCst)) else {
            return Ok(None);
        };
        let cpus = Cpus::apart(&linked.client_cpus);
        linked.client.observer().floor(cpus)
    }

    fn machines(&self, treatment: &Treatment) -> &str {
        let found = self
            .wires()
            .find(|(_, name, _)| *name == treatment.scene.network);
        found.map_or("", |(number, ..)| &self.options.pairs[number].name)
    }

    fn idle_sample(
        &mut self,
        treatment: &Treatment,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        let (number, _) = self.find(treatment)?;
        self.link(number)?.rest(length)
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut one_kernel = self.linked.iter().flatten().filter(|one| one.one_kernel);
        let Some(linked) = one_kernel.next() else {
            return Vec::new();
        };
        let mut warnings = vec![Warning::OneKernel];
        let cpus = linked.client_cpus.len();
        if cpus < CPUS_FOR_TWO {
            warnings.push(Warning::SharedCpus { cpus: cpus as u32 });
        }
        warnings
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        let linked: Vec<Linked> = self.linked.iter_mut().filter_map(Option::take).collect();
        let connections = linked.iter().flat_map(|one| [&one.client, &one.server]);
        let closed = connections.filter_map(|one| one.close().err());
        closed.map(TargetError::from).collect()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // Best effort: whoever wants the errors calls `teardown` before.
        self.teardown();
    }
}
