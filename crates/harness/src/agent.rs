//! The controller's side of the conversation with one agent.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_build::SOURCES;
use plumbline_protocol::{
    FrameError, FromAgent, PROTOCOL_VERSION, ToAgent, read_frame, write_frame,
};
use plumbline_sys::clock::now_ns;

use crate::clock::{ClockAnswer, ClockError};
use crate::error::TargetError;
use crate::path::{AgentLink, AgentProcess, Site};
use crate::stage;

/// How often a waiting controller looks at the interruption flag: well within the second
/// in which Ctrl-C has to work.
const TICK: Duration = Duration::from_millis(200);

/// How long an agent hears nothing before it is told that the controller lives (S-5):
/// well within its lease of 3 s, and seldom, for it is measuring meanwhile.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);

/// Longest wait for an agent to start, and for a receiver to listen or to stop.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

/// How often an agent is asked for its clock, unless an answer comes as soon as this.
const CLOCK_ANSWERS: usize = 8;
const SWIFT_NS: u64 = 500_000;

/// Longest wait for an agent that has been told to end: it has said all, and a busy machine
/// takes its time.
const FAREWELL: Duration = Duration::from_secs(5);

/// Longest wait for the end of an agent that says nothing any more, to tell why.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a trial could not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrialError {
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// The place failed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Policies do not act: which connection shows it.
    #[error("{0}")]
    NotEnforced(String),
    /// Treatments that were to take turns share no clock.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A sender heard of the start of its turns when it was over.
    #[error(
        "the agent on {site} heard too late that its turns begin; the machine is too busy: end what else runs, or use whole windows (`--rotate off`)"
    )]
    Late { site: String },
    /// An agent failed, or said something else than was asked.
    #[error("the agent on {site} {what}")]
    Agent { site: String, what: String },
    /// An agent ended, or the way to it was cut.
    #[error("the agent on {site} ended {stage}: {why}")]
    Ended {
        site: String,
        stage: &'static str,
        why: String,
    },
}

/// A running agent that has been greeted.
pub(crate) struct Agent {
    site: String,
    input: Option<Box<dyn Write + Send>>,
    inbox: Receiver<Result<FromAgent, FrameError>>,
    process: Box<dyn AgentProcess>,
    /// What it is in the middle of.
    stage: &'static str,
    /// When it was told something for the last time.
    told: Instant,
    /// Whether somebody was told that it has ended.
    is_over: bool,
}

impl Agent {
    /// Starts an agent and sends the greeting; the answer is not awaited here,
    /// so that two agents start side by side.
    pub(crate) fn start(site: &dyn Site) -> Result<Self, TrialError> {
        Self::over(site.name(), site.start_agent()?)
    }

