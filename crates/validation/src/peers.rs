//! How the other tools are run, and what their output says.
//!
//! Each is told to do what ours does, on its fastest usual settings; where a
//! choice had to be made it favours the peer.

use crate::bench::{Bench, Listener};
use crate::error::{Doing as _, ValidationError};
use crate::exit::{Exit, Json};
use crate::process::Transport;
use crate::quantity::{Measurand, Readings};
use crate::size::{CONNECTIONS, DATAGRAM, OPEN_CONNECTIONS, OPEN_RATE, SMALL};

type Result<T> = std::result::Result<T, ValidationError>;

/// nginx with one worker and a body of 100 B from memory: nothing of its disk
/// or its log is measured.
pub(crate) fn nginx(bench: &Bench<'_>) -> Result<Listener> {
    let address = bench.next_address();
    let directory = bench.scratch().display().to_string();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {directory}/{name};\n"))
        .concat();
    let body = "x".repeat(100);
    let configuration = format!(
        "user root; daemon off; master_process off; worker_processes 1;\n\
         pid {directory}/nginx.pid; error_log stderr crit;\n\
         events {{ worker_connections 16384; }}\n\
         http {{ access_log off; keepalive_requests 1000000000; {temporary}\
         server {{ listen {address} backlog=4096; location / {{ return 200 {body}; }} }} }}\n"
    );
    let file = bench.scratch().join("nginx.conf");
    std::fs::write(&file, configuration).when("write nginx's configuration")?;
    let file = file.display().to_string();
    let args = ["-p", &directory, "-e", "stderr", "-c", &file];
    bench.serve("nginx", &args, address, Transport::Tcp)
}

