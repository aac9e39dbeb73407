//! From flags to plans.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use plumbline_engine::{LoadPlan, ServePlan};
use plumbline_experiment::{
    ArrivalProcess, DriverChoice, Protocol, Refusal, Spelling, Timing, Wait, Workload,
    WorkloadKind, WorkloadRequest, stamped_share, typed,
};
use plumbline_harness::SearchPlan;

use super::{LoadArgs, ServeArgs};
use crate::{Destination, GeneratorError, SearchRequest};

/// Replaced when the name of the target is resolved: flags are checked first.
const UNRESOLVED: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

impl LoadArgs {
    /// The load that the flags ask for. Its target is not resolved yet.
    ///
    /// # Errors
    ///
    /// Flags that contradict each other, or the destination.
    pub fn plan(&self, destination: &Destination) -> Result<LoadPlan, GeneratorError> {
        let (warm_up, measure) = times(self)?;
        let workload = workload(self, destination)?;
        refuse(self.threads == 0, "--threads 0 would send nothing; use 1")?;
        refuse(
            self.threads > workload.connections as usize,
            "every thread needs a connection of its own; use fewer --threads or more --connections",
        )?;
        if self.find_max.limit.is_none() {
            workload.refuse_empty_window(measure).map_err(refused)?;
        }
        Ok(LoadPlan {
            authority: Some(destination.authority.clone()),
            path: destination.path.clone(),
            warm_up,
            measure,
            seed: self.seed,
            threads: self.threads,
            cpus: self.cpus.clone(),
            ramp: self.ramp,
            sources: self.source.clone(),
            trains: self.gso,
            secret: self.secret,
            // Only our own responder makes bodies that can be checked byte for byte.
            verify: !destination.is_url,
            ..LoadPlan::new(workload, UNRESOLVED)
        })
    }

    /// What to search for, if anything.
    ///
    /// # Errors
    ///
    /// Kinds without answers to count, and bounds that contradict each other.
    pub fn search(&self, kind: WorkloadKind) -> Result<Option<SearchPlan>, GeneratorError> {
        let asked = &self.find_max;
        let Some(limit) = asked.limit else {
            return Ok(None);
        };
        let request = SearchRequest {
            limit,
            trial: time(&asked.trial, "--trial")?,
            trials: asked.trials,
            width: asked.width / 100.0,
            up_to: asked.up_to,
        };
        request.plan(kind).map(Some)
    }
}

impl ServeArgs {
    /// The responder that the flags ask for.
    ///
    /// # Errors
    ///
    /// Flags that contradict each other.
    pub fn plan(&self) -> Result<ServePlan, GeneratorError> {
        refuse(self.threads == 0, "--threads 0 would answer nothing; use 1")?;
        let asked = WorkloadRequest {
            protocol: self.udp.then_some(Protocol::Udp),
            request_size: self.request_size.map(i64::from),
            response_size: self.response_size.map(i64::from),
            process: Some(ArrivalProcess::Closed),
            think: self
                .think
                .as_deref()
                .map(|it| time(it, "--think"))
                .transpose()?,
            ..WorkloadRequest::default()
        };
        let workload = asked.workload(self.workload).map_err(refused)?;
        Ok(ServePlan {
            threads: self.threads,
            cpus: self.cpus.clone(),
            secret: self.secret,
            ..ServePlan::new(workload, self.listen)
        })
    }
}

fn time(text: &str, flag: &str) -> Result<Duration, GeneratorError> {
    typed::time(text, flag).map_err(GeneratorError::Refused)
}

fn workload(args: &LoadArgs, destination: &Destination) -> Result<Workload, GeneratorError> {
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

fn timestamps(args: &LoadArgs) -> Result<Option<f64>, GeneratorError> {
    match stamped_share(&args.timestamps) {
        Some(0.0) => Ok(None),
        Some(share) => Ok(Some(share)),
        None => Err(GeneratorError::Refused(format!(
            "--timestamps={}: write the share of requests that the kernel timestamps, such as 1%, or off",
            args.timestamps
        ))),
    }
}

fn times(args: &LoadArgs) -> Result<(Duration, Duration), GeneratorError> {
    let warm_up = time(&args.warm_up, "--warm-up")?;
    let measure = time(&args.duration, "--duration")?;
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

fn refused(refusal: Refusal) -> GeneratorError {
    GeneratorError::Refused(refusal.in_line(Spelling::Flags))
}

fn refuse(contradiction: bool, why: &str) -> Result<(), GeneratorError> {
    if contradiction {
        return Err(GeneratorError::Refused(why.to_owned()));
    }
    Ok(())
}
