//! From ready-made experiments and small files to plans.

mod comparisons;
mod plan;
mod ready_made;
mod variants;

use plumbline_experiment::{Asked, Enforcer, Experiment, Plan, Scene, ServiceProxy};

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
fn expand(asked: &Asked<'_>) -> Result<Vec<Scene>, String> {
    let Some(word) = asked.network.name() else {
        return Ok(NETWORKS.map(with_its_system).to_vec());
    };
    // A path in a cluster that is made for the run.
    if let Some(path) = asked.path {
        return Ok(vec![Scene::of(word).by(path.word())]);
    }
    let network = match word {
        "flannel-vxlan" => "vxlan",
        "calico" => "routed",
        "weave-fastdp" | "cilium-vxlan" | "kube-router" | "aws-cni" | "kopeio-vxlan" | "romana" => {
            word
        }
        // Pairs of hosts that somebody gave these names.
        "bare-metal" | "vm" => word,
        // A path in a cluster.
        "pod" => word,
        name if NETWORKS.contains(&name) => name,
        other => return Err(format!("there is no network `{other}`")),
    };
    Ok(vec![with_its_system(network)])
}

/// A network as the target knows it, with what is its own there.
fn with_its_system(network: &str) -> Scene {
    let enforcer = match network {
        "routed" | "calico-vxlan" => Enforcer::CalicoIptables,
        _ => Enforcer::Nft,
    };
    let proxy = ServiceProxy::IptablesLegacy;
    Scene::of(network).enforced_by(enforcer).served_by(proxy)
}

/// Every maximum that loads are shares of is taken for 60,000/s.
fn resolve(text: &str) -> Plan {
    let experiment = Experiment::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let draft = experiment
        .draft(1, &expand)
        .unwrap_or_else(|e| panic!("{e}"));
    let maxima = vec![60_000.0; draft.sought.len()];
    draft.settle(&maxima).unwrap_or_else(|e| panic!("{e}"))
}

fn with_networks(networks: &str) -> Plan {
    resolve(&format!(
        "name = \"t\"\n[factors]\nnetwork = {networks}\n[[workload]]\nkind = \"rr\"\nrate = 100\n"
    ))
}
