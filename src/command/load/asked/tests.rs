use clap::Parser as _;

use super::*;
use crate::cli::{Cli, Command};

/// What is found out from flags alone.
fn check(flags: &str) -> Result<(), String> {
    let words = std::iter::once("plumbline").chain(flags.split(' '));
    match Cli::try_parse_from(words).unwrap().command {
        Command::Load(args) => {
            let destination = args.target.parse().unwrap();
            let mut plan = plan(&args, &destination).map_err(|error| error.0)?;
            if args.source.iter().any(std::net::IpAddr::is_ipv6) {
                plan.target = ([0; 16], 1).into();
            }
            if args.find_max.limit.is_some() {
                return Ok(());
            }
            plan.check().map_err(|error| error.to_string())
        }
        Command::Serve(args) => server(&args).map(drop).map_err(|error| error.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn contradictions_are_refused_with_a_remedy() {
    for (flags, remedy) in [
        ("load h:1 --workload stream --rate 5", "leave --rate out"),
        ("load h:1 --workload stream --spin", "leave --spin out"),
        ("load h:1 --udp --workload crr", "leave --udp out"),
        ("load http://h --udp", "leave --udp out"),
        ("load http://h --workload rr", "write HOST:PORT"),
        ("load http://h --response-size 9", "leave --response-size"),
        ("load h:1 --no-keep-alive", "leave --no-keep-alive out"),
        ("load h:1 --no-keep-alive", "crr never does"),
        ("load h:1 --arrival constant", "give a --rate"),
        ("load h:1 --timestamps --workload crr", "use rr"),
        ("load http://h --timestamps=2% --no-keep-alive", "use rr"),
        ("load h:1 --timestamps --driver uring", "--driver out"),
        (
            "load h:1 --timestamps --find-max p99<1ms",
            "the rate that was found",
        ),
        (
            "load h:1 --workload stream --driver uring",
            "always go by epoll",
        ),
        ("load h:1 -t 0", "use 1"),
        ("load h:1 -c 0", "from 1"),
        ("load h:1 -c 100001", "to 100000"),
        ("load h:1 --workload datagram -c 5000", "to 4096"),
        ("load h:1 -t 3 -c 2", "fewer --threads"),
        ("load h:1 --gso", "--gso"),
        ("load h:1 --zerocopy", "leave --zerocopy out"),
        ("load h:1 --ramp 0", "above 0"),
        ("load http://h --ramp 5 --no-keep-alive", "stay open"),
        ("load h:1 --workload stream --ramp 5", "stay open"),
        ("load h:1 -d 0", "from 10ms"),
        ("load h:1 -d 0ms", "from 10ms"),
        ("load h:1 -d soon", "such as 10s"),
        ("load h:1 --warm-up 1h", "to 300s"),
        ("load h:1 --rate 0", "above 0"),
        ("load h:1 --rate NaN", "above 0"),
        ("load h:1 --rate inf", "above 0"),
        ("load h:1 --rate 6M", "up to 5000000"),
        ("load h:1 --rate 0.01", "raise --rate or --duration"),
        ("load h:1 --request-size 15", "from 16"),
        ("load http://h --request-size 9", "leave --request-size out"),
        ("load h:1 --workload datagram --response-size 99", "leave"),
        ("serve -t 0", "use 1"),
        ("serve --udp --workload http", "leave --udp out"),
        (
            "serve --workload stream --request-size 9",
            "leave --request-size out",
        ),
        ("serve --udp --request-size 9", "from 16 to 65507"),
    ] {
        let error = check(flags).expect_err(flags);
        assert!(error.contains(remedy), "{flags}: {error}");
    }
}

#[test]
fn what_belongs_together_is_accepted() {
    for flags in [
        "load h:1",
        "load h:1 --udp --rate 5 --arrival constant --request-size 16",
        "load h:1 --udp --workload datagram",
        "load http://h/path --no-keep-alive -c 4 -t 4",
        "load http://h/ -c 40000 --ramp 5000 --source 10.0.0.3,10.0.0.4",
        "load h:1 --workload http --response-size 9",
        "load h:1 --workload datagram --request-size 16 --rate 1e6",
        "load h:1 --workload stream --zerocopy",
        "load h:1 --warm-up 0",
        "load h:1 --ramp 500 --source 127.0.0.1,127.0.0.2",
        "load h:1 --workload datagram --gso --source ::1",
        "load h:1 --timestamps=5% --udp",
        "load h:1 --find-max p99<1ms --arrival constant",
        "load http://h --timestamps",
        "serve --workload stream",
        "serve --udp --request-size 16 --response-size 16",
    ] {
        check(flags).unwrap_or_else(|error| panic!("{flags}: {error}"));
    }
}
