//! One `[[workload]]` section, read into a [`Task`] with its [`Timing`].

use std::time::Duration;

use crate::ceiling::MAX_THINK;
use crate::key::Key;
use crate::keys::{self, DURING, LIMIT};
use crate::request::{ArrivalProcess, Share, WorkloadRequest};
use crate::section::{self, FileSection};
use crate::timestamps;
use crate::{
    DriverChoice, HttpServer, Launch, Limit, LimitError, ObjectChange, ProgrammedObject,
    Programming, Protocol, Refusal, SpecError, Spelling, Survive, Task, TaskKind, Timing, Wait,
    launch, survive,
};

/// A task and the phases of its trials.
#[derive(Clone, Debug)]
pub(crate) struct TimedTask {
    pub(crate) task: Task,
    /// Name of the task without the share of a maximum that it may have.
    pub(crate) base_name: String,
    pub(crate) timing: Timing,
    /// Set where the rate is a share of a maximum. The workload's own rate means
    /// nothing then.
    pub(crate) share: Option<Share>,
}

const PROTOCOLS: &[(&str, Protocol)] = &[("tcp", Protocol::Tcp), ("udp", Protocol::Udp)];
const PROCESSES: &[(&str, ArrivalProcess)] = &[
    ("poisson", ArrivalProcess::Poisson),
    ("constant", ArrivalProcess::Constant),
    ("closed", ArrivalProcess::Closed),
];
const SERVERS: &[(&str, HttpServer)] = &[
    ("plumbline", HttpServer::Plumbline),
    ("nginx", HttpServer::Nginx),
];
const WAITS: &[(&str, Wait)] = &[("block", Wait::Block), ("spin", Wait::Spin)];
const DRIVERS: &[(&str, DriverChoice)] = &[
    ("auto", DriverChoice::Auto),
    ("epoll", DriverChoice::Epoll),
    ("uring", DriverChoice::Uring),
];

pub(crate) fn kind(section: &FileSection<'_>) -> Result<TaskKind, SpecError> {
    let kinds: Vec<_> = TaskKind::all().map(|kind| (kind.name(), kind)).collect();
    section.choice("kind", &kinds)?.ok_or_else(|| {
        let quoted = TaskKind::all().map(|kind| format!("\"{}\"", kind.name()));
        let mut names: Vec<String> = quoted.collect();
        let last = names.pop().unwrap_or_default();
        let remedy = format!("add kind = {} or {last}", names.join(", "));
        match section.table.values().next() {
            Some(entry) => SpecError::at(&entry.key, "this workload has no `kind`", remedy),
            None => SpecError::nowhere("a [[workload]] is empty", remedy),
        }
    })
}

/// Reads one section. `design` has the phases that the section leaves out.
pub(crate) fn read(section: &FileSection<'_>, design: Timing) -> Result<TimedTask, SpecError> {
    section.refuse_unknown(&keys::workload())?;
    let kind = kind(section)?;
    let refused = |refusal| shown(section, &refusal);
    let ignored = section.table.keys().filter_map(|name| Key::find(name));
    for key in ignored {
        kind.refuse_ignored(key).map_err(refused)?;
    }
    let timing = timing(section, design)?;
    let mut task = kind.task();
    let mut share = None;
    if let (Some(kind), Some(load)) = (kind.load(), task.load_mut()) {
        let asked = asked(section)?;
        *load = asked.workload(kind).map_err(refused)?;
        share = asked.share(kind).map_err(refused)?;
        if share.is_none() && section.get("rate").is_some() {
            let window = Duration::from_nanos(timing.measure_ns);
            load.refuse_empty_window(window).map_err(refused)?;
        }
    } else {
        task = match kind {
            TaskKind::Launch => Task::Launch(launched(section)?),
            TaskKind::Survive => Task::Survive(survived(section)?),
            _ => Task::Programming(programming(section)?),
        };
        task.check().map_err(refused)?;
    }
    Ok(TimedTask {
        base_name: task.name().to_owned(),
        timing: task.launch().map_or(timing, Launch::timing),
        task,
        share,
    })
}

/// What a section says, each value of its type.
fn asked(section: &FileSection<'_>) -> Result<WorkloadRequest, SpecError> {
    Ok(WorkloadRequest {
        name: name(section)?,
        protocol: section.choice("protocol", PROTOCOLS)?,
        request_size: section.integer("request_size")?,
        response_size: section.integer("response_size")?,
        connections: section.integer("connections")?,
        process: section.choice("arrival", PROCESSES)?,
        rate: section
            .get("rate")
            .map(|value| section::number("rate", value))
            .transpose()?,
        load: share_of_maximum(section)?,
        limit: limit(section)?,
        keep_alive: section.boolean("keep_alive")?,
        server: section.choice("server", SERVERS)?,
        wait: section.choice("wait", WAITS)?,
        driver: section.choice("driver", DRIVERS)?,
        zero_copy: section.boolean("zero_copy")?,
        timestamps: timestamps::share(section)?,
        think: section.duration("think", Duration::ZERO..=MAX_THINK)?,
    })
}

