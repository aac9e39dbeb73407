//! The factors of neighbours.

use super::label::said;
use super::row::{Factor, LevelSyntax};
use crate::ceiling::MAX_PAIRS;
use crate::{NeighbourKind, Scene, SharedPart, section};

pub(super) const NEIGHBOURS: Factor = Factor {
    name: "neighbours",
    help: "Who works beside the path meanwhile: none, bulk, packets, connections, policy-churn, \
           cpu",
    value_name: "WORK",
    of: None,
    reading: LevelSyntax::Level(|written, scene| {
        scene.neighbours.kind =
            written.word("neighbours", NeighbourKind::ALL, NeighbourKind::as_str)?;
        Ok(())
    }),
    level: |scene| scene.neighbours.kind.as_str().to_owned(),
    label: beside,
    heading: |scene| said(beside(scene)),
    number: |_| None,
    one: "",
};

pub(super) const SHARE: Factor = Factor {
    name: "share",
    help: "What neighbours that send share with the path: node, or link for the way between \
           nodes too",
    value_name: "PARTS",
    of: Some("neighbours"),
    reading: LevelSyntax::Level(|written, scene| {
        scene.neighbours.share = written.word("share", SharedPart::ALL, SharedPart::as_str)?;
        Ok(())
    }),
    level: shared,
    label: on_what_is_shared,
    heading: |scene| said(on_what_is_shared(scene)),
    number: |_| None,
    one: "",
};

pub(super) const PAIRS: Factor = Factor {
    name: "pairs",
    help: "Pairs of endpoints that work at once, the measured one among them, such as 1,2,4,8",
    value_name: "NUMBERS",
    of: None,
    reading: LevelSyntax::Level(|written, scene| {
        let pairs = section::whole("pairs", written.0, &(1..=MAX_PAIRS))?;
        scene.neighbours = scene.neighbours.in_pairs(pairs);
        Ok(())
    }),
    level: |scene| scene.neighbours.pairs().to_string(),
    label: several_pairs,
    heading: |scene| said(several_pairs(scene)),
    number: |scene| Some(scene.neighbours.pairs().into()),
    one: "pair",
};

/// Empty for a path alone, and for one kind of neighbour that its own label names.
fn several_pairs(scene: &Scene) -> String {
    match scene.neighbours.further {
        0 => String::new(),
        _ => format!("{} pairs", scene.neighbours.pairs()),
    }
}

fn beside(scene: &Scene) -> String {
    match scene.neighbours.kind {
        NeighbourKind::None => String::new(),
        kind => format!("beside {}", kind.as_str()),
    }
}

/// Empty where nothing is sent, and so nothing but the nodes is shared.
fn shared(scene: &Scene) -> String {
    match scene.neighbours.kind.sends() {
        true => scene.neighbours.share.as_str().to_owned(),
        false => String::new(),
    }
}

fn on_what_is_shared(scene: &Scene) -> String {
    match &*shared(scene) {
        "" => String::new(),
        part => format!("on one {part}"),
    }
}
