//! The factors of a scene: one row of one table each.
//!
//! Keys of `[factors]`, flags, labels, columns of CSV and JSON, what a target is
//! asked whether it supports, and what two treatments must share to be compared
//! follow from these rows.

use crate::ceiling::{MAX_ENDPOINTS, MAX_SERVICES};
use crate::section;
use crate::source::SourceSpan;
use crate::tree::{Data, SpannedValue};
use crate::{Family, Placement, Scene, ServicePosition, ServiceProxy, Services, SpecError};

/// A level as an experiment writes it, and where.
#[derive(Clone, Copy)]
pub struct WrittenLevel<'a>(pub(crate) &'a SpannedValue);

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
            let known = ServiceProxy::ALL.map(|it| (it.as_str(), it));
            scene.services.proxy = section::choice("proxy", written.0, &known)?;
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
            let known = ServicePosition::ALL.map(|it| (it.as_str(), it));
            scene.services.position = section::choice("position", written.0, &known)?;
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
];

/// What is said of a scene's services; empty where there are none.
fn in_services(scene: &Scene, say: impl Fn(&Services) -> String) -> String {
    match scene.services.is_none() {
        true => String::new(),
        false => say(&scene.services),
    }
}

fn services_in_words(scene: &Scene) -> String {
    counted(scene.services.count, "service")
}

fn counted(number: u32, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
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

/// A name of a network or a path as an experiment writes it, before the target
/// says what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// Every one that works here.
    All,
    /// Those that people usually compare.
    Usual,
    /// One, by its name or another word for it.
    Named(&'a str),
}

impl<'a> Wanted<'a> {
    /// Reads a word.
    pub fn new(word: &'a str) -> Self {
        match word {
            "all" => Self::All,
            "usual" => Self::Usual,
            name => Self::Named(name),
        }
    }

    /// The word, as it is written.
    pub fn word(self) -> &'a str {
        match self {
            Self::All => "all",
            Self::Usual => "usual",
            Self::Named(name) => name,
        }
    }

    /// The name, unless it stands for a group.
    pub fn name(self) -> Option<&'a str> {
        match self {
            Self::All | Self::Usual => None,
            Self::Named(name) => Some(name),
        }
    }
}

/// What an experiment asks a target for: a network and, where the experiment
/// names one, a path in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The network.
    pub network: Wanted<'a>,
    /// The path; `None` for whatever paths the network is measured on.
    pub path: Option<Wanted<'a>>,
}

impl<'a> Asked<'a> {
    /// A network alone, as it is written.
    pub fn network(word: &'a str) -> Self {
        Self {
            network: Wanted::new(word),
            path: None,
        }
    }
}

/// A word of the file, and where it stands; the place is `None` for a default.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) place: Option<SourceSpan>,
}

impl Word {
    /// What holds where the file says nothing.
    pub(crate) fn default(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            place: None,
        }
    }

    pub(crate) fn written((text, place): (&str, &SourceSpan)) -> Self {
        Self {
            text: text.to_owned(),
            place: Some(place.clone()),
        }
    }
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
