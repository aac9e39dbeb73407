//! How our engine is run: as anyone would, by `load` and `serve`.

use crate::bench::{Bench, Listener};
use crate::error::ValidationError;
use crate::exit::Exit;
use crate::peers::{HttpClient, nginx, server_under};
use crate::process::Transport;
use crate::quantity::{Measurand, Readings};
use crate::size::{CONNECTIONS, DATAGRAM, MANY, OPEN_CONNECTIONS, OPEN_RATE, SCALE_RATE, SMALL};

/// Share of the last rate that is tried next where messages were lost.
const STEP_DOWN: f64 = 0.85;
/// How many rates are tried before the search is given up.
const STEPS: usize = 12;
/// What our server of HTTP is asked for.
const HTTP: [&str; 4] = ["--workload", "http", "--response-size", "100"];

type Result<T> = std::result::Result<T, ValidationError>;

/// Runs `plumbline load`.
fn load(bench: &Bench<'_>, target: &str, more: &[&str]) -> Result<Exit> {
    load_by(bench, target, more, |bench, args| bench.run_ours(args))
}

/// Runs `plumbline load` in one of the ways that a bench runs a client.
fn load_by(
    bench: &Bench<'_>,
    target: &str,
    more: &[&str],
    run: fn(&Bench<'_>, &[&str]) -> Result<Exit>,
) -> Result<Exit> {
    let seconds = format!("{}s", bench.seconds);
    let mut args = vec!["load", target, "--json", "-d", &seconds];
    args.extend(more);
    let exit = run(bench, &args)?;
    let errors = exit.json()?.number("/errors")?;
    if errors > 0.0 {
        return Err(ValidationError::Errors {
            command: args.join(" "),
            errors: errors as u64,
        });
    }
    Ok(exit)
}

/// Starts `plumbline serve`.
fn serve(bench: &Bench<'_>, transport: Transport, more: &[&str]) -> Result<Listener> {
    let address = bench.next_address();
    let listen = address.to_string();
    let mut args = vec!["serve", &listen, "--json"];
    args.extend(more);
    bench.serve_ours(&args, address, transport)
}

/// A closed loop over HTTP. There is no warm-up, so that the kernel's account
/// of the process covers exactly the requests counted, as it does for others.
fn run_load_by(bench: &Bench<'_>, server: &Listener, driver: &str) -> Result<Readings> {
    let url = format!("http://{}/", server.address);
    let connections = CONNECTIONS.to_string();
    let more = ["-c", &connections, "--warm-up", "0", "--driver", driver];
    let exit = load(bench, &url, &more)?;
    let json = exit.json()?;
    let requests = json.number("/requests")?;
    Ok(Readings::from([
        (Measurand::Rate, json.number("/achieved_rate")?),
        (Measurand::CpuPerRequest, exit.cpu_ns() / requests),
        (
            Measurand::UserPerRequest,
            exit.cpu.user_ns as f64 / requests,
        ),
        (Measurand::P50, json.number("/latency_ns/p50")?),
    ]))
}

/// Our own client, which asks the least of its CPU.
pub(crate) fn run_load(bench: &Bench<'_>, server: &Listener) -> Result<Readings> {
    run_load_by(bench, server, "auto")
}

/// A closed loop against nginx.
pub(crate) fn http(bench: &Bench<'_>, driver: &str) -> Result<Readings> {
    let server = nginx(bench)?;
    let readings = run_load_by(bench, &server, driver)?;
    server.end()?;
    Ok(readings)
}

/// The bare loop over many connections (`plumbline floor --http`).
pub(crate) fn bare(bench: &Bench<'_>, driver: &str) -> Result<Readings> {
    let server = nginx(bench)?;
    let (address, seconds) = (server.address.to_string(), bench.seconds.to_string());
    let connections = CONNECTIONS.to_string();
    let mut args = vec!["floor", &address, "--http", &connections];
    args.extend(["--driver", driver, "--seconds", &seconds]);
    let exit = bench.run_ours(&args)?;
    server.end()?;
    let json = exit.json()?;
    let requests = json.number("/requests")?;
    Ok(Readings::from([
        (Measurand::Rate, json.number("/rate")?),
        (Measurand::CpuPerRequest, exit.cpu_ns() / requests),
        (
            Measurand::UserPerRequest,
            exit.cpu.user_ns as f64 / requests,
        ),
    ]))
}

/// Requests to nginx at a rate, at equal gaps.
pub(crate) fn open(bench: &Bench<'_>, more: &[&str]) -> Result<Readings> {
    let server = nginx(bench)?;
    let url = format!("http://{}/", server.address);
    let (rate, connections) = (OPEN_RATE.to_string(), OPEN_CONNECTIONS.to_string());
    let mut args = vec!["--rate", &rate, "--arrival", "constant", "-c", &connections];
    args.extend(more);
    let exit = load(bench, &url, &args)?;
    server.end()?;
    let json = exit.json()?;
    let mut readings = Readings::new();
    for (quantity, key) in [
        (Measurand::P50, "/latency_ns/p50"),
        (Measurand::P99, "/latency_ns/p99"),
        (Measurand::P999, "/latency_ns/p99.9"),
        (Measurand::LagP99, "/send_lag_ns/p99"),
    ] {
        let value = json.number_or_null(key)?;
        readings.extend(value.map(|value| (quantity, value)));
    }
    Ok(readings)
}

/// Our responder, as nginx is asked.
pub(crate) fn responder_under(bench: &Bench<'_>, client: HttpClient) -> Result<Readings> {
    server_under(bench, serve(bench, Transport::Tcp, &HTTP)?, client)
}

/// Requests at a rate against our own responder, stamped or not.
pub(crate) fn at_rate(bench: &Bench<'_>, more: &[&str]) -> Result<Readings> {
    let server = serve(bench, Transport::Tcp, &[])?;
    let (rate, connections) = (OPEN_RATE.to_string(), OPEN_CONNECTIONS.to_string());
    let mut args = vec!["--rate", &rate, "-c", &connections];
    args.extend(more);
    let exit = load(bench, &server.address.to_string(), &args)?;
    let served = server.end()?;
    let json = exit.json()?;
    let working = json.number("/cpu_seconds")? - json.number("/spin_seconds")?;
    let mut readings = Readings::from([
        (Measurand::P50, json.number("/latency_ns/p50")?),
        (
            Measurand::CpuPerRequest,
            working * 1e9 / json.number("/requests")?,
        ),
        (
            Measurand::ServerCpuPerRequest,
            served.cpu_ns() / served.json()?.number("/requests")?,
        ),
    ]);
    let p99 = json.number_or_null("/latency_ns/p99")?;
    readings.extend(p99.map(|p99| (Measurand::P99, p99)));
    Ok(readings)
}

/// One small request at a time.
pub(crate) fn ping(bench: &Bench<'_>, transport: Transport) -> Result<Readings> {
    let size = SMALL.to_string();
    let mut more = vec!["--request-size", &size, "--response-size", &size];
    more.extend((transport == Transport::Udp).then_some("--udp"));
    let server = serve(bench, transport, &more)?;
    more.extend(["-c", "1"]);
    let exit = load(bench, &server.address.to_string(), &more)?;
    server.end()?;
    median_of(&exit)
}

/// The bare loop (`plumbline floor`): what no generator can go below.
pub(crate) fn floor(bench: &Bench<'_>) -> Result<Readings> {
    let address = bench.next_address();
    let at = address.to_string();
    let size = SMALL.to_string();
    let server = bench.serve_ours(
        &["floor", "--serve", &at, "--size", &size],
        address,
        Transport::Tcp,
    )?;
    let seconds = bench.seconds.to_string();
    let exit = bench.run_ours(&["floor", &at, "--size", &size, "--seconds", &seconds])?;
    server.end()?;
    median_of(&exit)
}

fn median_of(exit: &Exit) -> Result<Readings> {
    let p50 = exit.json()?.number("/latency_ns/p50")?;
    Ok(Readings::from([(Measurand::P50, p50)]))
}

/// One stream of bytes.
pub(crate) fn stream(bench: &Bench<'_>, how: &[&str]) -> Result<Readings> {
    let server = serve(bench, Transport::Tcp, &["--workload", "stream"])?;
    let mut more = vec!["--workload", "stream", "-c", "1", "--warm-up", "0"];
    more.extend(how);
    let client = load(bench, &server.address.to_string(), &more)?;
    let cpu = client.cpu_ns() + server.end()?.cpu_ns();
    let json = client.json()?;
    let bytes = json.number("/bytes_sent")?;
    Ok(Readings::from([
        (
            Measurand::BitRate,
            bytes * 8.0 / json.number("/window_seconds")?,
        ),
        (Measurand::CpuPerKilobyte, cpu * 1e3 / bytes),
    ]))
}

/// The rate of messages that all arrive: first as fast as it goes, then lower
/// until none is missing (N-13: what is lost in a flood says nothing).
pub(crate) fn lossless(bench: &Bench<'_>, how: &[&str]) -> Result<Readings> {
    let mut rate = None;
    for _ in 0..STEPS {
        let (sent, received, seconds) = send_datagrams(bench, how, rate)?;
        if sent == received {
            return Ok(Readings::from([(Measurand::Rate, received / seconds)]));
        }
        rate = Some(received.min(sent) / seconds * STEP_DOWN.max(received / sent));
    }
    Err(ValidationError::Lossy)
}

/// Sent and received messages of the window, and its length in seconds.
fn send_datagrams(bench: &Bench<'_>, how: &[&str], rate: Option<f64>) -> Result<(f64, f64, f64)> {
    let size = DATAGRAM.to_string();
    let more = ["--workload", "datagram", "--request-size", &size];
    let server = serve(bench, Transport::Udp, &more)?;
    let rate = rate.map(|rate| rate.to_string());
    let mut more = Vec::from(more);
    more.extend(["-c", "1"]);
    more.extend(how);
    if let Some(rate) = &rate {
        more.extend(["--rate", rate, "--arrival", "constant"]);
    }
    let exit = load(bench, &server.address.to_string(), &more)?;
    let served = server.end()?;
    let (json, seen) = (exit.json()?, served.json()?);
    if seen.number("/corrupt")? > 0.0 {
        return Err(ValidationError::Corrupt);
    }
    Ok((
        json.number("/requests")?,
        seen.number("/datagrams/received")?,
        json.number("/window_seconds")?,
    ))
}

/// Few connections at the rate at which many are compared with them.
pub(crate) fn few_connections(bench: &Bench<'_>) -> Result<Readings> {
    let (cpu, _) = connections(bench, CONNECTIONS, Some(SCALE_RATE))?;
    Ok(Readings::from([(Measurand::CpuPerRequest, cpu)]))
}

/// Memory is the difference to a run with few connections, by connection.
pub(crate) fn many_connections(bench: &Bench<'_>) -> Result<Readings> {
    let (_, few) = connections(bench, CONNECTIONS, Some(SCALE_RATE))?;
    let (cpu, many) = connections(bench, MANY, Some(SCALE_RATE))?;
    let more = f64::from(MANY - CONNECTIONS);
    Ok(Readings::from([
        (Measurand::CpuPerRequest, cpu),
        (Measurand::Memory, (many - few) / more),
    ]))
}

/// As fast as it goes over so many connections. With many a round trip takes
/// longer than the kernel waits before it sends a bare acknowledgement, so
/// there are more packets per request too.
pub(crate) fn connections_closed(bench: &Bench<'_>, count: u32) -> Result<Readings> {
    let (cpu, _) = connections(bench, count, None)?;
    Ok(Readings::from([(Measurand::CpuPerRequest, cpu)]))
}

/// CPU per request within the window, without the opening of connections and
/// without what was spent on looking at the clock; and resident memory in bytes.
fn connections(bench: &Bench<'_>, count: u32, rate: Option<u32>) -> Result<(f64, f64)> {
    let server = serve(bench, Transport::Tcp, &HTTP)?;
    let url = format!("http://{}/", server.address);
    let (number, per_second) = (count.to_string(), rate.map(|rate| rate.to_string()));
    let mut more = vec!["-c", &number];
    if let Some(rate) = &per_second {
        more.extend(["--rate", rate, "--arrival", "constant"]);
    }
    let exit = load_by(bench, &url, &more, |bench, args| bench.watch_ours(args))?;
    server.end()?;
    let json = exit.json()?;
    if let Some(asked) = rate.map(f64::from) {
        let carried = json.number("/achieved_rate")?;
        // D3: else the loads were not equal.
        if (carried / asked - 1.0).abs() > 0.01 {
            return Err(ValidationError::Unequal {
                connections: count,
                asked,
                carried,
            });
        }
    }
    let cpu = json.number("/cpu_seconds")? - json.number("/spin_seconds")?;
    Ok((cpu * 1e9 / json.number("/requests")?, exit.resident as f64))
}
