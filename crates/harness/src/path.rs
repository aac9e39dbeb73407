//! Two sites and what joins them.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{CongestionControl, Launch, ObjectChange, ProgrammedObject, Protocol};
use plumbline_record::LaunchObservation;

use crate::error::TargetError;
use crate::event::EventCommand;
use crate::proof::{Least, Leg, prove};
use crate::snapshot::PathSnapshot;

/// Two sites and what joins them.
pub trait Path {
    /// Where the receiver runs.
    fn server(&self) -> &dyn Site;

    /// Receivers beside [`server`](Self::server), where an address of the
    /// network's own spreads the connections over several.
    fn further_servers(&self) -> Vec<&dyn Site> {
        Vec::new()
    }

    /// Where the sender runs.
    fn client(&self) -> &dyn Site;

    /// Whether each end has a kernel of its own. Then the cost is that of both
    /// machines (N-10).
    fn is_on_two_machines(&self) -> bool {
        false
    }

    /// Places between both ends where an agent can look around, in the order from client to
    /// server.
    fn waypoints(&self) -> Vec<&dyn Site> {
        Vec::new()
    }

    /// Where the sender sends to, given where the receiver listens: something
    /// else where an address of the network's own stands before the receiver. A second
    /// receiver of a protocol listens on the port after the first one's.
    fn front(&self, listening: SocketAddr) -> SocketAddr {
        listening
    }

    /// How the sockets of its ends have TCP find its rate; `None` as their namespaces do.
    fn congestion(&self) -> Option<CongestionControl> {
        None
    }

    /// Counters of the path's devices and namespaces since they were made.
    ///
    /// # Errors
    ///
    /// Counters that cannot be read.
    fn snapshot(&self) -> Result<PathSnapshot, TargetError>;

    /// The stretches of the path that can be looked at, in the order from client
    /// to server.
    fn legs(&self) -> Vec<Leg>;

    /// Namespace and name of devices that packets of other paths cross too, though these
    /// do not list them.
    fn crossed_by_others(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The endpoints of each neighbour, where the scene of this path has some: those that
    /// send do so between them, and others work at the first, which is where the receiver of
    /// this path is. What their [`crossed_by_others`](Self::crossed_by_others) names are
    /// devices of this path.
    fn neighbours(&self) -> Vec<Box<dyn Path + Send + '_>> {
        Vec::new()
    }

    /// Says what is wrong when packets did not take the path between two
    /// snapshots; `None` when they did.
    fn check_path(
        &self,
        before: &PathSnapshot,
        after: &PathSnapshot,
        least: Least,
    ) -> Option<String> {
        prove(&self.legs(), before, after, least)
    }

    /// Tries whether policies on the path act: says what is wrong when a connection that
    /// they forbid gets through, or one that they allow does not; `None` when all is well
    /// or there are no policies. Asked before and after each trial, while nobody listens
    /// on the receiver's port.
    ///
    /// # Errors
    ///
    /// A place from which nothing can be tried.
    fn check_policies(&self) -> Result<Option<String>, TargetError> {
        Ok(None)
    }

    /// Prepares a thing of this kind that can be added and removed while connections are
    /// tried to the receiver, which listens there. It is there or not, as it happens.
    ///
    /// # Errors
    ///
    /// A target that makes no such things, and one that cannot now.
    fn programmable(
        &self,
        object: ProgrammedObject,
        _listening: SocketAddr,
    ) -> Result<Box<dyn Programmable + '_>, TargetError> {
        Err(TargetError::Unsupported {
            what: format!("a {} that comes and goes", object.as_str()),
            needs: "a cluster: --target kubernetes".to_owned(),
        })
    }

    /// Has a policy let the sender send to these ports of the receiver, and nothing else, for
    /// as long as what is given lives. It may act a moment later.
    ///
    /// # Errors
    ///
    /// A target that makes no policies, and one that cannot now.
    fn confine(
        &self,
        _allowed: &[(Protocol, SocketAddr)],
    ) -> Result<Box<dyn StandingPolicy + '_>, TargetError> {
        Err(TargetError::Unsupported {
            what: "a policy on a path while a command runs".to_owned(),
            needs: "a cluster: --target kubernetes".to_owned(),
        })
    }

    /// Prepares to launch pods on the path's nodes.
    ///
    /// # Errors
    ///
    /// A target that launches no pods, and one that cannot now.
    fn launch<'p>(
        &'p self,
        launch: &'p Launch,
        _interrupted: &'p AtomicBool,
    ) -> Result<PodLauncher<'p>, TargetError> {
        Err(TargetError::Unsupported {
            what: format!("the workload `{}`", launch.name),
            needs: "a lab or a cluster: --target lab or kubernetes".to_owned(),
        })
    }

    /// Starts a command of the user's where it can act on the path: in the place of this name,
    /// or where the target thinks best. Nobody knows afterwards
    /// what is left of that: the target makes it anew, or takes it as it is.
    ///
    /// # Errors
    ///
    /// A target where nothing is run, a place in which nothing is, and a shell that does not
    /// start.
    fn start_command(
        &self,
        command: &str,
        _place: Option<&str>,
    ) -> Result<EventCommand, TargetError> {
        Err(TargetError::Unsupported {
            what: format!("`{command}` on a path"),
            needs: "a lab or a cluster: --target lab, --target kubernetes".to_owned(),
        })
    }
}

