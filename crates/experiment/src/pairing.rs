//! Which nodes of many are measured with each other, and when.

use std::iter;

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How pairs are made of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Every node with every other.
    Mesh,
    /// The first node with the second, the third with the fourth, and so on.
    Pairs,
}

/// Several pairs of nodes, on each of which every treatment of a block is run.
///
/// Pairs run at the same time when they share no node: a round. The rounds of a
/// mesh are an edge colouring of the complete graph by the circle method, known
/// from tournaments (Kirkman 1850): n − 1 rounds for an even number of nodes and
/// n for an odd one, in each of which every node has at most one partner. No
/// colouring has fewer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pairing {
    /// How pairs are made.
    pub layout: Layout,
    /// Names of the nodes; pairs are of positions in this list.
    pub nodes: Vec<String>,
}

/// Positions of two nodes: that of the sender, then that of the receiver.
pub type Ends = [usize; 2];

impl Pairing {
    /// Pairs of all of a mesh, or of all rounds.
    pub fn pairs(&self) -> usize {
        let nodes = self.nodes.len();
        match self.layout {
            Layout::Mesh => nodes * nodes.saturating_sub(1) / 2,
            Layout::Pairs => nodes / 2,
        }
    }

    /// Which of [`pairs`](Self::pairs) two nodes are, counted from 0, in
    /// either direction; `None` for nodes that are no pair of this pairing.
    pub fn number(&self, [one, other]: Ends) -> Option<usize> {
        let (low, high) = (one.min(other), one.max(other));
        let nodes = self.nodes.len();
        if low == high || high >= nodes {
            return None;
        }
        match self.layout {
            // Before those of `low` come the longer rows of all nodes before it.
            Layout::Mesh => Some(low * (2 * nodes - low - 1) / 2 + high - low - 1),
            Layout::Pairs => (low.is_multiple_of(2) && high == low + 1).then_some(low / 2),
        }
    }

    /// Rounds that it takes to measure every pair once.
    pub fn rounds(&self) -> usize {
        match self.layout {
            Layout::Mesh if self.nodes.len() < 2 => 0,
            // An odd number has one node idle in each round, as if its partner
            // were missing.
            Layout::Mesh => self.nodes.len().next_multiple_of(2) - 1,
            Layout::Pairs => 1,
        }
    }

    /// The rounds in the order in which a block runs them: another in each block,
    /// so that no pair is always first or last (C-1).
    pub fn order(&self, seed: u64, block: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rounds()).collect();
        // The blocks' own order is drawn from the seed itself.
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ (block as u64 + 1).rotate_left(32));
        order.shuffle(&mut random);
        order
    }

    /// The pairs of a round, which share no node. A node sends in about half of its
    /// pairs, and every other block swaps both ends of all pairs: a slow direction
    /// must not look like a slow node.
    pub fn round(&self, number: usize, block: usize) -> impl Iterator<Item = Ends> {
        let nodes = self.nodes.len();
        let circle = nodes.next_multiple_of(2).saturating_sub(1);
        let of_mesh = move |place: usize| match place {
            // The node that stays in place meets the one that the circle brings.
            0 => [number, circle],
            _ => [
                (number + place) % circle,
                (number + circle - place) % circle,
            ],
        };
        let layout = self.layout;
        let pairs = match layout {
            Layout::Mesh => nodes.div_ceil(2),
            Layout::Pairs => nodes / 2,
        };
        (0..pairs)
            .map(move |place| match layout {
                Layout::Mesh => balanced(of_mesh(place)),
                Layout::Pairs => [2 * place, 2 * place + 1],
            })
            .filter(move |ends| ends.iter().all(|&end| end < nodes))
            .map(move |ends| {
                if block.is_multiple_of(2) {
                    ends
                } else {
                    turned(ends)
                }
            })
    }

    /// The rounds of a block in their order, each with its number.
    pub fn schedule(
        &self,
        seed: u64,
        block: usize,
    ) -> impl Iterator<Item = (usize, impl Iterator<Item = Ends>)> {
        let mut order = self.order(seed, block).into_iter();
        iter::from_fn(move || {
            let number = order.next()?;
            Some((number, self.round(number, block)))
        })
    }
}

