//! How the other tools are run, and what their output says.
//!
//! Each is told to do what ours does, on its fastest usual settings; where a
//! choice had to be made it favours the peer.

use anyhow::Context as _;
use serde_json::Value;

use super::bouts::{CONNECTIONS, DATAGRAM, OPEN_CONNECTIONS, OPEN_RATE, Reading, SMALL};
use super::point::Metric;
use super::stage::{Server, Stage, Transport};

/// nginx with one worker and a body of 100 B from memory: nothing of its disk
/// or its log is measured.
pub(super) fn nginx(stage: &Stage<'_>) -> anyhow::Result<Server> {
    let address = stage.next_address();
    let directory = stage.scratch().display().to_string();
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
    let file = stage.file("nginx.conf", &configuration)?;
    let file = file.display().to_string();
    let args = ["-p", &directory, "-e", "stderr", "-c", &file];
    stage.serve("nginx", &args, address, Transport::Tcp)
}

pub(super) fn run_wrk(stage: &Stage<'_>, server: &Server) -> anyhow::Result<Reading> {
    let seconds = format!("-d{}s", stage.seconds);
    let connections = format!("-c{CONNECTIONS}");
    let url = format!("http://{}/", server.address);
    let ended = stage.run("wrk", &["-t1", &connections, &seconds, "--latency", &url])?;
    let requests = wrk_requests(&ended.output).context("`wrk` said nothing of its requests")?;
    let p50 = wrk_p50_ns(&ended.output).context("`wrk` gave no median")?;
    let rate = number_after(&ended.output, "Requests/sec:").context("`wrk` gave no rate")?;
    Ok(Reading::from([
        (Metric::Rate, rate),
        (Metric::CpuPerRequest, ended.cpu_ns() / requests),
        (Metric::P50, p50),
    ]))
}

pub(super) fn wrk(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let server = nginx(stage)?;
    let reading = run_wrk(stage, &server)?;
    server.end()?;
    Ok(reading)
}

