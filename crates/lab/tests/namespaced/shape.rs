//! The rules of services have the shape that is held against the real kube-proxy's, and those of
//! policies that which is held against the real Calico's.

#[path = "../../../../tests/cluster/shape/normal.rs"]
mod normal;

use plumbline_experiment::{Enforcer, Policies, ServicePosition, ServiceProxy};
use plumbline_lab::Dressing;
use plumbline_testkit as testkit;

use crate::dressing::{PROGRAMS, dress, printed, standing};
use crate::services::dressed;

/// Has the files of shapes written anew where it is set.
const WRITE: &str = "PLUMBLINE_WRITE_SHAPES";

fn holds(proxy: ServiceProxy, mode: &str) {
    let test = format!("the shape of services by {mode}");
    if !testkit::in_private_namespaces(&test) {
        return;
    }
    for services in [1, 10, 100] {
        for endpoints in [1, 3] {
            let mut standing = standing("routed", Default::default(), Default::default());
            let wanted = dressed(proxy, services, endpoints, ServicePosition::None);
            if !dress(&test, &mut standing, wanted, PROGRAMS) {
                return;
            }
            let node = &standing.topology().nodes[0];
            let seen = match proxy {
                ServiceProxy::Nftables => {
                    let table = ["/usr/sbin/nft", "-j", "list", "table", "ip", "kube-proxy"];
                    normal::nftables(&printed(node, &table), &[])
                }
                _ => normal::iptables(&printed(node, &["/usr/sbin/iptables-legacy-save"]), None),
            };
            is_that_of(&format!("{mode}-{services}x{endpoints}"), &seen);
            assert!(standing.take_down().is_empty());
        }
    }
}

#[track_caller]
fn is_that_of(name: &str, seen: &str) {
    let file = format!(
        "{}/../../tests/cluster/shape/{name}.txt",
        env!("CARGO_MANIFEST_DIR")
    );
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&file, seen).expect("written");
    }
    let known = std::fs::read_to_string(&file).expect("a file for each");
    assert_eq!(seen, known, "{file}; {WRITE}=1 writes it anew");
}

#[test]
fn iptables_has_that_of_kube_proxy() {
    holds(ServiceProxy::IptablesLegacy, "iptables");
}

#[test]
fn nftables_has_that_of_kube_proxy() {
    holds(ServiceProxy::Nftables, "nftables");
}

#[test]
fn policies_have_that_of_calico() {
    const TEST: &str = "the shape of policies by Calico";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    for (enforcer, save) in [
        (Enforcer::CalicoIptables, "/usr/sbin/iptables-legacy-save"),
        (Enforcer::CalicoIptablesNft, "/usr/sbin/iptables-nft-save"),
    ] {
        for count in [1, 3, 12] {
            let mut standing = standing("routed", Default::default(), Default::default());
            let wanted = Dressing {
                policies: Policies {
                    count,
                    enforcer,
                    ..Policies::default()
                },
                ..Dressing::default()
            };
            if !dress(TEST, &mut standing, wanted, PROGRAMS) {
                return;
            }
            let node = &standing.topology().nodes[1];
            let seen = normal::calico(&printed(node, &[save, "-t", "filter"]));
            is_that_of(&format!("calico-{count}"), &seen);
            assert!(standing.take_down().is_empty());
        }
    }
}
