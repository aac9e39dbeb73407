//! What the validity gates and self-checks allow.

use std::collections::BTreeMap;

use plumbline_record::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the gates allow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thresholds {
    /// D2: the generator's median lag, as a share of the median latency.
    pub lag_share: f64,
    /// D2: lag that is always allowed at the median, nanoseconds.
    pub lag_floor_ns: u64,
    /// D2: the generator's lag at the 90th percentile, as a share of the latency
    /// there, that voids a trial; at the 99th, that voids this percentile.
    pub tail_lag_share: f64,
    /// D2: lag that is always allowed at these percentiles, nanoseconds.
    pub tail_lag_floor_ns: u64,
    /// D3: how far sent may be from planned, as a share.
    pub rate_deviation: f64,
    /// C-14: steal, as a share of capacity.
    pub steal_share: f64,
    /// C-17: the same where treatments take turns. All of them meet it within the same
    /// tenth of a second, so it makes intervals wider and no effect larger.
    pub steal_share_in_turns: f64,
    /// C-14: user time of others, as a share of capacity, that voids a trial.
    pub other_load_share: f64,
    /// C-14: busy share of the machine in the idle sample that voids a trial.
    pub idle_busy_share: f64,
    /// C-14: either of the two that marks a trial.
    pub marked_load_share: f64,
    /// L-3: failed and unanswered requests, as a share of the planned.
    pub error_share: f64,
    /// L-7: distance of the real gaps from exponential ones, from 0 to 1, that
    /// is not warned of.
    pub arrival_distance: f64,
    /// L-12: CPU time of the sender's busiest thread without polling, as a
    /// share of the window, that is not warned of.
    pub busy_share: f64,
    /// L-12: the same from which on a thread has no time left.
    pub saturated_share: f64,
    /// L-10: how many times the latency may rise or fall inside the window
    /// without a warning.
    pub level_warning: f64,
    /// L-10: the same for the trial to count.
    pub level_gate: f64,
}

impl Thresholds {
    /// D2: how late requests may be sent at a quantile, beside this latency, nanoseconds: at
    /// the median or, above it, in the tail.
    pub fn lag_limit_ns(&self, latency: &Histogram, quantile: f64) -> u64 {
        let (share, floor_ns) = match quantile > 0.5 {
            true => (self.tail_lag_share, self.tail_lag_floor_ns),
            false => (self.lag_share, self.lag_floor_ns),
        };
        floor_ns.max((latency.value_at(quantile) as f64 * share) as u64)
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            lag_share: 0.10,
            lag_floor_ns: 5_000,
            tail_lag_share: 0.50,
            tail_lag_floor_ns: 100_000,
            rate_deviation: 0.01,
            steal_share: 0.005,
            steal_share_in_turns: 0.10,
            other_load_share: 0.15,
            idle_busy_share: 0.15,
            marked_load_share: 0.05,
            // (1 − q)/10 with q = 0.99, the highest quantile that is compared.
            error_share: 0.001,
            arrival_distance: 0.10,
            busy_share: 0.70,
            saturated_share: 0.95,
            level_warning: 1.3,
            level_gate: 2.0,
        }
    }
}

impl Thresholds {
    /// Each with its name, for records.
    pub fn by_name(&self) -> BTreeMap<String, f64> {
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else {
            unreachable!("a struct of numbers is an object");
        };
        fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_f64()?)))
            .collect()
    }

    /// Those of a record; what it does not name is as it is by default.
    pub fn named(recorded: &BTreeMap<String, f64>) -> Self {
        let field = |(name, &value): (&String, &f64)| {
            let is_whole = name.ends_with("_ns");
            let value = if is_whole {
                Value::from(value as u64)
            } else {
                value.into()
            };
            (name.clone(), value)
        };
        serde_json::from_value(recorded.iter().map(field).collect())
            .expect("JSON has only finite numbers")
    }

    /// For a kernel that runs as a program. A system call costs it 20 to 50 µs,
    /// and no sender can be nearer to its deadline than a few of them, on any
    /// network: 53 µs at the median on an idle machine, measured (docs/method.md).
    /// Under load the sender also waits for the receiver and the network, with
    /// which it shares the only CPU: a request took 0.5 ms of it, nginx among
    /// them, measured. That wait is part of what a network costs there, and is in
    /// the latency (L-1); what is later than twice that is disturbed there too.
    pub fn user_mode() -> Self {
        Self {
            lag_floor_ns: 1_000_000,
            tail_lag_floor_ns: 5_000_000,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gives_them_back() {
        let ours = Thresholds::user_mode();
        let mut named = ours.by_name();
        assert_eq!(Thresholds::named(&named), ours);
        named.insert("of_a_later_build".to_owned(), 1.0);
        named.remove("lag_floor_ns");
        let without = Thresholds {
            lag_floor_ns: Thresholds::default().lag_floor_ns,
            ..ours
        };
        assert_eq!(Thresholds::named(&named), without);
    }
}
