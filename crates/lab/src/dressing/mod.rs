//! What is laid on a path that stands, and taken off by its journal: rules on the nodes,
//! as other systems write them, and who works beside it.

mod dressed;
pub(crate) mod faults;
mod listener;
mod neighbours;
mod policies;
mod rule_writer;
mod services;
pub(crate) mod tuning;

use plumbline_experiment::{
    Family, Neighbours, Placement, Policies, PolicyDirection, Protocol, Scene, Selected,
    ServiceProxy, Services, Treatment,
};

use crate::error::LabError;
use crate::journal::Journal;
use crate::topology::Company;
pub(crate) use dressed::{BarePath, Dressed, NeighbourEnd, NeighbourPair};
pub(crate) use rule_writer::FOLDERS;

/// What is laid on a path. Nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dressing {
    /// Services on every node.
    pub services: Services,
    /// Policies on the nodes of pods.
    pub policies: Policies,
    /// Who works beside it.
    pub neighbours: Neighbours,
}

impl Dressing {
    /// That of a scene.
    pub(crate) fn of(scene: &Scene) -> Self {
        Self {
            services: scene.services,
            policies: scene.policies,
            neighbours: scene.neighbours,
        }
    }

    /// Pods that the network has to have beside its endpoints.
    pub(crate) fn company(self) -> Company {
        let neighbours = self.neighbours;
        Company {
            idle: usize::from(self.policies.selects == Selected::Others),
            pairs: match neighbours.share_link() {
                true => neighbours.number() as usize,
                false => 0,
            },
        }
    }

    /// Whether all of it can be on a path at once.
    ///
    /// # Errors
    ///
    /// [`LabError::Unsupported`] where it cannot.
    fn check(self, family: Family, placement: Placement) -> Result<(), LabError> {
        policies::check(&self.policies, family)?;
        let (proxy, enforcer) = (self.services.proxy, self.policies.enforcer);
        match self.goes_past_policies(placement) {
            None => Ok(()),
            Some(needs) => Err(LabError::Unsupported {
                what: format!(
                    "policies of {} for what is sent to a service of {}",
                    enforcer.as_str(),
                    proxy.as_str()
                ),
                needs: needs.to_owned(),
            }),
        }
    }

    /// Why what is sent to a service does not meet the policies as it would without the
    /// service; `None` where it does.
    fn goes_past_policies(self, placement: Placement) -> Option<&'static str> {
        use ServiceProxy::{EbpfSocket, Ipvs, Userspace};

        let policies = &self.policies;
        if policies.is_none() || self.services.asked().is_none() {
            return None;
        }
        let proxy = self.services.proxy;
        if proxy != EbpfSocket && policies::are_before_the_node(policies) {
            return Some(
                "they see packets before the node translates them; use direction ingress, \
                 the proxy ebpf-socket, or position = \"none\"",
            );
        }
        if proxy == Userspace && policies.selects == Selected::Ours {
            return Some(
                "the receiver is sent what is for a service from an address of the sender's \
                 node, which no policy allows; use another proxy, or position = \"none\"",
            );
        }
        let is_forwarded =
            placement == Placement::CrossNode && policies.direction == PolicyDirection::Ingress;
        let is_by_rules = !policies::are_programs(policies);
        (matches!(proxy, Ipvs | Userspace) && is_by_rules && !is_forwarded).then_some(
            "the sender's node takes what is for a service in and sends it out itself, past \
             the rules for what it forwards; use direction ingress on two nodes, another \
             proxy, or position = \"none\"",
        )
    }

    /// Lays it on a path, and waits until it acts.
    ///
    /// # Errors
    ///
    /// [`LabError::Unsupported`] where a program or the kernel lacks something, or the
    /// packets of the network do not meet the rules.
    pub(crate) fn put_on(
        self,
        path: BarePath<'_>,
        journal: &mut Journal,
    ) -> Result<Dressed, LabError> {
        let topology = path.topology;
        self.check(topology.addressing.family(), topology.placement)?;
        let mut dressed = match self.services.is_none() {
            true => Dressed::default(),
            false => services::put_on(self.services, path, journal)?,
        };
        if !self.policies.is_none() {
            dressed = policies::put_on(self.policies, path, dressed, journal)?;
        }
        dressed.beside = neighbours::put_on(self.neighbours, path, journal)?;
        Ok(dressed)
    }
}

