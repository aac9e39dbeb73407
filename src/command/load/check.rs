//! Contradictions between the flags of `load`, and those of `serve`.

use std::time::Duration;

use plumbline_experiment::WorkloadKind;

use super::{BadUsage, Destination, cli_kind, duration, kind};
use crate::cli::{Driver, LoadArgs, ServeArgs};

/// Refuses flags of `load` that cannot be meant together.
pub(super) fn load(args: &LoadArgs, destination: &Destination) -> Result<(), BadUsage> {
    let kind = kind(args, destination);
    amounts(args)?;
    times(args)?;
    refuse(
        destination.http && kind != WorkloadKind::Http,
        "a URL is asked for by HTTP; for another workload write HOST:PORT",
    )?;
    refuse(
        args.arrival.is_some() && args.rate.is_none() && args.find_max.limit.is_none(),
        "--arrival says how the requests of a --rate are spread; give a --rate too",
    )?;
    refuse(
        args.no_keep_alive && kind != WorkloadKind::Http,
        "--no-keep-alive is for HTTP; for a connection per request otherwise use --workload crr",
    )?;
    refuse(
        kind == WorkloadKind::Stream && args.rate.is_some(),
        "a stream carries as much as the path takes; leave --rate out",
    )?;
    refuse(
        destination.http && args.response_size.is_some(),
        "the server decides how long its answers are; leave --response-size out",
    )?;
    refuse(
        args.driver == Driver::Uring
            && matches!(kind, WorkloadKind::Stream | WorkloadKind::Datagram),
        "streams and datagrams always go by epoll; leave --driver out",
    )?;
    transport(kind, args.udp)?;
    sizes(kind, args.request_size, args.response_size)
}

/// Refuses flags of `serve` that cannot be meant together.
pub(in crate::command) fn serve(args: &ServeArgs) -> Result<(), BadUsage> {
    let kind = cli_kind(args.workload);
    refuse(args.threads == 0, "--threads 0 would answer nothing; use 1")?;
    transport(kind, args.udp)?;
    sizes(kind, args.request_size, args.response_size)
}

fn amounts(args: &LoadArgs) -> Result<(), BadUsage> {
    refuse(args.threads == 0, "--threads 0 would send nothing; use 1")?;
    refuse(
        args.connections == 0,
        "--connections 0 would send nothing; use at least 1",
    )?;
    refuse(
        args.threads > args.connections as usize,
        "every thread needs a connection of its own; use fewer --threads or more --connections",
    )?;
    refuse(
        args.rate
            .is_some_and(|rate| !(rate.is_finite() && rate > 0.0)),
        "--rate must be above 0 requests per second; leave it out for a closed loop",
    )
}

fn times(args: &LoadArgs) -> Result<(), BadUsage> {
    duration(&args.warm_up, "--warm-up")?;
    refuse(
        duration(&args.duration, "--duration")? == Duration::ZERO,
        "--duration 0 measures nothing; give it at least 100ms",
    )
}

fn transport(kind: WorkloadKind, udp: bool) -> Result<(), BadUsage> {
    refuse(
        udp && kind == WorkloadKind::Datagram,
        "datagram is always UDP; leave --udp out",
    )?;
    refuse(
        udp && kind != WorkloadKind::Rr,
        "--udp is for rr; the others need TCP",
    )
}

fn sizes(kind: WorkloadKind, request: Option<u32>, response: Option<u32>) -> Result<(), BadUsage> {
    refuse(
        request.is_some() && matches!(kind, WorkloadKind::Http | WorkloadKind::Stream),
        "--request-size is for rr, crr and datagram; leave it out",
    )?;
    refuse(
        response.is_some() && matches!(kind, WorkloadKind::Stream | WorkloadKind::Datagram),
        "nothing is sent back by this workload; leave --response-size out",
    )
}

fn refuse(contradiction: bool, why: &str) -> Result<(), BadUsage> {
    if contradiction {
        return Err(BadUsage(why.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::command::load::destination;

    fn check(flags: &str) -> Result<(), BadUsage> {
        let words = std::iter::once("plumbline").chain(flags.split(' '));
        match Cli::try_parse_from(words).unwrap().command {
            Command::Load(args) => load(&args, &destination(&args.target).unwrap()),
            Command::Serve(args) => serve(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn contradictions_are_refused_with_a_remedy() {
        for (flags, remedy) in [
            ("load h:1 --workload stream --rate 5", "leave --rate out"),
            ("load h:1 --udp --workload crr", "--udp is for rr"),
            ("load h:1 --udp --workload datagram", "leave --udp out"),
            ("load http://h --udp", "--udp is for rr"),
            ("load http://h --workload rr", "write HOST:PORT"),
            ("load http://h --response-size 9", "leave --response-size"),
            ("load h:1 --no-keep-alive", "--workload crr"),
            ("load h:1 --arrival constant", "give a --rate"),
            ("load h:1 -t 0", "use 1"),
            ("load h:1 -c 0", "at least 1"),
            ("load h:1 -t 3 -c 2", "fewer --threads"),
            ("load h:1 -d 0", "at least 100ms"),
            ("load h:1 -d 0ms", "at least 100ms"),
            ("load h:1 -d soon", "such as 10s"),
            ("load h:1 --rate 0", "above 0"),
            ("load h:1 --rate NaN", "above 0"),
            ("load h:1 --rate inf", "above 0"),
            ("load http://h --request-size 9", "leave it out"),
            ("load h:1 --workload datagram --response-size 9", "leave"),
            ("serve -t 0", "use 1"),
            ("serve --udp --workload http", "--udp is for rr"),
            ("serve --workload stream --request-size 9", "leave it out"),
        ] {
            let error = check(flags).expect_err(flags);
            assert!(error.0.contains(remedy), "{flags}: {error}");
        }
    }

    #[test]
    fn what_belongs_together_is_accepted() {
        for flags in [
            "load h:1",
            "load h:1 --udp --rate 5 --arrival constant --request-size 16",
            "load http://h/path --no-keep-alive -c 4 -t 4",
            "load h:1 --workload http --response-size 9",
            "load h:1 --workload datagram --request-size 16 --rate 1e6",
            "load h:1 --warm-up 0",
            "serve --udp --request-size 9 --response-size 9",
        ] {
            check(flags).unwrap_or_else(|error| panic!("{flags}: {error}"));
        }
    }
}
