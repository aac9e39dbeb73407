//! Which nodes a run takes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::ClusterError;

/// What a choice of nodes looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// Whether it is ready, may be given pods, and has no taint that keeps
    /// ours away (that of a control plane aside).
    pub usable: bool,
    /// Whether it runs the control plane.
    pub control_plane: bool,
    /// What has to be equal for two nodes to be of one kind: architecture,
    /// instance type, CPUs, memory, kernel.
    pub kind: String,
    /// Its own addresses.
    pub addresses: Vec<IpAddr>,
}

/// The nodes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Where the clients are.
    pub near: NodeFacts,
    /// Where the servers of paths between nodes are; `None` when the cluster
    /// has one usable node only.
    pub far: Option<NodeFacts>,
    /// What to distrust about them.
    pub remarks: Vec<String>,
}

/// Takes the nodes that were asked for, or else two workers of the largest
/// group of one kind, by name, so that a second run takes the same.
///
/// # Errors
///
/// [`ClusterError::Nodes`] when a node that was asked for cannot be used, or
/// none can.
pub fn choose(nodes: &[NodeFacts], asked: &[String]) -> Result<Chosen, ClusterError> {
    let (near, far) = match asked {
        [] => by_kind(nodes)?,
        [near] => (named(nodes, near)?, None),
        [near, far, ..] if near == far => (named(nodes, near)?, None),
        [near, far] => (named(nodes, near)?, Some(named(nodes, far)?)),
        more => {
            return Err(ClusterError::Nodes(format!(
                "--nodes names {} nodes; a pair is two, and --mesh or --pairs N take more",
                more.len()
            )));
        }
    };
    let mut remarks = Vec::new();
    for node in std::iter::once(&near).chain(&far) {
        if node.control_plane {
            remarks.push(format!(
                "node {} runs the control plane, which takes its share of the CPU; name workers \
                 with --nodes where there are any",
                node.name
            ));
        }
    }
    if let Some(far) = far.as_ref().filter(|far| far.kind != near.kind) {
        remarks.push(format!(
            "the nodes are not of one kind: {} is {}, {} is {}; a difference between paths may be \
             one between nodes",
            near.name, near.kind, far.name, far.kind
        ));
    }
    Ok(Chosen { near, far, remarks })
}

pub(crate) fn named(nodes: &[NodeFacts], name: &str) -> Result<NodeFacts, ClusterError> {
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

fn by_kind(nodes: &[NodeFacts]) -> Result<(NodeFacts, Option<NodeFacts>), ClusterError> {
    let usable: Vec<&NodeFacts> = nodes.iter().filter(|node| node.usable).collect();
    let workers: Vec<&NodeFacts> = usable
        .iter()
        .copied()
        .filter(|node| !node.control_plane)
        .collect();
    // A control plane only where there is nothing else.
    let mut pool = if workers.len() < 2 { usable } else { workers };
    // Workers before control planes, then by name.
    pool.sort_by(|a, b| (a.control_plane, &a.name).cmp(&(b.control_plane, &b.name)));
    let mut kinds: BTreeMap<&str, Vec<&NodeFacts>> = BTreeMap::new();
    for node in &pool {
        kinds.entry(&node.kind).or_default().push(node);
    }
    let largest = kinds.values().max_by_key(|group| group.len());
    match (largest.map(Vec::as_slice), pool.as_slice()) {
        (Some([near, far, ..]), _) | (_, [near, far, ..]) => {
            Ok(((*near).clone(), Some((*far).clone())))
        }
        (_, [only]) => Ok(((*only).clone(), None)),
        (_, []) => Err(ClusterError::Nodes(format!(
            "none of the cluster's {} nodes is ready for pods; see `kubectl get nodes`",
            nodes.len()
        ))),
    }
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

    fn names(chosen: &Chosen) -> (&str, Option<&str>) {
        let far = chosen.far.as_ref().map(|far| far.name.as_str());
        (chosen.near.name.as_str(), far)
    }

    #[test]
    fn two_workers_of_the_most_frequent_kind_are_taken() {
        let nodes = [
            node("a", "big", true),
            node("d", "small", false),
            node("c", "small", false),
            node("b", "big", false),
        ];
        let chosen = choose(&nodes, &[]).unwrap();
        assert_eq!(names(&chosen), ("c", Some("d")));
        assert!(chosen.remarks.is_empty());
    }

    #[test]
    fn a_control_plane_is_taken_only_where_there_is_nothing_else_and_said() {
        let nodes = [node("a", "big", true), node("b", "big", false)];
        let chosen = choose(&nodes, &[]).unwrap();
        assert_eq!(names(&chosen), ("b", Some("a")));
        assert!(chosen.remarks[0].contains("node a runs the control plane"));
    }

    #[test]
    fn unequal_nodes_are_taken_and_said() {
        let nodes = [node("a", "big", false), node("b", "small", false)];
        let chosen = choose(&nodes, &[]).unwrap();
        assert_eq!(names(&chosen), ("a", Some("b")));
        assert!(chosen.remarks[0].contains("not of one kind"));
    }

    #[test]
    fn one_node_is_enough_for_paths_within_it() {
        let mut cordoned = node("b", "big", false);
        cordoned.usable = false;
        let nodes = [node("a", "big", false), cordoned];
        assert_eq!(names(&choose(&nodes, &[]).unwrap()), ("a", None));
        let error = choose(&nodes[1..], &[]).unwrap_err().to_string();
        assert!(error.contains("none of the cluster's 1 nodes"), "{error}");
    }

    #[test]
    fn nodes_that_were_asked_for_are_taken_in_that_order() {
        let nodes = [node("a", "x", false), node("b", "x", false)];
        let asked = ["b".to_owned(), "a".to_owned()];
        assert_eq!(names(&choose(&nodes, &asked).unwrap()), ("b", Some("a")));
        let error = choose(&nodes, &["z".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no node z; there are a, b"), "{error}");
    }
}
