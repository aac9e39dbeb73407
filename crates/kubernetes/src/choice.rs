//! Which nodes a run takes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::ClusterError;

/// Which nodes of a cluster are measured with which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterLayout {
    /// Two, or two pods on one.
    Pair,
    /// All with each other.
    Mesh,
    /// So many pairs at the same time.
    Pairs(usize),
}

/// What matters when nodes are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    pub(crate) name: String,
    /// Whether it is ready, may be given pods, and has no taint that keeps
    /// ours away (that of a control plane aside).
    pub(crate) usable: bool,
    pub(crate) control_plane: bool,
    /// What has to be equal for two nodes to be of one kind: architecture,
    /// instance type, CPUs, memory, kernel.
    pub(crate) kind: String,
    pub(crate) addresses: Vec<IpAddr>,
}

/// The nodes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Members {
    /// The clients' and the servers' node of a pair, or one where the cluster has no
    /// other; of a mesh or of pairs all, in the order in which pairs are made of them.
    pub(crate) nodes: Vec<NodeFacts>,
    /// What to distrust about them, each with its remedy after the last semicolon.
    pub(crate) remarks: Vec<String>,
}

/// Takes the nodes that were asked for. Otherwise a pair gets two of the largest
/// group of one kind, a mesh all ready workers, and pairs two each, those of one
/// kind beside each other. A control plane is taken only where there are too few
/// workers. A second run takes the same nodes.
///
/// # Errors
///
/// [`ClusterError::Nodes`] when there are too few nodes, or one that was asked for
/// cannot be used.
pub(crate) fn choose(
    nodes: &[NodeFacts],
    asked: &[String],
    layout: ClusterLayout,
) -> Result<Members, ClusterError> {
    let nodes = match layout {
        ClusterLayout::Pair => pair(nodes, asked)?,
        ClusterLayout::Mesh => many(nodes, asked, None)?,
        ClusterLayout::Pairs(pairs) => many(nodes, asked, Some(pairs))?,
    };
    let remarks = remarks(&nodes, layout);
    Ok(Members { nodes, remarks })
}

fn pair(nodes: &[NodeFacts], asked: &[String]) -> Result<Vec<NodeFacts>, ClusterError> {
    if asked.len() > 2 {
        return Err(ClusterError::Nodes(format!(
            "--nodes names {} nodes; a pair is two, and --mesh or --pairs N take more",
            asked.len()
        )));
    }
    if let [first, rest @ ..] = asked {
        let other = rest.iter().filter(|name| *name != first);
        let names = std::iter::once(first).chain(other);
        return names.map(|name| named(nodes, name)).collect();
    }
    let mut pool = usable(nodes, 2);
    pool.sort_by(|a, b| (a.control_plane, &a.name).cmp(&(b.control_plane, &b.name)));
    let mut kinds: BTreeMap<&str, Vec<&NodeFacts>> = BTreeMap::new();
    for node in &pool {
        kinds.entry(&node.kind).or_default().push(node);
    }
    let largest = kinds.into_values().max_by_key(Vec::len).unwrap_or_default();
    let taken = if largest.len() < 2 {
        pool.iter().collect()
    } else {
        largest
    };
    if taken.is_empty() {
        return Err(ClusterError::Nodes(format!(
            "none of the cluster's {} nodes is ready for pods; see `kubectl get nodes`",
            nodes.len()
        )));
    }
    Ok(taken.into_iter().take(2).cloned().collect())
}

fn many(
    nodes: &[NodeFacts],
    asked: &[String],
    pairs: Option<usize>,
) -> Result<Vec<NodeFacts>, ClusterError> {
    let wanted = pairs.map_or(2, |pairs| 2 * pairs);
    let mut taken = if asked.is_empty() {
        usable(nodes, wanted)
    } else {
        all_named(nodes, asked)?
    };
    if taken.len() < wanted {
        return Err(too_few(&taken, pairs));
    }
    if let Some(pairs) = pairs {
        if asked.len() > wanted {
            return Err(ClusterError::Nodes(format!(
                "--nodes names {} nodes, and --pairs {pairs} takes {wanted}: the first is paired \
                 with the second, the third with the fourth",
                asked.len()
            )));
        }
        taken.truncate(wanted);
    }
    Ok(taken)
}

