//! The proxy in user space that kube-proxy had before 1.26 (kubernetes/kubernetes, v1.25,
//! `pkg/proxy/userspace/proxier.go`): on each node a program listens on a port for each
//! service, and a rule for each leads there what is for the service, in one chain what comes
//! from pods, in another what programs of the node send. Both are walked until a rule fits,
//! by a new connection that goes to no service too.
//!
//! The program is a process of its own, so that its CPU time is seen; the real one is
//! kube-proxy itself. Ports are those from 10,000 on, as `--proxy-port-range` gives them:
//! above the receiver's, and mostly below those that connections to endpoints come from.
//! The rules are in the kernel's own tables of iptables. A network whose nodes have no
//! address on the devices of their pods has nothing to redirect to: there the kernel drops
//! what is for a service, and so it did for the real one.

mod relay;

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use plumbline_experiment::Family;
use plumbline_sys::cpu;
use plumbline_sys::forwarder::Forwarder;
use plumbline_sys::socket::Socket;

use super::ruleset::Ruleset;
use super::service_set::ServiceSet;
use crate::dressing::dressed::RuleCount;
use crate::dressing::rule_writer::RuleWriter;
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;
use crate::topology::Topology;
use relay::{CONNECTIONS, Relay};

/// The port of the program for the first service.
const FIRST_PORT: u16 = 10_000;
/// How many ports there are from there on.
const PORTS: u64 = (u16::MAX - FIRST_PORT) as u64 + 1;
/// Files that the program has open beside a socket for each service: two for each
/// connection. This process has a few of its own when it opens the sockets.
const OTHER_FILES: u64 = 2 * CONNECTIONS as u64 + 512;

/// Starts the program on each node, and writes the rules that lead to it.
pub(super) fn put_on(
    set: &ServiceSet,
    topology: &Topology,
    journal: &mut Journal,
) -> Result<RuleCount, LabError> {
    refuse_too_many(set)?;
    let mut count = RuleCount::default();
    for (number, node) in topology.numbered() {
        let forwarder = start(set, node).map_err(LabError::Forwarder)?;
        journal.forwarder(forwarder);
        let rules = ruleset(set, topology.addressing.node(number));
        count = rules.write_on(&[Arc::clone(node)], journal)?;
    }
    Ok(count)
}

/// Each service needs a port, and a socket in a process.
fn refuse_too_many(set: &ServiceSet) -> Result<(), LabError> {
    let services = u64::from(set.count());
    let limit = cpu::allow_open_files(services + OTHER_FILES).map_err(LabError::Forwarder)?;
    let bound = match limit.saturating_sub(OTHER_FILES) {
        most if most < services => format!(
            "needs a process with {} open files, where {limit} are allowed (RLIMIT_NOFILE, \
             `ulimit -n`): enough for {most} services; use fewer, or raise the limit",
            services + OTHER_FILES
        ),
        _ if PORTS < services => {
            format!("needs a port of the node for each, and there are {PORTS}; use fewer")
        }
        _ => return Ok(()),
    };
    Err(LabError::Unsupported {
        what: format!("{services} services of the proxy userspace"),
        needs: bound,
    })
}

/// Starts the program of a node.
fn start(set: &ServiceSet, node: &Place) -> io::Result<Forwarder> {
    let any: IpAddr = match set.family() {
        Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
        Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
    };
    let listen = |number| Socket::listen_tcp(SocketAddr::new(any, port(number)), false);
    let listeners = node
        .namespace
        .run(|| set.numbers().map(listen).collect::<io::Result<Vec<_>>>());
    let listeners = listeners.map_err(io::Error::other)??;
    let endpoints = (0..set.endpoints()).map(|_| set.receiver()).collect();
    let mut relay = Relay::new(listeners, endpoints)?;
    Forwarder::start_in(&node.namespace, c"userspace-proxy", &mut relay)
}

/// Where the program listens for a service; there are as many ports.
fn port(number: u32) -> u16 {
    FIRST_PORT.saturating_add(number as u16)
}

/// What leads to the program of the node with this address.
fn ruleset(set: &ServiceSet, node: IpAddr) -> Ruleset {
    let text = format!("*filter\n{FILTER}COMMIT\n*nat\n{}COMMIT\n", nat(set, node));
    Ruleset::of_iptables(RuleWriter::iptables_legacy(set.family()), text)
}

