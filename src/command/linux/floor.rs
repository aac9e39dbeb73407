//! `plumbline floor`: bare loops, to measure the engine against.

use std::process::ExitCode;
use std::time::Duration;

use plumbline_report::latency::latency_json;
use plumbline_validation::floor;
use serde_json::json;

use crate::cli::FloorArgs;
use crate::command::print_json;

pub(crate) fn run(args: &FloorArgs) -> anyhow::Result<ExitCode> {
    let length = Duration::from_secs(args.seconds);
    if args.serve {
        match floor::answer(args.address, args.size)? {}
    } else if let Some(connections) = args.http {
        print_json(&floor::ask(args.address, connections, args.driver, length)?)?;
    } else {
        let latency = floor::ping(args.address, args.size, length)?;
        print_json(&json!({ "latency_ns": latency_json(&latency) }))?;
    }
    Ok(ExitCode::SUCCESS)
}
