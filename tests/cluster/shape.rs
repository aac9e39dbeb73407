//! What a lab writes for services has the counts and the shape of what the real kube-proxy
//! writes, and what it writes for policies those of the real Calico. `shape/` has it, without
//! what differs between machines; here the real ones are held against that, and the tests of
//! the lab hold a lab against it.

mod normal;

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::kubelab::Kubelab;
use super::outages::create;
use super::{Cluster, cluster};
use crate::world::skip;

/// How many services, and endpoints of each.
const SIZES: [(u32, u32); 6] = [(1, 1), (1, 3), (10, 1), (10, 3), (100, 1), (100, 3)];

/// How many policies.
const POLICIES: [u32; 3] = [1, 3, 12];

/// How long they may take to be written.
const LIMIT: Duration = Duration::from_secs(180);

/// The service of the API server, first of the range of kubelab.
const API: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 1));

const NAMESPACE: &str = "rules-of-a-shape";

#[test]
fn a_lab_writes_what_the_real_kube_proxy_does() {
    let Some(cluster) = cluster() else { return };
    let Some(kubelab) = Kubelab::of_cluster("nothing that shows a node's rules") else {
        return;
    };
    let node = Node {
        kubelab,
        name: cluster.workers().remove(0),
    };
    let mode = node.kubelab.exec(
        &node.name,
        &["curl", "--silent", "http://127.0.0.1:10249/proxyMode"],
    );
    for (services, endpoints) in SIZES {
        cluster.kubectl(&["create", "namespace", NAMESPACE]);
        apply(&cluster, services, endpoints);
        let file = format!("{mode}-{services}x{endpoints}.txt");
        has_that_of_a_lab(&cluster, &file, || node.rules(&mode));
    }
}

#[test]
fn a_lab_writes_what_calico_does_for_policies() {
    if std::env::var_os("PLUMBLINE_TEST_POLICIES").is_none() {
        return skip(
            "cluster",
            "PLUMBLINE_TEST_POLICIES does not say that this one has Calico",
        );
    }
    let Some(cluster) = cluster() else { return };
    let Some(kubelab) = Kubelab::of_cluster("nothing that shows a node's rules") else {
        return;
    };
    let node = cluster.workers().remove(0);
    let shown = "iptables-nft-save -t filter; iptables-legacy-save -t filter";
    for count in POLICIES {
        cluster.kubectl(&["create", "namespace", NAMESPACE]);
        restrict(&cluster, &node, count);
        has_that_of_a_lab(&cluster, &format!("calico-{count}.txt"), || {
            normal::calico(&kubelab.exec(&node, &["sh", "-c", shown]))
        });
    }
}

/// Looks until the rules are those of a file, and has the namespace go.
#[track_caller]
fn has_that_of_a_lab(cluster: &Cluster, file: &str, rules: impl Fn() -> String) {
    let path = format!("{}/tests/cluster/shape/{file}", env!("CARGO_MANIFEST_DIR"));
    let of_a_lab = std::fs::read_to_string(path);
    let of_a_lab = of_a_lab.unwrap_or_else(|error| panic!("{file}: {error}"));
    let started = Instant::now();
    let mut seen = rules();
    while seen != of_a_lab && started.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(300));
        seen = rules();
    }
    cluster.kubectl(&["delete", "namespace", NAMESPACE]);
    assert!(
        seen == of_a_lab,
        "{file}, in the lab:\n{of_a_lab}\nin the cluster:\n{seen}"
    );
}

/// A node of kubelab.
struct Node {
    kubelab: Kubelab,
    name: String,
}

impl Node {
    fn rules(&self, mode: &str) -> String {
        let shows = |command: &[&str]| self.kubelab.exec(&self.name, command);
        if mode == "nftables" {
            let table = ["nft", "-j", "list", "table", "ip", "kube-proxy"];
            let of_api = ["default/kubernetes/", &format!("\"{API}\"")];
            return normal::nftables(&shows(&table), &of_api);
        }
        let tables = ["nat", "filter"].map(|it| shows(&["iptables-save", "-t", it]));
        normal::iptables(&tables.concat(), Some(API))
    }
}

/// Services with endpoints that nobody has.
fn apply(cluster: &Cluster, services: u32, endpoints: u32) {
    let metadata = |number: u32| {
        let name = format!("s{number}");
        let labels = json!({ "kubernetes.io/service-name": name });
        json!({ "name": name, "namespace": NAMESPACE, "labels": labels })
    };
    let endpoint = |number: u32| {
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 1).to_bits() + number);
        json!({ "addresses": [address], "conditions": { "ready": true } })
    };
    let of = |number: u32| -> [Value; 2] {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata(number),
            "spec": { "ports": [{ "name": "tcp", "protocol": "TCP", "port": 80 }] },
        });
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": metadata(number), "addressType": "IPv4",
            "endpoints": (0..endpoints).map(endpoint).collect::<Vec<Value>>(),
            "ports": [{ "name": "tcp", "protocol": "TCP", "port": 8080 }],
        });
        [service, slice]
    };
    create(cluster, &list((0..services).flat_map(of)));
}

/// A pod on a node, and policies that select it, as the lab has them.
fn restrict(cluster: &Cluster, node: &str, policies: u32) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "guarded", "namespace": NAMESPACE },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "pause", "image": "localhost/kubelab/pause:1",
                "imagePullPolicy": "IfNotPresent",
            }],
        },
    });
    let policy = |number: u32| {
        let peer = json!({ "podSelector": { "matchLabels": { "peer": number.to_string() } } });
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": { "name": format!("p{number}"), "namespace": NAMESPACE },
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress"],
                "ingress": [{ "from": [peer], "ports": [{ "protocol": "TCP", "port": 7117 }] }],
            },
        })
    };
    create(cluster, &list((0..policies).map(policy).chain([pod])));
}

fn list(items: impl Iterator<Item = Value>) -> Value {
    let items: Vec<Value> = items.collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}
