//! Agents at the ends of a path and between them.

use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_harness::{Observer, Path, Site, TargetError};
use plumbline_protocol::{
    ResolveOrder, ResolvedName, SentStream, SentTrain, SoundOrder, Sounded, StreamOrder, Survey,
    TakenTrain, TraceAnswer, TraceOrder, TrainOrder,
};

/// How often it is asked what has arrived.
const ASK: Duration = Duration::from_millis(10);
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(2);

/// A place with an agent.
pub(super) struct Post {
    pub(super) name: String,
    pub(super) address: IpAddr,
    port: u16,
    observer: Observer,
}

/// All places of a path.
pub(super) struct Posts {
    /// The client first, the server last.
    all: Vec<Post>,
    key: u64,
    trains: Cell<u32>,
}

/// From where to where something is sent.
#[derive(Clone, Copy)]
pub(super) struct Heading<'a> {
    pub(super) from: &'a Post,
    pub(super) to: &'a Post,
    /// Where the other end takes what comes.
    pub(super) at: SocketAddr,
}

/// Datagrams of a train.
#[derive(Clone, Copy)]
pub(super) struct TrainShape {
    pub(super) count: u32,
    pub(super) packet_bytes: u32,
    pub(super) gap: Duration,
    /// How long is waited for what is missing.
    pub(super) patience: Duration,
}

impl Post {
    fn start(site: &dyn Site) -> Result<Self, TargetError> {
        Ok(Self {
            name: site.name().to_owned(),
            address: site.address(),
            port: site.port(),
            observer: Observer::start(site)?,
        })
    }

    /// Has it do something that takes so long.
    pub(super) fn sound(&self, order: SoundOrder, takes: Duration) -> Result<Sounded, TargetError> {
        self.observer.sound(order, takes)
    }

    /// Asks the name server that a pod there is given, so often; `None` where there is none.
    pub(super) fn resolve(
        &self,
        count: u32,
        patience: Duration,
    ) -> Result<Option<ResolvedName>, TargetError> {
        let wait_ns = patience.as_nanos() as u64;
        let order = SoundOrder::Resolve(ResolveOrder { count, wait_ns });
        match self.sound(order, patience * count)? {
            Sounded::Resolved { name } => Ok(name),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Looks around there.
    pub(super) fn survey(&self, towards: &[IpAddr]) -> Result<Survey, TargetError> {
        let towards = towards.to_vec();
        match self.sound(SoundOrder::Survey { towards }, Duration::ZERO)? {
            Sounded::Survey(survey) => Ok(survey),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Has it look into its kernel.
    pub(super) fn trace(&self, order: TraceOrder) -> Result<TraceAnswer, TargetError> {
        self.observer.trace(order)
    }

    pub(super) fn unasked(&self, answer: &TraceAnswer) -> TargetError {
        let name = &self.name;
        TargetError::Failed(format!("the agent on {name} said {answer:?}, unasked"))
    }

    fn unexpected(&self, answer: &Sounded) -> TargetError {
        let name = &self.name;
        TargetError::Failed(format!(
            "the agent on {name} answers something else than was asked: {answer:?}; use one build \
             of Plumbline on all sides"
        ))
    }
}

impl Heading<'_> {
    /// Bytes of the headers of IP and UDP.
    pub(super) fn header_bytes(self) -> u32 {
        if self.at.is_ipv4() { 28 } else { 48 }
    }
}

impl Posts {
    /// Starts agents in all places of a path.
    pub(super) fn start(path: &dyn Path) -> Result<Self, TargetError> {
        let between = path.waypoints();
        let sites = [path.client()].into_iter().chain(between);
        let sites = sites.chain([path.server()]);
        Ok(Self {
            all: sites.map(Post::start).collect::<Result<_, _>>()?,
            // Different for each: it is seeded at random.
            key: RandomState::new().hash_one("plumbline"),
            trains: Cell::new(0),
        })
    }

    /// What the payload of every datagram begins with.
    pub(super) fn key(&self) -> u64 {
        self.key
    }

    pub(super) fn all(&self) -> &[Post] {
        &self.all
    }

    /// The client and the server.
    pub(super) fn ends(&self) -> [&Post; 2] {
        [&self.all[0], &self.all[self.all.len() - 1]]
    }

    /// Has one end take what the other sends to it there.
    pub(super) fn way<'a>(
        &self,
        [from, to]: [&'a Post; 2],
        address: IpAddr,
    ) -> Result<Heading<'a>, TargetError> {
        let order = SoundOrder::Take {
            address: (address, to.port).into(),
            key: self.key,
        };
        match to.sound(order, Duration::ZERO)? {
            Sounded::Takes { address: at } => Ok(Heading { from, to, at }),
            other => Err(to.unexpected(&other)),
        }
    }

    /// Sends datagrams, and waits for them as long as more of them may come.
    pub(super) fn train(
        &self,
        way: Heading<'_>,
        datagrams: TrainShape,
    ) -> Result<(SentTrain, TakenTrain), TargetError> {
        let train = self.trains.get() + 1;
        self.trains.set(train);
        let TrainShape {
            count,
            packet_bytes,
            gap,
            patience,
        } = datagrams;
        let order = TrainOrder {
            to: way.at,
            key: self.key,
            train,
            count,
            packet_bytes,
            gap_ns: gap.as_nanos() as u64,
            wait_ns: ASK.as_nanos() as u64,
        };
        let sent = match way.from.sound(SoundOrder::Train(order), gap * count)? {
            Sounded::Train(sent) => sent,
            other => return Err(way.from.unexpected(&other)),
        };
        let mut taken = TakenTrain::default();
        let mut since = Instant::now();
        loop {
            let before = taken.arrived;
            taken = match way.to.sound(SoundOrder::Taken { train }, Duration::ZERO)? {
                Sounded::Taken(taken) => taken,
                other => return Err(way.to.unexpected(&other)),
            };
            if taken.arrived > before {
                since = Instant::now();
            }
            if taken.arrived >= sent.sent || since.elapsed() > patience {
                return Ok((sent, taken));
            }
            thread::sleep(ASK);
        }
    }

    /// Sends a stream for so long.
    pub(super) fn stream(
        &self,
        way: Heading<'_>,
        length: Duration,
    ) -> Result<SentStream, TargetError> {
        let order = StreamOrder {
            to: way.at,
            key: self.key,
            length_ns: length.as_nanos() as u64,
            connect_ns: CONNECT.as_nanos() as u64,
        };
        match way
            .from
            .sound(SoundOrder::Stream(order), CONNECT + length)?
        {
            Sounded::Stream(sent) => Ok(sent),
            other => Err(way.from.unexpected(&other)),
        }
    }
}
