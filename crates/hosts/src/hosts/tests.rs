//! What can be said of hosts without touching them.

use std::path::PathBuf;

use super::*;

static NEVER: AtomicBool = AtomicBool::new(false);

fn hosts(between: Between) -> Result<Hosts, HostsError> {
    Hosts::new(HostsOptions {
        between,
        program: PathBuf::new(),
        ssh_config: None,
        directory: String::new(),
        may_send_to: |_| true,
        interrupted: &NEVER,
    })
}

fn many(names: &[&str], wires: &[&str]) -> Result<Hosts, HostsError> {
    let wires = wires.iter().map(|wire| Wire::parse(wire).unwrap());
    let names = names.iter().map(|host| (*host).to_owned()).collect();
    hosts(Between::all(names, wires.collect())?)
}

#[test]
fn hosts_are_many_and_each_is_one() {
    let hosts = many(&["a", "b", "me@c"], &["fast=10.0.0.0/24", "eth0"]).unwrap();
    assert_eq!(hosts.nodes(), ["a", "b", "me@c"]);
    assert_eq!(hosts.names(), ["fast", "host"]);
}

#[test]
fn what_cannot_be_meant_is_said() {
    let said = |hosts: &[&str], wires: &[&str]| {
        let error = many(hosts, wires).err().map(|error| error.to_string());
        error.expect("it is refused")
    };
    assert!(said(&["a", "b", "a"], &[]).contains("twice"));
    assert!(said(&["a", "-oProxyCommand=x"], &[]).contains("no host"));
    assert!(said(&["a", "b"], &["eth0,eth1"]).contains("for all"));
    assert!(said(&["a", "b"], &["eth0", "eth1"]).contains("name them"));
}

#[test]
fn pairs_have_names_of_their_own() {
    let pair = |text| Pair::parse(text, Vec::new()).unwrap();
    let pairs = hosts(Between::Pairs(vec![pair("vm=a,b"), pair("metal=c,d")])).unwrap();
    assert_eq!(pairs.names(), ["vm", "metal"]);
    assert_eq!(pairs.networks[1].pair, Some((1, "metal".to_owned())));
    let twice = hosts(Between::Pairs(vec![pair("vm=a,b"), pair("vm=c,d")]));
    assert!(
        twice
            .err()
            .unwrap()
            .to_string()
            .contains("two networks `vm`")
    );
}
