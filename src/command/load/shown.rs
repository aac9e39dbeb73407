//! The result of a load, for people and for scripts.

use plumbline_engine::LoadPlan;
use plumbline_experiment::{Arrival, WorkloadKind};
use plumbline_harness::{Thresholds, self_check, was_the_limit};
use plumbline_record::{Floor, Histogram, LoadResult};
use plumbline_report::latency::{Sample, Support, latency_json, latency_table};
use plumbline_report::{number, spans, warning};
use serde_json::json;

/// What a load is about to do.
pub(super) fn headline(plan: &LoadPlan) -> String {
    let workload = &plan.workload;
    let connections = match workload.connections {
        1 => "1 connection".to_owned(),
        n => format!("{n} connections"),
    };
    let load = match (workload.kind, workload.arrival) {
        (WorkloadKind::Stream, _) => "as much as goes".to_owned(),
        (WorkloadKind::Datagram, Arrival::Closed) => "as fast as it goes".to_owned(),
        (_, Arrival::Closed) => "closed loop".to_owned(),
        (_, Arrival::Constant { rate }) => format!("{rate}/s at equal gaps"),
        (_, Arrival::Poisson { rate }) => format!("{rate}/s, Poisson arrivals"),
    };
    format!(
        "{} to {}: {connections}, {load}, {:.1} s",
        workload.name,
        plan.target,
        plan.measure.as_secs_f64()
    )
}

/// A result, and what must be known to judge it.
pub(super) struct Outcome<'a> {
    plan: &'a LoadPlan,
    result: &'a LoadResult,
    /// What the generator measures where there is no network (L-13).
    floor: Option<Floor>,
    /// Somebody ended it before its time.
    interrupted: bool,
    /// What was noticed before the load.
    remarks: Vec<String>,
}

impl<'a> Outcome<'a> {
    pub(super) fn new(plan: &'a LoadPlan, result: &'a LoadResult, interrupted: bool) -> Self {
        Self {
            plan,
            result,
            floor: None,
            interrupted,
            remarks: Vec::new(),
        }
    }

    pub(super) fn with_floor(self, floor: Option<Floor>) -> Self {
        Self { floor, ..self }
    }

    /// With reasons to distrust that were there before the load.
    pub(super) fn remarking(mut self, remarks: Vec<String>) -> Self {
        self.remarks = remarks;
        self
    }

    /// 2 when nothing worked; a load that was stopped has done what was asked.
    pub(super) fn exit_code(&self) -> u8 {
        if self.result.completed == 0 && !self.interrupted {
            2
        } else {
            0
        }
    }

    fn seconds(&self) -> f64 {
        self.result.window_ns as f64 / 1e9
    }

    /// So many per second of the window; 0 where none was measured.
    fn per_second(&self, count: u64) -> f64 {
        if self.result.window_ns == 0 {
            return 0.0;
        }
        count as f64 / self.seconds()
    }

    /// CPU that the load itself took, without the polling for its deadlines.
    fn working_cpu_ns(&self) -> f64 {
        let cpu = self.result.cpu;
        (cpu.user_ns + cpu.system_ns).saturating_sub(self.result.spin_ns) as f64
    }

    /// Reasons to distrust the figures.
    fn warnings(&self) -> Vec<String> {
        let limits = Thresholds::default();
        let verdict = was_the_limit(&self.plan.workload, self.result, &limits);
        let mut warnings = self.remarks.clone();
        warnings.extend(verdict.iter().map(warning::text));
        warnings.extend(self.overrun());
        warnings.extend(self.late_generator());
        warnings.extend(self.saturated());
        let distrusted = self_check(&self.plan.workload, self.result, &limits);
        warnings.extend(distrusted.iter().map(warning::text));
        warnings.extend(self.copied());
        if self.interrupted {
            warnings.push(format!(
                "cut off after {:.1} of {:.1} s",
                self.seconds(),
                self.plan.measure.as_secs_f64()
            ));
        } else if self.result.censored > 0 {
            warnings.push(format!(
                "{} requests were never answered; they count as at least as late as the end of the load",
                self.result.censored
            ));
        }
        warnings
    }

