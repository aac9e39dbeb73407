//! Pairs of nodes as keys.

use serde::Serialize;

use crate::analysis::{Mesh, MeshMap, PairValue, Summary};
use crate::object::object;

/// What each pair of nodes showed.
pub(super) fn mesh<'a>(summary: &'a Summary, of: &'a Mesh) -> impl Serialize + use<'a> {
    let maps = of.maps.iter().map(|one| map(summary, of, one));
    object! { nodes: &of.nodes, maps: maps.collect::<Vec<_>>() }
}

/// What is unlike the rest is null when the nodes are too few to tell.
fn map<'a>(summary: &'a Summary, mesh: &'a Mesh, map: &'a MeshMap) -> impl Serialize + use<'a> {
    let treatment = &summary.treatments[map.treatment].treatment;
    let name = |node: usize| &*mesh.nodes[node];
    let names = |ends: [usize; 2]| ends.map(name);
    let pair = |one: &PairValue| {
        object! {
            client: name(one.ends[0]),
            server: name(one.ends[1]),
            value: one.value,
            trials: one.trials,
        }
    };
    let unlike = |wanted: bool| {
        let all = map.unlike.as_ref()?.iter();
        Some(all.filter(move |one| one.is_node() == wanted))
    };
    let node = |ends: [usize; 2], ratio: f64| object! { node: name(ends[0]), ratio: ratio };
    let both = |ends: [usize; 2], ratio: f64| object! { nodes: names(ends), ratio: ratio };
    let dead = |wanted: bool| {
        let all = map.dead.iter().map(|one| one.ends);
        all.filter(move |ends| (ends[0] == ends[1]) == wanted)
    };
    object! {
        label: &treatment.label,
        workload: treatment.task.name(),
        metric: map.metric.name(),
        typical: map.typical,
        pairs: map.pairs.iter().map(pair).collect::<Vec<_>>(),
        unlike_nodes: unlike(true)
            .map(|all| all.map(|one| node(one.ends, one.ratio)).collect::<Vec<_>>()),
        unlike_pairs: unlike(false)
            .map(|all| all.map(|one| both(one.ends, one.ratio)).collect::<Vec<_>>()),
        dead_nodes: dead(true).map(|ends| name(ends[0])).collect::<Vec<_>>(),
        dead_pairs: dead(false).map(names).collect::<Vec<_>>(),
    }
}
