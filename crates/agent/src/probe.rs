//! Connections that are tried one after the other, whatever became of those before: when
//! each was sent, and how it ended.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_protocol::{ProbeOrder, Probed};
use plumbline_record::{Histogram, LateSpell, ProbeOutcome, ProbeSeries, ProbeSpell};
use plumbline_sys::clock::now_ns;
use plumbline_sys::cpu;
use plumbline_sys::poll::{Interest, Poller, Trigger};
use plumbline_sys::socket::Socket;

/// Connections that may be on their way at the same time. At the highest rate, all of
/// those that are not answered within a tenth of a second are.
const MOST_UNDER_WAY: usize = 1_024;

/// Files that are open besides.
const SPARE_FILES: u64 = 64;

/// One that was sent.
#[derive(Clone, Copy, Debug)]
struct SentProbe {
    /// By the agent's clock, nanoseconds.
    at_ns: u64,
    outcome: ProbeOutcome,
}

/// Tries connections at equal gaps until the time is over or `stop` is set, and waits for
/// the last of them.
pub(crate) fn probe(order: &ProbeOrder, stop: &AtomicBool) -> Result<Probed, Box<dyn Error>> {
    // Refused only by seccomp profiles; then probes are sent some 50 µs later.
    let _ = cpu::set_timer_slack_ns(1);
    if !order.cpus.is_empty() {
        cpu::allow_thread(&order.cpus)?;
    }
    let files = MOST_UNDER_WAY as u64 + SPARE_FILES;
    if cpu::allow_open_files(files)? < files {
        return Err(format!(
            "the probe needs {files} open files, which this process may not have: raise the limit \
             (ulimit -n)"
        )
        .into());
    }
    let mut prober = Prober::new(order)?;
    while prober.goes_on(!stop.load(Ordering::Relaxed))? {
        prober.wait()?;
    }
    Ok(prober.probed())
}

struct Prober<'a> {
    order: &'a ProbeOrder,
    gap_ns: f64,
    begun_ns: u64,
    /// Whether more are to be sent.
    sends: bool,
    sent: Vec<SentProbe>,
    /// By their position among those sent: the oldest first.
    under_way: BTreeMap<usize, Socket>,
    poller: Poller,
    connect: Histogram,
}

impl<'a> Prober<'a> {
    fn new(order: &'a ProbeOrder) -> io::Result<Self> {
        Ok(Self {
            order,
            gap_ns: 1e9 / order.rate,
            begun_ns: now_ns(),
            sends: true,
            sent: Vec::new(),
            under_way: BTreeMap::new(),
            poller: Poller::new(MOST_UNDER_WAY)?,
            connect: Histogram::new(),
        })
    }

    /// When the next one is to be sent.
    fn next_ns(&self) -> u64 {
        self.begun_ns + self.intended_ns(self.sent.len())
    }

    /// When one is to be sent, since the first.
    fn intended_ns(&self, position: usize) -> u64 {
        (position as f64 * self.gap_ns) as u64
    }

    /// When the oldest one under way is given up.
    fn expires_ns(&self) -> Option<u64> {
        let (oldest, _) = self.under_way.first_key_value()?;
        Some(self.sent[*oldest].at_ns + self.order.limit_ns)
    }

    /// Gives up what is late, and sends what is due; false when all is done.
    fn goes_on(&mut self, may_send: bool) -> Result<bool, Box<dyn Error>> {
        while self.expires_ns().is_some_and(|at| at <= now_ns()) {
            self.under_way.pop_first();
        }
        self.sends = self.sends && may_send;
        while self.sends && self.has_room() && self.next_ns() <= now_ns() {
            self.send()?;
            self.sends = self.next_ns() < self.begun_ns + self.order.length_ns;
        }
        Ok(self.sends || !self.under_way.is_empty())
    }

    fn has_room(&self) -> bool {
        self.under_way.len() < MOST_UNDER_WAY
    }

