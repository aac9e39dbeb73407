//! The receiving side of a trial: one agent, or several behind one address.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;

use plumbline_experiment::Workload;
use plumbline_protocol::{FromAgent, Secret, ServeOrder, Served, ToAgent};

use crate::agent::{ANSWER, Agent, TrialError};
use crate::path::{Path, Site};
use crate::settings::Settings;

/// The first port that is not of a service of the system.
const FIRST_FREE_PORT: u16 = 1024;

/// Agents that receive, that of [`Path::server`] first.
pub(crate) struct Receivers {
    agents: Vec<Agent>,
    /// How many others of the same protocol listen at each of their sites.
    beside: u16,
}

fn sites(path: &dyn Path) -> Vec<&dyn Site> {
    let mut sites = vec![path.server()];
    sites.extend(path.further_servers());
    sites
}

impl Receivers {
    pub(crate) fn start(path: &dyn Path) -> Result<Self, TrialError> {
        Self::start_beside(path, 0)
    }

    /// As [`start`](Self::start), beside so many others that listen for the same protocol.
    pub(crate) fn start_beside(path: &dyn Path, beside: u16) -> Result<Self, TrialError> {
        let agents = sites(path).into_iter().map(Agent::start);
        Ok(Self {
            agents: agents.collect::<Result<_, _>>()?,
            beside,
        })
    }

    pub(crate) fn greet(&mut self, interrupted: &AtomicBool) -> Result<(), TrialError> {
        let mut agents = self.agents.iter_mut();
        agents.try_for_each(|agent| agent.greet(ANSWER, interrupted))
    }

    /// Lets all listen; gives the address to which the sender sends. That is always
    /// one that was staged: a receiver may not choose it.
    pub(crate) fn listen(
        &mut self,
        path: &dyn Path,
        (workload, secret): (&Workload, Secret),
        settings: &Settings,
        interrupted: &AtomicBool,
    ) -> Result<SocketAddr, TrialError> {
        let mut first = None;
        for (agent, site) in self.agents.iter_mut().zip(sites(path)) {
            let port = port_of(site, self.beside);
            agent.send(&ToAgent::Serve(ServeOrder {
                workload: workload.clone(),
                address: site.address(),
                port,
                secret,
                cpus: settings.cpus.server.clone(),
                congestion: path.congestion(),
            }))?;
            match agent.receive(ANSWER, interrupted, &mut [])? {
                FromAgent::Listening { address } if is_staged((site.address(), port), address) => {
                    first = first.or(Some(address));
                }
                FromAgent::Listening { address } => return Err(agent.elsewhere(address)),
                other => return Err(agent.unexpected(&other)),
            }
        }
        match first {
            Some(address) => Ok(path.front(address)),
            None => unreachable!("a path has a server"),
        }
    }

    /// All of them, to be told that the controller lives.
    pub(crate) fn agents(&mut self) -> Vec<&mut Agent> {
        self.agents.iter_mut().collect()
    }

    /// Stops all; gives what they saw together.
    pub(crate) fn stop(&mut self, interrupted: &AtomicBool) -> Result<Box<Served>, TrialError> {
        for agent in &mut self.agents {
            agent.send(&ToAgent::Stop)?;
        }
        let mut whole: Option<Box<Served>> = None;
        for agent in &mut self.agents {
            let served = match agent.receive(ANSWER, interrupted, &mut [])? {
                FromAgent::Served(served) => served,
                other => return Err(agent.unexpected(&other)),
            };
            match &mut whole {
                Some(whole) => add(whole, &served),
                None => whole = Some(served),
            }
        }
        match whole {
            Some(whole) => Ok(whole),
            None => unreachable!("a path has a server"),
        }
    }

    pub(crate) fn end(self) -> Result<(), TrialError> {
        self.agents.into_iter().try_for_each(Agent::end)
    }
}

/// The port of a receiver beside so many others; 0 lets the kernel pick.
fn port_of(site: &dyn Site, beside: u16) -> u16 {
    match site.port() {
        0 => 0,
        first => first.saturating_add(beside),
    }
}

/// Whether a receiver listens where it was told to. A port that the kernel picks is
/// above those of the system's own services.
fn is_staged((ip, port): (IpAddr, u16), address: SocketAddr) -> bool {
    let has_port = match port {
        0 => address.port() >= FIRST_FREE_PORT,
        port => address.port() == port,
    };
    address.ip() == ip && has_port
}

/// Adds what a further receiver saw. All are on the machine of the first, whose
/// counters have theirs in them; those of their namespaces are the path's to
/// read ([`PathSnapshot::protocols`](crate::PathSnapshot)).
fn add(whole: &mut Served, served: &Served) {
    whole.serve.add(&served.serve);
    whole.cpu = whole.cpu + served.cpu;
}

#[cfg(test)]
mod tests {
    use plumbline_record::{DatagramCounts, ServeResult};

    use super::*;

    #[test]
    fn a_receiver_listens_on_its_port_or_on_one_that_is_free() {
        let [ip, other] = [1, 2].map(|last| IpAddr::from([198, 18, 0, last]));
        for (told, address, is_so) in [
            (7118, (ip, 7118_u16), true),
            (7118, (ip, 7117), false),
            (7118, (other, 7118), false),
            (0, (ip, 7117), true),
            (0, (ip, 80), false),
        ] {
            assert_eq!(is_staged((ip, told), address.into()), is_so, "{address:?}");
        }
    }

    #[test]
    fn what_several_receivers_saw_is_added_up() {
        let part = |requests, received, span_ns| ServeResult {
            server: "plumbline".to_owned(),
            requests,
            bytes_received: 10 * requests,
            datagrams: Some(DatagramCounts {
                received,
                span_ns,
                ..DatagramCounts::default()
            }),
            ..ServeResult::default()
        };
        let mut whole = part(3, 5, 900);
        whole.add(&part(4, 0, 0));
        whole.add(&part(5, 7, 1_000));
        assert_eq!((whole.requests, whole.bytes_received), (12, 120));
        let datagrams = whole.datagrams.unwrap();
        assert_eq!((datagrams.received, datagrams.span_ns), (12, 1_000));
        assert_eq!(whole.server, "plumbline");
    }
}
