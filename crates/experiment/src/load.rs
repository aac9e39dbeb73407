//! One `[[workload]]` section, read into a [`Workload`] with its [`Timing`].

use std::time::Duration;

use crate::ceiling::{
    MAX_CONNECTIONS, MAX_DRAIN, MAX_DURATION, MAX_RATE, MAX_WARM_UP, MIN_DURATION,
};
use crate::keys::{self, KINDS, LIMIT};
use crate::section::{self, Section};
use crate::timestamps;
use crate::tree::Data;
use crate::workload::size_bounds;
use crate::{
    Arrival, Driver, Limit, LimitError, Protocol, Server, SpecError, Timing, Wait, Workload,
    WorkloadKind,
};

/// A workload and the phases of its trials.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) workload: Workload,
    /// Name of the workload without the share of a maximum that it may have.
    pub(crate) base_name: String,
    pub(crate) timing: Timing,
    /// Where the rate is a share of a maximum; that of the workload means nothing then.
    pub(crate) share: Option<Share>,
}

/// A share of the highest load that holds a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    /// Above 0, at most 1.
    pub(crate) of_maximum: f64,
    pub(crate) limit: Limit,
}

/// The kind of a workload section.
pub(crate) fn kind(section: &Section<'_>) -> Result<WorkloadKind, SpecError> {
    section.choice("kind", KINDS)?.ok_or_else(|| {
        let remedy = "add kind = \"rr\", \"crr\", \"stream\", \"datagram\" or \"http\"";
        match section.table.values().next() {
            Some(entry) => SpecError::at(&entry.key, "this workload has no `kind`", remedy),
            None => SpecError::nowhere("a [[workload]] is empty", remedy),
        }
    })
}

/// Drivers as written in files.
const DRIVERS: &[(&str, Driver)] = &[
    ("auto", Driver::Auto),
    ("epoll", Driver::Epoll),
    ("uring", Driver::Uring),
];

/// Reads one section; what it does not say about phases, `design` says.
pub(crate) fn read(section: &Section<'_>, design: Timing) -> Result<Load, SpecError> {
    section.refuse_unknown(&keys::workload())?;
    let kind = kind(section)?;
    refuse_ignored(section, kind)?;
    let protocol = protocol(section, kind)?;
    let (request_size, response_size) = sizes(section, kind, protocol)?;
    let share = share(section, kind)?;
    let otherwise = Workload::of_kind(kind);
    let workload = Workload {
        name: name(section, kind)?,
        kind,
        protocol,
        request_size,
        response_size,
        connections: section
            .whole("connections", 1..=MAX_CONNECTIONS)?
            .unwrap_or(otherwise.connections),
        arrival: arrival(section, kind, share)?,
        keep_alive: section
            .boolean("keep_alive")?
            .unwrap_or(otherwise.keep_alive),
        server: section
            .choice(
                "server",
                &[("plumbline", Server::Plumbline), ("nginx", Server::Nginx)],
            )?
            .unwrap_or(otherwise.server),
        wait: section
            .choice("wait", &[("block", Wait::Block), ("spin", Wait::Spin)])?
            .unwrap_or_default(),
        driver: section.choice("driver", DRIVERS)?.unwrap_or_default(),
        zero_copy: section.boolean("zero_copy")?.unwrap_or(otherwise.zero_copy),
        timestamps: timestamps::share(section)?,
    };
    timestamps::refuse_contradiction(section, &workload)?;
    let timing = timing(section, design)?;
    refuse_empty_window(section, &workload, timing)?;
    Ok(Load {
        base_name: workload.name.clone(),
        workload,
        timing,
        share,
    })
}

/// The phases that a section names, over those of `otherwise`.
pub(crate) fn timing(section: &Section<'_>, otherwise: Timing) -> Result<Timing, SpecError> {
    let phase = |key, bounds, default| -> Result<u64, SpecError> {
        let given = section.duration(key, bounds)?;
        // The ceilings are far below what 64 bits of nanoseconds hold.
        Ok(given.map_or(default, |duration| duration.as_nanos() as u64))
    };
    Ok(Timing {
        warm_up_ns: phase(
            "warm_up",
            Duration::ZERO..=MAX_WARM_UP,
            otherwise.warm_up_ns,
        )?,
        measure_ns: phase(
            "duration",
            MIN_DURATION..=MAX_DURATION,
            otherwise.measure_ns,
        )?,
        drain_ns: phase("drain", Duration::ZERO..=MAX_DRAIN, otherwise.drain_ns)?,
    })
}

