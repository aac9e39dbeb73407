//! The NetworkPolicy of a run: it admits the run's own pods to those that receive.

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::StandingPods;
use crate::ClusterError;
use crate::manifest::{GUARDED, RUN, RunMark, built};
use crate::policy::RunPolicy;
use crate::seat::Seat;
use crate::teardown::found;

impl StandingPods {
    pub(crate) fn policy(&self) -> &RunPolicy {
        &self.policy
    }

    /// Makes the policy, if it is wanted, before pods of these seats are made.
    ///
    /// # Errors
    ///
    /// The API server is away. Where it refuses, the run goes on without a policy.
    pub(crate) fn guard(&mut self, seats: &[Seat]) -> Result<(), ClusterError> {
        let in_pods = seats.iter().any(|seat| !seat.is_host());
        if self.policy == RunPolicy::Wanted && in_pods {
            self.namespace(false)?;
            self.apply(BTreeSet::new())?;
        }
        Ok(())
    }

    /// Leaves the policy out of a run that has not made it yet.
    pub(crate) fn leave_unguarded(&mut self, why: &str) {
        if self.policy == RunPolicy::Wanted {
            self.policy = RunPolicy::Missing(why.to_owned());
        }
    }

    /// Has the policy, if it stands, admit these addresses of nodes too.
    ///
    /// # Errors
    ///
    /// As for [`guard`](Self::guard).
    pub(crate) fn admit(&mut self, nodes: &[IpAddr]) -> Result<(), ClusterError> {
        let RunPolicy::Stands(admitted) = &self.policy else {
            return Ok(());
        };
        let all: BTreeSet<IpAddr> = admitted.iter().chain(nodes).copied().collect();
        if all == *admitted {
            return Ok(());
        }
        self.apply(all)
    }

    /// Makes the policy, or changes it: it admits the run's own pods and these nodes.
    ///
    /// # Errors
    ///
    /// As for [`guard`](Self::guard).
    pub(crate) fn apply(&mut self, nodes: BTreeSet<IpAddr>) -> Result<(), ClusterError> {
        let wanted = manifest(&self.mark, &nodes);
        let (api, name) = (self.policies(), wanted.name_any());
        // An answer that was lost does no harm: applied twice, it is the same.
        let params = PatchParams::apply("plumbline").force();
        let what = format!("make NetworkPolicy {name}");
        let patch = Patch::Apply(&wanted);
        let applied = self
            .session
            .patiently(&what, || api.patch(&name, &params, &patch));
        match applied {
            Ok(_) => {
                self.policy = RunPolicy::Stands(nodes);
                Ok(())
            }
            Err(ClusterError::Forbidden { .. }) => self.do_without(
                "this account may not make a NetworkPolicy; the Role that `plumbline manifest \
                 role` prints now lets it"
                    .to_owned(),
            ),
            Err(error) if error.is_away() || matches!(error, ClusterError::Interrupted) => {
                Err(error)
            }
            Err(error) => self.do_without(error.to_string()),
        }
    }

    /// Deletes the policy, if it stands, and notes why.
    ///
    /// # Errors
    ///
    /// It could not be deleted.
    pub(crate) fn do_without(&mut self, why: String) -> Result<(), ClusterError> {
        if let RunPolicy::Stands(_) = self.policy {
            let (api, name) = (self.policies(), self.mark.name(NAME));
            let what = format!("delete NetworkPolicy {name}");
            let now = DeleteParams::default();
            let delete = || async { found(api.delete(&name, &now).await) };
            self.session.patiently(&what, delete)?;
        }
        self.policy = RunPolicy::Missing(why);
        Ok(())
    }

    fn policies(&self) -> Api<NetworkPolicy> {
        let namespace = self.namespaces.get(&false).map_or("", String::as_str);
        Api::namespaced(self.session.client(), namespace)
    }
}

/// What it is called within the run.
const NAME: &str = "own-pods";

