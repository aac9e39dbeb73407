//! Every trial in a row of its own, the discarded ones too.

use plumbline_record::{Trial, TrialStatus};

use crate::analysis::{Quantity, Summary, TreatmentSummary, metrics_among, part_of, unenforced};
use crate::figures::{Table, head};
use crate::{describe, number, progress};

/// The column of what became of it.
const STATUS: usize = 6;

/// The column of the pair, where there are several.
const NODES: usize = 4;

/// All trials in the order in which they were run.
pub(super) fn table(summary: &Summary, trials: &[Trial]) -> Table {
    let mut head = head([
        "block",
        "position",
        "network",
        "workload",
        "attempt",
        "started",
        "status",
        "latency",
        "throughput",
        "CPU",
        "lag p99",
        "took",
    ]);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let has_pairs = trials.iter().any(|trial| trial.pair.is_some());
    if has_pairs {
        head.insert(NODES, "nodes".to_owned());
    }
    let void = unenforced(trials);
    for trial in trials.iter().filter(|trial| trial.set_up().is_none()) {
        let Some(mut row) = row(summary, trial) else {
            continue;
        };
        if trial.status == TrialStatus::Valid && void.contains(&part_of(trial)) {
            row[STATUS] = "in a block without enforcement".to_owned();
        }
        if has_pairs {
            let pair = trial.pair.as_ref();
            let nodes = pair.map(|pair| format!("{} to {}", pair.client, pair.server));
            let nodes = nodes.unwrap_or_else(|| number::NONE.to_owned());
            row.insert(NODES, describe::clean(&nodes));
        }
        rows.push(row);
    }
    Table { head, rows }
}

fn row(summary: &Summary, trial: &Trial) -> Option<Vec<String>> {
    let treatment = summary.treatments.get(trial.treatment)?;
    let value = |quantity| value_among(treatment, trial, quantity);
    let time = match treatment.treatment.task.load() {
        Some(_) => Quantity::Latency,
        None => Quantity::Event,
    };
    let observation = trial.observation.as_ref();
    let lag = observation
        .and_then(|one| Some(&one.load()?.load.send_lag))
        .filter(|lag| !lag.is_empty())
        .map(|lag| number::duration(lag.value_at(0.99) as f64));
    Some(vec![
        ordinal(trial.block),
        ordinal(trial.position),
        describe::clean(&treatment.treatment.label),
        describe::clean(treatment.treatment.task.name()),
        ordinal(trial.attempt),
        describe::clean(&trial.started),
        status(&trial.status),
        value(time),
        value(Quantity::Throughput),
        value(Quantity::Cpu),
        lag.unwrap_or_else(|| number::NONE.to_owned()),
        number::duration(trial.took_ns as f64),
    ])
}

/// People count from 1.
fn ordinal(index: u32) -> String {
    (u64::from(index) + 1).to_string()
}

/// The first metric among certain figures that the trial's workload is compared on.
fn value_among(treatment: &TreatmentSummary, trial: &Trial, quantity: Quantity) -> String {
    let task = &treatment.treatment.task;
    let metric = metrics_among(task, quantity).next();
    let value = metric.and_then(|(metric, _)| {
        let value = metric.of_trial(task, trial.observation.as_ref()?)?;
        Some(describe::value(metric, value))
    });
    value.unwrap_or_else(|| number::NONE.to_owned())
}

fn status(status: &TrialStatus) -> String {
    match status {
        TrialStatus::Valid => "kept".to_owned(),
        TrialStatus::Invalid { gates } => {
            let gates: Vec<String> = gates.iter().map(progress::gate).collect();
            gates.join("; ")
        }
        TrialStatus::Failed { error } => format!("failed: {}", describe::first_line(error)),
    }
}
