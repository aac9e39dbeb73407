//! `plumbline load`: the engine alone, against any HTTP server or `plumbline serve`.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use plumbline_engine::LoadPlan;
use plumbline_experiment::{Arrival, Protocol, Wait, Workload, WorkloadKind};
use plumbline_record::LoadResult;
use plumbline_report::latency::{latency_json, latency_table};
use plumbline_report::number;
use serde_json::json;

use super::{BadUsage, print, print_json};
use crate::cli::{self, Kind, LoadArgs, Process};

/// Where to send, as typed.
#[derive(Debug, PartialEq, Eq)]
struct Destination {
    authority: String,
    path: String,
    http: bool,
}

pub(crate) fn run(args: &LoadArgs) -> anyhow::Result<ExitCode> {
    let destination = destination(&args.target)?;
    let target = resolve(&destination)?;
    if !cli::is_harmless(target.ip()) && !args.i_own_this {
        return Err(BadUsage(format!(
            "{target} is a public address; load may only go to machines of your own: say --i-own-this if it is"
        ))
        .into());
    }
    let workload = workload(args, &destination);
    let plan = LoadPlan {
        authority: Some(destination.authority.clone()),
        path: destination.path.clone(),
        warm_up: duration(&args.warm_up, "--warm-up")?,
        measure: duration(&args.duration, "--duration")?,
        seed: args.seed,
        threads: args.threads,
        cpus: args.cpus.clone(),
        // Only our own responder makes bodies that can be checked byte for byte.
        verify: !destination.http,
        ..LoadPlan::new(workload, target)
    };
    let interrupted = plumbline_sys::signal::interruption()?;
    if !args.json {
        anstream::eprintln!("{}", headline(&plan));
    }
    let result = plumbline_engine::run(&plan, interrupted, &mut ())?;
    if args.json {
        print_json(&to_json(&result))?;
    } else {
        print(&to_text(&result))?;
    }
    Ok(if result.completed == 0 {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    })
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

fn workload(args: &LoadArgs, destination: &Destination) -> Workload {
    let kind = match (args.workload, destination.http) {
        (Some(kind), _) => cli_kind(kind),
        (None, true) => WorkloadKind::Http,
        (None, false) => WorkloadKind::Rr,
    };
    let mut workload = Workload::of_kind(kind);
    workload.connections = args.connections;
    workload.protocol = if args.udp {
        Protocol::Udp
    } else {
        workload.protocol
    };
    workload.keep_alive = kind == WorkloadKind::Http && !args.no_keep_alive;
    workload.wait = if args.spin { Wait::Spin } else { Wait::Block };
    workload.request_size = args.request_size.unwrap_or(workload.request_size);
    workload.response_size = args.response_size.unwrap_or(workload.response_size);
    workload.arrival = match (args.rate, args.arrival) {
        (None, _) => Arrival::Closed,
        (Some(rate), Process::Constant) => Arrival::Constant { rate },
        (Some(rate), Process::Poisson) => Arrival::Poisson { rate },
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
fn duration(text: &str, flag: &str) -> Result<Duration, BadUsage> {
    let wrong = || BadUsage(format!("{flag} {text}: write a time such as 10s or 500ms"));
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| wrong());
    }
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    span.try_into().map_err(|_| wrong())
}

fn headline(plan: &LoadPlan) -> String {
    let workload = &plan.workload;
    let load = match workload.arrival {
        Arrival::Closed => "closed loop".to_owned(),
        Arrival::Constant { rate } => format!("{rate} requests/s at equal gaps"),
        Arrival::Poisson { rate } => format!("{rate} requests/s, Poisson arrivals"),
    };
    format!(
        "{} to {}: {} connections, {load}, {:.1} s",
        workload.name,
        plan.target,
        workload.connections,
        plan.measure.as_secs_f64()
    )
}

fn achieved_rate(result: &LoadResult) -> f64 {
    result.completed as f64 / (result.window_ns as f64 / 1e9)
}

fn to_json(result: &LoadResult) -> serde_json::Value {
    json!({
        "driver": result.driver,
        "offered_rate": result.arrival.rate(),
        "achieved_rate": achieved_rate(result),
        "window_seconds": result.window_ns as f64 / 1e9,
        "requests": result.completed,
        "censored": result.censored,
        "errors": result.errors.total(),
        "errors_by_kind": result.errors,
        "bytes_sent": result.bytes_sent,
        "bytes_received": result.bytes_received,
        "latency_ns": latency_json(&result.latency),
        "service_time_ns": latency_json(&result.service_time),
        "send_lag_ns": latency_json(&result.send_lag),
        "connect_ns": latency_json(&result.connect),
        "cpu_seconds": (result.cpu.user_ns + result.cpu.system_ns) as f64 / 1e9,
        "spin_seconds": result.spin_ns as f64 / 1e9,
        "seed": result.seed,
    })
}

fn to_text(result: &LoadResult) -> String {
    let seconds = result.window_ns as f64 / 1e9;
    let mut text = String::new();
    if !result.latency.is_empty() {
        let mut columns = vec![("latency", &result.latency)];
        if result.arrival.rate().is_some() {
            columns.push(("service time", &result.service_time));
            columns.push(("send lag", &result.send_lag));
        }
        text += &latency_table(&columns);
        if result.arrival == Arrival::Closed {
            text += "closed loop: a stall holds back the load too; --rate N shows what users would see\n";
        }
    }
    text += &format!(
        "requests     {:.0}/s ({} in {seconds:.2} s)\n",
        achieved_rate(result),
        result.completed
    );
    text += &format!(
        "throughput   {} sent, {} received\n",
        number::plain(&number::bit_rate(result.bytes_sent as f64 * 8.0 / seconds)),
        number::plain(&number::bit_rate(
            result.bytes_received as f64 * 8.0 / seconds
        ))
    );
    let cpu = (result.cpu.user_ns + result.cpu.system_ns) as f64;
    if result.completed > 0 {
        text += &format!(
            "client CPU   {:.2} µs per request\n",
            cpu / result.completed as f64 / 1e3
        );
    }
    let errors = &result.errors;
    if errors.total() + result.censored > 0 {
        text += &format!(
            "ERRORS       {}: {} connect, {} closed early, {} wrong content, {} wrong protocol, {} send; {} never answered\n",
            errors.total(),
            errors.connect,
            errors.closed,
            errors.corrupt,
            errors.protocol,
            errors.send,
            result.censored
        );
    }
    text
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