/// A receiver's pod listens on nothing but its data port, which the kernel may pick, so
/// no port is named.
fn manifest(mark: &RunMark, nodes: &BTreeSet<IpAddr>) -> NetworkPolicy {
    let own = json!({ "podSelector": { "matchLabels": { RUN: mark.run } } });
    let address = |it: &IpAddr| {
        let bits = if it.is_ipv4() { 32 } else { 128 };
        json!({ "ipBlock": { "cidr": format!("{it}/{bits}") } })
    };
    let from: Vec<Value> = [own].into_iter().chain(nodes.iter().map(address)).collect();
    built(json!({
        "metadata": mark.metadata(NAME),
        "spec": {
            "podSelector": { "matchLabels": { RUN: mark.run, GUARDED: "true" } },
            "policyTypes": ["Ingress"],
            "ingress": [{ "from": from }],
        },
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::manifest::{Spot, pod};
    use crate::planted::{PlantedServer, Reply};
    use crate::seat::tests::POD;

    const CLIENT: Seat = Seat::Client(POD);
    const SERVER: Seat = Seat::Server { of: POD, index: 1 };

    const FORBIDDEN: Reply = Reply::Status(
        403,
        "Forbidden",
        "networkpolicies is forbidden: User \"ann\" cannot patch resource",
    );

    fn mark() -> RunMark {
        RunMark {
            run: "3fa2".to_owned(),
            started_by: "me".to_owned(),
            shares_namespace: true,
        }
    }

    fn standing(server: &PlantedServer, is_wanted: bool) -> StandingPods {
        let session = Arc::new(server.session());
        let given = Some("shared".to_owned());
        StandingPods::new(session, "image:1".into(), given, mark(), is_wanted)
    }

    /// As a run does.
    fn make(standing: &mut StandingPods, seat: Seat) {
        standing.guard(&[seat]).unwrap();
        standing.create(seat, Spot::Anywhere).unwrap();
    }

    fn policies(server: &PlantedServer) -> Vec<String> {
        let asked = server.asked().into_iter();
        asked.filter(|it| it.contains("/networkpolicies")).collect()
    }

    #[test]
    fn it_selects_the_pods_that_receive_in_a_network_of_their_own() {
        let spec = manifest(&mark(), &BTreeSet::new()).spec.unwrap();
        let selected = spec.pod_selector.unwrap().match_labels.unwrap();
        for (seat, is_selected) in [
            (CLIENT, false),
            (SERVER, true),
            (Seat::Member(3), true),
            (Seat::HostServer, false),
            (Seat::HostMember(3), false),
        ] {
            let labels = pod(seat, Spot::Anywhere, "image:1", &mark())
                .metadata
                .labels;
            let labels = labels.unwrap();
            let matches = selected
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value));
            assert_eq!(matches, is_selected, "{seat:?}");
            assert_eq!(labels[RUN], "3fa2", "it is admitted");
        }
    }

    #[test]
    fn it_admits_pods_of_the_run_and_the_nodes_that_a_path_needs() {
        let nodes = ["10.0.0.1", "fd00::1"].map(|it| it.parse().unwrap());
        let spec = manifest(&mark(), &nodes.into()).spec.unwrap();
        assert_eq!(spec.policy_types.unwrap(), ["Ingress"]);
        let mut rules = spec.ingress.unwrap();
        let from = rules.remove(0).from.unwrap();
        assert!(rules.is_empty());
        let own = from[0].pod_selector.clone().unwrap().match_labels.unwrap();
        assert_eq!(own[RUN], "3fa2");
        let blocks = from[1..].iter().map(|it| it.ip_block.clone().unwrap().cidr);
        assert_eq!(blocks.collect::<Vec<_>>(), ["10.0.0.1/32", "fd00::1/128"]);
    }

    #[test]
    fn it_is_there_before_the_first_pod() {
        let server = PlantedServer::start([], Reply::Echo);
        let mut standing = standing(&server, true);
        make(&mut standing, SERVER);
        let asked = server.asked();
        let made =
            "PATCH /apis/networking.k8s.io/v1/namespaces/shared/networkpolicies/own-pods-3fa2";
        assert!(asked[0].starts_with(made), "{asked:?}");
        assert!(
            asked[1].starts_with("POST ") && asked.len() == 2,
            "{asked:?}"
        );
        assert_eq!(*standing.policy(), RunPolicy::Stands(BTreeSet::new()));
    }

    #[test]
    fn none_is_made_that_was_not_wanted_or_for_pods_in_the_nodes_networks() {
        let server = PlantedServer::start([], Reply::Echo);
        let mut without = standing(&server, false);
        make(&mut without, SERVER);
        assert_eq!(*without.policy(), RunPolicy::Unwanted);
        let mut of_hosts = standing(&server, true);
        make(&mut of_hosts, Seat::HostServer);
        assert!(policies(&server).is_empty(), "{:?}", server.asked());
    }

    #[test]
    fn nodes_are_admitted_once() {
        let server = PlantedServer::start([], Reply::Echo);
        let mut standing = standing(&server, true);
        make(&mut standing, SERVER);
        let [one, two]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|it| it.parse().unwrap());
        for nodes in [&[one][..], &[one], &[one, two]] {
            standing.admit(nodes).unwrap();
        }
        assert_eq!(policies(&server).len(), 3, "{:?}", server.asked());
        assert_eq!(*standing.policy(), RunPolicy::Stands([one, two].into()));
        let body = server.body(3);
        assert!(
            body.contains("10.0.0.1/32") && body.contains("10.0.0.2/32"),
            "{body}"
        );
    }

    #[test]
    fn without_the_right_the_run_goes_on_and_says_so() {
        let server = PlantedServer::start([FORBIDDEN], Reply::Echo);
        let mut standing = standing(&server, true);
        make(&mut standing, SERVER);
        make(&mut standing, CLIENT);
        assert_eq!(policies(&server).len(), 1, "it is asked for once");
        let RunPolicy::Missing(why) = standing.policy() else {
            panic!("{:?}", standing.policy());
        };
        assert!(why.contains("manifest role"), "{why}");
    }

    #[test]
    fn an_api_server_that_is_away_is_waited_for() {
        let away = Reply::Status(503, "ServiceUnavailable", "etcd is slow");
        let server = PlantedServer::start([away], Reply::Echo);
        let mut standing = standing(&server, true);
        make(&mut standing, SERVER);
        assert_eq!(policies(&server).len(), 2, "{:?}", server.asked());
        assert_eq!(*standing.policy(), RunPolicy::Stands(BTreeSet::new()));
    }

    #[test]
    fn one_that_has_to_go_is_deleted() {
        let gone = Reply::Status(404, "NotFound", "no such policy");
        let server = PlantedServer::start([Reply::Echo, Reply::Echo], gone);
        let mut standing = standing(&server, true);
        make(&mut standing, SERVER);
        standing
            .do_without("nothing came through".to_owned())
            .unwrap();
        assert!(
            policies(&server)[1].starts_with("DELETE "),
            "{:?}",
            server.asked()
        );
        let why = RunPolicy::Missing("nothing came through".to_owned());
        assert_eq!(*standing.policy(), why);
        standing.admit(&["10.0.0.1".parse().unwrap()]).unwrap();
        assert_eq!(policies(&server).len(), 2, "it is not made again");
    }
}