/// Launches pods, open loop, follows each until packets have passed to and from it, and ends
/// all of them. What a pod fails with is part of what is seen; an error is what keeps all of
/// them from being launched or seen.
pub type PodLauncher<'p> = Box<dyn FnOnce() -> Result<LaunchObservation, TargetError> + Send + 'p>;

/// A policy that stands. It goes when this is dropped.
pub trait StandingPolicy {}

/// A thing that decides whether connections reach the receiver. What was made for it goes
/// when it is dropped.
pub trait Programmable: Sync {
    /// Where to connect to: with the thing that reaches the receiver, without it
    /// nothing.
    fn address(&self) -> SocketAddr;

    /// Adds or removes it, and comes back when that is decided. It may act then, later, or
    /// have acted a moment before. To add what is there, or to remove
    /// what is not, does nothing.
    ///
    /// # Errors
    ///
    /// It was refused, or nobody answered.
    fn change(&self, change: ObjectChange) -> Result<(), TargetError>;
}

impl<P: Path + ?Sized> Path for &P {
    fn server(&self) -> &dyn Site {
        (**self).server()
    }

    fn further_servers(&self) -> Vec<&dyn Site> {
        (**self).further_servers()
    }

    fn client(&self) -> &dyn Site {
        (**self).client()
    }

    fn waypoints(&self) -> Vec<&dyn Site> {
        (**self).waypoints()
    }

    fn is_on_two_machines(&self) -> bool {
        (**self).is_on_two_machines()
    }

    fn front(&self, listening: SocketAddr) -> SocketAddr {
        (**self).front(listening)
    }

    fn congestion(&self) -> Option<CongestionControl> {
        (**self).congestion()
    }

    fn snapshot(&self) -> Result<PathSnapshot, TargetError> {
        (**self).snapshot()
    }

    fn legs(&self) -> Vec<Leg> {
        (**self).legs()
    }

    fn crossed_by_others(&self) -> Vec<(String, String)> {
        (**self).crossed_by_others()
    }

    fn neighbours(&self) -> Vec<Box<dyn Path + Send + '_>> {
        (**self).neighbours()
    }

    fn check_path(
        &self,
        before: &PathSnapshot,
        after: &PathSnapshot,
        least: Least,
    ) -> Option<String> {
        (**self).check_path(before, after, least)
    }

    fn check_policies(&self) -> Result<Option<String>, TargetError> {
        (**self).check_policies()
    }

    fn programmable(
        &self,
        object: ProgrammedObject,
        listening: SocketAddr,
    ) -> Result<Box<dyn Programmable + '_>, TargetError> {
        (**self).programmable(object, listening)
    }

    fn confine(
        &self,
        allowed: &[(Protocol, SocketAddr)],
    ) -> Result<Box<dyn StandingPolicy + '_>, TargetError> {
        (**self).confine(allowed)
    }

    fn launch<'p>(
        &'p self,
        launch: &'p Launch,
        interrupted: &'p AtomicBool,
    ) -> Result<PodLauncher<'p>, TargetError> {
        (**self).launch(launch, interrupted)
    }

    fn start_command(
        &self,
        command: &str,
        place: Option<&str>,
    ) -> Result<EventCommand, TargetError> {
        (**self).start_command(command, place)
    }
}

/// One endpoint's place.
pub trait Site {
    /// Name for messages: `node1`, `pod2`, `default/plumbline-server`.
    fn name(&self) -> &str;

    /// The address that the other side reaches this one by.
    fn address(&self) -> IpAddr;

    /// The port that a receiver here has to listen on, and the first of several of one
    /// protocol: others take the ports that follow. 0 lets the kernel pick.
    fn port(&self) -> u16 {
        0
    }

    /// Starts a fresh agent process.
    ///
    /// # Errors
    ///
    /// An agent that does not start.
    fn start_agent(&self) -> Result<AgentLink, TargetError>;
}

/// A running agent: its byte streams and its process.
pub struct AgentLink {
    /// The agent's standard input. Closing it ends the agent.
    pub input: Box<dyn Write + Send>,
    /// The agent's standard output.
    pub output: Box<dyn Read + Send>,
    /// The process behind it.
    pub process: Box<dyn AgentProcess>,
}

/// The process of an agent.
pub trait AgentProcess: Send {
    /// Ends it at once. Idempotent.
    fn kill(&mut self);

    /// Waits until it has ended, at most `limit`.
    ///
    /// # Errors
    ///
    /// What it wrote to standard error when it ended badly.
    fn wait(&mut self, limit: Duration) -> Result<(), TargetError>;
}