fn named(nodes: &[NodeFacts], name: &str) -> Result<NodeFacts, ClusterError> {
    let Some(node) = nodes.iter().find(|node| node.name == name) else {
        let known: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        return Err(ClusterError::Nodes(format!(
            "--nodes: there is no node {name}; there are {}",
            known.join(", ")
        )));
    };
    if !node.usable {
        return Err(ClusterError::Nodes(format!(
            "--nodes: node {name} is not ready, cordoned, or has a taint that keeps pods away; \
             see `kubectl describe node {name}`"
        )));
    }
    Ok(node.clone())
}

/// Ready workers, and control planes where these are too few: by kind, so that
/// pairs are of one kind where they can be, then by name.
fn usable(nodes: &[NodeFacts], wanted: usize) -> Vec<NodeFacts> {
    let usable = nodes.iter().filter(|node| node.usable);
    let (mut planes, mut workers): (Vec<NodeFacts>, Vec<NodeFacts>) =
        usable.cloned().partition(|node| node.control_plane);
    for group in [&mut planes, &mut workers] {
        group.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    }
    if workers.len() < wanted {
        workers.append(&mut planes);
    }
    workers
}

fn all_named(nodes: &[NodeFacts], asked: &[String]) -> Result<Vec<NodeFacts>, ClusterError> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = asked.iter().find(|name| !seen.insert(*name)) {
        return Err(ClusterError::Nodes(format!(
            "--nodes names {twice} twice; a pair is of two nodes"
        )));
    }
    asked.iter().map(|name| named(nodes, name)).collect()
}

fn too_few(taken: &[NodeFacts], pairs: Option<usize>) -> ClusterError {
    let names: Vec<&str> = taken.iter().map(|node| node.name.as_str()).collect();
    let here = match names.as_slice() {
        [] => "no node is ready for pods".to_owned(),
        [one] => format!("only {one} is ready for pods"),
        several => format!(
            "{} are ready for pods ({})",
            several.len(),
            several.join(", ")
        ),
    };
    ClusterError::Nodes(match pairs {
        Some(pairs) => format!(
            "--pairs {pairs} takes {} nodes, and {here}; ask for at most --pairs {}, or see \
             `kubectl get nodes`",
            2 * pairs,
            taken.len() / 2
        ),
        None => format!("--mesh takes two nodes at least, and {here}; see `kubectl get nodes`"),
    })
}

