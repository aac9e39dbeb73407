//! The factors of a path: what packets go through where nothing is laid on it.

use super::row::{Factor, LevelSyntax};
use crate::tree::Data;
use crate::{Family, Placement, Scene, SpecError, section};

pub(super) const NETWORK: Factor = Factor {
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
};

pub(super) const PATH: Factor = Factor {
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
};

pub(super) const BACKENDS: Factor = Factor {
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
};

pub(super) const PLANTED: Factor = Factor {
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
};

pub(super) const SETTINGS: Factor = Factor {
    name: "settings",
    help: "What a variant of a network sets differently",
    value_name: "WORDS",
    of: None,
    reading: LevelSyntax::PartOfWord,
    level: settings,
    label: settings,
    heading: |_| None,
    number: |_| None,
    one: "",
};

/// Empty for a network as it is.
fn settings(scene: &Scene) -> String {
    let tuning = scene.variant.as_ref().map(|it| it.tuning.to_string());
    tuning.unwrap_or_default()
}

pub(super) const PLACEMENT: Factor = Factor {
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
};

pub(super) const FAMILY: Factor = Factor {
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
};
