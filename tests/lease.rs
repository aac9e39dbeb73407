//! An agent lives no longer than its controller (S-5e), and does not take a machine that stood
//! still for a controller that is gone.

use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_agent::LEASE;
use plumbline_protocol::{FromAgent, ToAgent};

use crate::greeted::Greeted;
use crate::world::{self, PATIENCE, Running, often_in_time};

fn start() -> (Child, Greeted) {
    let mut process = world::plumbline(&["agent"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it is ours");
    let orders = process.stdin.take().expect("it is piped");
    let answers = process.stdout.take().expect("it is piped");
    (process, Greeted::new(orders, answers))
}

/// How long after its controller's last word an agent may go on, as docs/security.md says.
const PROMISED: Duration = Duration::from_secs(3);
/// What it may take more to wake up and to end.
const AWAKE: Duration = Duration::from_millis(300);

#[test]
fn an_agent_ends_whose_controller_is_silent() {
    let silent = || {
        let (process, mut controller) = start();
        let mut process = Running(process);
        let told = Instant::now();
        controller.tell(&ToAgent::Ping);
        let code = process.wait(PATIENCE);
        let took = told.elapsed();
        assert!(took >= PROMISED, "{took:?}");
        let said = process.said();
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("the controller was silent for 3 s"), "{said}");
        took
    };
    let is_soon = |took: &Duration| *took <= PROMISED + AWAKE;
    let took = often_in_time(2, silent, is_soon);
    assert!(is_soon(&took), "{took:?}");
}

/// As on a virtual machine that its host pauses: the time passes for both sides, and neither
/// can say anything in it.
#[test]
fn an_agent_that_stood_still_hears_its_controller_first() {
    let (mut process, mut agent) = start();
    let signal = |signal| kill(Pid::from_raw(process.id() as i32), signal).expect("it runs");
    signal(Signal::SIGSTOP);
    thread::sleep(LEASE + LEASE / 4);
    signal(Signal::SIGCONT);
    agent.tell(&ToAgent::Ping);
    let clock = agent.ask(&ToAgent::Clock);
    assert!(matches!(clock, FromAgent::Clock(_)), "{clock:?}");
    drop(agent);
    let ended = process.wait().expect("it is ours");
    assert!(ended.success(), "{ended}");
}
