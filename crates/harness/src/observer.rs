//! An agent that looks at a machine and does no trial.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use plumbline_protocol::{
    FromAgent, LookOrder, MeetOrder, MeetingPhase, MetPod, NamespaceCounters, Sight, SoundOrder,
    Sounded, ToAgent, TraceAnswer, TraceOrder,
};
use plumbline_record::{Floor, IdleSample};

use crate::agent::{ANSWER, Agent, HEARTBEAT, TrialError};
use crate::clock::AgentClock;
use crate::error::TargetError;
use crate::path::{AgentLink, Site};
use crate::target::Cpus;

/// An agent on a machine that is not this one, which stays as long as the value.
/// While it has nothing to do it is told every now and then that its controller
/// lives, so that it, and with it the machine, notices when that is over.
pub struct Observer {
    agent: Arc<Mutex<Agent>>,
    /// Held by who has it listen for a while.
    listens: Mutex<()>,
    /// Nothing interrupts a short question.
    never: AtomicBool,
}

impl Observer {
    /// Starts an agent on `site` and greets it.
    ///
    /// # Errors
    ///
    /// An agent that does not start, or is of another version.
    pub fn start(site: &dyn Site) -> Result<Self, TargetError> {
        Self::over(site.name(), site.start_agent()?)
    }

    /// As [`start`](Self::start), for an agent that runs already on the site of this
    /// name.
    ///
    /// # Errors
    ///
    /// An agent of another version.
    pub fn over(site: &str, link: AgentLink) -> Result<Self, TargetError> {
        let mut agent = Agent::over(site, link).map_err(failed)?;
        let never = AtomicBool::new(false);
        agent.greet(ANSWER, &never).map_err(failed)?;
        let agent = Arc::new(Mutex::new(agent));
        let weak = Arc::downgrade(&agent);
        thread::spawn(move || keep_alive(&weak));
        Ok(Self {
            agent,
            listens: Mutex::default(),
            never,
        })
    }

    /// Whether it still answers, as far as is known without asking.
    pub fn is_alive(&self) -> bool {
        lock(&self.agent).still_works().is_ok()
    }

