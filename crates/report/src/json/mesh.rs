//! Pairs of nodes as keys.

use super::object::{Mesh, MeshMap, Pair, UnlikeNode, UnlikePair};
use crate::analysis::{self, Summary};

pub(super) fn mesh<'a>(summary: &'a Summary, of: &'a analysis::Mesh) -> Mesh<'a> {
    Mesh {
        nodes: &of.nodes,
        maps: of.maps.iter().map(|one| map(summary, of, one)).collect(),
    }
}

fn map<'a>(
    summary: &'a Summary,
    mesh: &'a analysis::Mesh,
    map: &'a analysis::MeshMap,
) -> MeshMap<'a> {
    let treatment = &summary.treatments[map.treatment].treatment;
    let name = |node: usize| &*mesh.nodes[node];
    let names = |ends: [usize; 2]| ends.map(name);
    let pair = |one: &analysis::PairValue| Pair {
        client: name(one.ends[0]),
        server: name(one.ends[1]),
        value: one.value,
        trials: one.trials,
    };
    let unlike = |wanted: bool| {
        let all = map.unlike.as_ref()?.iter();
        Some(all.filter(move |one| one.is_node() == wanted))
    };
    let dead = |wanted: bool| {
        let all = map.dead.iter().map(|one| one.ends);
        all.filter(move |ends| (ends[0] == ends[1]) == wanted)
    };
    MeshMap {
        label: &treatment.label,
        workload: &treatment.workload.name,
        metric: map.metric.name(),
        typical: map.typical,
        pairs: map.pairs.iter().map(pair).collect(),
        unlike_nodes: unlike(true).map(|all| {
            all.map(|one| UnlikeNode {
                node: name(one.ends[0]),
                ratio: one.ratio,
            })
            .collect()
        }),
        unlike_pairs: unlike(false).map(|all| {
            all.map(|one| UnlikePair {
                nodes: names(one.ends),
                ratio: one.ratio,
            })
            .collect()
        }),
        dead_nodes: dead(true).map(|ends| name(ends[0])).collect(),
        dead_pairs: dead(false).map(names).collect(),
    }
}
