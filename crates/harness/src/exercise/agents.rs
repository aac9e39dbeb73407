//! The agents of a trial, and how they begin together with those of others.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_protocol::{FromAgent, ToAgent};

use crate::agent::{Agent, TrialError};
use crate::together::{Gathered, Ticket};

/// The one that sends, or works without sending, and those that receive.
pub(super) struct TrialAgents<'a> {
    pub(super) client: &'a mut Agent,
    pub(super) receivers: Vec<&'a mut Agent>,
    pub(super) interrupted: &'a AtomicBool,
    /// Whether the first of them is on the receivers' machine, and that has a clock of its
    /// own.
    pub(super) is_far: bool,
}

impl TrialAgents<'_> {
    /// The clock of the one that sends or works, and the receivers' where that is another
    /// machine's.
    pub(super) fn tell_clocks(
        &mut self,
        ticket: &Ticket<'_>,
        is_on_two_machines: bool,
    ) -> Result<(), TrialError> {
        let clock = self.client.clock(self.interrupted)?;
        ticket.tell(|clocks| match self.is_far {
            true => clocks.receivers.push(clock),
            false => clocks.senders.push(clock),
        });
        if is_on_two_machines {
            for agent in &mut self.receivers {
                let receiver = agent.clock(self.interrupted)?;
                ticket.tell(|clocks| clocks.receivers.push(receiver));
            }
        }
        Ok(())
    }

    /// Orders what takes turns, such as a load that opens its connections, for which it has
    /// `limit`; waits until all that it takes turns with are ready too, and tells it when its
    /// slices begin.
    pub(super) fn begin_turns(
        &mut self,
        order: &ToAgent,
        limit: Duration,
        ticket: Ticket<'_>,
    ) -> Result<(), TrialError> {
        self.client.send(order)?;
        match self.hear(limit)? {
            FromAgent::Opened => {}
            other => return Err(self.client.unexpected(&other)),
        }
        let beginning = self.wait_for(ticket)?.begin()?;
        let far = beginning.receiver.filter(|_| self.is_far);
        let start_ns = far.map_or(beginning.sender_ns, |it| it.start_ns + it.error_ns);
        self.client.send(&ToAgent::Begin { start_ns })
    }

    /// Waits for the other trials.
    pub(super) fn wait_for(&mut self, ticket: Ticket<'_>) -> Result<Gathered, TrialError> {
        ticket.wait_for_all(self.interrupted, || {
            self.client.still_works()?;
            let mut receivers = self.receivers.iter_mut();
            receivers.try_for_each(|agent| agent.still_works())
        })
    }

    /// What the sender says next.
    pub(super) fn hear(&mut self, limit: Duration) -> Result<FromAgent, TrialError> {
        let receivers = &mut self.receivers;
        self.client.receive(limit, self.interrupted, receivers)
    }
}
