//! Several pairs of pods on one network.

use plumbline_experiment::{Family, Neighbours, Placement};
use plumbline_harness::Path;
use plumbline_lab::{
    Catalogue, Company, Dressing, LabError, Launcher, PathSpec, StandingNetwork, catalogue,
};
use plumbline_testkit as testkit;

use crate::packets::{client, pod, server, tcp_exchange};

/// Neighbours that do as the path does.
const FURTHER: usize = 7;

fn build(network: &str, family: Family) -> Result<StandingNetwork, LabError> {
    let spec = PathSpec {
        network: network.into(),
        placement: Placement::CrossNode,
        family,
        mtu: 1500,
    };
    let company = Company {
        pairs: FURTHER,
        ..Company::default()
    };
    let launcher = Launcher::new("unused".into(), Vec::new());
    let validated = spec.validate(&Catalogue::default())?;
    validated.beside(company).build(&launcher)
}

/// Each of them reaches its own other end over each network, in pods or between nodes.
fn all_reach_each_other(test: &str, family: Family) {
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let neighbours = Neighbours {
        further: FURTHER as u32,
        ..Neighbours::default()
    };
    let dressing = Dressing {
        neighbours,
        ..Dressing::default()
    };
    for name in catalogue::names() {
        let mut standing = match build(name, family) {
            // What this kernel lacks is counted where each network conforms; all have this.
            Err(LabError::Unsupported { .. } | LabError::Family { .. }) if name != "routed" => {
                continue;
            }
            built => built.expect("stands"),
        };
        standing.dress(dressing).expect("neighbours");
        assert_eq!(Path::neighbours(&standing).len(), FURTHER, "{name}");
        tcp_exchange(&client(&standing), &server(&standing));
        let pods = &standing.topology().pods;
        let pairs = pods.chunks_exact(2).skip(1);
        assert_eq!(pairs.len(), if pods.is_empty() { 0 } else { FURTHER });
        for pair in pairs {
            tcp_exchange(&pod(&pair[0]), &pod(&pair[1]));
        }
        let errors = standing.take_down();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

#[test]
fn every_network_carries_several_pairs() {
    all_reach_each_other("several pairs on every network", Family::V4);
}

#[test]
fn pairs_of_ipv6_are_carried_too() {
    all_reach_each_other("several pairs on every network of IPv6", Family::V6);
}
