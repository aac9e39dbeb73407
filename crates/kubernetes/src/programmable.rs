//! A Service or a NetworkPolicy that comes and goes while connections are tried.

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use plumbline_experiment::{ObjectChange, Protocol};
use plumbline_harness::{Programmable, StandingPolicy, TargetError};
use serde_json::{Value, json};

use crate::ClusterError;
use crate::bulk::ObjectKind;
use crate::manifest::{RUN, RunMark, SEAT, built};
use crate::seat::Seat;
use crate::session::ClusterConnection;
use crate::site::lock;
use crate::teardown::found;

/// What it is called within the run.
const NAME: &str = "programmed";

/// What the policy is called that forbids what another one is to allow.
const CLOSED: &str = "closed";

/// What the policy is called under which a command is run.
const CONFINED: &str = "confined";

/// Longest wait for the end of what is left when a trial is over. What stays then goes with
/// all else of the run.
const UNDONE: Duration = Duration::from_secs(10);

/// Two pods of a run, and where things are made for them.
#[derive(Clone, Copy)]
pub(crate) struct PodPair<'p> {
    pub(crate) session: &'p ClusterConnection,
    pub(crate) namespace: &'p str,
    pub(crate) mark: &'p RunMark,
    pub(crate) client: Seat,
    pub(crate) server: Seat,
}

/// The thing, by its kind.
enum WantedObject {
    Service(Box<Service>),
    Policy(Box<NetworkPolicy>),
}

/// A thing that decides whether connections between two pods succeed.
pub(crate) struct ClusterProgrammable<'p> {
    pair: PodPair<'p>,
    address: SocketAddr,
    wanted: WantedObject,
}

impl<'p> ClusterProgrammable<'p> {
    /// A Service before the server, which listens there. Its address is the same each time:
    /// the first time the cluster gives one, which is kept in `reserved`. Its port is the
    /// server's, a new one for each trial, so that no packet is of a connection that a node
    /// still knows.
    ///
    /// # Errors
    ///
    /// The cluster makes no Service.
    pub(crate) fn service(
        pair: PodPair<'p>,
        listening: SocketAddr,
        reserved: &Mutex<Option<IpAddr>>,
    ) -> Result<Self, ClusterError> {
        pair.delete::<Service>(NAME)?;
        let known = *lock(reserved);
        let ip = match known {
            Some(ip) => ip,
            None => {
                let ip = pair.reserve(listening)?;
                *lock(reserved) = Some(ip);
                ip
            }
        };
        Ok(Self {
            pair,
            address: (ip, listening.port()).into(),
            wanted: WantedObject::Service(Box::new(pair.service(listening, Some(ip)))),
        })
    }

    /// A policy that allows the client to connect to the server, which listens there.
    /// Another one forbids it everything: it is made here. They restrict what the client
    /// sends, because what the server takes is up to the policy of the run.
    ///
    /// # Errors
    ///
    /// The cluster makes no NetworkPolicy.
    pub(crate) fn policy(pair: PodPair<'p>, listening: SocketAddr) -> Result<Self, ClusterError> {
        pair.delete::<NetworkPolicy>(NAME)?;
        pair.make(&pair.egress(CLOSED, &json!([])))?;
        let allowed = json!([{
            "to": [{ "podSelector": { "matchLabels": pair.labels(pair.server) } }],
            "ports": [{ "protocol": "TCP", "port": listening.port() }],
        }]);
        Ok(Self {
            pair,
            address: listening,
            wanted: WantedObject::Policy(Box::new(pair.egress(NAME, &allowed))),
        })
    }
}

impl Programmable for ClusterProgrammable<'_> {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn change(&self, change: ObjectChange) -> Result<(), TargetError> {
        let pair = &self.pair;
        match (change, &self.wanted) {
            (ObjectChange::Add, WantedObject::Service(service)) => {
                pair.make(&**service).map(drop)?;
            }
            (ObjectChange::Add, WantedObject::Policy(policy)) => {
                pair.make(&**policy).map(drop)?;
            }
            (ObjectChange::Remove, WantedObject::Service(_)) => pair.delete::<Service>(NAME)?,
            (ObjectChange::Remove, WantedObject::Policy(_)) => {
                pair.delete::<NetworkPolicy>(NAME)?
            }
        }
        Ok(())
    }
}

impl Drop for ClusterProgrammable<'_> {
    /// As well as it can be done: the rest goes with all else of the run.
    fn drop(&mut self) {
        let pair = &self.pair;
        match self.wanted {
            WantedObject::Service(_) => pair.undo::<Service>(NAME),
            WantedObject::Policy(_) => {
                pair.undo::<NetworkPolicy>(CLOSED);
                pair.undo::<NetworkPolicy>(NAME);
            }
        }
    }
}

/// A policy under which one pod sends to another what it allows, and nothing else.
pub(crate) struct PodConfinement<'p>(PodPair<'p>);

