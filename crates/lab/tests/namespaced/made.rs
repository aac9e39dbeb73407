//! What distinguishes one system's network from another's, as `ip` reads it on
//! the first node: settings that packets alone do not show.

use plumbline_experiment::Family;
use plumbline_lab::StandingNetwork;
use serde_json::{Value, json};

use crate::eye;

/// A network, what `ip` is asked on the first node, and a part of its answer.
type Expected = (&'static str, &'static str, fn() -> Value);

/// IPv4, with pods on different nodes or one.
const EXPECTED: &[Expected] = &[
    (
        "vxlan",
        "link show flannel.1",
        || json!([{"linkinfo": {"info_data": {"id": 1, "port": 8472, "learning": false}}}]),
    ),
    (
        "calico-vxlan",
        "link show vxlan.calico",
        || json!([{"linkinfo": {"info_data": {"id": 4096, "port": 4789, "learning": false}}}]),
    ),
    ("kopeio-vxlan", "link show vxlan1", || {
        let data = json!({"id": 1, "port": 4789, "learning": false});
        json!([{"mtu": 1400, "address": "00:53:c6:13:01:00", "linkinfo": {"info_data": data}}])
    }),
    ("geneve", "link show geneve.2", || {
        let data = json!({"id": 1, "port": 6081, "remote": "198.18.0.2"});
        json!([{"mtu": 1450, "linkinfo": {"info_kind": "geneve", "info_data": data}}])
    }),
    ("ipip", "link show flannel.ipip", || {
        let data = json!({"remote": "any", "local": "198.18.0.1", "pmtudisc": true});
        json!([{"mtu": 1480, "linkinfo": {"info_kind": "ipip", "info_data": data}}])
    }),
    ("calico-ipip", "link show tunl0", || {
        let data = json!({"remote": "any", "local": "any"});
        json!([{"mtu": 1480, "linkinfo": {"info_kind": "ipip", "info_data": data}}])
    }),
    ("kube-router-ipip", "link show tun-2", || {
        let data = json!({"remote": "198.18.0.2", "local": "198.18.0.1"});
        json!([{"mtu": 1480, "linkinfo": {"info_kind": "ipip", "info_data": data}}])
    }),
    (
        "kube-router",
        "rule show from 198.19.1.0/24",
        || json!([{"src": "198.19.1.0", "srclen": 24, "table": "77"}]),
    ),
    ("gre", "link show gre.2", || {
        let data = json!({"remote": "198.18.0.2", "local": "198.18.0.1", "ttl": 0});
        json!([{"mtu": 1476, "linkinfo": {"info_kind": "gre", "info_data": data}}])
    }),
    ("kopeio-gre", "link show k8s-c6-13-02-00", || {
        let data = json!({"remote": "198.18.0.2", "local": "198.18.0.1", "ttl": 255});
        json!([{"mtu": 1476, "linkinfo": {"info_kind": "gre", "info_data": data}}])
    }),
    (
        "aws-cni",
        "rule show priority 512",
        || json!([{"src": "all", "dst": "198.19.1.2", "table": "main"}]),
    ),
    (
        "aws-cni",
        "rule show priority 1536",
        || json!([{"src": "198.19.1.2", "table": "2"}]),
    ),
    (
        "romana",
        "rule show priority 32765",
        || json!([{"src": "all", "table": "10"}]),
    ),
    (
        "romana",
        "route show table 10",
        || json!([{"dst": "198.19.2.0/24", "gateway": "198.18.0.2", "dev": "eth0"}]),
    ),
];

/// Asks `ip` what there is to ask of this network; nothing where it is not
/// installed, which the state before and after counts as a skip.
pub(crate) fn as_the_system_makes_it(standing: &StandingNetwork) {
    let topology = standing.topology();
    if topology.addressing.family() != Family::V4 {
        return;
    }
    let name = standing.about().name;
    for (_, question, expected) in EXPECTED.iter().filter(|it| it.0 == name) {
        let words: Vec<&str> = ["ip", "-j", "-d"]
            .into_iter()
            .chain(question.split(' '))
            .collect();
        let Some(answer) = eye::ask(&topology.nodes[0], &words) else {
            return;
        };
        let expected = expected();
        assert!(
            contains(&answer, &expected),
            "{name}: `{question}` is {answer}, not {expected}"
        );
    }
}

/// Whether all that is in `part` is in `whole` too: of objects the named keys,
/// of lists as many items as `part` has, in order.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|it| contains(it, value))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() >= part.len() && whole.iter().zip(part).all(|(a, b)| contains(a, b))
        }
        _ => whole == part,
    }
}
