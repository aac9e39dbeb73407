//! The services before the servers of a run.

use k8s_openapi::api::core::v1::{Service, ServicePort};
use kube::ResourceExt as _;
use kube::api::{Api, PostParams};
use plumbline_experiment::Family;

use super::{Front, StandingPods};
use crate::ClusterError;
use crate::manifest::{self, NEXT_PORT, PORT};
use crate::seat::Seat;

impl StandingPods {
    /// The service before a server, made when first asked for.
    pub(crate) fn front(
        &mut self,
        seat: Seat,
        family: Family,
        node_port: bool,
    ) -> Result<Front, ClusterError> {
        let v6 = family == Family::V6;
        if let Some(front) = self.services.get(&(seat, v6)) {
            return Ok(*front);
        }
        let namespace = self.namespace(false)?;
        let api: Api<Service> = Api::namespaced(self.session.client(), &namespace);
        let wanted = manifest::service(seat, node_port, v6, &self.mark);
        let what = format!("create service {namespace}/{}", wanted.name_any());
        let made = self
            .session
            .call(&what, api.create(&PostParams::default(), &wanted))?;
        let front = read_front(&made).ok_or_else(|| ClusterError::Refused {
            what,
            message: "it got no address".to_owned(),
        })?;
        self.services.insert((seat, v6), front);
        Ok(front)
    }
}

fn read_front(service: &Service) -> Option<Front> {
    let spec = service.spec.as_ref()?;
    let ports = spec.ports.as_ref()?;
    let node_port = |protocol: &str, port: u16| {
        let is_it = |it: &&ServicePort| {
            it.protocol.as_deref() == Some(protocol) && it.port == i32::from(port)
        };
        u16::try_from(ports.iter().find(is_it)?.node_port?).ok()
    };
    // The API server gives both protocols of a port the same number.
    let both = node_port("TCP", PORT).filter(|tcp| node_port("UDP", PORT) == Some(*tcp));
    let next = node_port("TCP", NEXT_PORT);
    Some(Front {
        cluster_ip: spec.cluster_ip.as_ref()?.parse().ok()?,
        node_ports: both.zip(next).map(<[u16; 2]>::from),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Ports of the nodes, in the order of the service's.
    fn front(node_ports: [Option<u16>; 3]) -> Front {
        let ports = [("TCP", PORT), ("UDP", PORT), ("TCP", NEXT_PORT)];
        let ports = ports.iter().zip(node_ports).map(|((protocol, port), node_port)| {
            json!({ "protocol": protocol, "port": port, "nodePort": node_port })
        });
        let ports: Vec<_> = ports.collect();
        let spec = json!({ "clusterIP": "10.96.0.9", "ports": ports });
        read_front(&manifest::built(json!({ "metadata": {}, "spec": spec }))).unwrap()
    }

    #[test]
    fn each_port_has_one_of_the_nodes() {
        let all = front([Some(30_007), Some(30_007), Some(31_000)]);
        assert_eq!(all.cluster_ip.to_string(), "10.96.0.9");
        assert_eq!(all.node_ports, Some([30_007, 31_000]));
        for lacking in [
            [None; 3],
            [Some(30_007), Some(30_008), Some(31_000)],
            [Some(30_007), Some(30_007), None],
        ] {
            assert_eq!(front(lacking).node_ports, None, "{lacking:?}");
        }
    }
}
