//! The Target: machines that are reached by ssh, in pairs or many.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumbline_experiment::{Asked, Ends, Family, Scene, Treatment};
use plumbline_harness::{Cpus, Demand, Levels, Path, Target, TargetError};
use plumbline_protocol::Sight;
use plumbline_record::{DeviceFingerprint, Fingerprint, Floor, IdleSample, Warning};

use crate::error::HostsError;
use crate::machines::Machines;
use crate::options::{Between, HostsOptions, Pair, Wire};
use crate::path::HostPath;

/// Fewer CPUs than this, and two ends on one kernel compete with what is
/// between them.
const CPUS_FOR_TWO: usize = 4;

/// Machines and the networks between them. Dropping it ends everything on them;
/// [`teardown`](Target::teardown) does so too, and gives the errors.
pub struct Hosts {
    between: Between,
    may_send_to: fn(IpAddr) -> bool,
    networks: Vec<HostNetwork>,
    /// Of pairs, the two of each one after the other.
    machines: Machines,
    /// The devices of each network that was staged before the first trial.
    devices: BTreeMap<(String, Family), Vec<DeviceFingerprint>>,
}

/// A network as treatments call it.
struct HostNetwork {
    name: String,
    wire: Wire,
    /// The number of the pair that it is between, and that one's name; `None`
    /// where it is between all machines.
    pair: Option<(usize, String)>,
}