    /// A rate so far out of reach that all of the window's requests still
    /// waited for those of the warm-up when it ended.
    fn overrun(&self) -> Option<String> {
        let result = self.result;
        let rate = result.arrival.rate()?;
        let is_overrun = result.completed == 0 && result.waited_for_connection > 0;
        (is_overrun && result.errors.total() == 0 && !self.interrupted).then(|| {
            format!(
                "{}/s is far more than both ends together can do: none of the window's requests was \
                 answered, as those of the warm-up were still waiting; lower --rate, or let --find-max search",
                number::count(rate)
            )
        })
    }

    /// D2, with the thresholds that void or mark a trial of a run.
    fn late_generator(&self) -> Option<String> {
        self.result.arrival.rate()?;
        // Datagrams get no answers: there is no latency that lag could spoil,
        // and their gaps are judged by themselves.
        if self.result.latency.is_empty() {
            return None;
        }
        let limits = Thresholds::default();
        let (lag, latency) = (&self.result.generator_lag, &self.result.latency);
        [
            (0.50, limits.lag_share, limits.lag_floor_ns),
            (0.99, limits.tail_lag_share, limits.tail_lag_floor_ns),
        ]
        .into_iter()
        .find_map(|(quantile, share, floor)| {
            let (late, of) = (lag.value_at(quantile), latency.value_at(quantile));
            let limit = floor.max((of as f64 * share) as u64);
            (late > limit).then(|| {
                let shown = |ns: u64| number::plain(&number::duration(ns as f64));
                let name = number::percentile_name(quantile);
                format!(
                    "the generator sent late: lag {name} {} of latency {name} {}; the figures are the \
                     generator's; use --spin or fewer connections",
                    shown(late),
                    shown(of)
                )
            })
        })
    }

    /// L-12 in a closed loop, whose rate is then what so many threads can do.
    fn saturated(&self) -> Option<String> {
        let is_closed = self.result.arrival == Arrival::Closed
            && !matches!(
                self.plan.workload.kind,
                WorkloadKind::Stream | WorkloadKind::Datagram
            );
        let busy = self.result.busiest_thread();
        (is_closed && busy > Thresholds::default().saturated_share).then(|| {
            format!(
                "the sender's busiest thread was {} busy, so the rate may be its own; more --threads tell",
                number::percent(busy)
            )
        })
    }

    /// Sending without a copy that was none.
    fn copied(&self) -> Option<String> {
        let counts = self.result.zero_copy.filter(|counts| counts.copied > 0)?;
        Some(format!(
            "the kernel copied {} of {} writes all the same, as it does where packets stay on one machine \
             (loopback, veth) and where a device cannot gather: that costs more than plain sending; leave --zerocopy out",
            counts.copied, counts.told
        ))
    }

