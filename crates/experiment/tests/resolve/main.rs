//! From ready-made experiments and small files to plans.

mod comparisons;
mod plan;
mod ready_made;

use plumbline_experiment::{Experiment, Plan};

const NETWORKS: [&str; 8] = [
    "host",
    "host-gw",
    "vxlan",
    "macvlan",
    "routed",
    "aws-vpc",
    "calico-vxlan",
    "ipvlan-l2",
];

/// Stands for a target that knows the networks above, and some more by name.
fn expand(word: &str) -> Result<Vec<String>, String> {
    match word {
        "all" | "usual" => Ok(NETWORKS.map(String::from).to_vec()),
        "flannel-vxlan" => Ok(vec!["vxlan".to_owned()]),
        "calico" => Ok(vec!["routed".to_owned()]),
        "weave-fastdp" | "cilium-vxlan" | "kube-router" | "aws-cni" | "kopeio-vxlan" | "romana" => {
            Ok(vec![word.to_owned()])
        }
        // A path in a cluster that is made for the run.
        word if word.contains('/') => Ok(vec![word.to_owned()]),
        // Pairs of hosts that somebody gave these names.
        "bare-metal" | "vm" => Ok(vec![word.to_owned()]),
        // Paths of clusters.
        path if path.ends_with("/pod") || path.ends_with("/cluster-ip") => {
            Ok(vec![path.to_owned()])
        }
        name if NETWORKS.contains(&name) => Ok(vec![name.to_owned()]),
        other => Err(format!("there is no network `{other}`")),
    }
}

/// Every maximum that loads are shares of is taken for 60,000/s.
fn resolve(text: &str) -> Plan {
    let experiment = Experiment::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let draft = experiment
        .draft(1, &expand)
        .unwrap_or_else(|e| panic!("{e}"));
    let maxima = vec![60_000.0; draft.sought().len()];
    draft.settle(&maxima).unwrap_or_else(|e| panic!("{e}"))
}

fn with_networks(networks: &str) -> Plan {
    resolve(&format!(
        "name = \"t\"\n[factors]\nnetwork = {networks}\n[[workload]]\nkind = \"rr\"\nrate = 100\n"
    ))
}
