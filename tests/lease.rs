//! An agent lives no longer than its controller (S-5e), and does not take a machine that stood
//! still for a controller that is gone.

use std::io::Read;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_agent::LEASE;
use plumbline_protocol::{FromAgent, PROTOCOL_VERSION, ToAgent, read_frame, write_frame};

use crate::world;

/// An agent that has been greeted.
struct Greeted {
    process: Child,
    orders: ChildStdin,
    answers: ChildStdout,
}

impl Greeted {
    fn start() -> Self {
        let mut process = world::plumbline(&["agent"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it is ours");
        let mut agent = Self {
            orders: process.stdin.take().expect("it is piped"),
            answers: process.stdout.take().expect("it is piped"),
            process,
        };
        let hello = agent.ask(&ToAgent::Hello {
            protocol: PROTOCOL_VERSION,
            version: String::new(),
        });
        assert!(matches!(hello, FromAgent::Hello { .. }), "{hello:?}");
        agent
    }

    fn tell(&mut self, order: &ToAgent) {
        write_frame(&mut self.orders, order).expect("it listens");
    }

    fn ask(&mut self, order: &ToAgent) -> FromAgent {
        self.tell(order);
        read_frame(&mut self.answers).expect("it answers")
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).expect("it runs");
    }
}

#[test]
fn an_agent_ends_whose_controller_is_silent() {
    let mut agent = Greeted::start();
    let ended = agent.process.wait().expect("it is ours");
    let mut said = String::new();
    let mut errors = agent.process.stderr.take().expect("it is piped");
    errors.read_to_string(&mut said).expect("it is text");
    assert_eq!(ended.code(), Some(2), "{said}");
    assert!(said.contains("the controller was silent for 3 s"), "{said}");
}

/// As on a virtual machine that its host pauses: the time passes for both sides, and neither
/// can say anything in it.
#[test]
fn an_agent_that_stood_still_hears_its_controller_first() {
    let mut agent = Greeted::start();
    agent.signal(Signal::SIGSTOP);
    thread::sleep(LEASE + LEASE / 4);
    agent.signal(Signal::SIGCONT);
    agent.tell(&ToAgent::Ping);
    let clock = agent.ask(&ToAgent::Clock);
    assert!(matches!(clock, FromAgent::Clock(_)), "{clock:?}");
    drop(agent.orders);
    let ended = agent.process.wait().expect("it is ours");
    assert!(ended.success(), "{ended}");
}
