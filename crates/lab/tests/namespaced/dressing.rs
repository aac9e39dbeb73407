//! What tests of dressings share: a path, what is laid on it, and who looks at that.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use plumbline_experiment::{Family, Placement};
use plumbline_harness::Path;
use plumbline_lab::{
    Catalogue, Company, Dressing, LabError, Launcher, PathSpec, Place, StandingNetwork,
};
use plumbline_testkit as testkit;

/// A refusal says this where a program is missing that writes rules.
pub(crate) const PROGRAMS: &[&str] = &["install"];
/// A refusal says this to those who may not load eBPF.
pub(crate) const EBPF: &[&str] = &["CAP_BPF"];

pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn standing(network: &str, placement: Placement, family: Family) -> StandingNetwork {
    standing_beside(network, placement, family, 0)
}

/// A path with so many pods beside its receiver.
pub(crate) fn standing_beside(
    network: &str,
    placement: Placement,
    family: Family,
    pods: usize,
) -> StandingNetwork {
    let spec = PathSpec {
        network: network.into(),
        placement,
        family,
        mtu: 1500,
    };
    let validated = spec.validate(&Catalogue::default()).expect("supported");
    let launcher = Launcher::new("unused".into(), Vec::new());
    let company = Company {
        idle: pods,
        pairs: 0,
    };
    validated.beside(company).build(&launcher).expect("stands")
}

/// Whether the network `cilium` can be built; otherwise that is a skip.
pub(crate) fn has_cilium(test: &str) -> bool {
    let spec = PathSpec {
        network: "cilium".into(),
        placement: Placement::CrossNode,
        family: Family::V4,
        mtu: 1500,
    };
    let missing = spec.validate(&Catalogue::default()).err();
    if let Some(error) = &missing {
        testkit::skip(test, &error.to_string());
    }
    missing.is_none()
}

/// Dresses a path; whether it could be. A refusal that says one of these words is a skip.
pub(crate) fn dress(
    test: &str,
    standing: &mut StandingNetwork,
    dressing: Dressing,
    lacks: &[&str],
) -> bool {
    let Err(error) = standing.dress(dressing) else {
        return true;
    };
    let said = error.to_string();
    let is_lacking = lacks.iter().any(|it| said.contains(it));
    let is_refusal = matches!(error, LabError::Unsupported { .. });
    assert!(is_refusal && is_lacking, "{dressing:?}: {said}");
    testkit::skip(test, &said);
    false
}

/// Asks as an agent would: the receiver listens where the path wants it, the sender sends
/// to what stands before it.
pub(crate) fn asks(standing: &StandingNetwork) {
    let listener = receiver(standing);
    let front = standing.front(listener.local_addr().expect("bound"));
    let client = &standing.client_place().namespace;
    let stream = client.run(|| TcpStream::connect_timeout(&front, LIMIT));
    let mut stream = stream.expect("entered").expect("connected");
    stream.set_read_timeout(Some(LIMIT)).expect("set");
    let (mut accepted, _) = listener.accept().expect("accepted");
    stream.write_all(b"question").expect("sent");
    let mut text = [0; 8];
    accepted.read_exact(&mut text).expect("received");
    accepted.write_all(b"an answer").expect("answered");
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!((&text, &answer), (b"question", b"an answer"));
}

/// A listener where the path wants its receiver.
pub(crate) fn receiver(standing: &StandingNetwork) -> TcpListener {
    let server = Path::server(standing);
    let listens = (server.address(), server.port());
    let place = standing.server_place();
    // A process that another test has just forked holds the last one until it starts.
    let deadline = Instant::now() + LIMIT;
    loop {
        let bound = place.namespace.run(|| TcpListener::bind(listens));
        match bound.expect("entered") {
            Ok(listener) => return listener,
            Err(error) if Instant::now() > deadline => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// What a program prints inside.
pub(crate) fn printed(place: &Place, command: &[&str]) -> String {
    let run = || Command::new(command[0]).args(&command[1..]).output();
    let output = place.namespace.run(run).expect("entered").expect("started");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Devices inside that have hooks for eBPF programs, as `tc` shows them, and the programs.
pub(crate) fn hooks(place: &Place) -> (usize, usize) {
    let shown = printed(place, &["/sbin/tc", "qdisc", "show"]);
    let devices = shown.lines().filter(|line| line.contains("clsact"));
    let devices: Vec<&str> = devices
        .filter_map(|line| line.split(' ').skip_while(|it| *it != "dev").nth(1))
        .collect();
    let programs = |device: &&str| {
        let of = |way| printed(place, &["/sbin/tc", "filter", "show", "dev", device, way]);
        let both = of("ingress") + &of("egress");
        both.lines()
            .filter(|it| it.contains("direct-action"))
            .count()
    };
    (devices.len(), devices.iter().map(programs).sum())
}
