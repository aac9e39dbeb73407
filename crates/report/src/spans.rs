//! Where the time goes: a sample of requests, cut by the kernel's stamps (L-17).
//!
//! Means are shown because only they add up; percentiles of the spans stand
//! beside them and do not.

use plumbline_record::{Histogram, Spans};
use serde_json::{Value, json};

use crate::analysis::{Section, Summary};
use crate::figures::{self, Table};
use crate::latency::{LatencySummary, latency_json};
use crate::{describe, number};

/// A table for the terminal, one span in each row, and what was left out.
pub fn text(spans: &Spans) -> String {
    if spans.complete == 0 {
        return format!("where the time goes: unknown; {}\n", left_out(spans));
    }
    let mut text = format!(
        "where the time goes, by the kernel's stamps on {} requests\n{:<20}{:>12}{:>9}{:>12}{:>12}\n",
        spans.complete, "", "mean", "share", "p50", "p99"
    );
    let whole = [("service time", &spans.service_time)];
    for (name, span) in spans.in_order().into_iter().chain(whole) {
        let summary = LatencySummary::new(span);
        let nanoseconds = |ns: Option<u64>| {
            let shown = ns.map_or(number::NONE.to_owned(), |ns| number::duration(ns as f64));
            number::plain(&shown)
        };
        text += &format!(
            "{name:<20}{:>12}{:>9}{:>12}{:>12}\n",
            number::plain(&number::duration(span.mean())),
            number::plain(&number::percent(share(spans, span))),
            nanoseconds(summary.at(0.5)),
            nanoseconds(summary.at(0.99)),
        );
    }
    text += &format!("the clocks agree within {}", clock_error(spans));
    let left_out = left_out(spans);
    if !left_out.is_empty() {
        text += &format!("; {left_out}");
    }
    text + "\n"
}

/// The same for scripts: each span as a latency, by name, and the counts.
pub fn json(spans: &Spans) -> Value {
    json!({
        "share": spans.share,
        "sampled": spans.sampled(),
        "complete": spans.complete,
        "unanswered": spans.unanswered,
        "unstamped": spans.unstamped,
        "shared": spans.shared,
        "clock_set": spans.clock_set,
        "protocol_ns": latency_json(&spans.protocol),
        "queue_ns": latency_json(&spans.queue),
        "network_and_server_ns": latency_json(&spans.network_and_server),
        "wake_up_ns": latency_json(&spans.wake_up),
        "service_time_ns": latency_json(&spans.service_time),
        "clock_error_ns": latency_json(&spans.clock_error),
    })
}

/// A row for each treatment of a section that has a sample; `None` when none
/// has.
pub(crate) fn table(summary: &Summary, section: &Section) -> Option<Table> {
    let of_treatment = |&id: &usize| {
        let of = &summary.treatments[id];
        let spans = of.spans.as_ref()?;
        let mut row = vec![describe::clean(&of.treatment.label)];
        row.push(or_none(spans, |it| {
            number::duration(it.service_time.mean())
        }));
        for (_, span) in spans.in_order() {
            row.push(mean_and_share(spans, span));
        }
        row.push(or_none(spans, clock_error));
        row.push(format!("{} of {}", spans.complete, spans.sampled()));
        Some(row)
    };
    let rows: Vec<Vec<String>> = section.treatments.iter().filter_map(of_treatment).collect();
    (!rows.is_empty()).then(|| Table {
        head: figures::head([
            "network",
            "service time",
            "protocol",
            "queue",
            "network+server",
            "wake-up",
            "clock error",
            "sample",
        ]),
        rows,
    })
}

/// What the table is, for a reader of the page.
pub(crate) const ABOUT: &str = "Mean service time of a sample of requests, cut by the kernel's time stamps. The sender's protocol stack until the device's queue, the queue until the device, the network both \
    ways with the server, and from the arrival of the answer until the sender had read it.";

fn mean_and_share(spans: &Spans, span: &Histogram) -> String {
    or_none(spans, |spans| {
        let share = number::percent(share(spans, span));
        format!("{} ({share})", number::duration(span.mean()))
    })
}

fn or_none(spans: &Spans, shown: impl Fn(&Spans) -> String) -> String {
    if spans.complete == 0 {
        return number::NONE.to_owned();
    }
    shown(spans)
}

/// Part of the sample's whole time.
fn share(spans: &Spans, span: &Histogram) -> f64 {
    span.mean() / spans.service_time.mean()
}

/// What 99 of 100 boundaries between the two clocks keep.
fn clock_error(spans: &Spans) -> String {
    number::plain(&number::duration(spans.clock_error.value_at(0.99) as f64))
}

/// Sampled requests that could not be cut, by reason; empty when there is none.
fn left_out(spans: &Spans) -> String {
    let reasons = [
        (spans.unanswered, "not answered"),
        (
            spans.unstamped,
            "without a stamp (has the path's device software time stamps? `ethtool -T`)",
        ),
        (spans.shared, "read together with another"),
        (spans.clock_set, "while the wall clock was set"),
    ];
    let told: Vec<String> = reasons
        .into_iter()
        .filter(|&(count, _)| count > 0)
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    if told.is_empty() && spans.complete == 0 {
        return "no request was sampled; sample more with a larger share".to_owned();
    }
    if told.is_empty() {
        return String::new();
    }
    format!("left out: {}", told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Spans {
        let mut spans = Spans {
            share: 0.01,
            complete: 1_000,
            shared: 3,
            ..Spans::default()
        };
        for (span, ns) in [
            (&mut spans.protocol, 4_000),
            (&mut spans.queue, 1_000),
            (&mut spans.network_and_server, 30_000),
            (&mut spans.wake_up, 15_000),
            (&mut spans.service_time, 50_000),
            (&mut spans.clock_error, 40),
        ] {
            span.record_n(ns, 1_000);
        }
        spans
    }

    #[test]
    fn each_span_has_its_share_and_what_is_left_out_is_said() {
        let text = text(&sample());
        assert!(text.contains("on 1000 requests"), "{text}");
        let row = text
            .lines()
            .find(|line| line.starts_with("wake-up"))
            .unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(
            cells,
            ["wake-up", "15.0", "µs", "30", "%", "15.0", "µs", "–"]
        );
        assert!(
            text.contains("within 40.0 ns; left out: 3 read together"),
            "{text}"
        );
    }

    #[test]
    fn a_sample_of_nothing_is_not_a_table_of_zeros() {
        let nothing = text(&Spans::default());
        assert!(
            nothing.contains("unknown; no request was sampled"),
            "{nothing}"
        );
        let unstamped = Spans {
            unstamped: 7,
            ..Spans::default()
        };
        let shown = text(&unstamped);
        assert!(
            shown.contains("unknown; left out: 7 without a stamp"),
            "{shown}"
        );
    }

    #[test]
    fn scripts_get_the_counts_and_every_span() {
        let json = json(&sample());
        assert_eq!(json["sampled"], 1_003);
        assert_eq!(json["complete"], 1_000);
        assert_eq!(json["network_and_server_ns"]["p50"], 30_000);
        assert!(
            json["wake_up_ns"]["p99.99"].is_null(),
            "too few samples (D4)"
        );
    }
}