/// What is to be changed, and how fast that is probed.
fn programming(section: &FileSection<'_>) -> Result<Programming, SpecError> {
    let objects: Vec<_> = ProgrammedObject::ALL
        .iter()
        .map(|it| (it.as_str(), *it))
        .collect();
    let changes: Vec<_> = ObjectChange::ALL
        .iter()
        .map(|it| (it.as_str(), *it))
        .collect();
    let mut change = Programming::new(
        section.choice("object", &objects)?.unwrap_or_default(),
        section.choice("change", &changes)?.unwrap_or_default(),
    );
    if let Some(name) = name(section)? {
        change.name = name;
    }
    if let Some(rate) = section.get("rate") {
        change.rate = section::number("rate", rate)?;
    }
    Ok(change)
}

/// How many pods are launched, and how fast.
fn launched(section: &FileSection<'_>) -> Result<Launch, SpecError> {
    let mut launch = Launch::default();
    if let Some(name) = name(section)? {
        launch.name = name;
    }
    if let Some(pods) = section.whole("pods", launch::PODS)? {
        launch.pods = pods;
    }
    if let Some(rate) = section.get("rate") {
        launch.rate = Some(section::number("rate", rate)?);
    }
    Ok(launch)
}

/// What is run, and the traffic meanwhile.
fn survived(section: &FileSection<'_>) -> Result<Survive, SpecError> {
    let mut survive = Survive::default();
    let Some((during, _)) = section.text(DURING)? else {
        let remedy =
            "write the command that is run meanwhile, such as during = \"ip link set eth0 down\"";
        return Err(SpecError::nowhere(
            "there is nothing to survive: no `during`",
            remedy,
        ));
    };
    survive.during = during.to_owned();
    if let Some(name) = name(section)? {
        survive.name = name;
    }
    if let Some(limit) = section.duration(LIMIT, survive::LIMITS)? {
        // An hour at most.
        survive.limit_ns = limit.as_nanos() as u64;
    }
    if let Some(rate) = section.get("rate") {
        survive.rate = section::number("rate", rate)?;
    }
    if let Some(connections) = section.whole("connections", survive::CONNECTIONS)? {
        survive.connections = connections;
    }
    survive.policy = section.boolean("policy")?.unwrap_or_default();
    survive.pods = section.whole("pods", launch::PODS)?;
    Ok(survive)
}

/// A refusal at the line that it is about: the value where that is out of
/// bounds, otherwise the key.
fn shown(section: &FileSection<'_>, refusal: &Refusal) -> SpecError {
    let problem = refusal.problem(Spelling::File);
    let remedy = refusal.remedy(Spelling::File);
    match section.table.get(refusal.key().name()) {
        None => SpecError::nowhere(problem, remedy),
        Some(entry) => {
            let place = match refusal.is_of_value {
                true => &entry.value.place,
                false => &entry.key,
            };
            SpecError::at(place, problem, remedy)
        }
    }
}

/// The phases that a section names, over those of `otherwise`.
pub(crate) fn timing(section: &FileSection<'_>, otherwise: Timing) -> Result<Timing, SpecError> {
    let phase = |key: Key, default| -> Result<u64, SpecError> {
        let Some(bounds) = key.phase_bounds() else {
            return Ok(default);
        };
        let given = section.duration(key.name(), bounds)?;
        // The ceilings are far below what 64 bits of nanoseconds hold.
        Ok(given.map_or(default, |duration| duration.as_nanos() as u64))
    };
    Ok(Timing {
        warm_up_ns: phase(Key::WarmUp, otherwise.warm_up_ns)?,
        measure_ns: phase(Key::Duration, otherwise.measure_ns)?,
        drain_ns: phase(Key::Drain, otherwise.drain_ns)?,
    })
}

fn name(section: &FileSection<'_>) -> Result<Option<String>, SpecError> {
    let Some((name, place)) = section.text("name")? else {
        return Ok(None);
    };
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_+ ".contains(c);
    if name.trim() != name || !(1..=40).contains(&name.len()) || !name.chars().all(fine) {
        return Err(SpecError::at(
            place,
            format!("\"{name}\" cannot name a workload"),
            "use 1 to 40 letters, digits, spaces, `-`, `_` or `+`",
        ));
    }
    Ok(Some(name.to_owned()))
}

/// `load = "50%"` as 0.5.
fn share_of_maximum(section: &FileSection<'_>) -> Result<Option<f64>, SpecError> {
    let Some(value) = section.get("load") else {
        return Ok(None);
    };
    match section::percent(value) {
        Some(share) if share > 0.0 && share <= 1.0 => Ok(Some(share)),
        _ => Err(SpecError::at(
            &value.place,
            "`load` is not a share of the maximum",
            "write a percentage above 0, up to 100, such as \"50%\"; requests per second are a `rate`",
        )),
    }
}

fn limit(section: &FileSection<'_>) -> Result<Option<Limit>, SpecError> {
    let Some((text, place)) = section.text(LIMIT)? else {
        return Ok(None);
    };
    let limit = text.parse().map_err(|error: LimitError| {
        SpecError::at(place, error.to_string(), "such as limit = \"p99<1ms\"")
    })?;
    Ok(Some(limit))
}
