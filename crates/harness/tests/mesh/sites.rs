//! Simulated sites: nodes that are busy with one partner at a time and remember
//! whom they have met.

use plumbline_experiment::{Layout, Pairing};

/// A plan's pairing of this many nodes.
pub(crate) fn mesh(nodes: usize) -> Pairing {
    Pairing {
        layout: Layout::Mesh,
        nodes: (0..nodes).map(|node| format!("node-{node:04}")).collect(),
    }
}

/// The nodes, as a trial sees them.
pub(crate) struct Sites {
    /// The last round in which each took part, from 1.
    busy_in: Vec<u32>,
    /// A bit for each two nodes that have met.
    met: Vec<u64>,
    round: u32,
    trials: usize,
}

impl Sites {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            busy_in: vec![0; nodes],
            met: vec![0; (nodes * nodes).div_ceil(64)],
            round: 0,
            trials: 0,
        }
    }

    /// Runs a block's schedule to its end, and says how many trials there were.
    ///
    /// # Panics
    ///
    /// When a node is wanted twice in a round, or a pair meets twice.
    pub(crate) fn run(&mut self, mesh: &Pairing, seed: u64) -> usize {
        for (_, pairs) in mesh.schedule(seed, 0) {
            self.round += 1;
            for [client, server] in pairs {
                for node in [client, server] {
                    assert_ne!(
                        self.busy_in[node], self.round,
                        "node {node} twice in a round"
                    );
                    self.busy_in[node] = self.round;
                }
                let bit = client.min(server) * self.busy_in.len() + client.max(server);
                let word = &mut self.met[bit / 64];
                assert_eq!(*word & 1 << (bit % 64), 0, "{client} met {server} before");
                *word |= 1 << (bit % 64);
                self.trials += 1;
            }
        }
        self.trials
    }
}
