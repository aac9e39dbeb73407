//! The table of kinds of workload: what sets each apart, in one row.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::ceiling::{MAX_CONNECTIONS, MAX_DATAGRAM, MAX_FLOWS, MAX_MESSAGE, MIN_MESSAGE};
use crate::key::Key;
use crate::{Arrival, DriverChoice, HttpServer, Protocol, Wait, Workload, WorkloadKind};

/// One kind of workload. Whatever else needs to know a fact about a kind asks
/// this table, so that a new kind is a new row.
pub struct Kind {
    /// Which kind this is.
    pub kind: WorkloadKind,
    /// As files and flags write it.
    pub name: &'static str,
    /// What it does, in a few words for `--help`.
    pub summary: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// In reports: given the workload and its two sizes in words.
    words: fn(&Workload, &str, &str) -> String,
    /// The first is the default.
    pub(crate) protocols: &'static [Protocol],
    request: Option<Size>,
    response: Option<Size>,
    /// Connections unless a file says otherwise, and the most there may be.
    connections: (u32, u32),
    /// Requests per second of the built-in workload of this kind.
    pub(crate) built_in_rate: Option<u32>,
    standing: ConnectionReuse,
    /// Whether each message gets an answer. Without one there is no latency.
    is_answered: bool,
    /// What to say when a key is given that it does not take, where there is
    /// more to say than to remove it.
    remedies: &'static [(Key, &'static str)],
}

/// Bytes of a request or a response.
struct Size {
    default: u32,
    least: u32,
    most: u32,
}

/// Whether requests follow each other on the same connection.
#[derive(Clone, Copy, PartialEq)]
enum ConnectionReuse {
    Always,
    Never,
    /// As `keep_alive` says.
    KeepAlive,
}

const KEEPS_OR_NOT: (Key, &str) = (
    Key::KeepAlive,
    "rr always keeps its connections, crr never does",
);
const STANDING_ONLY: (Key, &str) = (
    Key::Timestamps,
    "use rr, or http with connections that stay open",
);
const MESSAGE: Option<Size> = Some(Size {
    default: 64,
    least: MIN_MESSAGE,
    most: MAX_MESSAGE,
});

/// Every kind, in the order in which they are explained. The built-in rates are
/// modest: two CPUs carry them with ease, and new connections do not run out of
/// ports (N-5).
pub const KINDS: [Kind; 5] = [
    Kind {
        kind: WorkloadKind::Rr,
        name: "rr",
        summary: "Request and response on open connections",
        purpose: "request and response on open connections, TCP or UDP: latency at a rate",
        words: |workload, request, response| {
            let protocol = workload.protocol.in_words();
            format!("{protocol} request/response, {request} out and {response} back")
        },
        protocols: &[Protocol::Tcp, Protocol::Udp],
        request: MESSAGE,
        response: MESSAGE,
        connections: (16, MAX_CONNECTIONS),
        built_in_rate: Some(5_000),
        standing: ConnectionReuse::Always,
        is_answered: true,
        remedies: &[KEEPS_OR_NOT],
    },
    Kind {
        kind: WorkloadKind::Crr,
        name: "crr",
        summary: "A new connection per request",
        purpose: "connect, request, response, close: what a new connection costs",
        words: |_, request, response| {
            format!("a new TCP connection per request, {request} out and {response} back")
        },
        protocols: &[Protocol::Tcp],
        request: MESSAGE,
        response: MESSAGE,
        connections: (16, MAX_CONNECTIONS),
        built_in_rate: Some(400),
        standing: ConnectionReuse::Never,
        is_answered: true,
        remedies: &[KEEPS_OR_NOT, STANDING_ONLY],
    },
    Kind {
        kind: WorkloadKind::Stream,
        name: "stream",
        summary: "TCP bulk",
        purpose: "TCP bulk: throughput and CPU per byte",
        words: |workload, _, _| {
            let copies = if workload.zero_copy {
                ", sent without a copy"
            } else {
                ""
            };
            format!("TCP bulk, one way{copies}")
        },
        protocols: &[Protocol::Tcp],
        request: None,
        response: None,
        connections: (1, MAX_CONNECTIONS),
        built_in_rate: None,
        standing: ConnectionReuse::Always,
        is_answered: false,
        remedies: &[
            KEEPS_OR_NOT,
            STANDING_ONLY,
            (
                Key::Rate,
                "stream sends as fast as the path carries; for bulk at a rate use datagram",
            ),
            (
                Key::Load,
                "stream sends as fast as the path carries; it has no rate to search for",
            ),
            (
                Key::Limit,
                "stream sends as fast as the path carries; it has no rate to search for",
            ),
            (Key::Driver, "stream and datagram always go by epoll"),
        ],
    },
    Kind {
        kind: WorkloadKind::Datagram,
        name: "datagram",
        summary: "UDP bulk",
        purpose: "UDP bulk by message size: what arrives, and what is lost",
        words: |_, request, _| format!("UDP bulk, messages of {request}"),
        protocols: &[Protocol::Udp],
        request: Some(Size {
            default: 1024,
            least: MIN_MESSAGE,
            most: MAX_DATAGRAM,
        }),
        response: None,
        connections: (16, MAX_FLOWS),
        built_in_rate: Some(10_000),
        standing: ConnectionReuse::Always,
        is_answered: false,
        remedies: &[
            KEEPS_OR_NOT,
            STANDING_ONLY,
            (Key::ResponseSize, "datagram sends nothing back"),
            (Key::Driver, "stream and datagram always go by epoll"),
        ],
    },
    Kind {
        kind: WorkloadKind::Http,
        name: "http",
        summary: "HTTP/1.1 GET",
        purpose: "HTTP/1.1 GET of a fixed body, keep-alive or a new connection each time",
        words: |workload, _, response| {
            let connections = if workload.keep_alive {
                "keep-alive"
            } else {
                "a new connection each time"
            };
            format!("HTTP GET of {response}, {connections}")
        },
        protocols: &[Protocol::Tcp],
        request: None,
        response: Some(Size {
            default: 1024,
            least: 0,
            most: MAX_MESSAGE,
        }),
        connections: (16, MAX_CONNECTIONS),
        built_in_rate: Some(2_000),
        standing: ConnectionReuse::KeepAlive,
        is_answered: true,
        remedies: &[(
            Key::RequestSize,
            "the request is a plain GET; response_size sets the body",
        )],
    },
];

