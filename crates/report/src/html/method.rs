//! How a run was measured, in words.

use std::collections::BTreeSet;

use plumbline_experiment::Layout;
use plumbline_record::Run;
use plumbline_stats::family::minimum_blocks;

use crate::analysis::{ALPHA, Summary};
use crate::{describe, number, terminal};

/// Paragraphs on design, load and judgement.
pub(super) fn paragraphs(summary: &Summary, run: &Run) -> Vec<String> {
    let mut paragraphs = vec![design(summary, run)];
    paragraphs.extend(looks(run));
    paragraphs.extend(pairs(run));
    paragraphs.extend(describe::link(summary));
    paragraphs.extend(loads(run));
    paragraphs.extend(shares(summary));
    paragraphs.push(
        "Latency is counted from the moment at which a request was due, not from the moment at \
         which it was sent, so a stall is charged to every request that it held up. A percentile \
         is shown only with at least 100 independent samples beyond it; the median with its \
         interval is taken over trials, and percentiles are never averaged. A trial whose sender \
         was itself late at p99 counts for median and CPU, but not for percentiles from p99 up."
            .to_owned(),
    );
    paragraphs.push(cpu(summary));
    paragraphs.push(judgement(summary));
    paragraphs
}

fn design(summary: &Summary, run: &Run) -> String {
    let plan = &run.plan;
    let (seed, retries) = (plan.seed, plan.retries);
    let blocks = number::counted(summary.blocks as u64, "block");
    let treatments = plan.treatments.len();
    match summary.slices_ns {
        None => format!(
            "{blocks}, each with every treatment once, {treatments} in all, in random order (seed \
             {seed}). A trial has fresh endpoints; one that fails a validity gate is repeated up \
             to {retries} times, and only its last valid attempt counts."
        ),
        Some(_) => format!(
            "{blocks}, each with every treatment once, {treatments} in all (seed {seed}). In a \
             block those of one workload stand at once, with fresh endpoints, and take turns, in \
             random order in each rotation. Where one fails a validity gate, all of them are \
             repeated, up to {retries} times, and of their attempts one counts, for all the same: \
             that with the most valid trials, of equals the last."
        ),
    }
}

fn cpu(summary: &Summary) -> String {
    let idle = match summary.slices_ns {
        None => {
            "The total comes from idle time; where the kernel shows that in steps of 10 ms, no \
             interval is narrower than these steps allow."
        }
        Some(_) => {
            "The total comes from idle time. In slices that is read from cpuidle; where there is \
             none, it is divided among them by when the kernel's steps of 10 ms are seen, and how \
             far that is off is in the spread over blocks alone. Where only whole steps count, no \
             interval is narrower than these allow."
        }
    };
    format!(
        "CPU is that of the whole machine, interrupts included, less what it uses without load \
         and what the sender spun while it waited for a deadline, divided by the requests \
         answered or the bytes carried. {idle} Its split by context comes from the kernel's \
         ticks, in proportion. The CPU of the processes (agents, programs that forward, \
         ksoftirqd) comes from their own clocks and knows nothing of interrupts that meet an idle \
         CPU. Packets per second and the receiver's CPU are counted over whole trials and scaled \
         to the window."
    )
}

/// When verdicts might end the run, where they might.
fn looks(run: &Run) -> Option<String> {
    let looks = run.plan.sequential.as_ref()?.looks.iter();
    let looks: Vec<String> = looks.map(usize::to_string).collect();
    Some(format!(
        "The run was to end as soon as every limit was decided, and looked at that after {} blocks \
         and at no other time, unless time ran out. Intervals are wider for it, so that they hold \
         at all of these looks (Pocock 1977; Jennison and Turnbull 1989).",
        looks.join(", ")
    ))
}

/// On which pairs of nodes each treatment ran, where there are several.
fn pairs(run: &Run) -> Option<String> {
    let pairing = run.plan.pairing.as_ref()?;
    let how = match pairing.layout {
        Layout::Mesh => format!(
            "Every treatment of a block ran on all {} pairs of {} nodes, in {} rounds in which no \
             node is in two pairs, in an order of their own in each block; every other block \
             turns all pairs round.",
            pairing.pairs(),
            pairing.nodes.len(),
            pairing.rounds()
        ),
        Layout::Pairs => format!(
            "Every treatment of a block ran on {} pairs of nodes; every other block turns all \
             pairs round.",
            pairing.pairs()
        ),
    };
    Some(format!(
        "{how} The pairs of a round start their load at the same moment, except that a mesh \
         whose nodes are one kernel has one trial at a time. Treatments are compared on the same \
         pair of the same block, and the pairs of a block count as one."
    ))
}

/// A sentence for each workload with the phases of its trials.
fn loads(run: &Run) -> BTreeSet<String> {
    let sentence = |treatment: &plumbline_experiment::Treatment| {
        let timing = treatment.timing;
        format!(
            "{}: {}. Warm-up {}, measured {}, then at most {} for outstanding answers.",
            describe::clean(treatment.task.name()),
            describe::task(&treatment.task),
            number::duration(timing.warm_up_ns as f64),
            number::duration(timing.measure_ns as f64),
            number::duration(timing.drain_ns as f64),
        )
    };
    run.plan.treatments.iter().map(sentence).collect()
}

/// What the loads are shares of, where they are.
fn shares(summary: &Summary) -> Option<String> {
    let maxima = terminal::maxima(summary);
    (!maxima.is_empty()).then(|| {
        format!(
            "Loads are shares of the baseline’s maximum, searched before the first block (MLRsearch): {}.",
            maxima.join("; ")
        )
    })
}

fn judgement(summary: &Summary) -> String {
    let primary = summary
        .comparisons
        .iter()
        .filter(|one| one.is_primary)
        .count();
    format!(
        "A change is the mean of the paired log-ratios against the baseline of the same block. \
         The {primary} primary comparisons were declared before the run and are judged together: \
         their 95 % intervals hold all at once (signs of whole blocks flipped, largest statistic, \
         Romano and Wolf 2005), so an interval without zero is a difference. It takes at least {} \
         blocks. “Equivalent” means that the whole interval lies inside the margin that does not \
         matter in practice; “would have been seen” is the change that this run would have found \
         with 80 % probability.",
        minimum_blocks(ALPHA)
    )
}
