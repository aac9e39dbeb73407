//! `plumbline serve`: the other end of `load`.

use std::process::ExitCode;

use plumbline_engine::{Responder, ServePlan};
use plumbline_experiment::{Protocol, Workload};
use plumbline_report::number;

use super::print;
use crate::cli::ServeArgs;

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let mut workload = Workload::of_kind(super::load::cli_kind(args.workload));
    workload.protocol = if args.udp {
        Protocol::Udp
    } else {
        workload.protocol
    };
    workload.request_size = args.request_size.unwrap_or(workload.request_size);
    workload.response_size = args.response_size.unwrap_or(workload.response_size);
    let plan = ServePlan {
        threads: args.threads,
        cpus: args.cpus.clone(),
        ..ServePlan::new(workload, args.listen)
    };
    let interrupted = plumbline_sys::signal::interruption()?;
    let responder = Responder::bind(&plan)?;
    anstream::eprintln!(
        "{} on {}; Ctrl-C ends it",
        plan.workload.name,
        responder.local_addr()
    );
    let result = responder.run(interrupted)?;
    print(&format!(
        "{} connections, {} requests, {} received, {} sent\n",
        result.connections,
        result.requests,
        number::plain(&number::bytes(result.bytes_received as f64)),
        number::plain(&number::bytes(result.bytes_sent as f64))
    ))?;
    if let Some(datagrams) = result.datagrams {
        print(&format!(
            "{} messages, {} reordered, {} twice\n",
            datagrams.received, datagrams.reordered, datagrams.duplicated
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
