//! Services by IPVS, which `.ci/uml` holds where this kernel lacks it. The kernel's own list
//! of virtual servers is the independent eye, and the programs that show rules and sets.

use super::*;

/// Few enough for a page: what does not come in one read the kernel may lose, where several
/// namespaces have servers.
const SERVICES: u32 = 25;

/// Virtual and real servers of a node.
fn servers(node: &Place) -> (usize, usize) {
    // It reads all at once.
    let listed = printed(node, &["/bin/cat", "/proc/self/net/ip_vs"]);
    let count = |start: &str| listed.lines().filter(|it| it.starts_with(start)).count();
    (count("TCP  "), count("  -> ") - 1)
}

/// Sets of a node, and what they hold together.
fn sets(node: &Place) -> (usize, usize) {
    let saved = printed(node, &["/usr/sbin/ipset", "save"]);
    let count = |start: &str| saved.lines().filter(|it| it.starts_with(start)).count();
    (count("create "), count("add "))
}

fn hold(network: &str, placement: Placement, family: Family) {
    let test = "services by ipvs";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    for position in ServicePosition::ALL.iter().copied() {
        let mut standing = standing(network, placement, family);
        let wanted = dressed(ServiceProxy::Ipvs, SERVICES, 1, position);
        let lacks = ["install", "CONFIG_IP_VS", "CAP_NET_ADMIN"];
        if !dress(test, &mut standing, wanted, &lacks) {
            return;
        }
        for _ in 0..4 {
            asks(&standing);
        }
        let rules = standing.counters().expect("counters").rules;
        let nodes = standing.topology().nodes.clone();
        let receiver = match placement {
            Placement::CrossNode => 1,
            Placement::SameNode => 0,
        };
        let services = SERVICES as usize;
        for (at, (node, counted)) in nodes.iter().zip(&rules).enumerate() {
            let own = usize::from(at == receiver);
            let seen = shown(node, ServiceProxy::Ipvs, family);
            assert_eq!(seen, (counted.rules, counted.chains), "{}", node.name);
            assert_eq!(seen, (28 + own as u64, 11), "{}", node.name);
            assert_eq!(sets(node), (17, 2 * services + own), "{}", node.name);
            assert_eq!(servers(node), (services, services), "{}", node.name);
            let elements = (4 * services + own) as u64;
            assert_eq!(counted.elements, elements, "{}", node.name);
        }
        let errors = standing.take_down();
        assert!(errors.is_empty(), "{errors:?}");
        for node in &nodes {
            let clean = shown(node, ServiceProxy::Ipvs, family);
            assert_eq!((clean, sets(node), servers(node)), ((0, 0), (0, 0), (0, 0)));
        }
    }
}

#[test]
fn a_bridge() {
    hold("host-gw", Placement::CrossNode, Family::V4);
}

#[test]
fn a_bridge_v6() {
    hold("host-gw", Placement::CrossNode, Family::V6);
}

#[test]
fn plain_routes() {
    hold("routed", Placement::CrossNode, Family::V4);
}

#[test]
fn plain_routes_on_one_node() {
    hold("routed", Placement::SameNode, Family::V4);
}

#[test]
fn nodes_alone() {
    hold("host", Placement::CrossNode, Family::V4);
}

#[test]
fn a_server_is_not_there_twice() {
    let test = "services by ipvs with more than one endpoint";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let mut standing = standing("host-gw", Placement::CrossNode, Family::V4);
    let wanted = dressed(ServiceProxy::Ipvs, 3, 2, ServicePosition::Last);
    let error = standing.dress(wanted).expect_err("refused").to_string();
    assert!(error.contains("one endpoint for each service"), "{error}");
}
