//! The factors of a scene: one row of one table each.
//!
//! Keys of `[factors]`, flags, labels, columns of CSV and JSON, what a target is
//! asked whether it supports, and what two treatments must share to be compared
//! follow from these rows.

use crate::ceiling::{MAX_ENDPOINTS, MAX_MEMBERS, MAX_POLICIES, MAX_SERVICES};
use crate::section;
use crate::tree::{Data, SpannedValue};
use crate::{
    Enforcer, Family, Placement, Policies, PolicyDirection, PolicyPosition, Scene, Selected,
    ServicePosition, ServiceProxy, Services, SpecError,
};

/// A level as an experiment writes it, and where.
#[derive(Clone, Copy)]
pub struct WrittenLevel<'a>(pub(crate) &'a SpannedValue);

impl WrittenLevel<'_> {
    /// As one of some values that are words in files.
    fn word<T: Copy>(
        self,
        key: &str,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Result<T, SpecError> {
        let known: Vec<_> = all.iter().map(|it| (word(*it), *it)).collect();
        section::choice(key, self.0, &known)
    }
}

/// How the levels of a factor are read.
#[derive(Clone, Copy)]
pub enum LevelSyntax {
    /// A word that only the target can read: the name of a network or a path.
    Word,
    /// Part of a word, and so no key of its own: the backends of `cluster-ip:3`.
    PartOfWord,
    /// A level that is put into the scene.
    Level(fn(WrittenLevel<'_>, &mut Scene) -> Result<(), SpecError>),
}

/// A property of the scene that an experiment may vary.
pub struct Factor {
    /// Key in `[factors]`, long flag, and column: one word.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// What the help calls its levels.
    pub value_name: &'static str,
    /// The factor without which this one says nothing.
    pub of: Option<&'static str>,
    /// How levels are read.
    pub reading: LevelSyntax,
    /// The level of a scene, as written in files.
    pub level: fn(&Scene) -> String,
    /// The level as labels show it where the factor varies; empty for one that needs no
    /// mention.
    pub label: fn(&Scene) -> String,
    /// The level as headings show it, such as `IPv4`; `None` where it needs no
    /// mention, or the name of the network says it.
    pub heading: fn(&Scene) -> Option<String>,
    /// The level as a number, where a cost may grow with it; `None` for a level that
    /// is none.
    pub number: fn(&Scene) -> Option<f64>,
    /// What one more is called, such as `service`; empty where levels are no numbers.
    pub one: &'static str,
}

impl Factor {
    /// Whether experiments and flags may set it.
    pub fn is_key(&self) -> bool {
        !matches!(self.reading, LevelSyntax::PartOfWord)
    }

    /// The level of a scene, unless it is the default.
    pub fn departs(&self, scene: &Scene) -> Option<String> {
        let level = (self.level)(scene);
        (level != (self.level)(&Scene::default())).then_some(level)
    }

    /// The levels of all other factors, as labels show them: two scenes for which they
    /// are equal differ in this one alone. The network is there without what its word
    /// says of factors that have a row of their own.
    pub fn others(&self, scene: &Scene) -> Vec<String> {
        let others = FACTORS.iter().filter(|one| one.name != self.name);
        let label = |one: &Factor| match one.name {
            "network" => scene.network.clone(),
            _ => (one.label)(scene),
        };
        others.map(label).collect()
    }
}

/// All factors of a scene, in the order of labels and columns.
pub const FACTORS: &[Factor] = &[
    Factor {
        name: "network",
        help: "Networks to compare, by name or by system; `usual`, or `all` for every one that \
               works here; cni:FILE for a CNI configuration list; host+2us for a receiver that \
               computes for 2 µs before each answer",
        value_name: "NAMES",
        of: None,
        reading: LevelSyntax::Word,
        level: |scene| scene.name().into_owned(),
        label: |scene| scene.name().into_owned(),
        heading: |_| None,
        number: |_| None,
        one: "",
    },
    Factor {
        name: "path",
        help: "Paths within each network, where there are several clusters: host, pod, \
               cluster-ip …",
        value_name: "NAMES",
        of: None,
        reading: LevelSyntax::Word,
        level: |scene| scene.path.clone(),
        label: |scene| scene.path.clone(),
        heading: |_| None,
        number: |_| None,
        one: "",
    },
    Factor {
        name: "backends",
        help: "Receivers behind a service",
        value_name: "N",
        of: None,
        reading: LevelSyntax::PartOfWord,
        level: |scene| scene.backends.to_string(),
        label: |scene| format!("{} backends", scene.backends),
        heading: |_| None,
        number: |scene| Some(scene.backends.into()),
        one: "backend",
    },
    Factor {
        name: "planted",
        help: "Time that the receiver computes before each answer, as a known difference",
        value_name: "TIME",
        of: None,
        reading: LevelSyntax::PartOfWord,
        level: Scene::planted,
        label: |scene| format!("+{}", scene.planted()),
        heading: |_| None,
        number: |scene| Some(scene.planted_ns as f64),
        one: "ns planted",
    },
    Factor {
        name: "placement",
        help: "Where the endpoints are: cross-node, same-node",
        value_name: "PLACES",
        of: None,
        reading: LevelSyntax::Level(|written, scene| {
            let known = [Placement::CrossNode, Placement::SameNode].map(|it| (it.as_str(), it));
            scene.placement = section::choice("placement", written.0, &known)?;
            Ok(())
        }),
        level: |scene| scene.placement.as_str().to_owned(),
        label: |scene| scene.placement.as_str().to_owned(),
        heading: |scene| Some(scene.placement.as_str().to_owned()),
        number: |_| None,
        one: "",
    },
    Factor {
        name: "family",
        help: "IP versions: 4, 6",
        value_name: "VERSIONS",
        of: None,
        reading: LevelSyntax::Level(|written, scene| {
            scene.family = match written.0.data {
                Data::Integer(4) => Family::V4,
                Data::Integer(6) => Family::V6,
                _ => {
                    return Err(SpecError::at(
                        &written.0.place,
                        "`family` is neither 4 nor 6",
                        "write 4 for IPv4, 6 for IPv6, or [4, 6] for both",
                    ));
                }
            };
            Ok(())
        }),
        level: |scene| u8::from(scene.family).to_string(),
        label: |scene| format!("ipv{}", u8::from(scene.family)),
        heading: |scene| Some(format!("IPv{}", u8::from(scene.family))),
        number: |_| None,
        one: "",
    },
    Factor {
        name: "services",
        help: "Services whose rules stand on the nodes, such as 0,100,10000",
        value_name: "NUMBERS",
        of: None,
        reading: LevelSyntax::Level(|written, scene| {
            scene.services.count = section::whole("services", written.0, &(0..=MAX_SERVICES))?;
            Ok(())
        }),
        level: |scene| scene.services.count.to_string(),
        label: |scene| in_services(scene, |_| services_in_words(scene)),
        heading: |scene| (!scene.services.is_none()).then(|| services_in_words(scene)),
        number: |scene| Some(scene.services.count.into()),
        one: "service",
    },
    Factor {
        name: "endpoints",
        help: "Endpoints of each service; all are the one receiver",
        value_name: "NUMBERS",
        of: Some("services"),
        reading: LevelSyntax::Level(|written, scene| {
            let bounds = 1..=MAX_ENDPOINTS;
            scene.services.endpoints = section::whole("endpoints", written.0, &bounds)?;
            Ok(())
        }),
        level: |scene| scene.services.endpoints.to_string(),
        label: |scene| in_services(scene, |it| counted(it.endpoints, "endpoint")),
        heading: |scene| {
            let endpoints = scene.services.endpoints;
            (endpoints > 1).then(|| format!("{endpoints} endpoints"))
        },
        number: |scene| Some(scene.services.endpoints.into()),
        one: "endpoint",
    },
    Factor {
        name: "proxy",
        help: "Whose rules serve services: iptables-legacy, iptables-nft, nftables",
        value_name: "NAMES",
        of: Some("services"),
        reading: LevelSyntax::Level(|written, scene| {
            scene.services.proxy =
                written.word("proxy", ServiceProxy::ALL, ServiceProxy::as_str)?;
            Ok(())
        }),
        level: |scene| in_services(scene, |it| it.proxy.as_str().to_owned()),
        label: |scene| in_services(scene, |it| it.proxy.as_str().to_owned()),
        heading: |scene| {
            let proxy = scene.services.proxy.as_str();
            (!scene.services.is_none()).then(|| proxy.to_owned())
        },
        number: |_| None,
        one: "",
    },
    Factor {
        name: "position",
        help: "Which service is asked: first, middle, last, or none for the receiver itself",
        value_name: "WHERE",
        of: Some("services"),
        reading: LevelSyntax::Level(|written, scene| {
            scene.services.position =
                written.word("position", ServicePosition::ALL, ServicePosition::as_str)?;
            Ok(())
        }),
        level: |scene| in_services(scene, |it| it.position.as_str().to_owned()),
        label: |scene| in_services(scene, |it| it.position.as_str().to_owned()),
        heading: |scene| {
            let position = scene.services.position.as_str();
            (!scene.services.is_none()).then(|| format!("{position} asked"))
        },
        number: |_| None,
        one: "",
    },
    Factor {
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
    },
    Factor {
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
    },
    Factor {
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
    },
    Factor {
        name: "members",
        help: "Peers that each policy allows",
        value_name: "NUMBERS",
        of: Some("policies"),
        reading: LevelSyntax::Level(|written, scene| {
            scene.policies.members = section::whole("members", written.0, &(1..=MAX_MEMBERS))?;
            Ok(())
        }),
        level: |scene| scene.policies.members.to_string(),
        label: |scene| in_policies(scene, |it| in_words(it.members, "member", "members")),
        heading: |scene| {
            let members = scene.policies.members;
            (members > 1).then(|| format!("{members} members"))
        },
        number: |scene| Some(scene.policies.members.into()),
        one: "member",
    },
    Factor {
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
    },
    Factor {
        name: "enforcer",
        help: "Whose rules enforce policies: nft, iptables, romana, romana-1, kube-router, weave-npc",
        value_name: "NAMES",
        of: Some("policies"),
        reading: LevelSyntax::Level(|written, scene| {
            scene.policies.enforcer = written.word("enforcer", Enforcer::ALL, Enforcer::as_str)?;
            Ok(())
        }),
        level: |scene| in_policies(scene, |it| it.enforcer.as_str().to_owned()),
        label: |scene| in_policies(scene, |it| it.enforcer.as_str().to_owned()),
        heading: |scene| said(in_policies(scene, |it| it.enforcer.as_str().to_owned())),
        number: |_| None,
        one: "",
    },
];

/// What is said of a scene's services; empty where there are none.
fn in_services(scene: &Scene, say: impl Fn(&Services) -> String) -> String {
    match scene.services.is_none() {
        true => String::new(),
        false => say(&scene.services),
    }
}

/// What is said of a scene's policies; empty where there are none.
fn in_policies(scene: &Scene, say: impl Fn(&Policies) -> String) -> String {
    match scene.policies.is_none() {
        true => String::new(),
        false => say(&scene.policies),
    }
}

fn policies_in_words(scene: &Scene) -> String {
    in_policies(scene, |it| in_words(it.count, "policy", "policies"))
}

/// Words, if there are any.
fn said(words: String) -> Option<String> {
    (!words.is_empty()).then_some(words)
}

fn services_in_words(scene: &Scene) -> String {
    counted(scene.services.count, "service")
}

fn counted(number: u32, what: &str) -> String {
    in_words(number, what, &format!("{what}s"))
}

fn in_words(number: u32, one: &str, several: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {several}"),
    }
}

/// Keys of `[factors]` that concern the scene.
pub(crate) fn keys() -> Vec<&'static str> {
    let keys = FACTORS.iter().filter(|factor| factor.is_key());
    keys.map(|factor| factor.name).collect()
}

/// The level of a scene as files write it; `None` for a factor that does not exist.
pub fn level(scene: &Scene, factor: &str) -> Option<String> {
    let found = FACTORS.iter().find(|one| one.name == factor)?;
    Some((found.level)(scene))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planted_in_a_network_is_no_other_network() {
        let planted = |network: &str, planted_ns| Scene {
            planted_ns,
            ..Scene::of(network)
        };
        let factor = FACTORS.iter().find(|it| it.name == "planted").unwrap();
        let [none, some] = [0, 2_000].map(|ns| planted("host", ns));
        assert_eq!(factor.others(&none), factor.others(&some));
        assert_ne!(factor.others(&none), factor.others(&planted("vxlan", 0)));
        assert_eq!((factor.number)(&some), Some(2_000.0));
        let network = &FACTORS[0];
        assert_eq!(network.name, "network");
        assert_ne!(network.others(&none), network.others(&some));
    }

    #[test]
    fn what_has_numbers_says_what_one_more_is() {
        let scene = Scene::default();
        for factor in FACTORS {
            let has_number = (factor.number)(&scene).is_some();
            assert!(!has_number || !factor.one.is_empty(), "{}", factor.name);
        }
    }
}
