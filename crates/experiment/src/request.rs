//! A workload as it is asked for, and the rules by which it becomes one.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::ceiling::{MAX_DRAIN, MAX_DURATION, MAX_RATE, MAX_THINK, MAX_WARM_UP, MIN_DURATION};
use crate::key::Key;
use crate::{
    Arrival, DriverChoice, HttpServer, Limit, Protocol, Refusal, Timing, Wait, Workload,
    WorkloadKind,
};

/// How requests are spread in time, before a rate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalProcess {
    /// Equal gaps.
    Constant,
    /// Exponential gaps.
    Poisson,
    /// No schedule: each request waits for the previous answer.
    Closed,
}

/// A workload as a file or flags ask for it. What is `None` gets the default of the
/// kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadRequest {
    /// Name in tables.
    pub name: Option<String>,
    /// The transport.
    pub protocol: Option<Protocol>,
    /// Bytes of a request or message.
    pub request_size: Option<i64>,
    /// Bytes of a response.
    pub response_size: Option<i64>,
    /// Concurrent connections.
    pub connections: Option<i64>,
    /// How requests are spread in time; Poisson unless said.
    pub process: Option<ArrivalProcess>,
    /// Requests per second over all connections.
    pub rate: Option<f64>,
    /// Instead of a rate: a share of the maximum, above 0 and at most 1.
    pub load: Option<f64>,
    /// What that maximum has to hold.
    pub limit: Option<Limit>,
    /// Whether `http` keeps its connections.
    pub keep_alive: Option<bool>,
    /// What answers `http`.
    pub server: Option<HttpServer>,
    /// How the sender waits.
    pub wait: Option<Wait>,
    /// The sender's I/O mechanism.
    pub driver: Option<DriverChoice>,
    /// Whether `stream` sends without a copy.
    pub zero_copy: Option<bool>,
    /// Share of the requests to timestamp, 0 to 1; see
    /// [`stamped_share`](crate::stamped_share).
    pub timestamps: Option<f64>,
    /// How long the responder computes before it answers each request.
    pub think: Option<Duration>,
}

/// A share of the highest load that holds a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    /// Above 0, at most 1.
    pub(crate) of_maximum: f64,
    pub(crate) limit: Limit,
}

impl WorkloadRequest {
    /// The workload of this kind, with every value resolved. Where the rate is a
    /// share of a maximum, it is 0 until the maximum is known.
    ///
    /// # Errors
    ///
    /// Keys that the kind would ignore, values out of bounds, and keys that
    /// contradict each other.
    pub fn workload(&self, kind: WorkloadKind) -> Result<Workload, Refusal> {
        self.refuse_ignored(kind)?;
        self.share(kind)?;
        let otherwise = Workload::of_kind(kind);
        let protocol = self.protocol.unwrap_or(otherwise.protocol);
        refuse_protocol(kind, protocol)?;
        let whole = |key, given: Option<i64>, default| match (given, kind.bounds(key, protocol)) {
            (Some(number), Some(bounds)) => within(key, number, &bounds),
            // A kind without such a key has refused it already.
            _ => Ok(default),
        };
        let workload = Workload {
            name: self.name.clone().unwrap_or(otherwise.name),
            kind,
            protocol,
            request_size: whole(Key::RequestSize, self.request_size, otherwise.request_size)?,
            response_size: whole(
                Key::ResponseSize,
                self.response_size,
                otherwise.response_size,
            )?,
            connections: whole(Key::Connections, self.connections, otherwise.connections)?,
            arrival: self.arrival(kind)?,
            keep_alive: self.keep_alive.unwrap_or(otherwise.keep_alive),
            server: self.server.unwrap_or(otherwise.server),
            wait: self.wait.unwrap_or(otherwise.wait),
            driver: self.driver.unwrap_or(otherwise.driver),
            zero_copy: self.zero_copy.unwrap_or(otherwise.zero_copy),
            timestamps: self.timestamps.unwrap_or(otherwise.timestamps),
            think_ns: self.think.map_or(0, nanoseconds),
        };
        workload.refuse_timestamps()?;
        workload.refuse_think()?;
        Ok(workload)
    }

    /// `load` and `limit`, of which neither means anything without the other.
    pub(crate) fn share(&self, kind: WorkloadKind) -> Result<Option<Share>, Refusal> {
        if !kind.is_answered() && matches!(self.limit, Some(Limit::Latency { .. })) {
            let name = kind.as_str();
            let problem = format!("{name} gets no answers, so it has no latency to limit");
            let refusal = Refusal::new(Key::Limit, problem, "limit its loss: limit = \"loss=0\"");
            return Err(refusal.in_flags("{without}"));
        }
        match (self.load, self.limit) {
            (None, None) => Ok(None),
            (Some(of_maximum), Some(limit)) => Ok(Some(Share { of_maximum, limit })),
            (Some(_), None) => Err(Refusal::new(
                Key::Load,
                "{key} is a share of a maximum, but nothing says what that maximum has to hold",
                "add limit = \"p99<1ms\" or \"loss=0\" to the workload",
            )),
            (None, Some(_)) => Err(Refusal::new(
                Key::Limit,
                "{key} says what a maximum has to hold, but this workload has no share of one",
                "add load = \"50%\", or {without}; overheads are limited in [limits]",
            )),
        }
    }

