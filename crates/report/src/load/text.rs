//! The result of a load for the terminal.

use plumbline_experiment::{Arrival, WorkloadKind};
use plumbline_record::{Floor, Histogram, LoadOutcome};

use super::warning::in_words;
use super::window::{per_second, seconds};
use crate::latency::{Sample, Support, latency_table};
use crate::{number, spans};

/// For the terminal.
pub fn text(outcome: &LoadOutcome) -> String {
    let mut text = latencies(outcome);
    text += &match outcome.workload.kind {
        WorkloadKind::Stream => stream(outcome),
        WorkloadKind::Datagram => datagrams(outcome),
        _ => exchanges(outcome),
    };
    let polling = outcome.result.spin_ns as f64 / outcome.result.window_ns as f64;
    if polling >= 0.001 {
        text += &format!(
            "polling      {} of a CPU, to send on time; not in the figure above\n",
            number::percent(polling)
        );
    }
    text += &outcome.floor.map(floor).unwrap_or_default();
    text += &failures(outcome);
    if let Some(sample) = &outcome.result.spans {
        text += &spans::text(sample);
    }
    for warning in &outcome.warnings {
        text += &format!("warning: {}\n", in_words(warning));
    }
    text
}

fn latencies(outcome: &LoadOutcome) -> String {
    let result = &outcome.result;
    if result.latency.is_empty() {
        return String::new();
    }
    let sample = |histogram| Sample::of_load(histogram, result);
    let mut columns = vec![("latency", sample(&result.latency))];
    if result.arrival.rate().is_some() {
        columns.push(("service time", sample(&result.service_time)));
        columns.push(("send lag", Sample::from(&result.send_lag)));
    }
    let mut text = latency_table(&columns);
    if result.arrival == Arrival::Closed {
        text += &format!(
            "closed loop, {} outstanding: a stall holds back the load too; --rate N shows what users would see\n",
            outcome.workload.connections
        );
    }
    text
}

fn exchanges(outcome: &LoadOutcome) -> String {
    let result = &outcome.result;
    let mut text = format!(
        "requests     {}/s ({} in {:.2} s)\n",
        number::count(per_second(outcome, result.completed).round()),
        number::count(result.completed as f64),
        seconds(outcome)
    );
    text += &format!(
        "throughput   {} sent, {} received\n",
        bit_rate(outcome, result.bytes_sent),
        bit_rate(outcome, result.bytes_received)
    );
    text += &cpu_per(outcome, result.completed, "request");
    text + &threads(outcome)
}

/// L-12: what each sending thread saw, where there are several.
fn threads(outcome: &LoadOutcome) -> String {
    let p99 = |client: &Histogram| {
        let carried = Support::of(client).shows(0.99);
        let ns = || number::duration(client.value_at(0.99) as f64);
        if carried {
            number::plain(&ns())
        } else {
            "–".to_owned()
        }
    };
    let clients: Vec<String> = outcome.result.clients.iter().map(p99).collect();
    if clients.iter().all(|it| it == "–") {
        return String::new();
    }
    format!("p99          {} by thread\n", clients.join(", "))
}

fn datagrams(outcome: &LoadOutcome) -> String {
    let result = &outcome.result;
    let mut text = format!(
        "messages     {}/s sent ({} in {:.2} s), {}\n",
        number::count(per_second(outcome, result.completed).round()),
        number::count(result.completed as f64),
        seconds(outcome),
        bit_rate(outcome, result.bytes_sent)
    );
    text += &match result.train {
        0 | 1 => "sent         each as a packet of its own\n".to_owned(),
        n => format!(
            "sent         in trains of up to {n} (UDP GSO), which virtual devices carry as one packet\n"
        ),
    };
    text += &cpu_per(outcome, result.completed, "message");
    text + "lost         only the receiver knows: `plumbline serve` prints it when it ends\n"
}

fn stream(outcome: &LoadOutcome) -> String {
    let mut text = format!(
        "throughput   {} ({} acknowledged in {:.2} s)\n",
        bit_rate(outcome, outcome.result.bytes_sent),
        number::plain(&number::bytes(outcome.result.bytes_sent as f64)),
        seconds(outcome)
    );
    if outcome.result.bytes_sent > 0 {
        text += &format!(
            "client CPU   {:.3} ns per byte\n",
            working_cpu_ns(outcome) / outcome.result.bytes_sent as f64
        );
    }
    text
}

fn bit_rate(outcome: &LoadOutcome, bytes: u64) -> String {
    number::plain(&number::bit_rate(per_second(outcome, bytes) * 8.0))
}

fn cpu_per(outcome: &LoadOutcome, count: u64, what: &str) -> String {
    if count == 0 {
        return String::new();
    }
    let micros = working_cpu_ns(outcome) / count as f64 / 1e3;
    format!("client CPU   {micros:.2} µs per {what}\n")
}

fn failures(outcome: &LoadOutcome) -> String {
    let (errors, open) = (&outcome.result.errors, outcome.result.censored);
    let mut text = String::new();
    if errors.total() > 0 {
        text += &format!(
            "ERRORS       {}: {} connect, {} closed early, {} wrong content, {} wrong protocol, {} send\n",
            errors.total(),
            errors.connect,
            errors.closed,
            errors.corrupt,
            errors.protocol,
            errors.send
        );
    }
    if outcome.interrupted && open > 0 {
        text += &format!("in flight    {open} when stopped\n");
    }
    text
}

/// CPU that the load itself took, without polling for its deadlines.
fn working_cpu_ns(outcome: &LoadOutcome) -> f64 {
    let cpu = outcome.result.cpu;
    (cpu.user_ns + cpu.system_ns).saturating_sub(outcome.result.spin_ns) as f64
}

/// What the generator itself measures, in a line.
pub fn floor(floor: Floor) -> String {
    format!(
        "floor        {}: a round trip of this generator to itself (median, over loopback)\n",
        number::plain(&number::duration(floor.p50_ns as f64))
    )
}