    /// As [`start`](Self::start), for an agent that runs already on the site of this
    /// name.
    pub(crate) fn over(site: &str, mut link: AgentLink) -> Result<Self, TrialError> {
        let (sender, inbox) = mpsc::channel();
        let mut output = link.output;
        thread::spawn(move || {
            loop {
                let frame = read_frame(&mut output);
                let ended = frame.is_err();
                if sender.send(frame).is_err() || ended {
                    return;
                }
            }
        });
        let hello = ToAgent::Hello {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let mut agent = Self {
            site: site.to_owned(),
            input: None,
            inbox,
            process: link.process,
            stage: stage::GREETING,
            told: Instant::now(),
            is_over: false,
        };
        write_frame(&mut link.input, &hello).map_err(|e| agent.ended(&e))?;
        agent.input = Some(link.input);
        Ok(agent)
    }

    /// Waits for the answer to the greeting.
    pub(crate) fn greet(
        &mut self,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<(), TrialError> {
        match self.receive(limit, interrupted, &mut [])? {
            FromAgent::Hello {
                protocol: PROTOCOL_VERSION,
                version,
                sources,
            } if version == env!("CARGO_PKG_VERSION") => {
                if sources == SOURCES {
                    return Ok(());
                }
                Err(self.error(format!(
                    "is another build of Plumbline {version} (sources {sources}, here {SOURCES}); \
                     use one build on both sides: in a cluster, make the image again with \
                     `plumbline image` and load it into the nodes"
                )))
            }
            FromAgent::Hello { version, .. } => Err(self.error(format!(
                "is Plumbline {version}, this is {}; use the same version on both sides",
                env!("CARGO_PKG_VERSION")
            ))),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Sends an order.
    pub(crate) fn send(&mut self, message: &ToAgent) -> Result<(), TrialError> {
        let Some(input) = &mut self.input else {
            return Err(self.error("was told to end before".to_owned()));
        };
        self.stage = stage::of(message).unwrap_or(self.stage);
        self.told = Instant::now();
        write_frame(input, message).map_err(|e| self.ended(&e))
    }

    /// Waits for one message, at most `limit`. Meanwhile the agent and
    /// `others` hear that the controller lives, and an agent among `others`
    /// that ends or fails ends the wait.
    pub(crate) fn receive(
        &mut self,
        limit: Duration,
        interrupted: &AtomicBool,
        others: &mut [&mut Self],
    ) -> Result<FromAgent, TrialError> {
        let deadline = Instant::now() + limit;
        loop {
            if interrupted.load(Ordering::SeqCst) {
                return Err(TrialError::Interrupted);
            }
            // A whole tick also where no time is left: if this machine stood still, the agent's
            // may have, too, and answers now.
            let is_over = deadline <= Instant::now();
            match self.inbox.recv_timeout(TICK) {
                Ok(message) => return self.heard(message),
                Err(RecvTimeoutError::Timeout) if is_over => {
                    return Err(self.error(format!(
                        "did not answer within {:.1} s",
                        limit.as_secs_f64()
                    )));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.reassure()?;
                    for other in &mut *others {
                        other.still_works()?;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(&FrameError::Closed)),
            }
        }
    }

    /// Asks for the agent's clock, several times where an answer takes long: the one
    /// that took least says most.
    pub(crate) fn clock(&mut self, interrupted: &AtomicBool) -> Result<ClockAnswer, TrialError> {
        let mut best = self.ask_clock(interrupted)?;
        for _ in 1..CLOCK_ANSWERS {
            if best.round_trip_ns() <= SWIFT_NS {
                break;
            }
            let next = self.ask_clock(interrupted)?;
            let slowest_ns = best.slowest_ns.max(next.slowest_ns);
            if next.round_trip_ns() < best.round_trip_ns() {
                best = next;
            }
            best.slowest_ns = slowest_ns;
        }
        Ok(best)
    }

    fn ask_clock(&mut self, interrupted: &AtomicBool) -> Result<ClockAnswer, TrialError> {
        let (asked_ns, before) = (now_ns(), self.stage);
        self.send(&ToAgent::Clock)?;
        match self.receive(ANSWER, interrupted, &mut [])? {
            FromAgent::Clock(reading) => {
                let answered_ns = now_ns();
                // A receiver goes on with what it was doing.
                self.stage = before;
                Ok(ClockAnswer {
                    site: self.site.clone(),
                    asked_ns,
                    answered_ns,
                    reading,
                    slowest_ns: answered_ns - asked_ns,
                })
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Tells the agent that the controller lives, where it has heard nothing for a while.
    fn reassure(&mut self) -> Result<(), TrialError> {
        if self.told.elapsed() < HEARTBEAT {
            return Ok(());
        }
        self.send(&ToAgent::Ping)
    }

    /// Reassures the agent where that is due; an error when the agent has
    /// ended or said anything, for it was not asked.
    pub(crate) fn still_works(&mut self) -> Result<(), TrialError> {
        match self.inbox.try_recv() {
            Ok(message) => {
                let message = self.heard(message)?;
                Err(self.unexpected(&message))
            }
            // The thread that reads says that the stream is over before it is over itself.
            Err(mpsc::TryRecvError::Empty) if !self.is_over => self.reassure(),
            Err(_) => Err(self.ended(&FrameError::Closed)),
        }
    }

    /// Lets some time pass, and tells these agents meanwhile that the controller lives;
    /// fails as [`still_works`](Self::still_works) does.
    pub(crate) fn let_pass(
        length: Duration,
        interrupted: &AtomicBool,
        agents: &mut [&mut Self],
    ) -> Result<(), TrialError> {
        let until = Instant::now() + length;
        loop {
            if interrupted.load(Ordering::SeqCst) {
                return Err(TrialError::Interrupted);
            }
            for agent in &mut *agents {
                agent.still_works()?;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(TICK));
        }
    }

    fn heard(&mut self, message: Result<FromAgent, FrameError>) -> Result<FromAgent, TrialError> {
        match message {
            Ok(FromAgent::Failed { error }) => {
                Err(self.error(format!("could not do its part: {error}")))
            }
            Ok(FromAgent::Late) => Err(TrialError::Late {
                site: self.site.clone(),
            }),
            Ok(message) => Ok(message),
            Err(error) => Err(self.ended(&error)),
        }
    }

    /// Ends the agent and waits for its process.
    pub(crate) fn end(mut self) -> Result<(), TrialError> {
        self.end_within(FAREWELL)
    }

    /// Ends the agent and waits for its process, at most `limit`. It takes no
    /// order afterwards. A bad end that somebody was told of is not told again.
    pub(crate) fn end_within(&mut self, limit: Duration) -> Result<(), TrialError> {
        drop(self.input.take());
        if let Err(error) = self.process.wait(limit) {
            self.process.kill();
            if !self.is_over {
                return Err(error.into());
            }
        }
        Ok(())
    }

    pub(crate) fn unexpected(&self, message: &FromAgent) -> TrialError {
        let name = match message {
            FromAgent::Hello { .. } => "hello",
            FromAgent::Listening { .. } => "listening",
            FromAgent::Opened => "opened",
            FromAgent::Late => "that its turns had begun",
            FromAgent::Toiled(_) => "toiled",
            FromAgent::Loaded(_) => "loaded",
            FromAgent::Endured(_) => "endured",
            FromAgent::Served(_) => "served",
            FromAgent::Seen(_) => "seen",
            FromAgent::Counted(_) => "counted",
            FromAgent::Rested { .. } => "rested",
            FromAgent::Floored { .. } => "floored",
            FromAgent::Clock(_) => "clock",
            FromAgent::Watched(_) => "watched",
            FromAgent::Listens => "listens",
            FromAgent::Tried { .. } => "tried",
            FromAgent::Met { .. } => "met",
            FromAgent::Probed(_) => "probed",
            FromAgent::Sounded(_) => "sounded",
            FromAgent::Traced(_) => "traced",
            FromAgent::Failed { .. } => "failed",
        };
        self.error(format!("said `{name}`, which was not asked"))
    }

    /// A receiver listens elsewhere than it was told to.
    pub(crate) fn elsewhere(&self, address: SocketAddr) -> TrialError {
        self.error(format!(
            "says that it listens on {address}, where it was not told to; nothing is sent there: is this our program?"
        ))
    }

    fn error(&self, what: String) -> TrialError {
        TrialError::Agent {
            site: self.site.clone(),
            what,
        }
    }

    /// The stream is over: the process says why, if it can.
    fn ended(&mut self, error: &FrameError) -> TrialError {
        self.is_over = true;
        let why = match self.process.wait(LAST_WORDS) {
            Err(TargetError::Failed(why)) => why,
            _ => error.to_string(),
        };
        TrialError::Ended {
            site: self.site.clone(),
            stage: self.stage,
            why,
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::planted::NoProcess;

    /// What an agent is told within a time in which it has nothing to say.
    fn told_within(length: Duration) -> usize {
        let (input, mut told) = UnixStream::pair().unwrap();
        let (output, _silent) = UnixStream::pair().unwrap();
        let link = AgentLink {
            input: Box::new(input),
            output: Box::new(output),
            process: Box::new(NoProcess),
        };
        let mut agent = Agent::over("node1", link).unwrap();
        Agent::let_pass(length, &AtomicBool::new(false), &mut [&mut agent]).unwrap();
        agent.end().unwrap();
        let frames = std::iter::from_fn(|| read_frame::<ToAgent>(&mut told).ok());
        frames
            .filter(|frame| matches!(frame, ToAgent::Ping))
            .count()
    }

    #[test]
    fn an_agent_is_left_alone_until_a_heartbeat_is_due() {
        assert_eq!(told_within(HEARTBEAT / 2), 0);
        assert!(told_within(HEARTBEAT + 3 * TICK) >= 1);
    }
}