impl StandingPolicy for PodConfinement<'_> {}

impl Drop for PodConfinement<'_> {
    /// As well as it can be done: the rest goes with all else of the run.
    fn drop(&mut self) {
        self.0.undo::<NetworkPolicy>(CONFINED);
    }
}

impl<'p> PodConfinement<'p> {
    /// Makes it: the client may send to these ports of the server.
    ///
    /// # Errors
    ///
    /// The cluster makes no NetworkPolicy.
    pub(crate) fn new(
        pair: PodPair<'p>,
        allowed: &[(Protocol, SocketAddr)],
    ) -> Result<Self, ClusterError> {
        pair.delete::<NetworkPolicy>(CONFINED)?;
        let port = |(protocol, address): &(Protocol, SocketAddr)| {
            let protocol = match protocol {
                Protocol::Tcp => "TCP",
                Protocol::Udp => "UDP",
            };
            json!({ "protocol": protocol, "port": address.port() })
        };
        let allowed = json!([{
            "to": [{ "podSelector": { "matchLabels": pair.labels(pair.server) } }],
            "ports": allowed.iter().map(port).collect::<Vec<Value>>(),
        }]);
        pair.make(&pair.egress(CONFINED, &allowed))?;
        Ok(Self(pair))
    }
}

impl PodPair<'_> {
    fn labels(&self, seat: Seat) -> Value {
        json!({ RUN: self.mark.run, SEAT: seat.group() })
    }

    /// An address of the cluster's that a Service had, and none has now.
    fn reserve(&self, listening: SocketAddr) -> Result<IpAddr, ClusterError> {
        let made = self.make(&self.service(listening, None))?;
        self.delete::<Service>(NAME)?;
        let ip = made.and_then(|it| it.spec?.cluster_ip?.parse().ok());
        ip.ok_or_else(|| ClusterError::Refused {
            what: "make a service".to_owned(),
            message: "it got no address".to_owned(),
        })
    }

    fn service(&self, listening: SocketAddr, ip: Option<IpAddr>) -> Service {
        let family = if listening.is_ipv4() { "IPv4" } else { "IPv6" };
        built(json!({
            "metadata": self.mark.metadata(NAME),
            "spec": {
                "type": "ClusterIP",
                "clusterIP": ip,
                "ipFamilyPolicy": "SingleStack",
                "ipFamilies": [family],
                "selector": self.labels(self.server),
                "ports": [{
                    "name": "tcp",
                    "protocol": "TCP",
                    "port": listening.port(),
                    "targetPort": listening.port(),
                }],
            },
        }))
    }

    fn egress(&self, name: &str, allowed: &Value) -> NetworkPolicy {
        built(json!({
            "metadata": self.mark.metadata(name),
            "spec": {
                "podSelector": { "matchLabels": self.labels(self.client) },
                "policyTypes": ["Egress"],
                "egress": allowed,
            },
        }))
    }

    /// Makes a thing, once: to ask again would show another moment. `None` where it was
    /// there.
    fn make<K: ObjectKind>(&self, object: &K) -> Result<Option<K>, ClusterError> {
        let api: Api<K> = Api::namespaced(self.session.client(), self.namespace);
        let what = format!("make {} {}", K::kind(&()), object.name_any());
        let params = PostParams::default();
        self.session.call(&what, async {
            match api.create(&params, object).await {
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(None),
                made => made.map(Some),
            }
        })
    }

    /// Deletes a thing by its name within the run, if it is there.
    fn delete<K: ObjectKind>(&self, name: &str) -> Result<(), ClusterError> {
        let api: Api<K> = Api::namespaced(self.session.client(), self.namespace);
        let name = self.mark.name(name);
        let what = format!("delete {} {name}", K::kind(&()));
        let now = DeleteParams::default();
        let deleted = self
            .session
            .call(&what, async { found(api.delete(&name, &now).await) });
        deleted.map(drop)
    }

    /// As [`delete`](Self::delete), whatever the user wants meanwhile.
    fn undo<K: ObjectKind>(&self, name: &str) {
        let api: Api<K> = Api::namespaced(self.session.client(), self.namespace);
        let (name, now) = (self.mark.name(name), DeleteParams::default());
        let until = Instant::now() + UNDONE;
        let delete = || async { found(api.delete(&name, &now).await) };
        drop(
            self.session
                .insist("delete what was programmed", until, delete),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::tests::mark;
    use crate::planted::{PlantedServer, Reply};
    use crate::seat::tests::POD;

    const GONE: Reply = Reply::Status(404, "NotFound", "no such thing");

    fn pair<'p>(session: &'p ClusterConnection, mark: &'p RunMark) -> PodPair<'p> {
        let (client, server) = POD.seats();
        PodPair {
            session,
            namespace: "n",
            mark,
            client,
            server,
        }
    }

    fn listening() -> SocketAddr {
        ([10, 0, 0, 7], 40_001).into()
    }

    #[test]
    fn a_service_comes_back_under_its_address_with_another_port() {
        let server = PlantedServer::start([GONE], Reply::Echo);
        let (session, mark) = (server.session(), mark());
        let reserved = Mutex::new(Some("10.96.0.9".parse().unwrap()));
        let object =
            ClusterProgrammable::service(pair(&session, &mark), listening(), &reserved).unwrap();
        assert_eq!(object.address(), ([10, 96, 0, 9], 40_001).into());
        object.change(ObjectChange::Add).unwrap();
        let made: Value = serde_json::from_str(&server.body(1)).unwrap();
        assert_eq!(made["spec"]["clusterIP"], "10.96.0.9");
        assert_eq!(made["spec"]["ports"][0]["targetPort"], 40_001);
        assert_eq!(made["spec"]["selector"]["plumbline/seat"], "server-pod");
        assert_eq!(made["metadata"]["labels"][RUN], "3fa2");
    }

    #[test]
    fn an_address_that_the_cluster_does_not_give_is_an_error() {
        let server = PlantedServer::start([GONE, Reply::Echo], GONE);
        let (session, mark) = (server.session(), mark());
        let reserved = Mutex::default();
        let error = ClusterProgrammable::service(pair(&session, &mark), listening(), &reserved)
            .err()
            .unwrap();
        assert!(error.to_string().contains("no address"), "{error}");
    }

    #[test]
    fn a_policy_allows_what_another_forbids_and_both_go() {
        let server = PlantedServer::start([GONE, Reply::Echo, Reply::Echo], GONE);
        let (session, mark) = (server.session(), mark());
        let object = ClusterProgrammable::policy(pair(&session, &mark), listening()).unwrap();
        object.change(ObjectChange::Add).unwrap();
        object.change(ObjectChange::Remove).unwrap();
        drop(object);
        let spec = |at| serde_json::from_str::<Value>(&server.body(at)).unwrap()["spec"].clone();
        let [closed, allowing] = [spec(1), spec(2)];
        assert_eq!(closed["podSelector"], allowing["podSelector"]);
        assert_eq!(
            closed["podSelector"]["matchLabels"]["plumbline/seat"],
            "client-pod"
        );
        assert_eq!(closed["policyTypes"], json!(["Egress"]));
        assert!(closed["egress"].as_array().is_none_or(Vec::is_empty));
        assert_eq!(allowing["egress"][0]["ports"][0]["port"], 40_001);
        let asked = server.asked();
        let names = ["programmed", "closed", "programmed"];
        for (asked, name) in asked[3..].iter().zip(names) {
            let path =
                format!("DELETE /apis/networking.k8s.io/v1/namespaces/n/networkpolicies/{name}");
            assert!(asked.starts_with(&path), "{asked}");
        }
        assert_eq!(asked.len(), 6, "{asked:?}");
    }

    #[test]
    fn a_pod_is_confined_to_the_ports_that_are_named_until_it_is_let_go() {
        let server = PlantedServer::start([GONE, Reply::Echo], GONE);
        let (session, mark) = (server.session(), mark());
        let datagrams = ([10, 0, 0, 7], 40_002).into();
        let allowed = [(Protocol::Tcp, listening()), (Protocol::Udp, datagrams)];
        let policy = PodConfinement::new(pair(&session, &mark), &allowed).unwrap();
        assert_eq!(server.asked().len(), 2, "{:?}", server.asked());
        drop(policy);
        let made: Value = serde_json::from_str(&server.body(1)).unwrap();
        let spec = &made["spec"];
        let selected = &spec["podSelector"]["matchLabels"]["plumbline/seat"];
        assert_eq!(selected, "client-pod");
        let to = &spec["egress"][0]["to"][0]["podSelector"]["matchLabels"];
        assert_eq!(to["plumbline/seat"], "server-pod");
        let ports = json!([
            { "protocol": "TCP", "port": 40_001 },
            { "protocol": "UDP", "port": 40_002 },
        ]);
        assert_eq!(spec["egress"][0]["ports"], ports);
        let path = "DELETE /apis/networking.k8s.io/v1/namespaces/n/networkpolicies/confined";
        let asked = server.asked();
        assert!(asked[2].starts_with(path), "{asked:?}");
    }

    /// To make it twice would date the change wrongly.
    #[test]
    fn a_change_is_asked_for_once() {
        let away = Reply::Status(500, "InternalError", "etcd is slow");
        let server = PlantedServer::start([GONE, Reply::Echo, away], GONE);
        let (session, mark) = (server.session(), mark());
        let object = ClusterProgrammable::policy(pair(&session, &mark), listening()).unwrap();
        object.change(ObjectChange::Add).unwrap_err();
        assert_eq!(server.asked().len(), 3, "{:?}", server.asked());
    }
}
