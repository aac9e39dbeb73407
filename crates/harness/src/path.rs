//! Two sites and what joins them.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::error::TargetError;
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

    /// Where the sender sends to, given where the receiver listens: something
    /// else where an address of the network's own stands before the receiver.
    fn front(&self, listening: SocketAddr) -> SocketAddr {
        listening
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
    fn check_policies(&self) -> Option<String> {
        None
    }
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

    fn is_on_two_machines(&self) -> bool {
        (**self).is_on_two_machines()
    }

    fn front(&self, listening: SocketAddr) -> SocketAddr {
        (**self).front(listening)
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

    fn check_path(
        &self,
        before: &PathSnapshot,
        after: &PathSnapshot,
        least: Least,
    ) -> Option<String> {
        (**self).check_path(before, after, least)
    }

    fn check_policies(&self) -> Option<String> {
        (**self).check_policies()
    }
}

/// One endpoint's place.
pub trait Site {
    /// Name for messages: `node1`, `pod2`, `default/plumbline-server`.
    fn name(&self) -> &str;

    /// The address that the other side reaches this one by.
    fn address(&self) -> IpAddr;

    /// The port that a receiver here has to listen on; 0 lets the kernel pick.
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
