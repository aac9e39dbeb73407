//! What was found, as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::account::{HopTime, MeanTime, NetworkHops, Surplus, Xray};
use crate::hop::Trip;

/// Columns of a page.
const WIDTH: usize = 100;
/// Differences below this are not told, in nanoseconds: nothing is decided by them.
pub(crate) const LEAST_NS: f64 = 100.0;

impl Xray {
    /// The hops of each network, request above answer, in microseconds.
    pub fn to_text(&self) -> String {
        let names = self.networks.iter().map(|it| it.name.chars().count());
        let indent = names.max().unwrap_or(0) + 1;
        let mut text = String::new();
        for network in &self.networks {
            network.write_to(&mut text, indent);
        }
        for one in &self.unfollowed {
            let words = one.why.split(' ').map(str::to_owned);
            wrap(
                &mut text,
                &format!("{} not followed: ", one.name),
                indent,
                words,
                " ",
            );
        }
        text + &self.how()
    }

    /// How it was measured, and what that cost.
    pub(crate) fn how(&self) -> String {
        let kept = self.kept.map_or_else(String::new, |it| {
            let ns = nanos(it);
            format!("; what a tap adds to each request that it keeps, {ns}, is in none")
        });
        format!(
            "µs; means over {} rounds of the quickest 99 % of requests (rr, one at a time over one \
             connection), 95 % intervals.\nObserving by {} adds {} to the median where one in {} \
             requests is followed{}{kept}.\n",
            self.rounds,
            self.by,
            share(self.observer_share),
            self.one_in,
            self.sight.map_or_else(
                || "; that is in the hops".to_owned(),
                |it| format!("; {} for each place is taken out of the hops", nanos(it)),
            )
        )
    }

    /// The same for scripts, in nanoseconds.
    pub fn to_json(&self) -> Value {
        json!({
            "networks": self.networks.iter().map(NetworkHops::to_json).collect::<Vec<_>>(),
            "unfollowed": self.unfollowed.iter()
                .map(|it| json!({"name": it.name, "why": it.why}))
                .collect::<Vec<_>>(),
            "observer_share": self.observer_share.ns,
            "observer_share_low": self.observer_share.interval.map(|it| it.0),
            "observer_share_high": self.observer_share.interval.map(|it| it.1),
            "sight_ns": self.sight.map(|it| it.ns),
            "sight_low": self.sight.and_then(|it| it.interval).map(|it| it.0),
            "sight_high": self.sight.and_then(|it| it.interval).map(|it| it.1),
            "kept_ns": self.kept.map(|it| it.ns),
            "kept_low": self.kept.and_then(|it| it.interval).map(|it| it.0),
            "kept_high": self.kept.and_then(|it| it.interval).map(|it| it.1),
            "one_in": self.one_in,
            "rounds": self.rounds,
            "by": self.by,
        })
    }
}

impl NetworkHops {
    fn write_to(&self, text: &mut String, indent: usize) {
        for (trip, arrow) in [(Trip::Request, '→'), (Trip::Answer, '←')] {
            let hops = self.hops.iter().filter(|it| it.trip == trip);
            let words = hops.map(|it| format!("{} {}", it.name, tenths(it.time.ns)));
            let name = if trip == Trip::Request {
                &*self.name
            } else {
                ""
            };
            let start = format!("{name:<indent$}{arrow} ");
            wrap(text, &start, indent + 2, words, " · ");
        }
        let all = format!(
            "{} unobserved, {} observed",
            micros(self.alone),
            micros(self.watched)
        );
        let cpu = self
            .cpu
            .map(|it| format!("{} at work on a CPU", micros(it)));
        let rest = format!("{} unaccounted", micros(self.unaccounted));
        let sums = [Some(all), cpu, Some(rest)];
        let start = " ".repeat(indent);
        wrap(text, &start, indent, sums.into_iter().flatten(), "; ");
        if let Some(against) = &self.against {
            wrap(text, &start, indent, against.words().into_iter(), ", ");
        }
        for (what, packets) in &self.drops {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{:indent$}dropped: {packets} × {what}", "");
        }
    }

