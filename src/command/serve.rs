//! `plumbline serve`: the other end of `load`.

use std::process::ExitCode;

use plumbline_engine::{Responder, ServePlan};
use plumbline_experiment::{Protocol, Workload, WorkloadKind};
use plumbline_record::{DatagramCounts, ServeResult};
use plumbline_report::number;

use super::{load, print, print_json};
use crate::cli::ServeArgs;

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    load::check_serve(args)?;
    let mut workload = Workload::of_kind(load::cli_kind(args.workload));
    if args.udp {
        workload.protocol = Protocol::Udp;
    }
    workload.request_size = args.request_size.unwrap_or(workload.request_size);
    workload.response_size = args.response_size.unwrap_or(workload.response_size);
    let plan = ServePlan {
        threads: args.threads,
        cpus: args.cpus.clone(),
        ..ServePlan::new(workload, args.listen)
    };
    let interrupted = plumbline_sys::signal::interruption()?;
    let responder = Responder::bind(&plan).map_err(load::usage_or_error)?;
    anstream::eprintln!(
        "{} on {}; Ctrl-C ends it",
        plan.workload.name,
        responder.local_addr()
    );
    let result = responder.run(interrupted).map_err(load::usage_or_error)?;
    if args.json {
        print_json(&result)?;
    } else {
        print(&to_text(&plan.workload, &result))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn to_text(spec: &Workload, result: &ServeResult) -> String {
    let size = |bytes: u64| number::plain(&number::bytes(bytes as f64));
    let received = size(result.bytes_received);
    let mut text = match result.datagrams {
        Some(counts) => datagrams(&counts),
        None if spec.kind == WorkloadKind::Stream => {
            format!("{} connections, {received} received\n", result.connections)
        }
        None => format!(
            "{} connections, {} requests, {received} received, {} sent\n",
            result.connections,
            result.requests,
            size(result.bytes_sent)
        ),
    };
    if result.turned_away > 0 {
        text += &format!(
            "TURNED AWAY  {} connections: this process may not have more files open; raise the hard limit (`ulimit -n` as root), or use fewer connections\n",
            result.turned_away
        );
    }
    if result.corrupt > 0 {
        text += &format!(
            "WRONG        {} were not what `load` sends with these sizes; start both ends with the same workload and sizes\n",
            result.corrupt
        );
    }
    text
}

/// The measured messages of all loads that came by.
fn datagrams(counts: &DatagramCounts) -> String {
    let sent = counts.received + counts.missing;
    let lost = if sent == 0 {
        0.0
    } else {
        counts.missing as f64 / sent as f64
    };
    format!(
        "{} messages received, {} lost ({:.3} %), {} reordered, {} twice; a loss after the last one that arrived is not seen: \
         compare with what `load` sent\n",
        counts.received,
        counts.missing,
        lost * 100.0,
        counts.reordered,
        counts.duplicated
    )
}
