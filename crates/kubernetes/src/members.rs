//! Which nodes take part where there are many.

use std::collections::BTreeSet;

use crate::ClusterError;
use crate::choice::{NodeFacts, named};

/// The nodes of a mesh, or of several pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// In the order in which pairs are made of them.
    pub nodes: Vec<NodeFacts>,
    /// What to distrust about them.
    pub remarks: Vec<String>,
}

/// Takes the nodes that were asked for, or else all ready workers for a mesh, or
/// two for each of `pairs`, those of one kind beside each other. A control plane
/// is taken only where there are too few others.
///
/// # Errors
///
/// [`ClusterError::Nodes`] when there are fewer nodes than it takes, or one that
/// was asked for cannot be used.
pub fn members(
    nodes: &[NodeFacts],
    asked: &[String],
    pairs: Option<usize>,
) -> Result<Members, ClusterError> {
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
        if !asked.is_empty() && asked.len() > wanted {
            return Err(ClusterError::Nodes(format!(
                "--nodes names {} nodes, and --pairs {pairs} takes {wanted}: the first is paired \
                 with the second, the third with the fourth",
                asked.len()
            )));
        }
        taken.truncate(wanted);
    }
    Ok(Members {
        remarks: remarks(&taken),
        nodes: taken,
    })
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

fn remarks(taken: &[NodeFacts]) -> Vec<String> {
    let mut remarks: Vec<String> = taken
        .iter()
        .filter(|node| node.control_plane)
        .map(|node| {
            format!(
                "node {} runs the control plane, which takes its share of the CPU",
                node.name
            )
        })
        .collect();
    let kinds: BTreeSet<&str> = taken.iter().map(|node| node.kind.as_str()).collect();
    if kinds.len() > 1 {
        let kinds: Vec<&str> = kinds.into_iter().collect();
        remarks.push(format!(
            "the nodes are of {} kinds ({}); a node that is unlike the rest may be of another kind",
            kinds.len(),
            kinds.join("; ")
        ));
    }
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

    fn names(members: &Members) -> Vec<&str> {
        members.nodes.iter().map(|node| &*node.name).collect()
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
        assert!(mesh.remarks[0].contains("2 kinds"), "{:?}", mesh.remarks);
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
