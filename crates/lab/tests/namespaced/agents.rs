//! Agents run in their endpoint's namespace, and end when they should.
//!
//! `cat` stands in for an agent: it answers, ends when its input closes, and
//! holds its namespace until then.

use std::io::{Read, Write};
use std::time::Duration;

use plumbline_experiment::{Family, Link, Placement};
use plumbline_harness::{AgentLink, Demand, Path, Target};
use plumbline_lab::{Lab, LabOptions};
use plumbline_testkit as testkit;

const LIMIT: Duration = Duration::from_secs(20);

fn lab(program: &str, arguments: &[&str]) -> Lab {
    Lab::new(LabOptions {
        agent: program.into(),
        agent_arguments: arguments.iter().map(ToString::to_string).collect(),
        mtu: 1500,
        cni_directories: Vec::new(),
        awake: false,
    })
}

fn start(lab: &mut Lab) -> AgentLink {
    let standing = lab.stand("host", Placement::CrossNode, Family::V4);
    let client = Path::client(standing.expect("stands")).start_agent();
    client.expect("started")
}

#[test]
fn an_agent_talks_over_its_streams_and_ends_with_its_input() {
    if !testkit::in_private_namespaces("an agent talks over its streams") {
        return;
    }
    let mut lab = lab("/bin/cat", &[]);
    let AgentLink {
        mut input,
        mut output,
        mut process,
    } = start(&mut lab);
    input.write_all(b"hello").expect("written");
    let mut word = [0; 5];
    output.read_exact(&mut word).expect("read");
    assert_eq!(&word, b"hello");
    drop(input);
    process.wait(LIMIT).expect("ended well");
    assert!(lab.teardown().is_empty());
}

#[test]
fn an_agent_runs_inside_its_namespace() {
    if !testkit::in_private_namespaces("an agent runs inside its namespace") {
        return;
    }
    let mut lab = lab("/bin/readlink", &["/proc/self/ns/net"]);
    let standing = lab.stand("vxlan", Placement::CrossNode, Family::V4);
    let standing = standing.expect("stands");
    for (site, place) in [
        (Path::client(standing), standing.client_place()),
        (Path::server(standing), standing.server_place()),
    ] {
        let mut link = site.start_agent().expect("started");
        let mut text = String::new();
        link.output.read_to_string(&mut text).expect("read");
        assert_eq!(text.trim(), format!("net:[{}]", place.namespace.inode()));
        link.process.wait(LIMIT).expect("ended well");
    }
}

#[test]
fn an_agent_holds_no_namespace_but_its_own() {
    if !testkit::in_private_namespaces("an agent holds no namespace but its own") {
        return;
    }
    let mut lab = lab("/bin/ls", &["-l", "/proc/self/fd"]);
    let mut link = start(&mut lab);
    let mut text = String::new();
    link.output.read_to_string(&mut text).expect("read");
    assert!(!text.contains("net:["), "{text}");
    assert!(!text.contains("socket:["), "{text}");
}

#[test]
fn an_agent_that_fails_tells_why() {
    if !testkit::in_private_namespaces("an agent that fails tells why") {
        return;
    }
    let mut lab = lab("/bin/cat", &["/no/such/file"]);
    let mut link = start(&mut lab);
    let error = link.process.wait(LIMIT).expect_err("failed").to_string();
    assert!(error.contains("/no/such/file"), "{error}");
}

#[test]
fn a_missing_agent_is_found_before_anything_is_built() {
    let mut lab = lab("/no/such/agent", &[]);
    let nothing = Demand {
        treatments: &[],
        first: &[],
        link: Link::default(),
    };
    let error = lab.prepare(&nothing).expect_err("refused").to_string();
    assert!(error.contains("/no/such/agent"), "{error}");
}

#[test]
fn teardown_ends_agents_that_were_forgotten() {
    if !testkit::in_private_namespaces("teardown ends agents that were forgotten") {
        return;
    }
    let mut lab = lab("/bin/cat", &[]);
    let mut link = start(&mut lab);
    assert!(lab.teardown().is_empty());
    let mut rest = Vec::new();
    link.output
        .read_to_end(&mut rest)
        .expect("its end is closed");
    let error = link.process.wait(LIMIT).expect_err("killed").to_string();
    assert!(error.contains("signal: 9"), "{error}");
}
