//! How the other tools are run, and what their output says.
//!
//! Each is given the same work as ours, with its fastest usual settings; where a
//! choice had to be made, it favours the peer.

use plumbline_experiment::Protocol;

use crate::bench::{Bench, Listener};
use crate::error::{Doing as _, ValidationError};
use crate::exit::{Exit, Json};
use crate::quantity::{Measurand, Readings};
use crate::size::{CONNECTIONS, DATAGRAM, OPEN_CONNECTIONS, OPEN_RATE, SMALL};

type Result<T> = std::result::Result<T, ValidationError>;

/// nginx with one worker and a body of 100 B from memory: nothing of its disk
/// or its log is measured.
pub(crate) fn nginx(bench: &Bench<'_>) -> Result<Listener> {
    let address = bench.next_address();
    let directory = bench.scratch().display();
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
    std::fs::write(bench.scratch().join("nginx.conf"), configuration)
        .when("write nginx's configuration")?;
    let command = "nginx -p {scratch} -e stderr -c {scratch}/nginx.conf";
    bench.serve(command.to_owned(), address, Protocol::Tcp)
}

/// What a client sees of nginx.
pub(crate) fn client(
    bench: &Bench<'_>,
    client: impl FnOnce(&Bench<'_>, &Listener) -> Result<Readings>,
) -> Result<Readings> {
    let server = nginx(bench)?;
    let readings = client(bench, &server)?;
    server.end()?;
    Ok(readings)
}

/// What a server gives to a client, and what each request costs it.
pub(crate) fn server_under(
    bench: &Bench<'_>,
    server: fn(&Bench<'_>) -> Result<Listener>,
    client: fn(&Bench<'_>, &Listener) -> Result<Readings>,
) -> Result<Readings> {
    let server = server(bench)?;
    let rate = client(bench, &server)?[&Measurand::Rate];
    let cpu = server.end()?.cpu_ns();
    let requests = rate * f64::from(bench.seconds);
    Ok(Readings::from([
        (Measurand::Rate, rate),
        (Measurand::ServerCpuPerRequest, cpu / requests),
    ]))
}

pub(crate) fn wrk(bench: &Bench<'_>, server: &Listener) -> Result<Readings> {
    let (seconds, url) = (bench.seconds, server.url());
    read_wrk(&bench.run(&format!(
        "wrk -t1 -c{CONNECTIONS} -d{seconds}s --latency {url}"
    ))?)
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
    let (seconds, url) = (bench.seconds, server.url());
    read_h2load(&bench.run(&format!(
        "h2load --h1 -t1 -c {CONNECTIONS} -D {seconds} {url}"
    ))?)
}

fn read_h2load(exit: &Exit) -> Result<Readings> {
    let requests = exit.before(" succeeded")?;
    Ok(Readings::from([
        (Measurand::Rate, exit.before(" req/s")?),
        (Measurand::CpuPerRequest, exit.cpu_ns() / requests),
    ]))
}

/// oha at equal gaps, with its correction for late requests.
pub(crate) fn oha(bench: &Bench<'_>, server: &Listener) -> Result<Readings> {
    let (seconds, url) = (bench.seconds, server.url());
    let exit = bench.run(&format!(
        "oha --no-tui --output-format json --latency-correction -q {OPEN_RATE} \
         -c {OPEN_CONNECTIONS} -z {seconds}s {url}"
    ))?;
    read_oha(&exit.json()?)
}

/// It prints every percentile; those that too few samples carry are left out, by
/// the same rule as for ours (D4).
fn read_oha(json: &Json<'_>) -> Result<Readings> {
    let answered = json.sum("/statusCodeDistribution")?;
    let seconds = json.readings(&[
        (Measurand::P50, "/latencyPercentiles/p50"),
        (Measurand::P99, "/latencyPercentiles/p99"),
        (Measurand::P999, "/latencyPercentiles/p99.9"),
    ])?;
    let is_carried = |quantity: Measurand| quantity.samples().is_none_or(|least| answered >= least);
    let carried = seconds
        .into_iter()
        .filter(|(quantity, _)| is_carried(*quantity));
    Ok(carried
        .map(|(quantity, seconds)| (quantity, seconds * 1e9))
        .collect())
}

/// Runs both ends of sockperf, the client in one of its modes with messages of so
/// many bytes; gives what client and server left behind.
fn sockperf(bench: &Bench<'_>, mode: &str, size: u32, protocol: Protocol) -> Result<(Exit, Exit)> {
    let address = bench.next_address();
    let tcp = if protocol == Protocol::Tcp {
        "--tcp"
    } else {
        ""
    };
    let at = format!("-i {} -p {} {tcp}", address.ip(), address.port());
    let server = bench.serve(format!("sockperf sr {at}"), address, protocol)?;
    let client = format!("sockperf {mode} {at} -m {size} -t {}", bench.seconds);
    bench.run_against(server, &client)
}

/// One message there and back. sockperf prints half of the round trip.
pub(crate) fn sockperf_ping(bench: &Bench<'_>, protocol: Protocol) -> Result<Readings> {
    let (client, _) = sockperf(bench, "pp", SMALL, protocol)?;
    let half = client.after("percentile 50.000 =")?;
    Ok(Readings::from([(Measurand::P50, 2e3 * half)]))
}

/// As fast as it sends; the server reports what arrived, whatever was lost.
pub(crate) fn sockperf_datagram(bench: &Bench<'_>) -> Result<Readings> {
    let (_, server) = sockperf(bench, "tp", DATAGRAM, Protocol::Udp)?;
    let rate = server.before(" messages received")? / f64::from(bench.seconds);
    Ok(Readings::from([(Measurand::Rate, rate)]))
}

pub(crate) fn netperf(bench: &Bench<'_>) -> Result<Readings> {
    let address = bench.next_address();
    let (ip, port, seconds) = (address.ip(), address.port(), bench.seconds);
    let server = bench.serve(format!("netserver -D -4 -p {port}"), address, Protocol::Tcp)?;
    let client = format!(
        "netperf -P 0 -H {ip} -p {port} -t TCP_RR -l {seconds} -- -r {SMALL},{SMALL} -o P50_LATENCY"
    );
    let (client, _) = bench.run_against(server, &client)?;
    let microseconds = client.only_number("P50_LATENCY")?;
    Ok(Readings::from([(Measurand::P50, microseconds * 1e3)]))
}

/// Runs iperf3 in one direction; gives what the client left behind, and the CPU of
/// both ends in nanoseconds.
fn iperf3(bench: &Bench<'_>, how: &str) -> Result<(Exit, f64)> {
    let address = bench.next_address();
    let (ip, port, seconds) = (address.ip(), address.port(), bench.seconds);
    let server = bench.serve(format!("iperf3 -s -1 -p {port}"), address, Protocol::Tcp)?;
    let client = bench.run(&format!("iperf3 -J -c {ip} -p {port} -t {seconds} {how}"))?;
    let cpu = client.cpu_ns() + server.finish()?.cpu_ns();
    Ok((client, cpu))
}

pub(crate) fn iperf3_stream(bench: &Bench<'_>) -> Result<Readings> {
    let (client, cpu) = iperf3(bench, "")?;
    let json = client.json()?;
    let bytes = json.number("/end/sum_received/bytes")?;
    let mut readings =
        json.readings(&[(Measurand::BitRate, "/end/sum_received/bits_per_second")])?;
    readings.insert(Measurand::CpuPerKilobyte, cpu * 1e3 / bytes);
    Ok(readings)
}

/// As fast as it sends; what arrived counts, whatever was lost.
pub(crate) fn iperf3_datagram(bench: &Bench<'_>) -> Result<Readings> {
    let (client, _) = iperf3(bench, &format!("-u -b 0 -l {DATAGRAM}"))?;
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