    fn to_json(&self) -> Value {
        let hop = |it: &HopTime| {
            json!({
                "name": it.name,
                "at": it.at,
                "trip": it.trip,
                "ns": it.time.ns,
                "low": it.time.interval.map(|it| it.0),
                "high": it.time.interval.map(|it| it.1),
                "cpu_ns": it.cpu.map(|it| it.ns),
                "cpu_low": it.cpu.and_then(|it| it.interval).map(|it| it.0),
                "cpu_high": it.cpu.and_then(|it| it.interval).map(|it| it.1),
            })
        };
        let difference = |(name, it): (&str, MeanTime)| {
            json!({
                "name": name,
                "ns": it.ns,
                "low": it.interval.map(|it| it.0),
                "high": it.interval.map(|it| it.1),
            })
        };
        let against = self.against.as_ref().map(|it| {
            let by_name = it.by_name.iter().map(|it| (it.name.as_str(), it.time));
            json!({
                "baseline": it.baseline,
                "total": difference(("total", it.total)),
                "alone_p50": difference(("alone_p50", it.alone_p50)),
                "hops": by_name.map(difference).collect::<Vec<_>>(),
            })
        });
        let drops = self.drops.iter();
        json!({
            "name": self.name,
            "total_ns": self.total.ns,
            "total_low": self.total.interval.map(|it| it.0),
            "total_high": self.total.interval.map(|it| it.1),
            "hops": self.hops.iter().map(hop).collect::<Vec<_>>(),
            "cpu_ns": self.cpu.map(|it| it.ns),
            "cpu_low": self.cpu.and_then(|it| it.interval).map(|it| it.0),
            "cpu_high": self.cpu.and_then(|it| it.interval).map(|it| it.1),
            "unaccounted_ns": self.unaccounted.ns,
            "unaccounted_low": self.unaccounted.interval.map(|it| it.0),
            "unaccounted_high": self.unaccounted.interval.map(|it| it.1),
            "unaccounted_share": self.unaccounted.ns / self.alone_p50.ns,
            "alone_ns": self.alone.ns,
            "watched_ns": self.watched.ns,
            "alone_p50_ns": self.alone_p50.ns,
            "alone_p50_low": self.alone_p50.interval.map(|it| it.0),
            "alone_p50_high": self.alone_p50.interval.map(|it| it.1),
            "journeys": self.journeys,
            "lost": self.lost,
            "drops": drops
                .map(|(what, packets)| json!({"what": what, "packets": packets}))
                .collect::<Vec<_>>(),
            "against": against,
        })
    }
}

impl Surplus {
    /// What differs, in words: the total, and the hops.
    fn words(&self) -> Vec<String> {
        let mut words = self.hops_in_words();
        words[0] = format!(
            "against {} {} (p50 unobserved {}): {}",
            self.baseline,
            signed(self.total.ns),
            signed_micros(self.alone_p50),
            words[0]
        );
        words
    }

    /// The hops that differ, at least one word.
    pub(crate) fn hops_in_words(&self) -> Vec<String> {
        let named = self.by_name.iter().filter(|it| it.time.is_different());
        let named = named.filter(|it| it.time.ns.abs() >= LEAST_NS);
        let mut words: Vec<_> = named
            .map(|it| format!("{} in {}", signed(it.time.ns), it.name))
            .collect();
        if words.is_empty() {
            let is_known = self.by_name.iter().any(|it| it.time.interval.is_some());
            let why = match is_known {
                true => "no hop differs",
                false => "too few rounds to say in which hop",
            };
            words.push(why.to_owned());
        }
        words
    }
}

/// Microseconds with one decimal, of which 0 has no sign.
fn tenths(ns: f64) -> String {
    format!("{:.1}", (ns / 100.0).round() / 10.0 + 0.0).replace('-', "−")
}

fn signed(ns: f64) -> String {
    format!("{:+.1}", ns / 1e3).replace('-', "−")
}

/// A difference of times as [`micros`] has it, with its sign.
fn signed_micros(time: MeanTime) -> String {
    let plus = if time.ns < 0.0 { "" } else { "+" };
    format!("{plus}{}", micros(time))
}