    fn arrival(&self, kind: WorkloadKind) -> Result<Arrival, Refusal> {
        if !kind.takes(Key::Rate) {
            return match self.process {
                None | Some(ArrivalProcess::Closed) => Ok(Arrival::Closed),
                Some(_) => Err(Refusal::new(
                    Key::Arrival,
                    "stream has no arrivals: it writes whenever the path takes more",
                    "{without}",
                )),
            };
        }
        let (key, rate) = match (self.rate, self.load) {
            (Some(_), Some(_)) => {
                return Err(Refusal::new(
                    Key::Load,
                    "this workload has a {rate} and a {key}, which says the rate too",
                    "remove one of them",
                ));
            }
            (Some(rate), None) => (Key::Rate, Some(possible(rate)?)),
            (None, Some(_)) => (Key::Load, Some(0.0)),
            (None, None) => (Key::Rate, None),
        };
        match (self.process.unwrap_or(ArrivalProcess::Poisson), rate) {
            (ArrivalProcess::Poisson, Some(rate)) => Ok(Arrival::Poisson { rate }),
            (ArrivalProcess::Constant, Some(rate)) => Ok(Arrival::Constant { rate }),
            (ArrivalProcess::Closed, None) => Ok(Arrival::Closed),
            (ArrivalProcess::Closed, Some(_)) => Err(closed_loop(key)),
            (ArrivalProcess::Poisson | ArrivalProcess::Constant, None) => {
                let key = match self.process {
                    Some(_) => Key::Arrival,
                    None => Key::Kind,
                };
                Err(no_rate(key, kind))
            }
        }
    }

    fn refuse_ignored(&self, kind: WorkloadKind) -> Result<(), Refusal> {
        let given = [
            (Key::RequestSize, self.request_size.is_some()),
            (Key::ResponseSize, self.response_size.is_some()),
            (Key::Rate, self.rate.is_some()),
            (Key::Load, self.load.is_some()),
            (Key::Limit, self.limit.is_some()),
            (Key::KeepAlive, self.keep_alive.is_some()),
            (Key::Server, self.server.is_some()),
            (Key::Wait, self.wait.is_some()),
            (Key::Driver, self.driver.is_some()),
            (Key::ZeroCopy, self.zero_copy.is_some()),
            (Key::Timestamps, self.timestamps.is_some()),
            (Key::Think, self.think.is_some()),
        ];
        let keys = given.into_iter().filter(|(_, is_given)| *is_given);
        for (key, _) in keys {
            kind.refuse_ignored(key)?;
        }
        Ok(())
    }
}

impl WorkloadKind {
    /// Refuses a key that says nothing about workloads of this kind.
    pub(crate) fn refuse_ignored(self, key: Key) -> Result<(), Refusal> {
        if self.takes(key) {
            return Ok(());
        }
        let more = self.row().remedy(key);
        let more = more.map_or(String::new(), |more| format!(": {more}"));
        Err(Refusal::new(
            key,
            format!("{{key}} has no meaning for {}", self.as_str()),
            format!("{{without}}{more}"),
        ))
    }
}

impl Workload {
    /// Checks a workload that was not made from a [`WorkloadRequest`]: one that was read
    /// from disk, or built by code.
    ///
    /// # Errors
    ///
    /// The same as [`WorkloadRequest::workload`].
    pub fn check(&self) -> Result<(), Refusal> {
        refuse_protocol(self.kind, self.protocol)?;
        let numbers = [
            (Key::RequestSize, self.request_size),
            (Key::ResponseSize, self.response_size),
            (Key::Connections, self.connections),
        ];
        for (key, number) in numbers {
            // A size that the kind does not have is ignored.
            if let Some(bounds) = self.kind.bounds(key, self.protocol) {
                within(key, i64::from(number), &bounds)?;
            }
        }
        if let Some(rate) = self.arrival.rate() {
            possible(rate)?;
        }
        let otherwise = Self::of_kind(self.kind);
        // A default might as well have been left out.
        let given = WorkloadRequest {
            rate: self.arrival.rate(),
            server: (self.server != otherwise.server).then_some(self.server),
            // Kinds without a choice use epoll.
            driver: (self.driver == DriverChoice::Uring).then_some(self.driver),
            zero_copy: (self.zero_copy != otherwise.zero_copy).then_some(self.zero_copy),
            timestamps: (self.timestamps != otherwise.timestamps).then_some(self.timestamps),
            think: (self.think_ns > 0).then(|| Duration::from_nanos(self.think_ns)),
            ..WorkloadRequest::default()
        };
        given.refuse_ignored(self.kind)?;
        self.refuse_timestamps()?;
        self.refuse_think()
    }

