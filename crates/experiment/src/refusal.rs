//! Why a workload is refused, in the terms in which it was asked for.

use std::fmt;
use std::ops::RangeInclusive;

use crate::key::Key;
use crate::{Protocol, WorkloadKind};

/// What is wrong with a workload. Its rules stand once, for experiment files,
/// for flags of `plumbline load` and for plans read from disk; only the words
/// of the remedy differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub(crate) key: Key,
    pub(crate) why: Why,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Why {
    /// A key that says nothing about tasks of the kind of this name.
    Ignored {
        kind: &'static str,
        remedy: Option<&'static str>,
    },
    OutOfBounds {
        given: String,
        bounds: String,
    },
    Protocol {
        kind: WorkloadKind,
        given: Protocol,
        only: Protocol,
    },
    /// `arrival` of a stream.
    NoArrivals,
    NoRate {
        kind: WorkloadKind,
    },
    /// A closed loop with a `rate` or a `load`.
    ClosedLoop,
    RateAndLoad,
    LoadWithoutLimit,
    LimitWithoutLoad,
    /// A limit on the latency of messages without answers.
    NoLatency {
        kind: WorkloadKind,
    },
    /// Timestamps of requests that open a connection each.
    NotStanding,
    StampsNeedEpoll,
    EmptyWindow {
        rate: f64,
        seconds: f64,
    },
}

/// How keys are written where a refusal is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As keys of an experiment file: `keep_alive`.
    File,
    /// As flags of `plumbline load`: `--no-keep-alive`.
    Flags,
}

impl Spelling {
    fn key(self, key: Key) -> String {
        match self {
            Self::File => format!("`{}`", key.name()),
            Self::Flags => key.flag().to_owned(),
        }
    }

    /// How to undo a key.
    fn without(self, key: Key) -> String {
        match self {
            Self::File => "remove it".to_owned(),
            Self::Flags => format!("leave {} out", self.key(key)),
        }
    }
}

impl Refusal {
    pub(crate) fn new(key: Key, why: Why) -> Self {
        Self { key, why }
    }

    /// A number outside of `bounds`; `what` says what it counts.
    pub(crate) fn bounds(key: Key, given: impl fmt::Display, bounds: &RangeInclusive<u32>) -> Self {
        let why = Why::OutOfBounds {
            given: given.to_string(),
            bounds: format!("a whole number from {} to {}", bounds.start(), bounds.end()),
        };
        Self::new(key, why)
    }

    /// The key that is at fault.
    pub fn key(&self) -> Key {
        self.key
    }

    /// What is wrong, in one sentence.
    pub fn problem(&self, spelling: Spelling) -> String {
        let key = spelling.key(self.key);
        match &self.why {
            Why::Ignored { kind, .. } => format!("{key} has no meaning for {kind}"),
            Why::OutOfBounds { given, .. } => format!("{key} is {given}, which is not possible"),
            Why::Protocol { kind, given, .. } => {
                format!("{} cannot run over {}", kind.as_str(), given.as_str())
            }
            Why::NoArrivals => {
                "stream has no arrivals: it writes whenever the path takes more".to_owned()
            }
            Why::NoRate { kind } => format!(
                "this {} workload has no {}, and an open loop needs one",
                kind.as_str(),
                spelling.key(Key::Rate)
            ),
            Why::ClosedLoop => format!(
                "a closed loop has no {key}: each request leaves when the previous answer arrives"
            ),
            Why::RateAndLoad => format!(
                "this workload has a {} and a {key}, which says the rate too",
                spelling.key(Key::Rate)
            ),
            Why::LoadWithoutLimit => format!(
                "{key} is a share of a maximum, but nothing says what that maximum has to hold"
            ),
            Why::LimitWithoutLoad => format!(
                "{key} says what a maximum has to hold, but this workload has no share of one"
            ),
            Why::NoLatency { kind } => format!(
                "{} gets no answers, so it has no latency to limit",
                kind.as_str()
            ),
            Why::NotStanding => format!("{key} needs connections that stay open"),
            Why::StampsNeedEpoll => format!("{key} is read by epoll only"),
            Why::EmptyWindow { rate, seconds } => {
                format!("at {rate} per second no request falls into a window of {seconds} s")
            }
        }
    }

    /// What to do about it.
    pub fn remedy(&self, spelling: Spelling) -> String {
        let without = spelling.without(self.key);
        match (&self.why, spelling) {
            (Why::Ignored { remedy, .. }, _) => match remedy {
                None => without,
                Some(more) => format!("{without}: {more}"),
            },
            (Why::OutOfBounds { bounds, .. }, _) => format!("use {bounds}"),
            (Why::Protocol { kind, only, .. }, _) => format!(
                "{without} ({} is always {}); rr over udp and datagram are the UDP workloads",
                kind.as_str(),
                only.as_str()
            ),
            (Why::NoRate { .. }, Spelling::File) => "add rate = requests per second, \
                load = \"50%\" with a limit, or arrival = \"closed\""
                .to_owned(),
            (Why::NoRate { .. }, Spelling::Flags) => {
                format!("give a --rate too, or {without}")
            }
            (Why::ClosedLoop, Spelling::File) => {
                let key = spelling.key(self.key);
                format!("remove {key}, or set arrival = \"poisson\" or \"constant\"")
            }
            (Why::RateAndLoad, _) => "remove one of them".to_owned(),
            (Why::LoadWithoutLimit, _) => {
                "add limit = \"p99<1ms\" or \"loss=0\" to the workload".to_owned()
            }
            (Why::LimitWithoutLoad, _) => {
                format!("add load = \"50%\", or {without}; overheads are limited in [limits]")
            }
            (Why::NoLatency { .. }, Spelling::File) => {
                "limit its loss: limit = \"loss=0\"".to_owned()
            }
            (Why::NotStanding, Spelling::File) => {
                format!("{without}, or set keep_alive = true")
            }
            (Why::NotStanding, Spelling::Flags) => {
                "use rr, or http without --no-keep-alive".to_owned()
            }
            (Why::StampsNeedEpoll, Spelling::File) => {
                format!("{without}, or set driver = \"auto\"")
            }
            (Why::StampsNeedEpoll, Spelling::Flags) => spelling.without(Key::Driver),
            (Why::EmptyWindow { .. }, _) => format!(
                "raise {} or {}",
                spelling.key(Key::Rate),
                spelling.key(Key::Duration)
            ),
            (Why::NoArrivals | Why::ClosedLoop | Why::NoLatency { .. }, _) => without,
        }
    }

    /// Problem and remedy in one line.
    pub fn in_line(&self, spelling: Spelling) -> String {
        format!("{}; {}", self.problem(spelling), self.remedy(spelling))
    }
}

/// In the words of experiment files.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_line(Spelling::File))
    }
}

impl std::error::Error for Refusal {}
