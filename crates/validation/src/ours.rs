//! How our engine is run: as anyone would, by `load` and `serve`.

use plumbline_experiment::Protocol;

use crate::bench::{Bench, Listener};
use crate::error::ValidationError;
use crate::exit::Exit;
use crate::peers::client;
use crate::quantity::{Measurand, Readings};
use crate::size::{CONNECTIONS, DATAGRAM, MANY, OPEN_CONNECTIONS, OPEN_RATE, SCALE_RATE, SMALL};

/// Share of the last rate that is tried next where messages were lost.
const STEP_DOWN: f64 = 0.85;
/// How many rates are tried before the search is given up.
const STEPS: usize = 12;

type Result<T> = std::result::Result<T, ValidationError>;

fn load(bench: &Bench<'_>, target: &str, more: &str) -> Result<Exit> {
    load_by(|command| bench.run(command), bench, target, more)
}

/// Runs `plumbline load` in one of the ways that a bench runs a client.
fn load_by(
    run: impl FnOnce(&str) -> Result<Exit>,
    bench: &Bench<'_>,
    target: &str,
    more: &str,
) -> Result<Exit> {
    let command = format!(
        "plumbline load {target} --json -d {}s {more}",
        bench.seconds
    );
    let exit = run(&command)?;
    match exit.json()?.number("/errors")? as u64 {
        0 => Ok(exit),
        errors => Err(ValidationError::Errors { command, errors }),
    }
}

/// Runs `plumbline load` against a server of ours; gives what both left behind.
fn load_ours(bench: &Bench<'_>, server: Listener, more: &str) -> Result<(Exit, Exit)> {
    let client = load(bench, &server.address.to_string(), more)?;
    Ok((client, server.end()?))
}

fn serve(bench: &Bench<'_>, protocol: Protocol, more: &str) -> Result<Listener> {
    let address = bench.next_address();
    let command = format!("plumbline serve {address} --json {more}");
    bench.serve(command, address, protocol)
}

/// Our responder, as a server of the same body as nginx.
pub(crate) fn responder(bench: &Bench<'_>) -> Result<Listener> {
    serve(bench, Protocol::Tcp, "--workload http --response-size 100")
}

/// A closed loop over HTTP. There is no warm-up, so that the kernel's account
/// of the process covers exactly the requests counted, as it does for others.
fn closed(bench: &Bench<'_>, server: &Listener, driver: &str) -> Result<Readings> {
    let more = format!("-c {CONNECTIONS} --warm-up 0 --driver {driver}");
    let exit = load(bench, &server.url(), &more)?;
    let mut readings = exit.json()?.readings(&[
        (Measurand::Rate, "/achieved_rate"),
        (Measurand::P50, "/latency_ns/p50"),
    ])?;
    readings.extend(per_request(&exit)?);
    Ok(readings)
}

/// CPU of a client for each of the requests that it counted.
fn per_request(exit: &Exit) -> Result<Readings> {
    let requests = exit.json()?.number("/requests")?;
    Ok(Readings::from([
        (Measurand::CpuPerRequest, exit.cpu_ns() / requests),
        (
            Measurand::UserPerRequest,
            exit.cpu.user_ns as f64 / requests,
        ),
    ]))
}

/// Our own client, which asks the least of its CPU.
pub(crate) fn run_load(bench: &Bench<'_>, server: &Listener) -> Result<Readings> {
    closed(bench, server, "auto")
}

/// A closed loop against nginx.
pub(crate) fn http(bench: &Bench<'_>, driver: &str) -> Result<Readings> {
    client(bench, |bench, nginx| closed(bench, nginx, driver))
}

/// The bare loop over many connections (`plumbline floor --http`) against nginx.
pub(crate) fn bare(bench: &Bench<'_>, driver: &str) -> Result<Readings> {
    client(bench, |bench, nginx| {
        let exit = bench.run(&format!(
            "plumbline floor {} --http {CONNECTIONS} --driver {driver} --seconds {}",
            nginx.address, bench.seconds
        ))?;
        let mut readings = exit.json()?.readings(&[(Measurand::Rate, "/rate")])?;
        readings.extend(per_request(&exit)?);
        Ok(readings)
    })
}

/// Requests to nginx at a rate, at equal gaps.
pub(crate) fn open(bench: &Bench<'_>, how: &str) -> Result<Readings> {
    client(bench, |bench, nginx| {
        let more = format!("--rate {OPEN_RATE} --arrival constant -c {OPEN_CONNECTIONS} {how}");
        load(bench, &nginx.url(), &more)?
            .json()?
            .readings_or_null(&[
                (Measurand::P50, "/latency_ns/p50"),
                (Measurand::P99, "/latency_ns/p99"),
                (Measurand::P999, "/latency_ns/p99.9"),
                (Measurand::LagP99, "/send_lag_ns/p99"),
            ])
    })
}