    /// What scripts hold on to; units are in the names.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let result = self.result;
        json!({
            "driver": result.driver,
            "offered_rate": result.arrival.rate(),
            "achieved_rate": self.per_second(result.completed),
            "window_seconds": self.seconds(),
            "cut_off": self.interrupted,
            "requests": result.completed,
            "censored": result.censored,
            "errors": result.errors.total(),
            "errors_by_kind": result.errors,
            "bytes_sent": result.bytes_sent,
            "bytes_received": result.bytes_received,
            "latency_ns": latency_json(Sample::of_load(&result.latency, result)),
            "service_time_ns": latency_json(Sample::of_load(&result.service_time, result)),
            "send_lag_ns": latency_json(&result.send_lag),
            "floor_ns": self.floor.map(floor_json),
            "generator_lag_ns": latency_json(&result.generator_lag),
            "connect_ns": latency_json(&result.connect),
            "cpu_seconds": (result.cpu.user_ns + result.cpu.system_ns) as f64 / 1e9,
            "spin_seconds": result.spin_ns as f64 / 1e9,
            "threads_latency_ns": result.clients.iter().map(latency_json).collect::<Vec<_>>(),
            "busiest_thread_share": result.busiest_thread(),
            "arrivals": result.arrivals,
            "generator_was_the_limit":
                was_the_limit(&self.plan.workload, result, &Thresholds::default()).is_some(),
            "messages_per_train": result.train,
            "zero_copy": result.zero_copy,
            "spans": result.spans.as_deref().map(spans::json),
            "seed": result.seed,
            "warnings": self.warnings(),
        })
    }

    /// For the terminal.
    pub(super) fn to_text(&self) -> String {
        let mut text = self.latencies();
        text += &match self.plan.workload.kind {
            WorkloadKind::Stream => self.stream(),
            WorkloadKind::Datagram => self.datagrams(),
            _ => self.exchanges(),
        };
        let polling = self.result.spin_ns as f64 / self.result.window_ns as f64;
        if polling >= 0.001 {
            text += &format!(
                "polling      {} of a CPU, to send on time; not in the figure above\n",
                number::percent(polling)
            );
        }
        text += &self.floor.map(floor_text).unwrap_or_default();
        text += &self.failures();
        if let Some(sample) = &self.result.spans {
            text += &spans::text(sample);
        }
        for warning in self.warnings() {
            text += &format!("warning: {warning}\n");
        }
        text
    }

    fn latencies(&self) -> String {
        let result = self.result;
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
                self.plan.workload.connections
            );
        }
        text
    }

    fn exchanges(&self) -> String {
        let result = self.result;
        let mut text = format!(
            "requests     {}/s ({} in {:.2} s)\n",
            number::count(self.per_second(result.completed).round()),
            number::count(result.completed as f64),
            self.seconds()
        );
        text += &format!(
            "throughput   {} sent, {} received\n",
            self.bit_rate(result.bytes_sent),
            self.bit_rate(result.bytes_received)
        );
        text += &self.cpu_per(result.completed, "request");
        text + &self.threads()
    }

    /// L-12: what each sending thread saw, where there are several.
    fn threads(&self) -> String {
        let p99 = |client: &Histogram| {
            let carried = Support::of(client).shows(0.99);
            let ns = || number::duration(client.value_at(0.99) as f64);
            if carried {
                number::plain(&ns())
            } else {
                "–".to_owned()
            }
        };
        let clients: Vec<String> = self.result.clients.iter().map(p99).collect();
        if clients.iter().all(|it| it == "–") {
            return String::new();
        }
        format!("p99          {} by thread\n", clients.join(", "))
    }

    fn datagrams(&self) -> String {
        let result = self.result;
        let mut text = format!(
            "messages     {}/s sent ({} in {:.2} s), {}\n",
            number::count(self.per_second(result.completed).round()),
            number::count(result.completed as f64),
            self.seconds(),
            self.bit_rate(result.bytes_sent)
        );
        text += &match result.train {
            0 | 1 => "sent         each as a packet of its own\n".to_owned(),
            n => format!(
                "sent         in trains of up to {n} (UDP GSO), which virtual devices carry as one packet\n"
            ),
        };
        text += &self.cpu_per(result.completed, "message");
        text + "lost         only the receiver knows: `plumbline serve` prints it when it ends\n"
    }

    fn stream(&self) -> String {
        let mut text = format!(
            "throughput   {} ({} acknowledged in {:.2} s)\n",
            self.bit_rate(self.result.bytes_sent),
            number::plain(&number::bytes(self.result.bytes_sent as f64)),
            self.seconds()
        );
        if self.result.bytes_sent > 0 {
            text += &format!(
                "client CPU   {:.3} ns per byte\n",
                self.working_cpu_ns() / self.result.bytes_sent as f64
            );
        }
        text
    }

    fn bit_rate(&self, bytes: u64) -> String {
        number::plain(&number::bit_rate(self.per_second(bytes) * 8.0))
    }

    fn cpu_per(&self, count: u64, what: &str) -> String {
        if count == 0 {
            return String::new();
        }
        let micros = self.working_cpu_ns() / count as f64 / 1e3;
        format!("client CPU   {micros:.2} µs per {what}\n")
    }

    fn failures(&self) -> String {
        let (errors, open) = (&self.result.errors, self.result.censored);
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
        if self.interrupted && open > 0 {
            text += &format!("in flight    {open} when stopped\n");
        }
        text
    }
}

/// As in the JSON of reports.
pub(in crate::command) fn floor_json(floor: Floor) -> serde_json::Value {
    json!({ "p50": floor.p50_ns, "p99": floor.p99_ns })
}

pub(in crate::command) fn floor_text(floor: Floor) -> String {
    format!(
        "floor        {}: a round trip of this generator to itself (median, over loopback)\n",
        number::plain(&number::duration(floor.p50_ns as f64))
    )
}

#[cfg(test)]
mod tests;