    fn send(&mut self) -> Result<(), Box<dyn Error>> {
        let position = self.sent.len();
        let at_ns = now_ns();
        let outcome = match Socket::connect_tcp(self.order.target, None) {
            Ok(socket) => {
                let (fd, token) = (socket.as_fd(), position as u64);
                self.poller
                    .add(fd, token, Interest::ReadWrite, Trigger::Edge)?;
                self.under_way.insert(position, socket);
                ProbeOutcome::Unanswered
            }
            Err(error) => refused(error)?,
        };
        self.sent.push(SentProbe { at_ns, outcome });
        Ok(())
    }

    /// Waits until something is to be done, and notes what has ended.
    fn wait(&mut self) -> Result<(), Box<dyn Error>> {
        let due_ns = (self.sends && self.has_room()).then(|| self.next_ns());
        let until_ns = due_ns.into_iter().chain(self.expires_ns()).min();
        let sleep_ns = until_ns.map_or(0, |at| at.saturating_sub(now_ns()));
        for index in 0..self.poller.wait(sleep_ns)? {
            let position = self.poller.ready(index).token as usize;
            let now = now_ns();
            let Some(socket) = self.under_way.remove(&position) else {
                continue;
            };
            let probe = &mut self.sent[position];
            probe.outcome = match socket.take_error()? {
                None => ProbeOutcome::Opened,
                Some(error) => refused(error)?,
            };
            if probe.outcome == ProbeOutcome::Opened {
                self.connect.record(now - probe.at_ns);
                // It waits for nothing, so its port is free at once (N-5).
                socket.reset()?;
            }
        }
        Ok(())
    }

    fn probed(self) -> Probed {
        let mut lag = Histogram::new();
        let lags = self.sent.iter().enumerate().map(|(position, it)| {
            let intended_ns = self.intended_ns(position);
            let lag_ns = it.at_ns.saturating_sub(self.begun_ns + intended_ns);
            lag.record(lag_ns);
            (intended_ns, lag_ns)
        });
        let sent_late = LateSpell::all(lags);
        let gaps = self.sent.windows(2).map(|two| two[1].at_ns - two[0].at_ns);
        Probed {
            begun_ns: self.begun_ns,
            series: ProbeSeries {
                limit_ns: self.order.limit_ns,
                sent: self.sent.len() as u64,
                widest_gap_ns: gaps.max().unwrap_or_default(),
                spells: spells(&self.sent, self.begun_ns),
                sent_late,
                lag,
                connect: self.connect,
            },
        }
    }
}

/// An error of the path is an answer; one of this machine ends the probe.
fn refused(error: io::Error) -> io::Result<ProbeOutcome> {
    use io::ErrorKind::{AddrNotAvailable, OutOfMemory};
    let is_ours = matches!(error.kind(), AddrNotAvailable | OutOfMemory)
        || matches!(error.raw_os_error(), Some(EMFILE | ENFILE | ENOBUFS));
    if is_ours {
        return Err(error);
    }
    Ok(ProbeOutcome::Refused)
}

/// "Too many open files" of this process and of the machine, and "no buffer space": the
/// same on every Linux architecture that the program is built for.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;
const ENOBUFS: i32 = 105;