/// A time in microseconds, with half of its interval where that is known.
pub(crate) fn micros(time: MeanTime) -> String {
    let half = time.half_width();
    let half = half.map_or_else(String::new, |half| format!(" ±{:.1}", half / 1e3));
    tenths(time.ns) + &half
}

/// A time in nanoseconds, with half of its interval where that is known.
fn nanos(time: MeanTime) -> String {
    let half = time.half_width();
    let half = half.map_or_else(String::new, |half| format!(" ±{half:.0}"));
    format!("{:.0}{half} ns", time.ns).replace('-', "−")
}

fn share(of: MeanTime) -> String {
    let percent = |share: f64| format!("{:.1}", share * 100.0).replace('-', "−");
    let interval = of
        .interval
        .map(|(low, high)| format!(" ({} to {})", percent(low), percent(high)));
    format!("{} %{}", percent(of.ns), interval.unwrap_or_default())
}

/// Writes words in a row, and begins a new line where one is full.
fn wrap(
    text: &mut String,
    start: &str,
    indent: usize,
    words: impl Iterator<Item = String>,
    between: &str,
) {
    let mut line = start.to_owned();
    let mut is_first = true;
    for word in words {
        let longer = line.chars().count() + between.chars().count() + word.chars().count();
        if !is_first {
            line += between;
            if longer > WIDTH {
                text.push_str(line.trim_end());
                text.push('\n');
                line = " ".repeat(indent);
            }
        }
        line += &word;
        is_first = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sum::tests::two;

    #[test]
    fn each_network_is_a_line_of_hops_and_what_it_adds() {
        let text = two().to_text();
        for part in [
            "host  → node stack 9.0 · underlay 3.0\n",
            "vxlan → node stack 9.0 · vxlan 5.4 · underlay 3.0\n",
            "; 0.5 ±0.0 unaccounted\n      against host +5.4 (p50 unobserved +5.3 ±0.0): +5.4 in vxlan\n",
            "tun not followed: packets were lost sight of\n",
            "; 12.0 ±0.0 at work on a CPU; ",
            "Observing by tracepoints adds 2.0 % (2.0 to 2.0) to the median where one in 8 requests",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn nothing_has_no_sign() {
        assert_eq!([-49.0, -51.0, 3_960.0].map(tenths), ["0.0", "−0.1", "4.0"]);
    }

    #[test]
    fn an_answer_has_a_line_of_its_own() {
        let mut found = two();
        found.networks[0].hops[1].trip = Trip::Answer;
        let text = found.to_text();
        let both = "host  → node stack 9.0\n      ← underlay 3.0\n";
        assert!(text.starts_with(both), "{text}");
    }

    #[test]
    fn scripts_get_every_hop_with_its_interval() {
        let json = two().to_json();
        let hop = &json["networks"][1]["hops"][1];
        assert_eq!(
            (&hop["name"], &hop["trip"]),
            (&json!("vxlan"), &json!("request"))
        );
        assert!(hop["low"].as_f64().unwrap() < hop["ns"].as_f64().unwrap());
        assert_eq!(json["networks"][0]["against"], Value::Null);
        let against = &json["networks"][1]["against"];
        assert_eq!(against["hops"][0]["name"], "vxlan");
        assert!(against["alone_p50"]["low"].as_f64() < against["alone_p50"]["high"].as_f64());
        let vxlan = &json["networks"][1];
        let share = vxlan["unaccounted_ns"].as_f64().unwrap();
        let share = share / vxlan["alone_p50_ns"].as_f64().unwrap();
        assert_eq!(vxlan["unaccounted_share"], json!(share));
        assert_eq!(json["unfollowed"][0]["name"], "tun");
    }

    #[test]
    fn a_full_line_ends_behind_a_word() {
        let mut text = String::new();
        let words = (0..20).map(|at| format!("hop {at:02} of twenty"));
        wrap(&mut text, "x → ", 4, words, " · ");
        assert!(text.lines().count() > 2);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH + 2));
        assert!(text.lines().skip(1).all(|line| line.starts_with("    hop")));
    }
}