const FILTER: &str = "\
:KUBE-NODEPORT-NON-LOCAL - [0:0]
-A INPUT -m comment --comment \"plumbline\" -j KUBE-NODEPORT-NON-LOCAL
";

/// The lines of the table `nat` before those of services.
const NAT: &str = "\
:KUBE-PORTALS-CONTAINER - [0:0]
:KUBE-PORTALS-HOST - [0:0]
:KUBE-NODEPORT-CONTAINER - [0:0]
:KUBE-NODEPORT-HOST - [0:0]
-A PREROUTING -m comment --comment \"plumbline\" -j KUBE-PORTALS-CONTAINER
-A PREROUTING -m addrtype --dst-type LOCAL -m comment --comment \"plumbline\" -j KUBE-NODEPORT-CONTAINER
-A OUTPUT -m comment --comment \"plumbline\" -j KUBE-PORTALS-HOST
-A OUTPUT -m addrtype --dst-type LOCAL -m comment --comment \"plumbline\" -j KUBE-NODEPORT-HOST
";

fn nat(set: &ServiceSet, node: IpAddr) -> String {
    let mut text = NAT.to_owned();
    for number in set.numbers() {
        let (service, port) = (set.service(number), port(number));
        let is_service = format!(
            "-m comment --comment \"plumbline/s{number}\" -p tcp -m tcp --dport {} -d {}",
            service.port(),
            service.ip()
        );
        let program = SocketAddr::new(node, port);
        // Writing to a string cannot fail. What the node itself sends would be redirected to
        // its loopback address, and answered from another one; so it is translated.
        let _ = writeln!(
            text,
            "-A KUBE-PORTALS-CONTAINER {is_service} -j REDIRECT --to-ports {port}\n\
             -A KUBE-PORTALS-HOST {is_service} -j DNAT --to-destination {program}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addressing::Addressing;
    use crate::dressing::services::service_set::tests::set;

    fn of(services: u32, endpoints: u32, family: Family) -> Ruleset {
        let set = set(services, endpoints, family);
        ruleset(&set, Addressing::new(family).node(1))
    }

    #[test]
    fn a_service_has_a_rule_in_each_chain_whatever_its_endpoints() {
        for services in [1, 10, 100] {
            for endpoints in [1, 3] {
                let rules = of(services, endpoints, Family::V4);
                let expected = RuleCount {
                    rules: u64::from(4 + 1 + 2 * services),
                    chains: 4 + 1,
                    elements: 0,
                };
                assert_eq!(rules.count, expected, "{services} of {endpoints}");
                for chain in ["-A KUBE-PORTALS-CONTAINER ", "-A KUBE-PORTALS-HOST "] {
                    let lines = rules.texts[0].lines();
                    let rules = lines.filter(|line| line.starts_with(chain)).count();
                    assert_eq!(rules, services as usize);
                }
            }
        }
    }

    #[test]
    fn a_rule_leads_to_the_port_of_its_service() {
        let text = of(3, 1, Family::V4).texts.concat();
        let is_last = "\"plumbline/s2\" -p tcp -m tcp --dport 80 -d 10.96.0.3";
        assert!(text.contains(&format!("{is_last} -j REDIRECT --to-ports 10002\n")));
        let host = format!("{is_last} -j DNAT --to-destination 198.18.0.1:10002\n");
        assert!(text.contains(&host));
        let v6 = of(1, 1, Family::V6).texts.concat();
        assert!(v6.contains("-d fd00:10:96::1 -j DNAT --to-destination [2001:2::1]:10000\n"));
    }

    /// Whatever the machine allows, there are no more ports.
    #[test]
    fn what_bounds_them_is_said() {
        let too_many = set(PORTS as u32 + 1, 1, Family::V4);
        let error = refuse_too_many(&too_many).expect_err("refused").to_string();
        assert!(
            error.contains("open files") || error.contains("a port of the node"),
            "{error}"
        );
        assert!(refuse_too_many(&set(1, 1, Family::V4)).is_ok());
    }
}