/// A client that fetches what a server offers for as long as a run lasts.
pub(crate) type HttpClient = fn(&Bench<'_>, &Listener) -> Result<Readings>;

/// What a client sees of nginx.
pub(crate) fn client(bench: &Bench<'_>, client: HttpClient) -> Result<Readings> {
    let server = nginx(bench)?;
    let readings = client(bench, &server)?;
    server.end()?;
    Ok(readings)
}

/// What a server gives to a client, and what each request costs it.
pub(crate) fn server_under(
    bench: &Bench<'_>,
    server: Listener,
    client: HttpClient,
) -> Result<Readings> {
    let readings = client(bench, &server)?;
    let rate = readings[&Measurand::Rate];
    let cpu = server.end()?.cpu_ns();
    let requests = rate * f64::from(bench.seconds);
    Ok(Readings::from([
        (Measurand::Rate, rate),
        (Measurand::ServerCpuPerRequest, cpu / requests),
    ]))
}

pub(crate) fn wrk(bench: &Bench<'_>, server: &Listener) -> Result<Readings> {
    let seconds = format!("-d{}s", bench.seconds);
    let connections = format!("-c{CONNECTIONS}");
    let url = format!("http://{}/", server.address);
    let exit = bench.run("wrk", &["-t1", &connections, &seconds, "--latency", &url])?;
    read_wrk(&exit)
}

fn read_wrk(exit: &Exit) -> Result<Readings> {
    let requests = exit.before(" requests in ")?;
    Ok(Readings::from([
        (Measurand::Rate, exit.after("Requests/sec:")?),
        (Measurand::CpuPerRequest, exit.cpu_ns() / requests),
        (Measurand::P50, exit.time_after(" 50%")?),
    ]))
}

pub(crate) fn h2load(bench: &Bench<'_>, server: &Listener) -> Result<Readings> {
    let seconds = bench.seconds.to_string();
    let connections = CONNECTIONS.to_string();
    let url = format!("http://{}/", server.address);
    let args = ["--h1", "-t1", "-c", &connections, "-D", &seconds, &url];
    read_h2load(&bench.run("h2load", &args)?)
}

fn read_h2load(exit: &Exit) -> Result<Readings> {
    let requests = exit.before(" succeeded")?;
    Ok(Readings::from([
        (Measurand::Rate, exit.before(" req/s")?),
        (Measurand::CpuPerRequest, exit.cpu_ns() / requests),
    ]))
}

/// oha at equal gaps, with its correction for late requests.
pub(crate) fn oha(bench: &Bench<'_>) -> Result<Readings> {
    let server = nginx(bench)?;
    let seconds = format!("{}s", bench.seconds);
    let (connections, rate) = (OPEN_CONNECTIONS.to_string(), OPEN_RATE.to_string());
    let url = format!("http://{}/", server.address);
    let mut args = vec![
        "--no-tui",
        "--output-format",
        "json",
        "--latency-correction",
    ];
    args.extend(["-q", &rate, "-c", &connections, "-z", &seconds, &url]);
    let exit = bench.run("oha", &args)?;
    server.end()?;
    read_oha(&exit.json()?)
}

fn read_oha(json: &Json<'_>) -> Result<Readings> {
    let answered = json.sum("/statusCodeDistribution")?;
    let mut readings = Readings::new();
    for (quantity, key) in [
        (Measurand::P50, "/latencyPercentiles/p50"),
        (Measurand::P99, "/latencyPercentiles/p99"),
        (Measurand::P999, "/latencyPercentiles/p99.9"),
    ] {
        let seconds = json.number(key)?;
        // It prints every percentile; the same rule as for ours (D4).
        if quantity.samples().is_none_or(|least| answered >= least) {
            readings.insert(quantity, seconds * 1e9);
        }
    }
    Ok(readings)
}

fn sockperf_server(bench: &Bench<'_>, transport: Transport) -> Result<Listener> {
    let address = bench.next_address();
    let mut args = vec!["sr"];
    let at = sockperf_address(address);
    args.extend(at.iter().map(String::as_str));
    args.extend((transport == Transport::Tcp).then_some("--tcp"));
    bench.serve("sockperf", &args, address, transport)
}

/// The address of its server, as both of its ends are told it.
fn sockperf_address(address: std::net::SocketAddr) -> [String; 4] {
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    ["-i".to_owned(), ip, "-p".to_owned(), port]
}

/// Runs its client against a server, by one of its ways, with messages of so
/// many bytes.
fn sockperf_client(
    bench: &Bench<'_>,
    server: &Listener,
    way: &str,
    size: u32,
    transport: Transport,
) -> Result<Exit> {
    let at = sockperf_address(server.address);
    let (size, seconds) = (size.to_string(), bench.seconds.to_string());
    let mut args = vec![way];
    args.extend(at.iter().map(String::as_str));
    args.extend(["-m", &size, "-t", &seconds]);
    args.extend((transport == Transport::Tcp).then_some("--tcp"));
    bench.run("sockperf", &args)
}

/// One message there and back. sockperf prints half of the round trip.
pub(crate) fn sockperf_ping(bench: &Bench<'_>, transport: Transport) -> Result<Readings> {
    let server = sockperf_server(bench, transport)?;
    let exit = sockperf_client(bench, &server, "pp", SMALL, transport)?;
    server.end()?;
    let half = exit.after("percentile 50.000 =")?;
    Ok(Readings::from([(Measurand::P50, 2e3 * half)]))
}

/// As fast as it sends; the server tells what arrived, lost ones or not.
pub(crate) fn sockperf_datagram(bench: &Bench<'_>) -> Result<Readings> {
    let server = sockperf_server(bench, Transport::Udp)?;
    sockperf_client(bench, &server, "tp", DATAGRAM, Transport::Udp)?;
    let arrived = server.end()?.before(" messages received")?;
    let rate = arrived / f64::from(bench.seconds);
    Ok(Readings::from([(Measurand::Rate, rate)]))
}

pub(crate) fn netperf(bench: &Bench<'_>) -> Result<Readings> {
    let address = bench.next_address();
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    let args = ["-D", "-4", "-p", &port];
    let server = bench.serve("netserver", &args, address, Transport::Tcp)?;
    let (sizes, seconds) = (format!("{SMALL},{SMALL}"), bench.seconds.to_string());
    let mut args = vec!["-P", "0", "-H", &ip, "-p", &port, "-t", "TCP_RR"];
    args.extend(["-l", &seconds, "--", "-r", &sizes, "-o", "P50_LATENCY"]);
    let exit = bench.run("netperf", &args)?;
    server.end()?;
    let microseconds = exit.only_number("P50_LATENCY")?;
    Ok(Readings::from([(Measurand::P50, microseconds * 1e3)]))
}

/// Runs iperf3 in one direction; gives what the client left, and the CPU of
/// both ends in nanoseconds.
fn iperf3(bench: &Bench<'_>, more: &[&str]) -> Result<(Exit, f64)> {
    let address = bench.next_address();
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    let args = ["-s", "-1", "-p", &port];
    let server = bench.serve("iperf3", &args, address, Transport::Tcp)?;
    let seconds = bench.seconds.to_string();
    let mut args = vec!["-J", "-c", &ip, "-p", &port, "-t", &seconds];
    args.extend(more);
    let client = bench.run("iperf3", &args)?;
    let cpu = client.cpu_ns() + server.finish()?.cpu_ns();
    Ok((client, cpu))
}

pub(crate) fn iperf3_stream(bench: &Bench<'_>) -> Result<Readings> {
    let (client, cpu) = iperf3(bench, &[])?;
    let json = client.json()?;
    let bytes = json.number("/end/sum_received/bytes")?;
    Ok(Readings::from([
        (
            Measurand::BitRate,
            json.number("/end/sum_received/bits_per_second")?,
        ),
        (Measurand::CpuPerKilobyte, cpu * 1e3 / bytes),
    ]))
}

/// As fast as it sends; what arrived counts, although others were lost.
pub(crate) fn iperf3_datagram(bench: &Bench<'_>) -> Result<Readings> {
    let size = DATAGRAM.to_string();
    let (client, _) = iperf3(bench, &["-u", "-b", "0", "-l", &size])?;
    let json = client.json()?;
    let arrived = json.number("/end/sum/packets")? - json.number("/end/sum/lost_packets")?;
    let rate = arrived / json.number("/end/sum/seconds")?;
    Ok(Readings::from([(Measurand::Rate, rate)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::tests::wrote;

    #[test]
    fn wrk_is_understood() {
        let text = "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   767us  200us  8ms   86.50%\n  \
            Latency Distribution\n     50%  735.00us\n     75%    1.01ms\n  237384 requests in 3.00s, 57.8MB read\n\
            Requests/sec:  79128.15\n";
        let readings = read_wrk(&wrote("wrk", text)).unwrap();
        assert_eq!(readings[&Measurand::Rate], 79_128.15);
        assert_eq!(readings[&Measurand::P50], 735e3);
        let renamed = text.replace("Requests/sec:", "Rate:");
        let error = read_wrk(&wrote("wrk", &renamed)).unwrap_err().to_string();
        assert!(error.starts_with("`wrk` gave no Requests/sec:"), "{error}");
    }

    #[test]
    fn sockperf_and_h2load_are_understood() {
        let sockperf = wrote("sockperf", "sockperf: ---> percentile 50.000 =   26.965\n");
        assert_eq!(sockperf.after("percentile 50.000 =").unwrap(), 26.965);
        let server = wrote(
            "sockperf",
            "sockperf: Total 310912 messages received and handled\n",
        );
        assert_eq!(server.before(" messages received").unwrap(), 310_912.0);
        let h2load = "finished in 3.00s, 71234.50 req/s, 12MB/s\nrequests: 10 total, 10 started, 10 done, 10 succeeded, 0 failed\n";
        let readings = read_h2load(&wrote("h2load", h2load)).unwrap();
        assert_eq!(readings[&Measurand::Rate], 71_234.5);
    }

    const OHA: &str = r#"{"statusCodeDistribution": {"200": 20000},
        "latencyPercentiles": {"p50": 0.0001, "p99": 0.0003, "p99.9": 0.0009}}"#;

    fn oha_said(text: &str) -> Result<Readings> {
        read_oha(&wrote("oha", text).json()?)
    }

    #[test]
    fn of_oha_too_few_samples_carry_no_tail() {
        let readings = oha_said(OHA).unwrap();
        assert!((readings[&Measurand::P50] - 100e3).abs() < 1e-6);
        assert!(readings.contains_key(&Measurand::P99));
        assert!(
            !readings.contains_key(&Measurand::P999),
            "20,000 are too few"
        );
    }

    #[test]
    fn a_renamed_key_is_not_taken_for_too_few_samples() {
        for key in ["p50", "p99", "p99.9", "200", "statusCodeDistribution"] {
            let renamed = match key {
                // The count is still there, in another form.
                "200" => OHA.replace("20000", r#"{"count": 20000}"#),
                key => OHA.replace(&format!("\"{key}\""), "\"renamed\""),
            };
            let error = oha_said(&renamed).unwrap_err().to_string();
            assert!(error.starts_with("`oha` gave no "), "{error}");
            assert!(error.contains(key), "{key}: {error}");
        }
    }
}
