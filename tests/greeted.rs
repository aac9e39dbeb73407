//! An agent that a test speaks to as its controller does.

use std::process::{ChildStdin, ChildStdout};

use plumbline_protocol::{FromAgent, PROTOCOL_VERSION, ToAgent, read_frame, write_frame};

/// The two ends of the stream of an agent that has been greeted.
pub(crate) struct Greeted {
    orders: ChildStdin,
    answers: ChildStdout,
}

impl Greeted {
    pub(crate) fn new(orders: ChildStdin, answers: ChildStdout) -> Self {
        let mut agent = Self { orders, answers };
        let hello = agent.ask(&ToAgent::Hello {
            protocol: PROTOCOL_VERSION,
            version: String::new(),
        });
        assert!(matches!(hello, FromAgent::Hello { .. }), "{hello:?}");
        agent
    }

    pub(crate) fn tell(&mut self, order: &ToAgent) {
        write_frame(&mut self.orders, order).expect("it listens");
    }

    pub(crate) fn ask(&mut self, order: &ToAgent) -> FromAgent {
        self.tell(order);
        read_frame(&mut self.answers).expect("it answers")
    }
}