/// Whether what a treatment has on its path can be there at all, which is found out before
/// anything is built. Services and policies of a lab are of TCP. `has_pods` says whether the
/// endpoints of its network are in pods.
///
/// # Errors
///
/// [`LabError::Unsupported`] where it cannot.
pub(crate) fn check(treatment: &Treatment, has_pods: bool) -> Result<(), LabError> {
    let (scene, name) = (&treatment.scene, treatment.task.name());
    Dressing::of(scene).check(scene.family, scene.placement)?;
    neighbours::check(scene.neighbours, has_pods)?;
    check_tracking(scene)?;
    let protocol = treatment.task.load().map(|load| load.protocol);
    let is_udp = protocol == Some(Protocol::Udp);
    if is_udp && !scene.policies.is_none() {
        return Err(LabError::Unsupported {
            what: format!("policies under {name}, which is UDP"),
            needs: "a workload of TCP, whose port they allow".to_owned(),
        });
    }
    if is_udp && scene.services.asked().is_some() {
        return Err(LabError::Unsupported {
            what: format!("a service under {name}, which is UDP"),
            needs: "a workload of TCP, or position = \"none\"".to_owned(),
        });
    }
    Ok(())
}

/// Whether connections that are exempt from tracking would be tracked otherwise, and whether
/// what is laid on the path does without that.
///
/// # Errors
///
/// [`LabError::Unsupported`] where one of both is not so.
fn check_tracking(scene: &Scene) -> Result<(), LabError> {
    if tuning::of(&scene.variant).conntrack != Some(false) {
        return Ok(());
    }
    let services = scene.services;
    let is_tracked = !services.is_none() && services.proxy != ServiceProxy::EbpfSocket;
    let is_needed = services.asked().is_some() || !scene.policies.is_none();
    match is_tracked && !is_needed {
        true => Ok(()),
        false => Err(LabError::Unsupported {
            what: "`conntrack` (connection tracking off)".to_owned(),
            needs: "services whose rules have connections tracked, position = \"none\", and no \
                    policies: nothing else tracks connections in a lab, and a service that is \
                    asked, and policies, cannot do without"
                .to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::{Enforcer, ServicePosition};

    use super::*;

    /// Whether policies of a direction can be behind the last service of a proxy.
    fn can_be(
        proxy: ServiceProxy,
        enforcer: Enforcer,
        direction: PolicyDirection,
        change: fn(&mut Dressing),
        placement: Placement,
    ) -> bool {
        let mut dressing = Dressing {
            services: Services {
                count: 3,
                proxy,
                position: ServicePosition::Last,
                ..Services::default()
            },
            policies: Policies {
                count: 3,
                enforcer,
                direction,
                ..Policies::default()
            },
            ..Dressing::default()
        };
        change(&mut dressing);
        dressing.check(Family::V4, placement).is_ok()
    }

    #[test]
    fn what_a_pod_sends_to_a_service_is_judged_behind_the_translation() {
        use PolicyDirection::{Both, Ingress};
        use ServiceProxy::{EbpfSocket, Nftables};
        let can_be = |proxy, enforcer, direction, change| {
            can_be(proxy, enforcer, direction, change, Placement::CrossNode)
        };

        assert!(!can_be(Nftables, Enforcer::Cilium, Both, |_| {}));
        assert!(can_be(Nftables, Enforcer::Nft, Both, |_| {}));
        assert!(can_be(Nftables, Enforcer::Cilium, Ingress, |_| {}));
        assert!(can_be(Nftables, Enforcer::Cilium, Both, asks_none));
        assert!(can_be(EbpfSocket, Enforcer::Cilium, Both, |_| {}));
    }

    /// Rules for what a node forwards do not see what it sends itself.
    #[test]
    fn a_node_that_sends_itself_goes_past_its_rules() {
        use Placement::{CrossNode, SameNode};
        use PolicyDirection::{Both, Egress, Ingress};
        use ServiceProxy::{IptablesLegacy, Ipvs, Userspace};
        let others = |it: &mut Dressing| it.policies.selects = Selected::Others;

        for enforcer in [Enforcer::Iptables, Enforcer::Nft, Enforcer::KubeRouter] {
            for direction in [Egress, Both] {
                assert!(!can_be(Ipvs, enforcer, direction, |_| {}, CrossNode));
                assert!(can_be(Ipvs, enforcer, direction, asks_none, CrossNode));
                assert!(can_be(
                    IptablesLegacy,
                    enforcer,
                    direction,
                    |_| {},
                    SameNode
                ));
            }
            assert!(can_be(Ipvs, enforcer, Ingress, |_| {}, CrossNode));
            assert!(!can_be(Ipvs, enforcer, Ingress, |_| {}, SameNode));
            assert!(!can_be(Ipvs, enforcer, Ingress, others, SameNode));
            // The receiver is sent to by the node, and not by the pod.
            assert!(!can_be(Userspace, enforcer, Ingress, |_| {}, CrossNode));
            assert!(can_be(Userspace, enforcer, Ingress, others, CrossNode));
            assert!(!can_be(Userspace, enforcer, Ingress, others, SameNode));
        }
        // Programs are at the pods' own devices.
        assert!(can_be(Ipvs, Enforcer::Cilium, Ingress, |_| {}, SameNode));
        assert!(!can_be(
            Userspace,
            Enforcer::Cilium,
            Ingress,
            |_| {},
            CrossNode
        ));
    }

    fn asks_none(dressing: &mut Dressing) {
        dressing.services.position = ServicePosition::None;
    }
}