impl Hosts {
    /// Touches nothing yet.
    ///
    /// # Errors
    ///
    /// Hosts or networks that have the same name.
    pub fn new(options: HostsOptions) -> Result<Self, HostsError> {
        let hosts = Self {
            networks: networks(&options.between),
            between: options.between.clone(),
            may_send_to: options.may_send_to,
            machines: Machines::new(options),
            devices: BTreeMap::new(),
        };
        let names = hosts.names();
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
    fn names(&self) -> Vec<String> {
        self.networks.iter().map(|it| it.name.clone()).collect()
    }

    fn network(&self, treatment: &Treatment) -> Result<&HostNetwork, HostsError> {
        let mut networks = self.networks.iter();
        networks
            .find(|it| it.name == treatment.scene.network)
            .ok_or_else(|| HostsError::Unsupported {
                what: format!("network `{}`", treatment.scene.network),
                needs: format!("these hosts have {}", self.names().join(", ")),
            })
    }

    /// The machine that is a node of a treatment.
    fn number(&self, treatment: &Treatment, node: usize) -> Result<usize, HostsError> {
        let pair = &self.network(treatment)?.pair;
        Ok(pair.as_ref().map_or(node, |(pair, _)| 2 * pair + node))
    }

    /// The machines that a treatment uses: of many, all.
    fn machines_of(&self, treatment: &Treatment) -> Result<Range<usize>, HostsError> {
        Ok(match &self.network(treatment)?.pair {
            Some((pair, _)) => 2 * pair..2 * pair + 2,
            None => 0..self.machines.len(),
        })
    }

    /// Refuses a server that a receiver does not have. Of many machines, each
    /// receives in some block.
    fn check_server(&self, treatment: &Treatment) -> Result<(), HostsError> {
        let mut receivers = self.machines_of(treatment)?;
        if self.network(treatment)?.pair.is_some() {
            receivers.start += 1;
        }
        let server = treatment.task.server();
        for number in receivers {
            let Some(sight) = self.machines.sight(number) else {
                continue;
            };
            sight
                .check_server(server)
                .map_err(|error| HostsError::Unsupported {
                    what: "`server = \"nginx\"`".to_owned(),
                    needs: format!("on {}, {error}", self.machines.host(number)),
                })?;
        }
        Ok(())
    }

    /// The machines of each pair; nothing where there are no pairs.
    fn pairs(&self) -> impl Iterator<Item = Ends> {
        let pairs = match &self.between {
            Between::Pairs(pairs) => pairs.len(),
            Between::All { .. } => 0,
        };
        (0..pairs).map(|pair| [2 * pair, 2 * pair + 1])
    }

    fn find(&self, treatment: &Treatment, ends: Ends) -> Result<HostPath, HostsError> {
        let network = self.network(treatment)?;
        let [client, server] = [
            self.number(treatment, ends[0])?,
            self.number(treatment, ends[1])?,
        ];
        HostPath::find(
            &network.name,
            &network.wire,
            treatment.scene.family,
            [
                &self.machines.connected(client)?,
                &self.machines.connected(server)?,
            ],
            self.may_send_to,
            !self.machines.are_one([client, server]),
        )
    }

    /// The first machine, with all others that are machines of their own.
    fn environment(&self) -> Fingerprint {
        let mut whole: Option<Fingerprint> = None;
        for (name, sight) in self.distinct() {
            match &mut whole {
                None => whole = Some(sight.fingerprint.clone()),
                Some(whole) => {
                    whole.others.insert(name, sight.fingerprint.clone());
                }
            }
        }
        let mut whole = whole.unwrap_or_default();
        for ((network, family), devices) in &self.devices {
            let name = match family {
                Family::V4 => network.clone(),
                Family::V6 => format!("{network} v6"),
            };
            whole.devices.insert(name, devices.clone());
        }
        whole
    }

    /// Machines that were looked at, but for those that share a kernel with one
    /// before: of pairs by pair and side, else by host.
    fn distinct(&self) -> Vec<(String, &Sight)> {
        let seen = |number: usize| self.machines.sight(number);
        match &self.between {
            Between::All { .. } => {
                let count = if self.is_one_kernel() {
                    1
                } else {
                    self.machines.len()
                };
                let named =
                    |number: usize| Some((self.machines.host(number).to_owned(), seen(number)?));
                (0..count).filter_map(named).collect()
            }
            Between::Pairs(pairs) => {
                let mut all = Vec::new();
                for (ends, pair) in self.pairs().zip(pairs) {
                    let sides = if self.machines.are_one(ends) { 1 } else { 2 };
                    for (number, side) in ends.into_iter().zip(["client", "server"]).take(sides) {
                        let name = format!("{} {side}", pair.name).trim().to_owned();
                        all.extend(seen(number).map(|sight| (name, sight)));
                    }
                }
                all
            }
        }
    }

    /// Away from the first CPU, where most interrupts arrive; any where there is
    /// no choice, and where there are many machines: one number does not hold for
    /// all of them.
    fn cpus_of_pairs(&self) -> Cpus {
        let common = |side: usize| -> Vec<usize> {
            let sights = self
                .pairs()
                .filter_map(|ends| self.machines.sight(ends[side]));
            let sights: Vec<&Sight> = sights.collect();
            let Some((first, rest)) = sights.split_first() else {
                return Vec::new();
            };
            let everywhere = |cpu: &&usize| rest.iter().all(|one| one.cpus.contains(cpu));
            first.cpus.iter().filter(everywhere).copied().collect()
        };
        let (client, server) = (common(0), common(1));
        if self.is_one_kernel() {
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
}

/// The networks between some machines, by name.
fn networks(between: &Between) -> Vec<HostNetwork> {
    let network = |wire: &Wire, pair: Option<(usize, &Pair)>| HostNetwork {
        name: pair.map_or(wire.name.clone(), |(_, pair)| pair.label(wire)),
        wire: wire.clone(),
        pair: pair.map(|(number, pair)| (number, pair.name.clone())),
    };
    match between {
        Between::Pairs(pairs) => {
            let each = pairs.iter().enumerate();
            each.flat_map(|it| it.1.wires.iter().map(move |wire| network(wire, Some(it))))
                .collect()
        }
        Between::All { wires, .. } => wires.iter().map(|wire| network(wire, None)).collect(),
    }
}

impl Target for Hosts {
    fn name(&self) -> &'static str {
        "hosts"
    }

    /// `all` and `usual` are every pair and network that was typed.
    fn scenes(
        &mut self,
        asked: &Asked<'_>,
        _: &[Family],
        _: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String> {
        let known = self.names();
        let Some(word) = asked.network.name() else {
            return Ok(known.into_iter().map(Scene::of).collect());
        };
        if known.iter().any(|name| name == word) {
            return Ok(vec![Scene::of(word)]);
        }
        Err(format!(
            "these hosts have no network `{word}`, they have {}; name pairs with --pair and \
             networks with --address, and what to compare with by --baseline",
            known.join(", ")
        ))
    }

    fn supports(&self, factor: &str) -> Levels {
        match factor {
            "network" | "planted" => Levels::Any,
            "family" => Levels::These(&["6"]),
            _ => Levels::Default,
        }
    }

    /// Connects to the machines and finds each network once: of many machines,
    /// between the first two.
    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), TargetError> {
        let mut needed = BTreeSet::new();
        for treatment in demand.treatments {
            needed.extend(self.machines_of(treatment)?);
        }
        self.machines.connect(&needed)?;
        for treatment in demand.treatments {
            self.check_server(treatment)?;
        }
        for treatment in demand.treatments {
            let key = (treatment.scene.network.clone(), treatment.scene.family);
            if !self.devices.contains_key(&key) {
                let devices = self.find(treatment, [0, 1])?.devices();
                self.devices.insert(key, devices);
            }
        }
        Ok(())
    }

    /// The machines; where there are several pairs, what the two of each are.
    fn nodes(&self) -> Vec<String> {
        match &self.between {
            Between::Pairs(pairs) if pairs.len() > 1 => {
                ["the sender", "the receiver"].map(str::to_owned).into()
            }
            _ => (0..self.machines.len())
                .map(|number| self.machines.host(number).to_owned())
                .collect(),
        }
    }

    /// Also when only some are: whatever shares a kernel disturbs the others.
    fn is_one_kernel(&self) -> bool {
        match &self.between {
            Between::Pairs(_) => self.pairs().any(|ends| self.machines.are_one(ends)),
            Between::All { .. } => {
                let all = 0..self.machines.len();
                all.clone()
                    .any(|one| (0..one).any(|other| self.machines.are_one([one, other])))
            }
        }
    }

    fn cpus(&self) -> Cpus {
        self.cpus_of_pairs()
    }

    /// On the first sender, whose CPUs are its own: two of them, whatever the
    /// trials use.
    fn floor(&mut self, _: Cpus, interrupted: &AtomicBool) -> Result<Option<Floor>, TargetError> {
        let stands = (0..self.machines.len()).find(|it| self.machines.sight(*it).is_some());
        let Some(first) = stands.filter(|_| !interrupted.load(Ordering::SeqCst)) else {
            return Ok(None);
        };
        let cpus = match (&self.between, self.machines.sight(first)) {
            (Between::Pairs(_), Some(sight)) => Cpus::apart(&sight.cpus),
            _ => Cpus::default(),
        };
        self.machines.connected(first)?.observer().floor(cpus)
    }

    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError> {
        Ok(self.environment())
    }

    fn warnings(&self) -> Vec<Warning> {
        if !self.is_one_kernel() {
            return Vec::new();
        }
        let mut warnings = vec![Warning::OneKernel];
        let cpus = self.pairs().find(|ends| self.machines.are_one(*ends));
        let cpus = cpus.and_then(|[client, _]| Some(self.machines.sight(client)?.cpus.len()));
        if let Some(cpus) = cpus.filter(|cpus| *cpus < CPUS_FOR_TWO) {
            warnings.push(Warning::SharedCpus { cpus: cpus as u32 });
        }
        warnings
    }

    fn site_of(&self, treatment: &Treatment) -> String {
        let network = self.network(treatment).ok();
        let pair = network.and_then(|it| it.pair.as_ref());
        pair.map(|(_, name)| name.clone()).unwrap_or_default()
    }

    /// The networks of one pair are between the same two machines.
    fn can_rotate(&self, _: &Treatment, _: &Treatment) -> bool {
        matches!(self.between, Between::Pairs(_))
    }

    fn has_controls(&self) -> bool {
        matches!(&self.between, Between::Pairs(pairs) if pairs.len() == 1)
    }

    fn stage(
        &self,
        treatment: &Treatment,
        ends: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError> {
        Ok(Box::new(self.find(treatment, ends)?))
    }

    fn idle_sample(
        &self,
        treatment: &Treatment,
        node: usize,
        length: Duration,
    ) -> Result<IdleSample, TargetError> {
        let machine = self.number(treatment, node)?;
        let ask = || self.machines.connected(machine)?.observer().rest(length);
        // That a connection was cut may show only when it is used: the second
        // time it is made anew.
        ask().or_else(|_| ask())
    }

    fn shares_kernel(&self, treatment: &Treatment, [client, server]: Ends) -> bool {
        let number = |node| self.number(treatment, node).unwrap_or(node);
        self.machines.are_one([number(client), number(server)])
    }

    fn teardown(&mut self) -> Vec<TargetError> {
        let errors = self.machines.close();
        errors.into_iter().map(TargetError::from).collect()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // Best effort: call `teardown` before to get the errors.
        self.teardown();
    }
}

#[cfg(test)]
mod tests;