impl Kind {
    /// What a key that it does not take is answered with, beside removing it.
    pub(crate) fn remedy(&self, key: Key) -> Option<&'static str> {
        let found = self.remedies.iter().find(|(other, _)| *other == key);
        found.map(|(_, remedy)| *remedy)
    }
}

impl WorkloadKind {
    /// The row of the table.
    pub fn row(self) -> &'static Kind {
        let row = KINDS.iter().find(|row| row.kind == self);
        row.expect("a test looks each kind up")
    }

    /// The kind as files and flags write it.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Whether each message gets an answer. What does not is bulk: it has a
    /// throughput and no latency.
    pub fn is_answered(self) -> bool {
        self.row().is_answered
    }

    /// Whether a key says anything about workloads of this kind. A key that
    /// would be ignored is refused, so that nobody believes it had an effect.
    pub(crate) fn takes(self, key: Key) -> bool {
        key.kinds().contains(&self)
    }

    /// What a size over this protocol, or the number of connections, may be; `None` for
    /// what there is none of.
    pub(crate) fn bounds(self, key: Key, protocol: Protocol) -> Option<RangeInclusive<u32>> {
        let row = self.row();
        let size = match key {
            Key::RequestSize => row.request.as_ref()?,
            Key::ResponseSize => row.response.as_ref()?,
            Key::Connections => return Some(1..=row.connections.1),
            _ => return None,
        };
        Some(match protocol {
            Protocol::Tcp => size.least..=size.most,
            Protocol::Udp => size.least..=size.most.min(MAX_DATAGRAM),
        })
    }

    /// Whether a key may take different values for workloads of this kind. A
    /// factor, or a flag for all workloads, skips those where it may not.
    pub(crate) fn varies(self, key: &str) -> bool {
        match Key::find(key) {
            Some(Key::Protocol) => self.row().protocols.len() > 1,
            Some(Key::Arrival) => self.takes(Key::Rate),
            Some(key) => self.takes(key),
            None => false,
        }
    }
}

impl Protocol {
    /// As files write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

impl Workload {
    /// The workload of a kind with every default: a closed loop, since no rate
    /// fits all, and the table's sizes and connections. A size is 0 where the
    /// kind has none.
    pub fn of_kind(kind: WorkloadKind) -> Self {
        let row = kind.row();
        let default = |size: &Option<Size>| size.as_ref().map_or(0, |size| size.default);
        Self {
            name: row.name.to_owned(),
            kind,
            protocol: row.protocols[0],
            request_size: default(&row.request),
            response_size: default(&row.response),
            connections: row.connections.0,
            arrival: Arrival::Closed,
            keep_alive: row.standing == ConnectionReuse::KeepAlive,
            server: HttpServer::Plumbline,
            wait: Wait::Block,
            driver: DriverChoice::Auto,
            zero_copy: false,
            timestamps: 0.0,
            think_ns: 0,
        }
    }

    /// What it does, without its connections and its arrivals: `TCP
    /// request/response, 64 B out and 64 B back`. `request` and `response` are
    /// its sizes in words.
    pub fn in_words(&self, request: &str, response: &str) -> String {
        let mut words = (self.kind.row().words)(self, request, response);
        if self.think_ns > 0 {
            let length = Duration::from_nanos(self.think_ns);
            words += &format!(", the server computing for {length:?} each time");
        }
        words
    }

    /// Whether it goes over UDP. Records of old may say TCP of a kind that has
    /// no choice.
    pub fn is_udp(&self) -> bool {
        match self.kind.row().protocols {
            [only] => *only == Protocol::Udp,
            _ => self.protocol == Protocol::Udp,
        }
    }

    /// Whether requests follow each other on connections that stay open.
    pub fn keeps_connections(&self) -> bool {
        match self.kind.row().standing {
            ConnectionReuse::Always => true,
            ConnectionReuse::Never => false,
            ConnectionReuse::KeepAlive => self.keep_alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [WorkloadKind; 5] = [
        WorkloadKind::Rr,
        WorkloadKind::Crr,
        WorkloadKind::Stream,
        WorkloadKind::Datagram,
        WorkloadKind::Http,
    ];

    #[test]
    fn every_kind_has_a_row_under_its_serialised_name() {
        for kind in ALL {
            let row = kind.row();
            assert_eq!(serde_json::json!(kind), row.name);
        }
        assert_eq!(KINDS.len(), ALL.len());
    }

    #[test]
    fn the_defaults_of_every_row_are_allowed_by_its_rules() {
        for kind in ALL {
            let workload = Workload::of_kind(kind);
            assert_eq!(workload.check(), Ok(()), "{}", workload.name);
            assert_eq!(kind.takes(Key::Rate), kind.row().built_in_rate.is_some());
        }
    }

    #[test]
    fn what_is_no_key_of_a_kind_is_answered_with_a_remedy() {
        for row in &KINDS {
            for (key, _) in row.remedies {
                assert!(!row.kind.takes(*key), "{} takes {}", row.name, key.name());
            }
        }
    }
}
