//! How our engine is run: as anyone would, by `load` and `serve`.

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::bouts::{CONNECTIONS, DATAGRAM, MANY, OPEN_CONNECTIONS, OPEN_RATE, Reading, SMALL};
use super::peers::{nginx, rate_under_wrk};
use super::point::Metric;
use super::stage::{Ended, Server, Stage, Transport};

/// Share of the last rate that is tried next where messages were lost.
const STEP_DOWN: f64 = 0.85;
/// How often, before the search is given up.
const STEPS: usize = 12;

/// Runs `plumbline load`; gives its JSON and what the kernel says of it.
fn load(
    stage: &Stage<'_>,
    target: &str,
    more: &[&str],
    watch: bool,
) -> anyhow::Result<(Value, Ended)> {
    let program = stage.plumbline.display().to_string();
    let seconds = format!("{}s", stage.seconds);
    let mut args = vec!["load", target, "--json", "-d", &seconds];
    args.extend(more);
    let ended = if watch {
        stage.run_watched(&program, &args)?
    } else {
        stage.run(&program, &args)?
    };
    let json: Value = serde_json::from_str(&ended.output).context("reading what `load` wrote")?;
    let errors = json["errors"].as_u64().unwrap_or(0);
    if errors > 0 {
        bail!("`load {}` saw {errors} errors", args[1..].join(" "));
    }
    Ok((json, ended))
}

/// Starts `plumbline serve`.
fn serve(stage: &Stage<'_>, transport: Transport, more: &[&str]) -> anyhow::Result<Server> {
    let program = stage.plumbline.display().to_string();
    let address = stage.next_address();
    let listen = address.to_string();
    let mut args = vec!["serve", &listen, "--json"];
    args.extend(more);
    stage.serve(&program, &args, address, transport)
}

fn field(json: &Value, path: &str) -> anyhow::Result<f64> {
    let value = json.pointer(path).and_then(Value::as_f64);
    value.with_context(|| format!("the program gave no {path}"))
}

/// A closed loop over HTTP. There is no warm-up, so that the kernel's account
/// of the process covers exactly the requests counted, as it does for others.
fn http_by(stage: &Stage<'_>, driver: &str) -> anyhow::Result<Reading> {
    let server = nginx(stage)?;
    let url = format!("http://{}/", server.address);
    let connections = CONNECTIONS.to_string();
    let more = ["-c", &connections, "--warm-up", "0", "--driver", driver];
    let (json, ended) = load(stage, &url, &more, false)?;
    server.end()?;
    let requests = field(&json, "/requests")?;
    Ok(Reading::from([
        (Metric::Rate, field(&json, "/achieved_rate")?),
        (Metric::CpuPerRequest, ended.cpu_ns() / requests),
        (Metric::UserPerRequest, ended.cpu.user_ns as f64 / requests),
        (Metric::P50, field(&json, "/latency_ns/p50")?),
    ]))
}

pub(super) fn http(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    http_by(stage, "auto")
}

pub(super) fn http_by_uring(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    http_by(stage, "uring")
}

/// The bare loop over many connections (`plumbline floor --http`).
fn bare(stage: &Stage<'_>, driver: &str) -> anyhow::Result<Reading> {
    let server = nginx(stage)?;
    let program = stage.plumbline.display().to_string();
    let (address, seconds) = (server.address.to_string(), stage.seconds.to_string());
    let connections = CONNECTIONS.to_string();
    let mut args = vec!["floor", &address, "--http", &connections];
    args.extend(["--driver", driver, "--seconds", &seconds]);
    let ended = stage.run(&program, &args)?;
    server.end()?;
    let json: Value = serde_json::from_str(&ended.output).context("reading what `floor` wrote")?;
    Ok(Reading::from([
        (Metric::Rate, field(&json, "/rate")?),
        (
            Metric::CpuPerRequest,
            ended.cpu_ns() / field(&json, "/requests")?,
        ),
        (
            Metric::UserPerRequest,
            ended.cpu.user_ns as f64 / field(&json, "/requests")?,
        ),
    ]))
}

pub(super) fn bare_epoll(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    bare(stage, "epoll")
}

pub(super) fn bare_uring(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    bare(stage, "uring")
}

fn open_loop(stage: &Stage<'_>, more: &[&str]) -> anyhow::Result<Reading> {
    let server = nginx(stage)?;
    let url = format!("http://{}/", server.address);
    let (rate, connections) = (OPEN_RATE.to_string(), OPEN_CONNECTIONS.to_string());
    let mut args = vec!["--rate", &rate, "--arrival", "constant", "-c", &connections];
    args.extend(more);
    let (json, _) = load(stage, &url, &args, false)?;
    server.end()?;
    let mut reading = Reading::new();
    for (metric, path) in [
        (Metric::P50, "/latency_ns/p50"),
        (Metric::P99, "/latency_ns/p99"),
        (Metric::P999, "/latency_ns/p99.9"),
        (Metric::LagP99, "/send_lag_ns/p99"),
    ] {
        // A percentile that too few samples carry is null (D4), and no figure.
        if let Ok(value) = field(&json, path) {
            reading.insert(metric, value);
        }
    }
    Ok(reading)
}

pub(super) fn open(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    open_loop(stage, &[])
}

pub(super) fn open_spinning(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    open_loop(stage, &["--spin"])
}

