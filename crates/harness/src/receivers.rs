//! The receiving side of a trial: one agent, or several behind one address.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use plumbline_agent::{FromAgent, Secret, ServeOrder, Served, ToAgent};
use plumbline_experiment::Workload;

use crate::agent::{ANSWER, Agent, TrialError};
use crate::path::{Path, Site};
use crate::settings::Settings;

/// The first port that is not of a service of the system.
const FIRST_FREE_PORT: u16 = 1024;

/// Agents that receive, that of [`Path::server`] first.
pub(crate) struct Receivers(Vec<Agent>);

fn sites(path: &dyn Path) -> Vec<&dyn Site> {
    let mut sites = vec![path.server()];
    sites.extend(path.further_servers());
    sites
}

impl Receivers {
    pub(crate) fn start(path: &dyn Path) -> Result<Self, TrialError> {
        let agents = sites(path).into_iter().map(Agent::start);
        Ok(Self(agents.collect::<Result<_, _>>()?))
    }

    pub(crate) fn greet(&mut self, interrupted: &AtomicBool) -> Result<(), TrialError> {
        let mut agents = self.0.iter_mut();
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
        for (agent, site) in self.0.iter_mut().zip(sites(path)) {
            agent.send(&ToAgent::Serve(ServeOrder {
                workload: workload.clone(),
                address: site.address(),
                port: site.port(),
                secret,
                cpus: settings.cpus.server.clone(),
            }))?;
            match agent.receive(ANSWER, interrupted, &mut [])? {
                FromAgent::Listening { address } if is_staged(site, address) => {
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
        self.0.iter_mut().collect()
    }

    /// Stops all; gives what they saw together.
    pub(crate) fn stop(&mut self, interrupted: &AtomicBool) -> Result<Box<Served>, TrialError> {
        for agent in &mut self.0 {
            agent.send(&ToAgent::Stop)?;
        }
        let mut whole: Option<Box<Served>> = None;
        for agent in &mut self.0 {
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
        self.0.into_iter().try_for_each(Agent::end)
    }
}

/// Whether a receiver listens where it was told to. A port that the kernel picks is
/// above those of the system's own services.
fn is_staged(site: &dyn Site, address: SocketAddr) -> bool {
    let port = match site.port() {
        0 => address.port() >= FIRST_FREE_PORT,
        port => address.port() == port,
    };
    address.ip() == site.address() && port
}

/// Adds what a further receiver saw. All are on the machine of the first, whose
/// counters have theirs in them; those of their namespaces are the path's to
/// read ([`PathSnapshot::protocols`](crate::PathSnapshot)).
fn add(whole: &mut Served, served: &Served) {
    whole.serve.add(&served.serve);
    whole.cpu.user_ns += served.cpu.user_ns;
    whole.cpu.system_ns += served.cpu.system_ns;
}

#[cfg(test)]
mod tests {
    use plumbline_record::{DatagramCounts, ServeResult};

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