fn remarks(taken: &[NodeFacts], layout: ClusterLayout) -> Vec<String> {
    let planes = taken.iter().filter(|node| node.control_plane);
    let remark = |node: &NodeFacts| {
        format!(
            "node {} runs the control plane, which takes its share of the CPU; add workers, or name \
             them with --nodes",
            node.name
        )
    };
    let mut remarks: Vec<String> = planes.map(remark).collect();
    let kinds: BTreeSet<&str> = taken.iter().map(|node| node.kind.as_str()).collect();
    remarks.extend(match (layout, taken) {
        _ if kinds.len() < 2 => None,
        (ClusterLayout::Pair, [near, far, ..]) => Some(format!(
            "the nodes are not of one kind: {} is {}, {} is {}, so a difference between paths may \
             be one between nodes; name two of one kind with --nodes",
            near.name, near.kind, far.name, far.kind
        )),
        _ => Some(format!(
            "the nodes are of {} kinds ({}), so one that is unlike the rest may only be of another \
             kind; name those of one kind with --nodes",
            kinds.len(),
            kinds.into_iter().collect::<Vec<_>>().join(" and ")
        )),
    });
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, kind: &str, control_plane: bool) -> NodeFacts {
        NodeFacts {
            name: name.to_owned(),
            usable: true,
            control_plane,
            kind: kind.to_owned(),
            addresses: Vec::new(),
        }
    }

    fn pair(nodes: &[NodeFacts], asked: &[String]) -> Result<Members, ClusterError> {
        choose(nodes, asked, ClusterLayout::Pair)
    }

    fn members(
        nodes: &[NodeFacts],
        asked: &[String],
        pairs: Option<usize>,
    ) -> Result<Members, ClusterError> {
        choose(
            nodes,
            asked,
            pairs.map_or(ClusterLayout::Mesh, ClusterLayout::Pairs),
        )
    }

    fn names(members: &Members) -> Vec<&str> {
        members.nodes.iter().map(|node| &*node.name).collect()
    }

    /// What reports begin these warnings with.
    fn remedies(members: &Members) -> Vec<&str> {
        let remarks = members.remarks.iter();
        remarks.map(|it| it.rsplit_once("; ").unwrap().1).collect()
    }

    #[test]
    fn two_workers_of_the_most_frequent_kind_are_taken() {
        let nodes = [
            node("a", "big", true),
            node("d", "small", false),
            node("c", "small", false),
            node("b", "big", false),
        ];
        let chosen = pair(&nodes, &[]).unwrap();
        assert_eq!(names(&chosen), ["c", "d"]);
        assert!(chosen.remarks.is_empty());
    }

    #[test]
    fn a_control_plane_is_taken_only_where_there_is_nothing_else_and_said() {
        let nodes = [node("a", "big", true), node("b", "big", false)];
        let chosen = pair(&nodes, &[]).unwrap();
        assert_eq!(names(&chosen), ["b", "a"]);
        assert!(chosen.remarks[0].contains("node a runs the control plane"));
        assert_eq!(
            remedies(&chosen),
            ["add workers, or name them with --nodes"]
        );
    }

    #[test]
    fn unequal_nodes_are_taken_and_said() {
        let nodes = [node("a", "big", false), node("b", "small", false)];
        let chosen = pair(&nodes, &[]).unwrap();
        assert_eq!(names(&chosen), ["a", "b"]);
        assert!(chosen.remarks[0].contains("not of one kind"));
        assert_eq!(remedies(&chosen), ["name two of one kind with --nodes"]);
    }

    #[test]
    fn one_node_is_enough_for_paths_within_it() {
        let mut cordoned = node("b", "big", false);
        cordoned.usable = false;
        let nodes = [node("a", "big", false), cordoned];
        assert_eq!(names(&pair(&nodes, &[]).unwrap()), ["a"]);
        let error = pair(&nodes[1..], &[]).unwrap_err().to_string();
        assert!(error.contains("none of the cluster's 1 nodes"), "{error}");
    }

    #[test]
    fn nodes_that_were_asked_for_are_taken_in_that_order() {
        let nodes = [node("a", "x", false), node("b", "x", false)];
        let asked = ["b".to_owned(), "a".to_owned()];
        assert_eq!(names(&pair(&nodes, &asked).unwrap()), ["b", "a"]);
        let error = pair(&nodes, &["z".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no node z; there are a, b"), "{error}");
    }

    #[test]
    fn a_mesh_is_of_all_workers() {
        let nodes = [
            node("plane", "x", true),
            node("b", "x", false),
            node("c", "y", false),
            node("a", "x", false),
        ];
        let mesh = members(&nodes, &[], None).unwrap();
        assert_eq!(names(&mesh), ["a", "b", "c"]);
        assert!(
            mesh.remarks[0].contains("2 kinds (x and y)"),
            "{:?}",
            mesh.remarks
        );
        assert_eq!(remedies(&mesh), ["name those of one kind with --nodes"]);
        let two = members(&nodes[..2], &[], None).unwrap();
        assert_eq!(names(&two), ["b", "plane"]);
        assert!(two.remarks[0].contains("control plane"));
    }

    #[test]
    fn pairs_are_of_one_kind_where_they_can_be() {
        let nodes = ["x", "y", "x", "y", "z"].iter().enumerate();
        let nodes: Vec<NodeFacts> = nodes
            .map(|(number, kind)| node(&format!("n{number}"), kind, false))
            .collect();
        let pairs = members(&nodes, &[], Some(2)).unwrap();
        assert_eq!(names(&pairs), ["n0", "n2", "n1", "n3"]);
    }

    #[test]
    fn too_few_nodes_are_refused_with_what_there_is() {
        let mut nodes = vec![node("a", "x", false), node("b", "x", false)];
        let error = members(&nodes, &[], Some(2)).unwrap_err().to_string();
        assert!(error.contains("--pairs 2 takes 4 nodes"), "{error}");
        assert!(error.contains("2 are ready for pods (a, b)"), "{error}");
        assert!(error.contains("at most --pairs 1"), "{error}");
        nodes[1].usable = false;
        let error = members(&nodes, &[], None).unwrap_err().to_string();
        assert!(error.contains("only a is ready"), "{error}");
    }

    #[test]
    fn nodes_that_were_asked_for_keep_their_order() {
        let nodes = ["a", "b", "c", "d"].map(|name| node(name, "x", false));
        let asked = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let taken = members(&nodes, &asked(&["d", "a"]), Some(1)).unwrap();
        assert_eq!(names(&taken), ["d", "a"]);
        let error = |names: &[&str], pairs| {
            let error = members(&nodes, &asked(names), pairs).unwrap_err();
            error.to_string()
        };
        assert!(error(&["a", "a"], None).contains("twice"));
        assert!(error(&["a", "b", "c"], Some(1)).contains("takes 2"));
        assert!(error(&["a", "z"], None).contains("no node z"));
    }
}
