//! NetworkPolicies that a run makes by number. Each allows one TCP port of the pods that it
//! selects to its peers, or that port of its peers to the pods; one of them allows it to the
//! run's own pods, and the peers of all others are labels or addresses that nobody has.
//!
//! They are named by their numbers: systems that ask one after the other do so by name, as
//! Calico does.

use k8s_openapi::api::networking::v1::NetworkPolicy;
use plumbline_experiment::{Family, Policies, PolicyDirection, PolicyPeers, Selected};
use serde_json::{Value, json};

use crate::ClusterError;
use crate::bulk::RunPlace;
use crate::manifest::{GUARDED, PORT, RUN, SEAT, built};
use crate::seat::Seat;
use crate::services::{STRANGERS, stranger};

/// The label that peers of the others would have.
const STRANGER: &str = "plumbline/stranger";

/// Objects that are held in memory at a time.
const PART: usize = 100;

/// Makes them, the one that allows the run's traffic last: what it allows gets through when
/// all are enforced, where a system hears of them in their order.
///
/// # Errors
///
/// As for [`RunPlace::apply`].
pub(crate) fn apply(
    place: RunPlace<'_>,
    policies: &Policies,
    family: Family,
) -> Result<(), ClusterError> {
    let what = format!("{} NetworkPolicies", policies.count);
    let of = |number: &u32| policy(place, policies, family, *number);
    let (allowing, others): (Vec<u32>, Vec<u32>) =
        (0..policies.count).partition(|number| policies.allowing() == Some(*number));
    for part in others.chunks(PART).chain([&*allowing]) {
        let objects: Vec<NetworkPolicy> = part.iter().map(of).collect();
        place.apply(&what, &objects)?;
    }
    Ok(())
}

/// Deletes all of them.
///
/// # Errors
///
/// As for [`RunPlace::delete`].
pub(crate) fn delete(place: RunPlace<'_>) -> Result<(), ClusterError> {
    place.delete_all::<NetworkPolicy>("the NetworkPolicies")
}

/// Why no cluster has these; `None` where one may.
pub(crate) fn lacks(policies: &Policies) -> Option<String> {
    if policies.peers == PolicyPeers::Pods && policies.members > 1 {
        return Some(
            "members of what labels select are pods, and there are none; use peers addresses"
                .to_owned(),
        );
    }
    let peers = u64::from(policies.count) * u64::from(policies.members);
    if policies.peers == PolicyPeers::Addresses && peers > u64::from(STRANGERS) {
        return Some(format!(
            "they have {peers} peers, and {STRANGERS} addresses are set aside for those; use \
             fewer members"
        ));
    }
    let is_ingress = policies.direction == PolicyDirection::Ingress;
    (policies.selects == Selected::Others && !is_ingress)
        .then(|| "policies on others restrict what comes to them; use direction ingress".to_owned())
}

fn policy(place: RunPlace<'_>, policies: &Policies, family: Family, number: u32) -> NetworkPolicy {
    let bits = if family == Family::V4 { 32 } else { 128 };
    let first = number * policies.members;
    let nobody = |it: u32| match policies.peers {
        PolicyPeers::Pods => {
            let labels = json!({ RUN: place.mark.run, STRANGER: it.to_string() });
            json!({ "podSelector": { "matchLabels": labels } })
        }
        PolicyPeers::Addresses => {
            json!({ "ipBlock": { "cidr": format!("{}/{bits}", stranger(family, it)) } })
        }
    };
    let mut peers: Vec<Value> = (first..first + policies.members).map(nobody).collect();
    if policies.allowing() == Some(number) {
        peers[0] = json!({ "podSelector": { "matchLabels": { RUN: place.mark.run } } });
    }
    let ports = json!([{ "protocol": "TCP", "port": PORT }]);
    let types: &[&str] = match policies.direction {
        PolicyDirection::Ingress => &["Ingress"],
        PolicyDirection::Egress => &["Egress"],
        PolicyDirection::Both => &["Ingress", "Egress"],
    };
    let mut spec = json!({
        "podSelector": { "matchLabels": selected(place, policies) },
        "policyTypes": types,
    });
    if types.contains(&"Ingress") {
        spec["ingress"] = json!([{ "from": peers, "ports": ports }]);
    }
    if types.contains(&"Egress") {
        spec["egress"] = json!([{ "to": peers, "ports": ports }]);
    }
    let metadata = place.metadata(&format!("policy-{number:05}"), number);
    built(json!({ "metadata": metadata, "spec": spec }))
}

