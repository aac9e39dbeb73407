//! Flags of `load` and `serve` as what they ask for.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use plumbline_engine::{LoadPlan, ServePlan};
use plumbline_experiment::{
    ArrivalProcess, DriverChoice, Protocol, Refusal, Spelling, Timing, Wait, Workload,
    WorkloadRequest, stamped_share, typed,
};
use plumbline_generator::Destination;

use crate::cli::{LoadArgs, ServeArgs};
use crate::command::BadUsage;

/// Replaced when the name of the target is resolved: flags are checked first.
const UNRESOLVED: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The load that the flags ask for. Its target is not resolved yet.
pub(super) fn plan(args: &LoadArgs, destination: &Destination) -> Result<LoadPlan, BadUsage> {
    let (warm_up, measure) = times(args)?;
    let workload = workload(args, destination)?;
    refuse(args.threads == 0, "--threads 0 would send nothing; use 1")?;
    refuse(
        args.threads > workload.connections as usize,
        "every thread needs a connection of its own; use fewer --threads or more --connections",
    )?;
    if args.find_max.limit.is_none() {
        workload.refuse_empty_window(measure).map_err(refused)?;
    }
    Ok(LoadPlan {
        authority: Some(destination.authority.clone()),
        path: destination.path.clone(),
        warm_up,
        measure,
        seed: args.seed,
        threads: args.threads,
        cpus: args.cpus.clone(),
        ramp: args.ramp,
        sources: args.source.clone(),
        trains: args.gso,
        secret: args.secret,
        // Only our own responder makes bodies that can be checked byte for byte.
        verify: !destination.is_url,
        ..LoadPlan::new(workload, UNRESOLVED)
    })
}

pub(in crate::command) fn server(args: &ServeArgs) -> Result<ServePlan, BadUsage> {
    refuse(args.threads == 0, "--threads 0 would answer nothing; use 1")?;
    let asked = WorkloadRequest {
        protocol: args.udp.then_some(Protocol::Udp),
        request_size: args.request_size.map(i64::from),
        response_size: args.response_size.map(i64::from),
        process: Some(ArrivalProcess::Closed),
        think: args.think.as_deref().map(thinking).transpose()?,
        ..WorkloadRequest::default()
    };
    let workload = asked.workload(args.workload).map_err(refused)?;
    Ok(ServePlan {
        threads: args.threads,
        cpus: args.cpus.clone(),
        secret: args.secret,
        ..ServePlan::new(workload, args.listen)
    })
}

fn thinking(text: &str) -> Result<Duration, BadUsage> {
    typed::time(text, "--think").map_err(BadUsage)
}

fn workload(args: &LoadArgs, destination: &Destination) -> Result<Workload, BadUsage> {
    let kind = args.workload.unwrap_or(destination.kind());
    refuse(
        destination.is_url && kind != destination.kind(),
        "a URL is fetched over HTTP; for another workload write HOST:PORT",
    )?;
    refuse(
        destination.is_url && args.response_size.is_some(),
        "the server decides how long its answers are; leave --response-size out",
    )?;
    let limit = args.find_max.limit;
    refuse(
        args.timestamps != "off" && limit.is_some(),
        "--timestamps shows a single load, not a search; leave it out, or look at the rate that was found",
    )?;
    let asked = WorkloadRequest {
        protocol: args.udp.then_some(Protocol::Udp),
        request_size: args.request_size.map(i64::from),
        response_size: args.response_size.map(i64::from),
        connections: Some(i64::from(args.connections)),
        process: process(args),
        rate: args.rate,
        // The whole of the maximum that is searched for.
        load: limit.map(|_| 1.0),
        limit,
        keep_alive: args.no_keep_alive.then_some(false),
        wait: args.spin.then_some(Wait::Spin),
        driver: Some(args.driver).filter(|it| *it != DriverChoice::Auto),
        zero_copy: args.zerocopy.then_some(true),
        timestamps: timestamps(args)?,
        ..WorkloadRequest::default()
    };
    asked.workload(kind).map_err(refused)
}

/// Without a rate, a load is a closed loop.
fn process(args: &LoadArgs) -> Option<ArrivalProcess> {
    let has_rate = args.rate.is_some() || args.find_max.limit.is_some();
    args.arrival
        .or((!has_rate).then_some(ArrivalProcess::Closed))
}

fn timestamps(args: &LoadArgs) -> Result<Option<f64>, BadUsage> {
    match stamped_share(&args.timestamps) {
        Some(0.0) => Ok(None),
        Some(share) => Ok(Some(share)),
        None => Err(BadUsage(format!(
            "--timestamps={}: write the share of requests that the kernel timestamps, such as 1%, or off",
            args.timestamps
        ))),
    }
}

fn times(args: &LoadArgs) -> Result<(Duration, Duration), BadUsage> {
    let warm_up = typed::time(&args.warm_up, "--warm-up").map_err(BadUsage)?;
    let measure = typed::time(&args.duration, "--duration").map_err(BadUsage)?;
    let timing = Timing {
        warm_up_ns: nanoseconds(warm_up),
        measure_ns: nanoseconds(measure),
        drain_ns: 0,
    };
    timing.check().map_err(refused)?;
    Ok((warm_up, measure))
}

/// Far more than the ceilings where it is more than 64 bits hold.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn refused(refusal: Refusal) -> BadUsage {
    BadUsage(refusal.in_line(Spelling::Flags))
}

fn refuse(contradiction: bool, why: &str) -> Result<(), BadUsage> {
    if contradiction {
        return Err(BadUsage(why.to_owned()));
    }
    Ok(())
}