fn name(section: &Section<'_>, kind: WorkloadKind) -> Result<String, SpecError> {
    let Some((name, place)) = section.text("name")? else {
        return Ok(kind.as_str().to_owned());
    };
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_+ ".contains(c);
    if name.trim() != name || !(1..=40).contains(&name.len()) || !name.chars().all(fine) {
        return Err(SpecError::at(
            place,
            format!("\"{name}\" cannot name a workload"),
            "use 1 to 40 letters, digits, spaces, `-`, `_` or `+`",
        ));
    }
    Ok(name.to_owned())
}

fn refuse_ignored(section: &Section<'_>, kind: WorkloadKind) -> Result<(), SpecError> {
    let Some((key, entry)) = section.table.iter().find(|(key, _)| !kind.takes(key)) else {
        return Ok(());
    };
    let remedy = match (key.as_str(), kind) {
        ("rate", _) => "remove it: stream sends as fast as the path carries; \
                        for bulk at a rate use kind = \"datagram\""
            .to_owned(),
        ("keep_alive", _) => {
            "remove it; rr always keeps its connections, crr never does".to_owned()
        }
        ("request_size", WorkloadKind::Http) => {
            "remove it: the request is a plain GET; response_size sets the body".to_owned()
        }
        _ => "remove it".to_owned(),
    };
    Err(SpecError::at(
        &entry.key,
        format!("`{key}` has no meaning for {}", kind.as_str()),
        remedy,
    ))
}

fn protocol(section: &Section<'_>, kind: WorkloadKind) -> Result<Protocol, SpecError> {
    let given = section.choice(
        "protocol",
        &[("tcp", Protocol::Tcp), ("udp", Protocol::Udp)],
    )?;
    let only = match kind {
        WorkloadKind::Rr => return Ok(given.unwrap_or(Protocol::Tcp)),
        WorkloadKind::Datagram => Protocol::Udp,
        WorkloadKind::Crr | WorkloadKind::Stream | WorkloadKind::Http => Protocol::Tcp,
    };
    match (given, section.get("protocol")) {
        (Some(given), Some(value)) if given != only => Err(SpecError::at(
            &value.place,
            format!("{} cannot run over {}", kind.as_str(), word(given)),
            format!(
                "remove `protocol` ({} is always {}); rr over udp and datagram are the UDP workloads",
                kind.as_str(),
                word(only)
            ),
        )),
        _ => Ok(only),
    }
}

fn word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    }
}

/// Request and response size in bytes; 0 where the kind has none.
fn sizes(
    section: &Section<'_>,
    kind: WorkloadKind,
    protocol: Protocol,
) -> Result<(u32, u32), SpecError> {
    let (request, response) = size_bounds(kind, protocol);
    let otherwise = Workload::of_kind(kind);
    Ok((
        section
            .whole("request_size", request)?
            .unwrap_or(otherwise.request_size),
        section
            .whole("response_size", response)?
            .unwrap_or(otherwise.response_size),
    ))
}

#[derive(Clone, Copy, PartialEq)]
enum Law {
    Constant,
    Poisson,
    Closed,
}

fn arrival(
    section: &Section<'_>,
    kind: WorkloadKind,
    share: Option<Share>,
) -> Result<Arrival, SpecError> {
    let laws = [
        ("poisson", Law::Poisson),
        ("constant", Law::Constant),
        ("closed", Law::Closed),
    ];
    let given = section.choice("arrival", &laws)?;
    let rate = match (rate(section)?, share) {
        (Some(_), Some(_)) => return Err(rate_and_load(section)),
        // Settled when the maximum is known.
        (None, Some(_)) => Some(0.0),
        (rate, None) => rate,
    };
    if kind == WorkloadKind::Stream {
        return match (given, section.get("arrival")) {
            (Some(Law::Constant | Law::Poisson), Some(value)) => Err(SpecError::at(
                &value.place,
                "stream has no arrivals: it writes whenever the path takes more",
                "remove `arrival`",
            )),
            _ => Ok(Arrival::Closed),
        };
    }
    match (given.unwrap_or(Law::Poisson), rate) {
        (Law::Poisson, Some(rate)) => Ok(Arrival::Poisson { rate }),
        (Law::Constant, Some(rate)) => Ok(Arrival::Constant { rate }),
        (Law::Closed, None) => Ok(Arrival::Closed),
        (Law::Closed, Some(_)) => {
            let key = if share.is_some() { "load" } else { "rate" };
            Err(SpecError::at(
                &section.table[key].key,
                format!(
                    "a closed loop has no `{key}`: a request leaves when the last answer is there"
                ),
                format!("remove `{key}`, or set arrival = \"poisson\" or \"constant\""),
            ))
        }
        (Law::Poisson | Law::Constant, None) => {
            let key = if given.is_some() { "arrival" } else { "kind" };
            Err(SpecError::at(
                &section.table[key].value.place,
                format!(
                    "this {} workload has no `rate`, and an open loop needs one",
                    kind.as_str()
                ),
                "add rate = requests per second, load = \"50%\" with a limit, or arrival = \"closed\"",
            ))
        }
    }
}