/// By the sum of the positions, so that every node is about as often the first
/// as the second.
fn balanced([one, other]: Ends) -> Ends {
    let ends = [one.min(other), one.max(other)];
    if (one + other).is_multiple_of(2) {
        turned(ends)
    } else {
        ends
    }
}

fn turned([client, server]: Ends) -> Ends {
    [server, client]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn pairing(layout: Layout, nodes: usize) -> Pairing {
        Pairing {
            layout,
            nodes: (0..nodes).map(|node| format!("node{node}")).collect(),
        }
    }

    #[test]
    fn a_mesh_has_every_pair_once_and_no_node_twice_in_a_round() {
        for nodes in 0..=33 {
            let mesh = pairing(Layout::Mesh, nodes);
            let mut met = BTreeSet::new();
            for (_, round) in mesh.schedule(7, 0) {
                let mut busy = BTreeSet::new();
                for [client, server] in round {
                    assert!(busy.insert(client) && busy.insert(server), "{nodes} nodes");
                    assert!(met.insert((client.min(server), client.max(server))));
                }
                // Nobody rests but the one that an odd number leaves over.
                assert_eq!(busy.len(), nodes - nodes % 2);
            }
            assert_eq!(met.len(), mesh.pairs(), "{nodes} nodes");
        }
    }

    #[test]
    fn a_node_sends_in_about_half_of_its_pairs_and_then_in_the_others() {
        let mesh = pairing(Layout::Mesh, 10);
        let senders = |block| -> Vec<usize> {
            let ends = (0..mesh.rounds()).flat_map(|round| mesh.round(round, block));
            ends.map(|[client, _]| client).collect()
        };
        for node in 0..10 {
            let sends = |block| senders(block).into_iter().filter(|it| *it == node).count();
            assert!((3..=6).contains(&sends(0)), "node {node}: {}", sends(0));
            assert_eq!(sends(0) + sends(1), 9);
        }
    }

    #[test]
    fn every_pair_has_a_number_of_its_own() {
        for (layout, nodes) in [(Layout::Mesh, 7), (Layout::Mesh, 8), (Layout::Pairs, 8)] {
            let pairing = pairing(layout, nodes);
            let rounds = (0..pairing.rounds()).flat_map(|round| pairing.round(round, 1));
            let numbers: BTreeSet<usize> =
                rounds.map(|ends| pairing.number(ends).unwrap()).collect();
            assert_eq!(numbers, (0..pairing.pairs()).collect());
        }
        assert_eq!(pairing(Layout::Pairs, 4).number([1, 2]), None);
        assert_eq!(pairing(Layout::Mesh, 4).number([1, 4]), None);
        assert_eq!(pairing(Layout::Mesh, 4).number([1, 1]), None);
    }

    #[test]
    fn rounds_come_in_an_order_of_their_own_in_each_block() {
        let mesh = pairing(Layout::Mesh, 12);
        assert_eq!(mesh.order(1, 0), mesh.order(1, 0));
        assert_ne!(mesh.order(1, 0), mesh.order(1, 1));
        assert_ne!(mesh.order(1, 0), mesh.order(2, 0));
        let mut sorted = mesh.order(1, 0);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..11).collect::<Vec<_>>());
    }

    #[test]
    fn pairs_are_neighbours_in_the_list() {
        let pairs = pairing(Layout::Pairs, 6);
        assert_eq!((pairs.rounds(), pairs.pairs()), (1, 3));
        let round: Vec<Ends> = pairs.round(0, 0).collect();
        assert_eq!(round, [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(pairs.round(0, 1).next(), Some([1, 0]));
    }
}
