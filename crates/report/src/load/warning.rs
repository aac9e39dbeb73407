//! Reasons to distrust a load, in words.

use plumbline_record::LoadWarning;

use crate::number;

/// A warning as one sentence, with its remedy.
pub(super) fn in_words(warning: &LoadWarning) -> String {
    match warning {
        LoadWarning::OfTrials(warning) => crate::warning::text(warning),
        LoadWarning::WorkersShareCpus { workers, cpus } => format!(
            "{workers} workers share {}; use fewer --threads or name more --cpus",
            listed(cpus)
        ),
        LoadWarning::EndsShareCpus { cpus } => format!(
            "sender and receiver share {}: each waits for the other, and is charged for it; give both CPUs of their own with --cpus",
            listed(cpus)
        ),
        LoadWarning::Overrun { rate } => format!(
            "{}/s is far more than both ends together can do: none of the window's requests was \
             answered, as those of the warm-up were still waiting; lower --rate, or let --find-max search",
            number::count(*rate)
        ),
        LoadWarning::GeneratorLate {
            quantile,
            lag_ns,
            latency_ns,
        } => late(*quantile, *lag_ns, *latency_ns),
        LoadWarning::Saturated { busy_share } => format!(
            "the sender's busiest thread was {} busy, so the rate may be its own limit; more --threads would show",
            number::percent(*busy_share)
        ),
        LoadWarning::Copied { copied, writes } => format!(
            "the kernel copied {copied} of {writes} writes all the same, as it does where packets stay on one machine \
             (loopback, veth) and where a device cannot gather: that costs more than plain sending; leave --zerocopy out"
        ),
        LoadWarning::CutOff { after_ns, of_ns } => format!(
            "cut off after {:.1} of {:.1} s",
            *after_ns as f64 / 1e9,
            *of_ns as f64 / 1e9
        ),
        LoadWarning::Unanswered { requests } => format!(
            "{requests} requests were never answered; they count as at least as late as the end of the load"
        ),
    }
}

fn late(quantile: f64, lag_ns: u64, latency_ns: u64) -> String {
    let shown = |ns: u64| number::plain(&number::duration(ns as f64));
    let name = number::percentile_name(quantile);
    format!(
        "the generator sent late: lag {name} {} of latency {name} {}; the figures are the \
         generator's; use --spin or fewer connections",
        shown(lag_ns),
        shown(latency_ns)
    )
}

/// `2 CPUs (0,1)`.
fn listed(cpus: &[usize]) -> String {
    let names: Vec<_> = cpus.iter().map(usize::to_string).collect();
    match cpus.len() {
        1 => format!("one CPU ({})", names[0]),
        n => format!("{n} CPUs ({})", names.join(",")),
    }
}
