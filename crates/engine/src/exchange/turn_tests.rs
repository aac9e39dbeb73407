//! A server whose answer has no end.

use std::io;

use plumbline_experiment::{Workload, WorkloadKind};
use plumbline_sys::socket::Socket;

use super::line::ConnectionState;
use super::state::{Exchange, Rules};
use crate::LoadPlan;
use crate::codec::Http;
use crate::driver::{Driver, Event, Received, WatchMode};
use crate::event_loop::LoadClient as _;
use crate::recorder::Recorder;

/// There is always more to be read.
struct Endless {
    reads: usize,
    bytes: Vec<u8>,
}

impl Driver for Endless {
    const NAME: &'static str = "endless";

    fn insert(&mut self, _: usize, _: Socket, _: WatchMode) -> io::Result<()> {
        Ok(())
    }

    fn remove(&mut self, _: usize) {}

    fn socket(&self, _: usize) -> Option<&Socket> {
        None
    }

    fn wait(&mut self, _: u64, _: u64) -> io::Result<usize> {
        Ok(0)
    }

    fn spun_ns(&self) -> u64 {
        0
    }

    fn event(&mut self, slot: usize) -> Event {
        Event {
            slot,
            readable: true,
            writable: false,
            hangup: false,
        }
    }

    fn receive(&mut self, _: usize) -> io::Result<Received<'_>> {
        self.reads += 1;
        // The load would be held until the test is given up.
        assert!(self.reads < 10_000, "it reads on and on");
        if self.reads > 1 {
            self.bytes.fill(b'x');
        }
        Ok(Received {
            bytes: &self.bytes,
            drained: false,
        })
    }

    fn receive_stamped(&mut self, slot: usize) -> io::Result<(Received<'_>, Option<u64>)> {
        self.receive(slot).map(|received| (received, None))
    }

    fn send(&mut self, _: usize, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
}

#[test]
fn an_answer_without_end_takes_turns_with_the_rest_of_the_load() {
    let target = ([127, 0, 0, 1], 80).into();
    let workload = Workload::of_kind(WorkloadKind::Http);
    let plan = LoadPlan {
        verify: false,
        ..LoadPlan::new(workload, target)
    };
    let rules = Rules {
        target,
        sources: Vec::new(),
        congestion: None,
        lines: 1,
        udp: false,
        fresh: false,
        pipelined: false,
        closed: true,
        endures: false,
        shown: None,
        ramp: None,
        flights: 1,
        first: 0,
        stamped: None,
    };
    let mut exchange = Exchange::new(Http::new(&plan, &[]), rules, Recorder::new(1, None));
    exchange.lines[0].state = ConnectionState::Open;
    exchange.flights.book(0, 1, 1);
    let mut io = Endless {
        reads: 0,
        bytes: b"HTTP/1.1 200 OK\r\n\r\nbody".to_vec(),
    };
    let event = io.event(0);
    exchange.event(&mut io, event);
    let reads = io.reads;
    assert!((1..100).contains(&reads), "{reads}");
    // It is not forgotten: there is more to do, without waiting.
    assert!(exchange.flush(&mut io, 2));
    assert_eq!(io.reads, 2 * reads);
}