/// Requests at a rate against our own responder, stamped or not.
pub(crate) fn at_rate(bench: &Bench<'_>, how: &str) -> Result<Readings> {
    let server = serve(bench, Protocol::Tcp, "")?;
    let more = format!("--rate {OPEN_RATE} -c {OPEN_CONNECTIONS} {how}");
    let (exit, served) = load_ours(bench, server, &more)?;
    let json = exit.json()?;
    let mut readings = json.readings(&[(Measurand::P50, "/latency_ns/p50")])?;
    readings.extend(json.readings_or_null(&[(Measurand::P99, "/latency_ns/p99")])?);
    readings.insert(Measurand::CpuPerRequest, working_cpu(&exit)?);
    let answered = served.json()?.number("/requests")?;
    readings.insert(Measurand::ServerCpuPerRequest, served.cpu_ns() / answered);
    Ok(readings)
}

/// CPU nanoseconds per request within the window: without the opening of
/// connections, and without the polling of the clock.
fn working_cpu(exit: &Exit) -> Result<f64> {
    let json = exit.json()?;
    let seconds = json.number("/cpu_seconds")? - json.number("/spin_seconds")?;
    Ok(seconds * 1e9 / json.number("/requests")?)
}

/// One small request at a time.
pub(crate) fn ping(bench: &Bench<'_>, protocol: Protocol) -> Result<Readings> {
    let udp = if protocol == Protocol::Udp {
        "--udp"
    } else {
        ""
    };
    let more = format!("--request-size {SMALL} --response-size {SMALL} {udp}");
    let server = serve(bench, protocol, &more)?;
    let (exit, _) = load_ours(bench, server, &format!("{more} -c 1"))?;
    exit.json()?
        .readings(&[(Measurand::P50, "/latency_ns/p50")])
}

/// The bare loop (`plumbline floor`): what no generator can go below.
pub(crate) fn floor(bench: &Bench<'_>) -> Result<Readings> {
    let address = bench.next_address();
    let command = format!("plumbline floor {address} --size {SMALL}");
    let server = bench.serve(format!("{command} --serve"), address, Protocol::Tcp)?;
    let client = format!("{command} --seconds {}", bench.seconds);
    let (exit, _) = bench.run_against(server, &client)?;
    exit.json()?
        .readings(&[(Measurand::P50, "/latency_ns/p50")])
}

pub(crate) fn stream(bench: &Bench<'_>, how: &str) -> Result<Readings> {
    let server = serve(bench, Protocol::Tcp, "--workload stream")?;
    let more = format!("--workload stream -c 1 --warm-up 0 {how}");
    let (client, served) = load_ours(bench, server, &more)?;
    let json = client.json()?;
    let bytes = json.number("/bytes_sent")?;
    let rate = bytes * 8.0 / json.number("/window_seconds")?;
    let cpu = client.cpu_ns() + served.cpu_ns();
    Ok(Readings::from([
        (Measurand::BitRate, rate),
        (Measurand::CpuPerKilobyte, cpu * 1e3 / bytes),
    ]))
}

/// The rate of messages that all arrive: first as fast as it goes, then lower
/// until none is missing (N-13: what is lost in a flood says nothing).
pub(crate) fn lossless(bench: &Bench<'_>, how: &str) -> Result<Readings> {
    let mut rate = String::new();
    for _ in 0..STEPS {
        let (sent, received, seconds) = send_datagrams(bench, &format!("{how} {rate}"))?;
        if sent == received {
            return Ok(Readings::from([(Measurand::Rate, received / seconds)]));
        }
        let lower = received.min(sent) / seconds * STEP_DOWN.max(received / sent);
        rate = format!("--rate {lower} --arrival constant");
    }
    Err(ValidationError::Lossy)
}

/// Sent and received messages of the window, and its length in seconds.
fn send_datagrams(bench: &Bench<'_>, how: &str) -> Result<(f64, f64, f64)> {
    let workload = format!("--workload datagram --request-size {DATAGRAM}");
    let server = serve(bench, Protocol::Udp, &workload)?;
    let (exit, served) = load_ours(bench, server, &format!("{workload} -c 1 {how}"))?;
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

/// Many connections, and the memory that each takes beyond that of a few.
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

/// CPU nanoseconds per request, and resident memory in bytes.
fn connections(bench: &Bench<'_>, count: u32, rate: Option<u32>) -> Result<(f64, f64)> {
    let server = responder(bench)?;
    let at_rate = rate.map(|rate| format!("--rate {rate} --arrival constant"));
    let more = format!("-c {count} {}", at_rate.unwrap_or_default());
    let exit = load_by(|command| bench.watch(command), bench, &server.url(), &more)?;
    server.end()?;
    if let Some(asked) = rate.map(f64::from) {
        let carried = exit.json()?.number("/achieved_rate")?;
        // D3: otherwise the loads were not equal.
        if (carried / asked - 1.0).abs() > 0.01 {
            return Err(ValidationError::Unequal {
                connections: count,
                asked,
                carried,
            });
        }
    }
    Ok((working_cpu(&exit)?, exit.resident as f64))
}
