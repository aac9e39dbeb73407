//! Warnings in words, each with its remedy.

use plumbline_record::Warning;

use crate::number;

/// A warning as a sentence without its full stop, such as `the hypervisor took
/// 2.0 % of the CPU time; use a dedicated machine, or more blocks`. Where it is shown, what to do
/// comes first, so no word there leans on what is said before it.
pub fn text(warning: &Warning) -> String {
    match warning {
        Warning::Nodes { detail } => detail.clone(),
        Warning::Unguarded { why } => {
            // Some runs can have none, whatever their user does.
            let remedy = match parts(why) {
                (_, Some(_)) => "",
                _ => "; measure where nobody else sends to the run's pods",
            };
            format!("no NetworkPolicy kept others from the pods of the run: {why}{remedy}")
        }
        Warning::TrackingUnseen => TRACKING_UNSEEN.to_owned(),
        Warning::OneKernel => ONE_KERNEL.to_owned(),
        Warning::UserModeKernel => USER_MODE_KERNEL.to_owned(),
        Warning::SharedCpus { cpus } => format!(
            "with {cpus} CPU{} the two ends and the network compete, which lengthens the tail; use \
             a machine with 4 or more",
            if *cpus == 1 { "" } else { "s" }
        ),
        Warning::OtherServer { wanted, answered } => format!(
            "{wanted} is not installed where the receiver ran, so {answered} answered; install \
             {wanted} to compare with what others measured against it"
        ),
        Warning::Unsupported { network, needs } => format!("{network} was left out: {needs}"),
        Warning::NotEnforced {
            label,
            policies,
            enforcer,
            detail,
            blocks,
            planned,
        } => format!(
            "{} not enforced on {label}: {detail}, in {blocks} of {planned} blocks, of which nothing \
             counts; look for traffic that passes the rules by and for programs that change them, \
             then measure these blocks again with `run --resume`",
            whose(*policies, enforcer)
        ),
        Warning::CarriesNothing { network, reason } => {
            format!("{network} could not carry a packet: {reason}")
        }
        Warning::StandsFor { alias, network } => format!(
            "{}: {MODELLED}; docs/networks.md says what is modelled",
            measured_as(alias, network)
        ),
        Warning::ShorterWindows { share } => format!(
            "windows were shortened to {} to keep to the time budget, so intervals are wider; \
             choose fewer networks, or raise design.budget",
            percent(*share)
        ),
        Warning::ClosedLoop { outstanding } => format!(
            "closed loop, {outstanding} outstanding: a stall holds back the load too, so the tail \
             is understated; set a rate for an open loop"
        ),
        Warning::TooFewBlocks { blocks, needed } => format!(
            "{} {} too few for an interval; use --blocks {needed} or more",
            number::counted((*blocks).into(), "block"),
            if *blocks == 1 { "is" } else { "are" }
        ),
        Warning::FewRepetitions {
            repetitions,
            needed,
        } => format!(
            "fewer than {needed} repetitions of the command ({repetitions}), so what it does now \
             and then may not be among them; use --blocks {needed} or more"
        ),
        Warning::RetriesExhausted { treatment } => format!(
            "{treatment} failed its validity gates in every attempt of a block, which is missing \
             from its comparison; remove what trials failed by, and measure again"
        ),
        Warning::CutOff { finished, planned } => {
            format!("cut off after {finished} of {planned} trials; go on with `run --resume`")
        }
        Warning::DamagedLines { lines } => format!(
            "{lines} line{} not what was written to trials.jsonl, and what stood there is left \
             out; restore trials.jsonl from a copy, or measure again with `run --resume`",
            if *lines == 1 { " is" } else { "s are" }
        ),
        Warning::MixedBuilds { builds } => format!(
            "{builds} builds of Plumbline ran these trials, so any difference may come from the \
             program; measure anew with one build"
        ),
        Warning::Steal { share } => format!(
            "the hypervisor took {:.1} % of the CPU time; use a dedicated machine, or more blocks",
            share * 100.0
        ),
        Warning::OtherLoad { share } => format!(
            "other programs used {} of the CPU time, so intervals are wider than they could be; \
             stop what else runs",
            percent(*share)
        ),
        Warning::NoTurns { why } => format!(
            "networks were measured one after the other and not in turns ({why}), so intervals are wider; \
             use more blocks"
        ),
        Warning::NearSaturation { share } => format!(
            "the machine was {} busy at a held rate; lower --rate for latencies without queueing",
            percent(*share)
        ),
        Warning::GeneratorBusy { share } => format!(
            "the sender itself was {} busy, so answers waited for it; lower the rate",
            percent(*share)
        ),
        // Only in runs of earlier builds, which held it against no answer at all.
        Warning::TailLag {
            lag_ns,
            latency_ns: 0,
        } => format!(
            "the sender itself was {} late at p99, and nothing was answered in time; lower the rate, \
             or use a machine with more CPUs",
            duration(*lag_ns)
        ),
        Warning::TailLag { lag_ns, latency_ns } => format!(
            "the sender itself was {} late at p99, more than half of the latency of {} that it is \
             held against: from p99 up that is the generator, not the network; use --wait spin, or \
             a machine with more CPUs",
            duration(*lag_ns),
            duration(*latency_ns)
        ),
        Warning::MaximumOfTheGenerator { workload } => format!(
            "the generator was the limit of `{workload}`, not the network, so its loads are shares \
             of what the generator can send; use --wait spin, or a machine with more CPUs"
        ),
        Warning::ArrivalsDistorted {
            distance,
            waited_share,
        } => format!(
            "requests did not go out as Poisson arrivals (distance {distance:.2}), {}",
            cause(*waited_share)
        ),
        Warning::UnevenGaps {
            error_ns,
            waited_share,
        } => format!(
            "requests did not go out at equal gaps ({} off at p99), {}",
            microseconds(*error_ns),
            cause(*waited_share)
        ),
        Warning::LevelChanged {
            at,
            before_ns,
            after_ns,
        } => format!(
            "the latency went from {} to {} within a window, {} into it: no steady state; use a \
             longer warm-up",
            duration(*before_ns),
            duration(*after_ns),
            percent(*at)
        ),
        Warning::GeneratorWasTheLimit {
            sent_share,
            lag_ns,
            busy_share,
        } => format!(
            "the generator was the limit, not the network: it sent {} of what was due, one request \
             in ten more than {} late, and was {} busy; lower the rate, let the generator wait by \
             spinning, or give it more CPUs",
            percent(*sent_share),
            microseconds(*lag_ns),
            percent(*busy_share)
        ),
        Warning::ClientDiffers {
            client,
            p99_ns,
            others_ns,
        } => format!(
            "thread {client} of the sender saw a p99 of {}, and no other thread came nearer than \
             {}: the percentiles mix two paths; pin the threads to CPUs of their own, or look for \
             what sets the connections of one apart",
            microseconds(*p99_ns),
            microseconds(*others_ns)
        ),
    }
}