    /// Refuses a load in which no request is due while it is measured.
    ///
    /// # Errors
    ///
    /// Rates and windows whose product is below one request.
    pub fn refuse_empty_window(&self, window: Duration) -> Result<(), Refusal> {
        let seconds = window.as_secs_f64();
        match self.arrival.rate() {
            Some(rate) if rate * seconds < 1.0 => Err(Refusal::new(
                Key::Rate,
                format!("at {rate} per second no request falls into a window of {seconds} s"),
                "raise {rate} or {duration}",
            )),
            _ => Ok(()),
        }
    }

    /// Timestamps split requests on connections that stay open (L-17), and
    /// io_uring does not read them.
    fn refuse_timestamps(&self) -> Result<(), Refusal> {
        let key = Key::Timestamps;
        let refusal = match self.timestamps {
            0.0 => return Ok(()),
            share if !(share > 0.0 && share <= 1.0) => {
                Refusal::value(key, share, "a share above 0, up to 1")
            }
            _ if !self.keeps_connections() => Refusal::new(
                key,
                "{key} needs connections that stay open",
                "{without}, or set keep_alive = true",
            )
            .in_flags("use rr, or http without --no-keep-alive"),
            _ if self.driver == DriverChoice::Uring => Refusal::new(
                key,
                "{key} is read by epoll only",
                "{without}, or set driver = \"auto\"",
            )
            .in_flags("leave --driver out"),
            _ => return Ok(()),
        };
        Err(refusal)
    }
}

impl Workload {
    /// Only a responder of ours computes before it answers.
    fn refuse_think(&self) -> Result<(), Refusal> {
        let key = Key::Think;
        if self.think_ns > nanoseconds(MAX_THINK) {
            let given = format!("{:?}", Duration::from_nanos(self.think_ns));
            let possible = format!("a time up to {MAX_THINK:?}");
            return Err(Refusal::value(key, given, &possible));
        }
        if self.think_ns > 0 && self.server == HttpServer::Nginx {
            let problem = "nginx does not compute before it answers, so {key} has no meaning";
            let remedy = "{without}, or set server = \"plumbline\"";
            return Err(Refusal::new(key, problem, remedy));
        }
        Ok(())
    }
}

/// Far more than the ceilings where it is more than 64 bits hold.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Key {
    /// How long a phase may be; `None` of keys that are no phase.
    pub(crate) fn phase_bounds(self) -> Option<RangeInclusive<Duration>> {
        match self {
            Self::WarmUp => Some(Duration::ZERO..=MAX_WARM_UP),
            Self::Duration => Some(MIN_DURATION..=MAX_DURATION),
            Self::Drain => Some(Duration::ZERO..=MAX_DRAIN),
            _ => None,
        }
    }
}

impl Timing {
    /// Checks the length of each phase.
    ///
    /// # Errors
    ///
    /// A phase that is too short or too long.
    pub fn check(&self) -> Result<(), Refusal> {
        let phases = [
            (Key::WarmUp, self.warm_up_ns),
            (Key::Duration, self.measure_ns),
            (Key::Drain, self.drain_ns),
        ];
        for (key, ns) in phases {
            let length = Duration::from_nanos(ns);
            let Some(bounds) = key.phase_bounds() else {
                continue;
            };
            if !bounds.contains(&length) {
                let possible = format!("a time from {:?} to {:?}", bounds.start(), bounds.end());
                return Err(Refusal::value(key, format!("{length:?}"), &possible));
            }
        }
        Ok(())
    }
}

fn refuse_protocol(kind: WorkloadKind, given: Protocol) -> Result<(), Refusal> {
    let possible = kind.row().protocols;
    if possible.contains(&given) {
        return Ok(());
    }
    let (kind, given, only) = (kind.as_str(), given.as_str(), possible[0].as_str());
    Err(Refusal::new(
        Key::Protocol,
        format!("{kind} cannot run over {given}"),
        format!(
            "{{without}} ({kind} is always {only}); rr over udp and datagram are the UDP workloads"
        ),
    ))
}

fn closed_loop(key: Key) -> Refusal {
    let refusal = Refusal::new(
        key,
        "a closed loop has no {key}: each request leaves when the previous answer arrives",
        "remove {key}, or set arrival = \"poisson\" or \"constant\"",
    );
    refusal.in_flags("{without}")
}

fn no_rate(key: Key, kind: WorkloadKind) -> Refusal {
    let kind = kind.as_str();
    let refusal = Refusal::new(
        key,
        format!("this {kind} workload has no {{rate}}, and an open loop needs one"),
        "add rate = requests per second, load = \"50%\" with a limit, or arrival = \"closed\"",
    );
    refusal.in_flags("give a --rate too, or {without}")
}

fn possible(rate: f64) -> Result<f64, Refusal> {
    if rate > 0.0 && rate <= MAX_RATE {
        return Ok(rate);
    }
    let possible = format!("requests per second above 0, up to {MAX_RATE}");
    Err(Refusal::value(Key::Rate, rate, &possible))
}

fn within(key: Key, number: i64, bounds: &RangeInclusive<u32>) -> Result<u32, Refusal> {
    match u32::try_from(number) {
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => Err(Refusal::bounds(key, number, bounds)),
    }
}