/// A client that fetches what a server offers for as long as a run lasts.
pub(super) type Client = fn(&Stage<'_>, &Server) -> anyhow::Result<Reading>;

/// What a server gives to a client, and what each request costs it.
pub(super) fn server_under(
    stage: &Stage<'_>,
    server: Server,
    client: Client,
) -> anyhow::Result<Reading> {
    let reading = client(stage, &server)?;
    let rate = reading[&Metric::Rate];
    let cpu = server.end()?.cpu_ns();
    Ok(Reading::from([
        (Metric::Rate, rate),
        (
            Metric::ServerCpuPerRequest,
            cpu / (rate * f64::from(stage.seconds)),
        ),
    ]))
}

pub(super) fn nginx_under_wrk(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    server_under(stage, nginx(stage)?, run_wrk)
}

pub(super) fn nginx_under_h2load(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    server_under(stage, nginx(stage)?, run_h2load)
}

pub(super) fn h2load(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let server = nginx(stage)?;
    let reading = run_h2load(stage, &server)?;
    server.end()?;
    Ok(reading)
}

pub(super) fn run_h2load(stage: &Stage<'_>, server: &Server) -> anyhow::Result<Reading> {
    let seconds = stage.seconds.to_string();
    let connections = CONNECTIONS.to_string();
    let url = format!("http://{}/", server.address);
    let args = ["--h1", "-t1", "-c", &connections, "-D", &seconds, &url];
    let ended = stage.run("h2load", &args)?;
    let rate = number_before(&ended.output, " req/s").context("`h2load` gave no rate")?;
    let requests = number_before(&ended.output, " succeeded").context("`h2load` gave no count")?;
    Ok(Reading::from([
        (Metric::Rate, rate),
        (Metric::CpuPerRequest, ended.cpu_ns() / requests),
    ]))
}

/// oha at equal gaps, with its correction for late requests.
pub(super) fn oha(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let server = nginx(stage)?;
    let seconds = format!("{}s", stage.seconds);
    let connections = OPEN_CONNECTIONS.to_string();
    let rate = OPEN_RATE.to_string();
    let url = format!("http://{}/", server.address);
    let args = [
        "--no-tui",
        "--output-format",
        "json",
        "--latency-correction",
        "-q",
        &rate,
        "-c",
        &connections,
        "-z",
        &seconds,
        &url,
    ];
    let ended = stage.run("oha", &args)?;
    server.end()?;
    let json: Value = serde_json::from_str(&ended.output).context("reading what `oha` wrote")?;
    let counts = json["statusCodeDistribution"].as_object();
    let answered: u64 = counts
        .context("`oha` gave no statusCodeDistribution")?
        .values()
        .filter_map(Value::as_u64)
        .sum();
    let mut reading = Reading::new();
    for (metric, name) in [
        (Metric::P50, "p50"),
        (Metric::P99, "p99"),
        (Metric::P999, "p99.9"),
    ] {
        let seconds = json["latencyPercentiles"][name].as_f64();
        let seconds = seconds.with_context(|| format!("`oha` gave no {name}"))?;
        // It prints every percentile; the same rule as for ours (D4).
        if metric.samples().is_none_or(|least| answered >= least) {
            reading.insert(metric, seconds * 1e9);
        }
    }
    Ok(reading)
}

fn sockperf_server(stage: &Stage<'_>, transport: Transport) -> anyhow::Result<Server> {
    let address = stage.next_address();
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    let mut args = vec!["sr", "-i", &ip, "-p", &port];
    args.extend((transport == Transport::Tcp).then_some("--tcp"));
    stage.serve("sockperf", &args, address, transport)
}

/// One message there and back. sockperf prints half of the round trip.
fn sockperf_ping(stage: &Stage<'_>, transport: Transport) -> anyhow::Result<Reading> {
    let server = sockperf_server(stage, transport)?;
    let (ip, port) = (
        server.address.ip().to_string(),
        server.address.port().to_string(),
    );
    let (size, seconds) = (SMALL.to_string(), stage.seconds.to_string());
    let mut args = vec!["pp", "-i", &ip, "-p", &port, "-m", &size, "-t", &seconds];
    args.extend((transport == Transport::Tcp).then_some("--tcp"));
    let ended = stage.run("sockperf", &args)?;
    server.end()?;
    let half =
        number_after(&ended.output, "percentile 50.000 =").context("`sockperf` gave no median")?;
    Ok(Reading::from([(Metric::P50, 2e3 * half)]))
}

pub(super) fn sockperf_tcp(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    sockperf_ping(stage, Transport::Tcp)
}

pub(super) fn sockperf_udp(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    sockperf_ping(stage, Transport::Udp)
}

/// As fast as it sends; the server tells what arrived, lost ones or not.
pub(super) fn sockperf_datagram(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let server = sockperf_server(stage, Transport::Udp)?;
    let (ip, port) = (
        server.address.ip().to_string(),
        server.address.port().to_string(),
    );
    let (size, seconds) = (DATAGRAM.to_string(), stage.seconds.to_string());
    stage.run(
        "sockperf",
        &["tp", "-i", &ip, "-p", &port, "-m", &size, "-t", &seconds],
    )?;
    let ended = server.end()?;
    let arrived =
        number_before(&ended.output, " messages received").context("`sockperf` counted nothing")?;
    Ok(Reading::from([(
        Metric::Rate,
        arrived / f64::from(stage.seconds),
    )]))
}

pub(super) fn netperf(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let address = stage.next_address();
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    let server = stage.serve(
        "netserver",
        &["-D", "-4", "-p", &port],
        address,
        Transport::Tcp,
    )?;
    let (sizes, seconds) = (format!("{SMALL},{SMALL}"), stage.seconds.to_string());
    let args = [
        "-P",
        "0",
        "-H",
        &ip,
        "-p",
        &port,
        "-t",
        "TCP_RR",
        "-l",
        &seconds,
        "--",
        "-r",
        &sizes,
        "-o",
        "P50_LATENCY",
    ];
    let ended = stage.run("netperf", &args)?;
    server.end()?;
    let microseconds: f64 = ended
        .output
        .trim()
        .parse()
        .context("`netperf` gave no median")?;
    Ok(Reading::from([(Metric::P50, microseconds * 1e3)]))
}

/// Runs iperf3 in one direction; gives its JSON and the CPU of both ends.
fn iperf3(stage: &Stage<'_>, more: &[&str]) -> anyhow::Result<(Value, f64)> {
    let address = stage.next_address();
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    let server = stage.serve(
        "iperf3",
        &["-s", "-1", "-p", &port],
        address,
        Transport::Tcp,
    )?;
    let seconds = stage.seconds.to_string();
    let mut args = vec!["-J", "-c", &ip, "-p", &port, "-t", &seconds];
    args.extend(more);
    let client = stage.run("iperf3", &args)?;
    let cpu = client.cpu_ns() + server.finish()?.cpu_ns();
    let json = serde_json::from_str(&client.output).context("reading what `iperf3` wrote")?;
    Ok((json, cpu))
}

pub(super) fn iperf3_stream(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let (json, cpu) = iperf3(stage, &[])?;
    let received = &json["end"]["sum_received"];
    let rate = received["bits_per_second"]
        .as_f64()
        .context("`iperf3` gave no rate")?;
    let bytes = received["bytes"]
        .as_f64()
        .context("`iperf3` gave no bytes")?;
    Ok(Reading::from([
        (Metric::BitRate, rate),
        (Metric::CpuPerKilobyte, cpu * 1e3 / bytes),
    ]))
}

/// As fast as it sends; what arrived counts, although others were lost.
pub(super) fn iperf3_datagram(stage: &Stage<'_>) -> anyhow::Result<Reading> {
    let size = DATAGRAM.to_string();
    let (json, _) = iperf3(stage, &["-u", "-b", "0", "-l", &size])?;
    let sum = &json["end"]["sum"];
    let field = |name: &str| {
        sum[name]
            .as_f64()
            .with_context(|| format!("`iperf3` gave no {name}"))
    };
    let arrived = field("packets")? - field("lost_packets")?;
    Ok(Reading::from([(Metric::Rate, arrived / field("seconds")?)]))
}

/// The number that follows `label`.
fn number_after(text: &str, label: &str) -> Option<f64> {
    let (_, rest) = text.split_once(label)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The number that stands before `label`.
fn number_before(text: &str, label: &str) -> Option<f64> {
    let (before, _) = text.split_once(label)?;
    before.split_whitespace().next_back()?.parse().ok()
}

/// From `81234 requests in 3.00s, 12.3MB read`.
fn wrk_requests(text: &str) -> Option<f64> {
    number_before(text, " requests in ")
}

/// From `50%  790.00us`, in nanoseconds.
fn wrk_p50_ns(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("50%")?;
    let value = rest.split_whitespace().next()?;
    let unit_at = value.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, unit) = value.split_at(unit_at);
    let scale = match unit {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_is_understood() {
        let text = "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   767us  200us  8ms   86.50%\n  \
            Latency Distribution\n     50%  735.00us\n     75%    1.01ms\n  237384 requests in 3.00s, 57.8MB read\n\
            Requests/sec:  79128.15\n";
        assert_eq!(wrk_requests(text), Some(237_384.0));
        assert_eq!(wrk_p50_ns("     50%  735.00us\n"), Some(735e3));
        assert_eq!(wrk_p50_ns("     50%    1.25ms\n"), Some(1.25e6));
        assert_eq!(number_after(text, "Requests/sec:"), Some(79_128.15));
    }

    #[test]
    fn sockperf_and_h2load_are_understood() {
        let sockperf = "sockperf: ---> percentile 50.000 =   26.965\n";
        assert_eq!(number_after(sockperf, "percentile 50.000 ="), Some(26.965));
        let server = "sockperf: Total 310912 messages received and handled\n";
        assert_eq!(number_before(server, " messages received"), Some(310_912.0));
        let h2load = "finished in 3.00s, 71234.50 req/s, 12MB/s\nrequests: 10 total, 10 started, 10 done, 10 succeeded, 0 failed\n";
        assert_eq!(number_before(h2load, " req/s"), Some(71_234.5));
        assert_eq!(number_before(h2load, " succeeded"), Some(10.0));
    }
}