pub(super) fn responder_under_wrk(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let server = serve(
        stage,
        Transport::Tcp,
        &["--workload", "http", "--response-size", "100"],
    )?;
    rate_under_wrk(stage, server)
}

fn ping(stage: &Stage<'_>, transport: Transport) -> anyhow::Result<Reading> {
    let size = SMALL.to_string();
    let mut more = vec!["--request-size", &size, "--response-size", &size];
    more.extend((transport == Transport::Udp).then_some("--udp"));
    let server = serve(stage, transport, &more)?;
    more.extend(["-c", "1"]);
    let (json, _) = load(stage, &server.address.to_string(), &more, false)?;
    server.end()?;
    Ok(Reading::from([(
        Metric::P50,
        field(&json, "/latency_ns/p50")?,
    )]))
}

pub(super) fn ping_tcp(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    ping(stage, Transport::Tcp)
}

pub(super) fn ping_udp(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    ping(stage, Transport::Udp)
}

/// The bare loop (`plumbline floor`): what no generator can go below.
pub(super) fn floor(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let program = stage.plumbline.display().to_string();
    let address = stage.next_address();
    let at = address.to_string();
    let size = SMALL.to_string();
    let server = stage.serve(
        &program,
        &["floor", "--serve", &at, "--size", &size],
        address,
        Transport::Tcp,
    )?;
    let seconds = stage.seconds.to_string();
    let ended = stage.run(
        &program,
        &["floor", &at, "--size", &size, "--seconds", &seconds],
    )?;
    server.end()?;
    let json: Value = serde_json::from_str(&ended.output).context("reading what `floor` wrote")?;
    Ok(Reading::from([(
        Metric::P50,
        field(&json, "/latency_ns/p50")?,
    )]))
}

pub(super) fn stream(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let more = ["--workload", "stream"];
    let server = serve(stage, Transport::Tcp, &more)?;
    let more = ["--workload", "stream", "-c", "1", "--warm-up", "0"];
    let (json, client) = load(stage, &server.address.to_string(), &more, false)?;
    let cpu = client.cpu_ns() + server.end()?.cpu_ns();
    let bytes = field(&json, "/bytes_sent")?;
    Ok(Reading::from([
        (
            Metric::BitRate,
            bytes * 8.0 / field(&json, "/window_seconds")?,
        ),
        (Metric::CpuPerKilobyte, cpu * 1e3 / bytes),
    ]))
}

/// The rate of messages that all arrive: first as fast as it goes, then lower
/// until none is missing (N-13: what is lost in a flood says nothing).
pub(super) fn datagram(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let mut rate = None;
    for _ in 0..STEPS {
        let (sent, received, seconds) = send_datagrams(stage, rate)?;
        if sent == received {
            return Ok(Reading::from([(Metric::Rate, received / seconds)]));
        }
        rate = Some(received.min(sent) / seconds * STEP_DOWN.max(received / sent));
    }
    bail!("messages were lost at every rate that was tried")
}

/// Sent and received messages of the window, and its length in seconds.
fn send_datagrams(stage: &Stage<'_>, rate: Option<f64>) -> anyhow::Result<(f64, f64, f64)> {
    let size = DATAGRAM.to_string();
    let more = ["--workload", "datagram", "--request-size", &size];
    let server = serve(stage, Transport::Udp, &more)?;
    let rate = rate.map(|rate| rate.to_string());
    let mut more = Vec::from(more);
    more.extend(["-c", "1"]);
    if let Some(rate) = &rate {
        more.extend(["--rate", rate, "--arrival", "constant"]);
    }
    let (json, _) = load(stage, &server.address.to_string(), &more, false)?;
    let seen: Value =
        serde_json::from_str(&server.end()?.output).context("reading what `serve` wrote")?;
    if field(&seen, "/corrupt")? > 0.0 {
        bail!("the receiver saw messages that were not as they were sent");
    }
    Ok((
        field(&json, "/requests")?,
        field(&seen, "/datagrams/received")?,
        field(&json, "/window_seconds")?,
    ))
}

pub(super) fn few_connections(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let (cpu, _) = connections(stage, CONNECTIONS)?;
    Ok(Reading::from([(Metric::CpuPerRequest, cpu)]))
}

/// Memory is the difference to a run with few connections, by connection.
pub(super) fn many_connections(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let (_, few) = connections(stage, CONNECTIONS)?;
    let (cpu, many) = connections(stage, MANY)?;
    let more = f64::from(MANY - CONNECTIONS);
    Ok(Reading::from([
        (Metric::CpuPerRequest, cpu),
        (Metric::Memory, (many - few) / more),
    ]))
}

/// CPU per request within the window, without the opening of connections, and
/// resident memory in bytes.
fn connections(stage: &Stage<'_>, count: u32) -> anyhow::Result<(f64, f64)> {
    let server = serve(
        stage,
        Transport::Tcp,
        &["--workload", "http", "--response-size", "100"],
    )?;
    let url = format!("http://{}/", server.address);
    let (json, ended) = load(stage, &url, &["-c", &count.to_string()], true)?;
    server.end()?;
    let cpu = field(&json, "/cpu_seconds")? * 1e9 / field(&json, "/requests")?;
    Ok((cpu, ended.resident as f64))
}
