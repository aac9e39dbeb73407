//! Whether policies act: connections that they allow and forbid are tried. The pods that
//! they lead to listen on every port that is tried, so that one which does not get through
//! was kept back by a policy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plumbline_harness::{Observer, TargetError};

/// Longest wait for a connection that is allowed. A first packet may be lost.
const ALLOWED: Duration = Duration::from_secs(3);
/// Longest wait for one that is forbidden: a hundred times as long as an allowed one takes
/// within a cluster, and less than until a first packet is sent again.
const FORBIDDEN: Duration = Duration::from_millis(300);

/// Connections from one pod that policies allow, and such that they forbid.
#[derive(Clone)]
pub(crate) struct ClusterEnforcement {
    client: Arc<Observer>,
    attempts: Vec<Attempt>,
}

/// Connections to one pod.
#[derive(Clone)]
struct Attempt {
    pod: String,
    observer: Arc<Observer>,
    address: SocketAddr,
    /// On the next port: whether policies forbid that.
    is_guarded: bool,
}

impl ClusterEnforcement {
    /// Nothing to try yet, from this pod.
    pub(crate) fn from(client: Arc<Observer>) -> Self {
        Self {
            client,
            attempts: Vec::new(),
        }
    }

    /// Tries connections to this address of a pod, which policies allow, and to the next
    /// port, which they forbid if the pod is guarded.
    pub(crate) fn attempt(
        &mut self,
        pod: &str,
        observer: Arc<Observer>,
        address: SocketAddr,
        is_guarded: bool,
    ) {
        self.attempts.push(Attempt {
            pod: pod.to_owned(),
            observer,
            address,
            is_guarded,
        });
    }

    /// Says what is wrong when a connection that is forbidden gets through, or one that is
    /// allowed does not; `None` when all is as the policies say.
    ///
    /// # Errors
    ///
    /// A pod that does not answer.
    pub(crate) fn check(&self) -> Result<Option<String>, TargetError> {
        self.each(|attempt| attempt.is_guarded)
    }

    /// As [`check`](Self::check), where nothing is forbidden.
    ///
    /// # Errors
    ///
    /// A pod that does not answer.
    pub(crate) fn check_bare(&self) -> Result<Option<String>, TargetError> {
        self.each(|_| false)
    }

    fn each(&self, is_forbidden: fn(&Attempt) -> bool) -> Result<Option<String>, TargetError> {
        for attempt in &self.attempts {
            let wrong = self.try_both(attempt, is_forbidden(attempt))?;
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        Ok(None)
    }

    fn try_both(&self, to: &Attempt, is_forbidden: bool) -> Result<Option<String>, TargetError> {
        let mut next = to.address;
        next.set_port(to.address.port() + 1);
        to.observer.listening(vec![to.address, next], || {
            match self.connect(to, to.address, false)? {
                None => self.connect(to, next, is_forbidden),
                wrong => Ok(wrong),
            }
        })
    }

    fn connect(
        &self,
        to: &Attempt,
        address: SocketAddr,
        is_forbidden: bool,
    ) -> Result<Option<String>, TargetError> {
        let limit = if is_forbidden { FORBIDDEN } else { ALLOWED };
        let pod = &to.pod;
        Ok(match (self.client.connect(address, limit)?, is_forbidden) {
            (None, false) | (Some(_), true) => None,
            (Some(why), false) => Some(format!(
                "a connection to {pod}, {address}, that the policies allow did not get through: \
                 {why}"
            )),
            (None, true) => Some(format!(
                "a connection to {pod}, {address}, that the policies forbid got through"
            )),
        })
    }
}