/// Why to distrust, and what to do about it, if there is anything to do.
pub(crate) fn parts(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once("; ") {
        Some((reason, remedy)) => (reason, Some(remedy)),
        None => (text, None),
    }
}

const TRACKING_UNSEEN: &str = "no pod saw how many connections the cluster's nodes tracked under \
    services and policies, so a full table of theirs voided no trial; use --allow-host-network";

const ONE_KERNEL: &str = "both ends share one kernel and one memory, and throughput is memory copies \
    and stack, not a link; read the figures as relative";

const USER_MODE_KERNEL: &str = "the kernel is User-mode Linux: system calls cost 20 to 50 µs, so \
    each latency holds some 50 µs of the sender's own lateness, and under load its wait for the one \
    CPU; read differences in µs, not in percent";

/// What a network that was asked for by another name is.
pub(crate) fn measured_as(alias: &str, network: &str) -> String {
    format!("{alias} is measured as `{network}`")
}

/// What is measured of a system.
pub(crate) const MODELLED: &str =
    "the path that it programs, without its agents, rules and policies";

/// How many policies, and who is to enforce them: `200 policies by cilium were`.
fn whose(policies: u32, enforcer: &str) -> String {
    let enforcer = match enforcer {
        "own" => "the network itself",
        system => system,
    };
    match policies {
        0 => "a policy was".to_owned(),
        1 => format!("1 policy by {enforcer} was"),
        several => format!("{several} policies by {enforcer} were"),
    }
}

/// Why requests went out at other times than planned.
fn cause(waited_share: f64) -> &'static str {
    // What waited for a connection waited for answers.
    if waited_share > 0.05 {
        "because all connections were taken; use more connections, or a lower rate"
    } else {
        "because the sender was late, or still busy with the request before; lower the rate, use \
         --wait spin, or a machine with more CPUs"
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn microseconds(ns: u64) -> String {
    format!("{:.0} µs", ns as f64 / 1e3)
}

/// A latency in a readable unit: an overload lasts seconds.
fn duration(ns: u64) -> String {
    match ns {
        0..10_000_000 => microseconds(ns),
        10_000_000..10_000_000_000 => format!("{:.0} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_has_its_figures_and_its_remedy() {
        let limit = text(&Warning::GeneratorWasTheLimit {
            sent_share: 0.8,
            lag_ns: 400_100,
            busy_share: 0.41,
        });
        assert!(
            limit.starts_with(
                "the generator was the limit, not the network: it sent 80 % of what was due, one \
                 request in ten more than 400 µs late, and was 41 % busy; lower the rate"
            ),
            "{limit}"
        );
        let few = text(&Warning::TooFewBlocks {
            blocks: 1,
            needed: 6,
        });
        assert!(few.starts_with("1 block is too few for"), "{few}");
        let guarded = text(&Warning::Unguarded {
            why: "it was not asked for".to_owned(),
        });
        assert!(guarded.ends_with("; measure where nobody else sends to the run's pods"));
        let server = text(&Warning::OtherServer {
            wanted: "nginx".to_owned(),
            answered: "plumbline".to_owned(),
        });
        assert!(
            server.contains("plumbline answered; install nginx"),
            "{server}"
        );
    }

    #[test]
    fn latencies_of_an_overload_are_readable() {
        let text = text(&Warning::LevelChanged {
            at: 0.5,
            before_ns: 40_000,
            after_ns: 2_500_000_000,
        });
        assert!(text.contains("from 40 µs to 2500 ms within"), "{text}");
    }
}
