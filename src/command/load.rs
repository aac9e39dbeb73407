//! `plumbline load`: the engine alone, against any HTTP server or `plumbline serve`.

mod check;
mod live;
mod rehearsal;
mod shown;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use plumbline_engine::{EngineError, LoadPlan, Progress};
use plumbline_experiment::{Arrival, Driver, Protocol, Wait, Workload, WorkloadKind};
use plumbline_record::Floor;

use super::{BadUsage, find_max, print, print_json};
use crate::cli::{self, Kind, LoadArgs, Process};
use crate::progress;
pub(super) use check::serve as check_serve;
use shown::Outcome;
pub(super) use shown::{floor_json, floor_text};

/// Where to send, as typed.
#[derive(Debug, PartialEq, Eq)]
struct Destination {
    authority: String,
    path: String,
    http: bool,
}

pub(crate) fn run(args: &LoadArgs) -> anyhow::Result<ExitCode> {
    let destination = destination(&args.target)?;
    check::load(args, &destination)?;
    let target = resolve(&destination)?;
    if !cli::is_harmless(target.ip()) && !args.i_own_this {
        return Err(BadUsage(format!(
            "{target} is a public address; load may only go to machines of your own: say --i-own-this if it is"
        ))
        .into());
    }
    let progress = Arc::new(Progress::default());
    let plan = LoadPlan {
        progress: Some(Arc::clone(&progress)),
        ..plan(args, &destination, target)?
    };
    let interrupted = plumbline_sys::signal::interruption()?;
    if let Some(limit) = args.find_max.limit {
        let search = find_max::plan(&args.find_max, limit, plan.workload.kind)?;
        rehearsal::hold(&plan, interrupted)?;
        return find_max::run(args, limit, &search, &plan, interrupted);
    }
    if !args.json {
        anstream::eprintln!("{}", shown::headline(&plan));
    }
    rehearsal::hold(&plan, interrupted)?;
    let floor = floor(&plan.cpus, interrupted);
    let result = live::shown_while(&plan, &progress, || {
        plumbline_engine::run(&plan, interrupted, &mut ())
    })
    .map_err(usage_or_error)?;
    let outcome =
        Outcome::new(&plan, &result, interrupted.load(Ordering::Relaxed)).with_floor(floor);
    if args.json {
        print_json(&outcome.to_json())?;
    } else {
        print(&outcome.to_text())?;
    }
    Ok(ExitCode::from(outcome.exit_code()))
}

/// What this generator measures where there is no network (L-13). A load does
/// not fail for it.
pub(super) fn floor(cpus: &[usize], interrupted: &AtomicBool) -> Option<Floor> {
    plumbline_engine::floor(cpus, &[], interrupted).unwrap_or_else(|error| {
        progress::say(&format!(
            "the generator's own round trip was not measured: {error}"
        ));
        None
    })
}

/// What the engine refuses because it was asked so is bad usage.
pub(super) fn usage_or_error(error: EngineError) -> anyhow::Error {
    match error {
        EngineError::Plan(_) | EngineError::Pin { .. } => BadUsage(error.to_string()).into(),
        _ => error.into(),
    }
}

