//! The factors of network policies.

use super::label::{counted, in_words, said};
use super::row::{Factor, LevelSyntax};
use crate::ceiling::{MAX_MEMBERS, MAX_POLICIES};
use crate::{
    Enforcer, Policies, PolicyDirection, PolicyPeers, PolicyPosition, Scene, Selected, section,
};

pub(super) const POLICIES: Factor = Factor {
    name: "policies",
    help: "Network policies whose rules stand on the nodes, such as 0,10,200",
    value_name: "NUMBERS",
    of: None,
    reading: LevelSyntax::Level(|written, scene| {
        scene.policies.count = section::whole("policies", written.0, &(0..=MAX_POLICIES))?;
        Ok(())
    }),
    level: |scene| scene.policies.count.to_string(),
    label: policies_in_words,
    heading: |scene| said(policies_in_words(scene)),
    number: |scene| Some(scene.policies.count.into()),
    one: "policy",
};

pub(super) const POLICY_POSITION: Factor = Factor {
    name: "policy-position",
    help: "Which policy allows the traffic: first, middle, last",
    value_name: "WHERE",
    of: Some("policies"),
    reading: LevelSyntax::Level(|written, scene| {
        scene.policies.position = written.word(
            "policy-position",
            PolicyPosition::ALL,
            PolicyPosition::as_str,
        )?;
        Ok(())
    }),
    level: |scene| in_policies(scene, |it| it.position.as_str().to_owned()),
    label: |scene| in_policies(scene, |it| it.position.as_str().to_owned()),
    heading: |scene| {
        said(in_policies(scene, |it| {
            format!("{} allows", it.position.as_str())
        }))
    },
    number: |_| None,
    one: "",
};

pub(super) const SELECTS: Factor = Factor {
    name: "selects",
    help: "Pods that policies select: ours, or others beside them",
    value_name: "PODS",
    of: Some("policies"),
    reading: LevelSyntax::Level(|written, scene| {
        scene.policies.selects = written.word("selects", Selected::ALL, Selected::as_str)?;
        Ok(())
    }),
    level: |scene| in_policies(scene, |it| it.selects.as_str().to_owned()),
    label: |scene| in_policies(scene, |it| format!("on {}", it.selects.as_str())),
    heading: |scene| {
        said(in_policies(scene, |it| {
            format!("on {}", it.selects.as_str())
        }))
    },
    number: |_| None,
    one: "",
};

pub(super) const MEMBERS: Factor = Factor {
    name: "members",
    help: "Peers that each policy allows",
    value_name: "NUMBERS",
    of: Some("policies"),
    reading: LevelSyntax::Level(|written, scene| {
        scene.policies.members = section::whole("members", written.0, &(1..=MAX_MEMBERS))?;
        Ok(())
    }),
    level: |scene| scene.policies.members.to_string(),
    label: |scene| in_policies(scene, |it| counted(it.members, "member")),
    heading: |scene| {
        let members = scene.policies.members;
        (members > 1).then(|| format!("{members} members"))
    },
    number: |scene| Some(scene.policies.members.into()),
    one: "member",
};

pub(super) const PEERS: Factor = Factor {
    name: "peers",
    help: "How policies name their peers: pods, by labels, or addresses",
    value_name: "HOW",
    of: Some("policies"),
    reading: LevelSyntax::Level(|written, scene| {
        scene.policies.peers = written.word("peers", PolicyPeers::ALL, PolicyPeers::as_str)?;
        Ok(())
    }),
    level: |scene| in_policies(scene, |it| it.peers.as_str().to_owned()),
    label: |scene| in_policies(scene, |it| format!("of {}", it.peers.as_str())),
    heading: |scene| match scene.policies.peers {
        PolicyPeers::Pods => None,
        PolicyPeers::Addresses => said(in_policies(scene, |_| "peers by address".to_owned())),
    },
    number: |_| None,
    one: "",
};

pub(super) const DIRECTION: Factor = Factor {
    name: "direction",
    help: "What policies restrict: ingress, egress, both",
    value_name: "WAYS",
    of: Some("policies"),
    reading: LevelSyntax::Level(|written, scene| {
        scene.policies.direction =
            written.word("direction", PolicyDirection::ALL, PolicyDirection::as_str)?;
        Ok(())
    }),
    level: |scene| in_policies(scene, |it| it.direction.as_str().to_owned()),
    label: |scene| in_policies(scene, |it| it.direction.as_str().to_owned()),
    heading: |scene| said(in_policies(scene, |it| it.direction.as_str().to_owned())),
    number: |_| None,
    one: "",
};

pub(super) const ENFORCER: Factor = Factor {
    name: "enforcer",
    help: "Whose rules enforce policies: own for those of the network's system, nft, iptables, \
           romana, romana-1, kube-router, weave-npc, calico-iptables, calico-iptables-nft, \
           calico-nftables, calico-ebpf, cilium",
    value_name: "NAMES",
    of: Some("policies"),
    reading: LevelSyntax::Level(|written, scene| {
        scene.policies.enforcer = written.word("enforcer", Enforcer::ALL, Enforcer::as_str)?;
        Ok(())
    }),
    level: |scene| in_policies(scene, |it| it.enforcer.as_str().to_owned()),
    label: named_enforcer,
    heading: |scene| said(named_enforcer(scene)),
    number: |_| None,
    one: "",
};

/// What is said of a scene's policies; empty where there are none.
fn in_policies(scene: &Scene, say: impl Fn(&Policies) -> String) -> String {
    match scene.policies.is_none() {
        true => String::new(),
        false => say(&scene.policies),
    }
}

/// Whose the rules are, unless that is said with the network.
fn named_enforcer(scene: &Scene) -> String {
    in_policies(scene, |it| match it.enforcer {
        Enforcer::Own => String::new(),
        named => named.as_str().to_owned(),
    })
}

fn policies_in_words(scene: &Scene) -> String {
    in_policies(scene, |it| in_words(it.count, "policy", "policies"))
}