    /// Looks at the machine.
    ///
    /// # Errors
    ///
    /// An agent that has ended, or a machine that does not show what was asked.
    pub fn look(&self, order: LookOrder) -> Result<Sight, TargetError> {
        match self.ask(&ToAgent::Look(order), Duration::ZERO)? {
            FromAgent::Seen(sight) => Ok(*sight),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Reads the counters of devices.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look).
    pub fn count(&self, devices: Vec<String>) -> Result<NamespaceCounters, TargetError> {
        match self.ask(&ToAgent::Count { devices }, Duration::ZERO)? {
            FromAgent::Counted(counts) => Ok(counts),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Measures the machine without load.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look).
    pub fn rest(&self, length: Duration) -> Result<IdleSample, TargetError> {
        let length_ns = length.as_nanos() as u64;
        match self.ask(&ToAgent::Rest { length_ns }, length)? {
            FromAgent::Rested { sample } => Ok(sample),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Measures what the generator takes there without a network (L-13).
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look).
    pub fn floor(&self, cpus: Cpus) -> Result<Option<Floor>, TargetError> {
        let order = ToAgent::Floor {
            client_cpus: cpus.client,
            server_cpus: cpus.server,
        };
        match self.ask(&order, Duration::ZERO)? {
            FromAgent::Floored { floor } => Ok(floor),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Listens at these addresses of the machine, and at no others any more, so that
    /// connections to them can be [tried](Self::connect).
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look), or an address that the machine does not have or somebody
    /// else listens at.
    pub fn listen(&self, addresses: Vec<SocketAddr>) -> Result<(), TargetError> {
        match self.ask(&ToAgent::Listen { addresses }, Duration::ZERO)? {
            FromAgent::Listens => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Listens at these addresses while something is done, and then at none. Who asks for the
    /// same meanwhile, on another path that ends there, waits.
    ///
    /// # Errors
    ///
    /// As [`listen`](Self::listen), and those of what is done.
    pub fn listening<T>(
        &self,
        addresses: Vec<SocketAddr>,
        work: impl FnOnce() -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        let _alone = lock(&self.listens);
        self.listen(addresses)?;
        let done = work();
        // Also when that has failed: others listen there next.
        let closed = self.listen(Vec::new());
        done.and_then(|done| closed.map(|()| done))
    }

    /// Tries a connection from the machine, for at most `limit`. Gives what kept it from
    /// getting through; `None` when it did.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look).
    pub fn connect(
        &self,
        address: SocketAddr,
        limit: Duration,
    ) -> Result<Option<String>, TargetError> {
        let limit_ns = limit.as_nanos() as u64;
        match self.ask(&ToAgent::Connect { address, limit_ns }, limit)? {
            FromAgent::Tried { refused } => Ok(refused),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Waits on the machine for the pods of a launch, and for those of an earlier one no
    /// longer. Gives where.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look), or an address that the machine does not have.
    pub fn meet(&self, order: MeetOrder) -> Result<SocketAddr, TargetError> {
        match self.ask(&ToAgent::Meet(order), Duration::ZERO)? {
            FromAgent::Listening { address } => Ok(address),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Gives the pods that have come so far, and goes over to a phase.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look).
    pub fn met(&self, phase: MeetingPhase) -> Result<Vec<MetPod>, TargetError> {
        match self.ask(&ToAgent::Pass { phase }, Duration::ZERO)? {
            FromAgent::Met { pods } => Ok(pods),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Has the agent do one end's part in sounding a path, which takes so long.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look), or an order that cannot be carried out there.
    pub fn sound(&self, order: SoundOrder, takes: Duration) -> Result<Sounded, TargetError> {
        match self.ask(&ToAgent::Sound(order), takes)? {
            FromAgent::Sounded(sounded) => Ok(*sounded),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Has the agent do its part in following requests through its kernel.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look), or an order that cannot be carried out there. What the kernel or
    /// the rights lack is an answer.
    pub fn trace(&self, order: TraceOrder) -> Result<TraceAnswer, TargetError> {
        match self.ask(&ToAgent::Trace(order), Duration::ZERO)? {
            FromAgent::Traced(traced) => Ok(*traced),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Asks for the clock by which the agent dates what it sees.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look).
    pub fn clock(&self) -> Result<AgentClock, TargetError> {
        let answer = lock(&self.agent).clock(&self.never);
        Ok(answer.map_err(failed)?.clock())
    }

    /// Ends the agent and waits for its process, at most `limit`. Afterwards it
    /// answers nothing.
    ///
    /// # Errors
    ///
    /// What its process says of a bad end.
    pub fn end(&self, limit: Duration) -> Result<(), TargetError> {
        lock(&self.agent).end_within(limit).map_err(failed)
    }

    fn ask(&self, order: &ToAgent, takes: Duration) -> Result<FromAgent, TargetError> {
        let mut agent = lock(&self.agent);
        agent.send(order).map_err(failed)?;
        agent
            .receive(takes + ANSWER, &self.never, &mut [])
            .map_err(failed)
    }

    fn unexpected(&self, message: &FromAgent) -> TargetError {
        failed(lock(&self.agent).unexpected(message))
    }
}

fn keep_alive(agent: &Weak<Mutex<Agent>>) {
    loop {
        thread::sleep(HEARTBEAT);
        let Some(agent) = agent.upgrade() else {
            return;
        };
        // An agent that has ended says so to whoever asks it next.
        if lock(&agent).send(&ToAgent::Ping).is_err() {
            return;
        }
    }
}

fn failed(error: TrialError) -> TargetError {
    match error {
        TrialError::Target(error) => error,
        other => TargetError::Failed(other.to_string()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