/// Those together that ended alike.
fn spells(sent: &[SentProbe], begun_ns: u64) -> Vec<ProbeSpell> {
    let alike = sent.chunk_by(|one, next| one.outcome == next.outcome);
    let spell = |alike: &[SentProbe]| ProbeSpell {
        outcome: alike[0].outcome,
        probes: alike.len() as u64,
        first_ns: alike[0].at_ns - begun_ns,
        last_ns: alike[alike.len() - 1].at_ns - begun_ns,
    };
    alike.map(spell).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
    use std::thread;
    use std::time::Duration;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Whose limit nothing reaches that is answered, on a machine that others use too.
    fn order(target: SocketAddr) -> ProbeOrder {
        ProbeOrder {
            target,
            rate: 1_000.0,
            limit_ns: 5_000 * MS,
            length_ns: 100 * MS,
            cpus: Vec::new(),
        }
    }

    fn run(order: &ProbeOrder) -> ProbeSeries {
        probe(order, &AtomicBool::new(false)).unwrap().series
    }

    /// An address of this machine at which nobody listens.
    fn closed() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.local_addr().unwrap()
    }

    #[test]
    fn what_listens_is_opened_and_what_does_not_is_refused() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let open = run(&order(listener.local_addr().unwrap()));
        assert_eq!((open.sent, open.opened()), (100, 100));
        assert_eq!((open.connect.len(), open.lag.len()), (100, 100));
        let refused = run(&order(closed()));
        assert_eq!((refused.sent, refused.opened()), (100, 0));
        assert_eq!(refused.spells.len(), 1, "{:?}", refused.spells);
        assert_eq!(refused.spells[0].outcome, ProbeOutcome::Refused);
        assert!(refused.spells[0].last_ns >= 99 * MS);
    }

    #[test]
    fn a_port_that_opens_is_seen_when_it_opens() {
        let target = closed();
        let order = ProbeOrder {
            length_ns: 1_000 * MS,
            ..order(target)
        };
        let (probed, opened_ns) = thread::scope(|scope| {
            let probing = scope.spawn(|| probe(&order, &AtomicBool::new(false)).unwrap());
            thread::sleep(Duration::from_millis(150));
            let before_ns = now_ns();
            let listener = TcpListener::bind(target).unwrap();
            let opened_ns = before_ns..now_ns();
            let probed = probing.join().unwrap();
            drop(listener);
            (probed, opened_ns)
        });
        let outcomes: Vec<_> = probed.series.spells.iter().map(|it| it.outcome).collect();
        assert!(
            outcomes.starts_with(&[ProbeOutcome::Refused, ProbeOutcome::Opened]),
            "{:?}",
            probed.series.spells
        );
        let first_ns = probed.begun_ns + probed.series.spells[1].first_ns;
        // One that was sent just before may be answered just after.
        let slack_ns = 5 * MS + probed.series.widest_gap_ns;
        let due_ns = opened_ns.start - slack_ns..opened_ns.end + slack_ns;
        assert!(due_ns.contains(&first_ns), "{first_ns} in {due_ns:?}");
    }

    /// A listener whose queue is full drops what comes.
    #[test]
    fn what_nobody_answers_is_given_up_and_holds_nothing_back() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = listener.local_addr().unwrap();
        let socket = socket2::SockRef::from(&listener);
        socket.listen(0).unwrap();
        // Takes the only place.
        let _first = TcpStream::connect(target).unwrap();
        let series = run(&ProbeOrder {
            limit_ns: 50 * MS,
            ..order(target)
        });
        let unanswered = |it: &&ProbeSpell| it.outcome == ProbeOutcome::Unanswered;
        let given_up = series.spells.iter().filter(unanswered);
        let given_up: u64 = given_up.map(|it| it.probes).sum();
        assert_eq!((series.sent, given_up), (100, 100), "{:?}", series.spells);
    }

    #[test]
    fn it_stops_when_it_is_told_to() {
        let order = ProbeOrder {
            length_ns: 60_000 * MS,
            ..order(closed())
        };
        let stop = AtomicBool::new(true);
        assert_eq!(probe(&order, &stop).unwrap().series.sent, 0);
    }

    #[test]
    fn those_that_end_alike_are_one_spell() {
        use ProbeOutcome::{Opened, Refused, Unanswered};
        let sent = [Refused, Refused, Unanswered, Opened, Opened, Refused];
        let sent = sent.iter().enumerate().map(|(at, &outcome)| SentProbe {
            at_ns: 1_000 + at as u64,
            outcome,
        });
        let spells = spells(&sent.collect::<Vec<_>>(), 1_000);
        let found: Vec<_> = spells
            .iter()
            .map(|it| (it.outcome, it.probes, it.first_ns, it.last_ns))
            .collect();
        let expected = [
            (Refused, 2, 0, 1),
            (Unanswered, 1, 2, 2),
            (Opened, 2, 3, 4),
            (Refused, 1, 5, 5),
        ];
        assert_eq!(found, expected);
    }
}