fn destination(text: &str) -> Result<Destination, BadUsage> {
    if text.starts_with("https://") {
        return Err(BadUsage(
            "https is not measured: TLS would dominate what the network costs; use http".to_owned(),
        ));
    }
    let Some(rest) = text.strip_prefix("http://") else {
        return Ok(Destination {
            authority: text.to_owned(),
            path: "/".to_owned(),
            http: false,
        });
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    Ok(Destination {
        authority: authority.to_owned(),
        path: path.to_owned(),
        http: true,
    })
}

fn resolve(destination: &Destination) -> anyhow::Result<SocketAddr> {
    let authority = &destination.authority;
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let with_port = match (has_port, destination.http) {
        (true, _) => authority.clone(),
        (false, true) => format!("{authority}:80"),
        (false, false) => {
            return Err(BadUsage(format!(
                "`{authority}` has no port; write HOST:PORT or http://HOST"
            ))
            .into());
        }
    };
    with_port
        .to_socket_addrs()
        .with_context(|| format!("`{authority}` cannot be resolved"))?
        .next()
        .with_context(|| format!("`{authority}` has no address"))
}

fn plan(
    args: &LoadArgs,
    destination: &Destination,
    target: SocketAddr,
) -> Result<LoadPlan, BadUsage> {
    Ok(LoadPlan {
        authority: Some(destination.authority.clone()),
        path: destination.path.clone(),
        warm_up: duration(&args.warm_up, "--warm-up")?,
        measure: duration(&args.duration, "--duration")?,
        seed: args.seed,
        threads: args.threads,
        cpus: args.cpus.clone(),
        // Only our own responder makes bodies that can be checked byte for byte.
        verify: !destination.http,
        ..LoadPlan::new(workload(args, destination), target)
    })
}

/// The kind of load that was asked for, or that the target suggests.
fn kind(args: &LoadArgs, destination: &Destination) -> WorkloadKind {
    match (args.workload, destination.http) {
        (Some(kind), _) => cli_kind(kind),
        (None, true) => WorkloadKind::Http,
        (None, false) => WorkloadKind::Rr,
    }
}

fn workload(args: &LoadArgs, destination: &Destination) -> Workload {
    let kind = kind(args, destination);
    let mut workload = Workload::of_kind(kind);
    workload.connections = args.connections;
    if args.udp {
        workload.protocol = Protocol::Udp;
    }
    workload.keep_alive = kind == WorkloadKind::Http && !args.no_keep_alive;
    workload.wait = if args.spin { Wait::Spin } else { Wait::Block };
    workload.driver = match args.driver {
        cli::Driver::Auto => Driver::Auto,
        cli::Driver::Epoll => Driver::Epoll,
        cli::Driver::Uring => Driver::Uring,
    };
    workload.request_size = args.request_size.unwrap_or(workload.request_size);
    workload.response_size = args.response_size.unwrap_or(workload.response_size);
    workload.arrival = match (args.rate, args.arrival) {
        (None, _) => Arrival::Closed,
        (Some(rate), Some(Process::Constant)) => Arrival::Constant { rate },
        (Some(rate), _) => Arrival::Poisson { rate },
    };
    workload
}

/// The kind as the engine knows it.
pub(super) fn cli_kind(kind: Kind) -> WorkloadKind {
    match kind {
        Kind::Rr => WorkloadKind::Rr,
        Kind::Crr => WorkloadKind::Crr,
        Kind::Stream => WorkloadKind::Stream,
        Kind::Datagram => WorkloadKind::Datagram,
        Kind::Http => WorkloadKind::Http,
    }
}

/// `10s`, `500ms`, or a number of seconds.
pub(super) fn duration(text: &str, flag: &str) -> Result<Duration, BadUsage> {
    let wrong = || BadUsage(format!("{flag} {text}: write a time such as 10s or 500ms"));
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| wrong());
    }
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    span.try_into().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_people_write_them() {
        let url = destination("http://127.0.0.1:8080/a/b?c").unwrap();
        assert_eq!(
            (url.authority.as_str(), url.path.as_str(), url.http),
            ("127.0.0.1:8080", "/a/b?c", true)
        );
        assert_eq!(destination("http://h").unwrap().path, "/");
        assert!(!destination("10.0.0.1:7117").unwrap().http);
        assert!(destination("https://h").is_err());
        assert_eq!(
            resolve(&destination("http://127.0.0.1").unwrap())
                .unwrap()
                .port(),
            80
        );
        assert_eq!(
            resolve(&destination("[::1]:99").unwrap())
                .unwrap()
                .to_string(),
            "[::1]:99"
        );
        assert!(resolve(&destination("127.0.0.1").unwrap()).is_err());
    }

    #[test]
    fn times_are_read_with_and_without_units() {
        assert_eq!(duration("2", "-d").unwrap(), Duration::from_secs(2));
        assert_eq!(duration("500ms", "-d").unwrap(), Duration::from_millis(500));
        assert!(duration("-1s", "-d").is_err());
        assert!(duration("soon", "-d").is_err());
    }
}