/// Labels of the pods that they select.
fn selected(place: RunPlace<'_>, policies: &Policies) -> Value {
    let run = &place.mark.run;
    match (policies.selects, policies.direction) {
        (Selected::Others, _) => json!({ RUN: run, SEAT: Seat::Beside.group() }),
        (Selected::Ours, PolicyDirection::Ingress) => json!({ RUN: run, GUARDED: "true" }),
        (Selected::Ours, PolicyDirection::Egress) => json!({ RUN: run, GUARDED: "false" }),
        (Selected::Ours, PolicyDirection::Both) => json!({ RUN: run }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::tests::mark;
    use crate::manifest::{Spot, pod};
    use crate::planted::{PlantedServer, Reply};
    use crate::seat::tests::POD;

    fn made(policies: Policies) -> Vec<NetworkPolicy> {
        let server = PlantedServer::start([], Reply::Echo);
        let (session, mark) = (server.session(), mark());
        let place = RunPlace {
            session: &session,
            namespace: "shared",
            mark: &mark,
        };
        apply(place, &policies, Family::V4).unwrap();
        let bodies = (0..server.asked().len()).map(|at| server.body(at));
        bodies
            .map(|body| serde_json::from_str(&body).unwrap())
            .collect()
    }

    fn allows_own(policy: &NetworkPolicy) -> bool {
        let rules = policy.spec.clone().unwrap().ingress.unwrap();
        let peers = rules.into_iter().flat_map(|it| it.from.unwrap());
        let mut labels = peers.filter_map(|it| it.pod_selector?.match_labels);
        labels.any(|it| !it.contains_key(STRANGER))
    }

    #[test]
    fn labels_that_nobody_has_differ_in_each() {
        let all = made(Policies {
            count: 5,
            ..Policies::default()
        });
        assert_eq!(all.iter().filter(|it| allows_own(it)).count(), 1);
        let mut peers: Vec<String> = all
            .iter()
            .flat_map(|it| it.spec.clone().unwrap().ingress.unwrap())
            .flat_map(|it| it.from.unwrap())
            .filter_map(|it| it.pod_selector?.match_labels?.remove(STRANGER))
            .collect();
        peers.sort_unstable();
        peers.dedup();
        assert_eq!(peers.len(), 4);
    }

    #[test]
    fn one_of_them_allows_the_traffic_and_is_made_last() {
        let policies = Policies {
            count: 5,
            members: 3,
            peers: PolicyPeers::Addresses,
            ..Policies::default()
        };
        let all = made(policies);
        assert_eq!(all.len(), 5);
        let (last, others) = all.split_last().unwrap();
        assert_eq!(last.metadata.name.as_deref(), Some("policy-00004-3fa2"));
        assert!(allows_own(last) && !others.iter().any(allows_own));
        let mut peers: Vec<String> = all
            .iter()
            .flat_map(|it| it.spec.clone().unwrap().ingress.unwrap())
            .flat_map(|it| it.from.unwrap())
            .filter_map(|it| Some(it.ip_block?.cidr))
            .collect();
        peers.sort_unstable();
        peers.dedup();
        assert_eq!(peers.len(), 3 * 5 - 1, "nobody is a peer twice");
    }

    #[test]
    fn they_select_the_pods_that_they_are_about() {
        let labels = |seat| {
            let pod = pod(seat, Spot::Anywhere, "image:1", &mark());
            pod.metadata.labels.unwrap()
        };
        let [client, server, beside] = [
            Seat::Client(POD),
            Seat::Server { of: POD, index: 1 },
            Seat::Beside,
        ]
        .map(labels);
        for (selects, direction, of_client, of_server, of_beside) in [
            (Selected::Ours, PolicyDirection::Ingress, false, true, false),
            (Selected::Ours, PolicyDirection::Egress, true, false, true),
            (Selected::Ours, PolicyDirection::Both, true, true, true),
            (
                Selected::Others,
                PolicyDirection::Ingress,
                false,
                false,
                true,
            ),
        ] {
            let policies = Policies {
                count: 1,
                selects,
                direction,
                ..Policies::default()
            };
            let spec = made(policies).remove(0).spec.unwrap();
            let wanted = spec.pod_selector.unwrap().match_labels.unwrap();
            let fits = |labels: &std::collections::BTreeMap<String, String>| {
                wanted
                    .iter()
                    .all(|(key, value)| labels.get(key) == Some(value))
            };
            let fit = [&client, &server, &beside].map(fits);
            assert_eq!(fit, [of_client, of_server, of_beside], "{direction:?}");
        }
    }
}