fn rate(section: &Section<'_>) -> Result<Option<f64>, SpecError> {
    let Some(value) = section.get("rate") else {
        return Ok(None);
    };
    let rate = section::number("rate", value)?;
    if rate > 0.0 && rate <= MAX_RATE {
        return Ok(Some(rate));
    }
    Err(SpecError::at(
        &value.place,
        format!("`rate` is {rate}, which is not possible"),
        format!("use requests per second above 0, up to {MAX_RATE}"),
    ))
}

/// `load` and `limit`, of which neither means anything without the other.
fn share(section: &Section<'_>, kind: WorkloadKind) -> Result<Option<Share>, SpecError> {
    let limit = limit(section, kind)?;
    let Some(value) = section.get("load") else {
        return match section.get(LIMIT) {
            None => Ok(None),
            Some(value) => Err(SpecError::at(
                &value.place,
                "`limit` says what a maximum has to hold, and this workload has no share of one",
                "add load = \"50%\", or remove `limit`; overheads are limited in [limits]",
            )),
        };
    };
    let percent = match &value.data {
        Data::Text(text) => text
            .strip_suffix('%')
            .and_then(|number| number.trim().parse::<f64>().ok()),
        _ => None,
    };
    match (percent, limit) {
        (Some(percent), Some(limit)) if percent > 0.0 && percent <= 100.0 => Ok(Some(Share {
            of_maximum: percent / 100.0,
            limit,
        })),
        (Some(percent), None) if percent > 0.0 && percent <= 100.0 => Err(SpecError::at(
            &value.place,
            "`load` is a share of a maximum, and nothing says what that has to hold",
            "add limit = \"p99<1ms\" or \"loss=0\" to the workload",
        )),
        _ => Err(SpecError::at(
            &value.place,
            "`load` is not a share of the maximum",
            "write a percentage above 0, up to 100, such as \"50%\"; requests per second are a `rate`",
        )),
    }
}

fn limit(section: &Section<'_>, kind: WorkloadKind) -> Result<Option<Limit>, SpecError> {
    let Some((text, place)) = section.text(LIMIT)? else {
        return Ok(None);
    };
    let limit: Limit = text.parse().map_err(|error: LimitError| {
        SpecError::at(place, error.to_string(), "such as limit = \"p99<1ms\"")
    })?;
    if kind == WorkloadKind::Datagram && matches!(limit, Limit::Latency { .. }) {
        return Err(SpecError::at(
            place,
            "datagram gets no answers, so it has no latency to limit",
            "limit its loss: limit = \"loss=0\"",
        ));
    }
    Ok(Some(limit))
}

fn rate_and_load(section: &Section<'_>) -> SpecError {
    SpecError::at(
        &section.table["load"].key,
        "this workload has a `rate` and a `load`, which says the rate too",
        "remove one of them",
    )
}

/// A window in which no request is due measures nothing.
fn refuse_empty_window(
    section: &Section<'_>,
    workload: &Workload,
    timing: Timing,
) -> Result<(), SpecError> {
    let (Some(rate), Some(value)) = (workload.arrival.rate(), section.get("rate")) else {
        return Ok(());
    };
    let seconds = timing.measure_ns as f64 / 1e9;
    if rate * seconds >= 1.0 {
        return Ok(());
    }
    Err(SpecError::at(
        &value.place,
        format!("at {rate} per second no request falls into a window of {seconds} s"),
        "raise `rate` or `duration`",
    ))
}
